"""One conformance run: what it is to judge, and its way from targets to findings."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.baseline import Baseline
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter
from streamgauge.captures.gather import Captures
from streamgauge.captures.secrets import redact_text
from streamgauge.conformance.blotted import blotted
from streamgauge.conformance.check import CHECKS, Case, Check, select
from streamgauge.conformance.exploring.budget import EXPLORE_TOKENS
from streamgauge.conformance.honour import honour_rows
from streamgauge.conformance.inferring import inferred_lines
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.conformance.plan import NotRun, Plan, plan
from streamgauge.conformance.recording import record
from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.redaction import Redactor
from streamgauge.target import Target
from streamgauge.traceability import traceability_lines
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Limits

__all__ = ["Item", "Settings", "checks_in", "record_into", "require_known", "take_into"]


@dataclass(frozen=True, slots=True)
class Item:
    """One test of the suite: a check on one operation of one target."""

    check: Check
    target: Target
    operation: Operation

    @property
    def id(self) -> str:
        """How pytest names it."""
        return f"{self.check.id}-{self.target.name}-{self.operation.name}"


@dataclass
class Settings:
    """
    What a run is to do.

    Attributes:
        targets: whom to ask; their models are known once the preflight is over.
        directory: the bundle's.
        sections: ids or topics of checks to judge; all when empty.
        select: topics or ids of probes to send; all when empty.
        destructive: whether to send requests that have killed engines, too.
        detect_rate: rate of faults that the repetitions of each probe are to show; None sends each probe once.
        explore_tokens: what the explorations of one operation may cost, as far as the probes leave it of the budget; None
            for the usual number, 0 for none of them.
        explore_seed: of all that is drawn at random.
        on_plan, on_exchange: told what is planned, then what happens.
        on_exploring, on_explored: told how many explorations there are, then when each is over.
        interrupted: set when the user stopped the recording.
    """

    targets: list[Target]
    directory: Path
    sections: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    budget_tokens: int | None = None
    detect_rate: float | None = None
    explore_tokens: int | None = None
    explore_seed: int = 0
    destructive: bool = False
    limits: Limits = field(default_factory=Limits)
    baseline: Baseline | None = None
    on_plan: Callable[[Plan], None] = lambda plan: None
    on_exchange: Callable[[Exchange], None] = lambda exchange: None
    on_exploring: Callable[[int], None] = lambda count: None
    on_explored: Callable[[], None] = lambda: None
    interrupted: bool = False

    def items(self) -> list[Item]:
        """Every test, known before any traffic."""
        return [
            Item(check, target, operation)
            for target in self.targets
            for operation in target.contract.operations
            for check in checks_in(self.sections)
        ]

    @functools.cached_property
    def _exchanges(self) -> list[Exchange]:
        return list(Bundle(self.directory).exchanges.values())

    @functools.cached_property
    def _models(self) -> dict[str, str]:
        # A worker of pytest-xdist had no preflight: the bundle tells which model was found.
        return {target["name"]: target["model"] for target in Bundle(self.directory).meta["targets"]}

    @functools.cached_property
    def _cases(self) -> dict[tuple[str, str], list[Case]]:
        return {
            (target.name, operation.name): cases_of(
                self._exchanges,
                operation,
                target.contract,
                target=target.name,
                model=self._models[target.name],
            )
            for target in self.targets
            for operation in target.contract.operations
        }

    @functools.cached_property
    def _redactors(self) -> dict[str, Redactor]:
        return {target.name: target.redactor for target in self.targets}

    def infer_into(self, writer: BundleWriter) -> None:
        """Write the schemas of the answers that the documents leave open, if there are any."""
        if lines := inferred_lines(self._cases):
            writer.inferred(lines)

    def judge(self, item: Item) -> Finding:
        """What the item's check finds in the bundle."""
        cases = self._cases[item.target.name, item.operation.name]
        found = judge(item.check, cases, item.operation, item.target.contract, item.target.name)
        return blotted(found, self._redactors[item.target.name])

    def honour(self, findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The honour table of every operation, given the lines of all findings."""
        findings = list(findings)
        return [
            row
            for target in self.targets
            for operation in target.contract.operations
            for row in honour_rows(
                operation, target.contract, target.name, self._cases[target.name, operation.name], findings
            )
        ]


def checks_in(sections: Iterable[str]) -> list[Check]:
    """
    The checks of these sections.

    Raises:
        UsageError: a section names nothing.
    """
    sections = tuple(sections)
    for section in sections:
        if not any(True for _ in select([section])):
            topics = ", ".join(dict.fromkeys(check.topic for check in CHECKS.values()))
            raise UsageError(
                f"no check is called {section}",
                hint=f"Topics: {topics}. `streamgauge list checks` shows every id.",
            )
    return list(select(sections))


def require_known(baseline: Baseline) -> None:
    """
    Refuse a baseline that names a check which does not exist: nothing would ever make that entry stale.

    Raises:
        UsageError: it does.
    """
    for entry in baseline.entries:
        if entry.check not in CHECKS:
            hint = "`streamgauge list checks` shows every id."
            raise UsageError(f"no check is called {entry.check}", where=baseline.name, hint=hint)


def record_into(settings: Settings, writer: BundleWriter, meta: dict[str, Any]) -> None:
    """
    Plan, write down what is planned, then send.

    A Ctrl-C ends the sending, not the run: what was recorded until then is judged.
    """
    planned = plan(
        settings.targets,
        select=settings.select,
        budget_tokens=settings.budget_tokens,
        detect_rate=settings.detect_rate,
        destructive=settings.destructive,
    )
    settings.on_plan(planned)
    writer.checks([check.declaration() for check in CHECKS.values()])
    sent = {"budget_tokens": planned.budget_tokens, "detect_rate": settings.detect_rate, "tries": planned.tries}
    explored = {"tokens": _explore_tokens(settings), "seed": settings.explore_seed}
    meta = {**meta, **sent, "explore": explored}
    _write_meta(writer, meta, planned.not_run)
    stopped: list[NotRun] = []
    try:
        stopped = record(planned.planned, writer.path, limits=settings.limits, on_exchange=settings.on_exchange)
        if explored["tokens"]:
            _explore(settings, writer, planned)
    except KeyboardInterrupt:
        settings.interrupted = True
    if stopped:
        _write_meta(writer, meta, [*planned.not_run, *planned.named(stopped)])
    settings.infer_into(writer)
    _write_traceability(writer, settings.targets)


def _explore_tokens(settings: Settings) -> int:
    return EXPLORE_TOKENS if settings.explore_tokens is None else settings.explore_tokens


def _explore(settings: Settings, writer: BundleWriter, planned: Plan) -> None:
    """Draw requests at random; what is found until a Ctrl-C is kept."""
    from streamgauge.conformance.exploring.explore import Exploring

    exploring = Exploring(
        settings.targets,
        checks_in(settings.sections),
        list(Bundle(writer.path).exchanges.values()),
        tokens=_explore_tokens(settings),
        left=planned.left,
        seed=settings.explore_seed,
        select=settings.select,
        limits=settings.limits,
        on_explored=lambda line: settings.on_explored(),
    )
    if not exploring.planned:
        return
    settings.on_exploring(len(exploring.planned))
    try:
        exploring.into(writer.path)
    finally:
        writer.explored(exploring.lines)


def take_into(captures: Captures, writer: BundleWriter, meta: dict[str, Any]) -> None:
    """Write captured exchanges into the bundle in place of recorded ones: it holds all that its verdict stands on."""
    writer.checks([check.declaration() for check in CHECKS.values()])
    rows = [
        {"probe": redact_text(each.capture), "target": each.target, "operation": "", "reason": each.reason}
        for each in captures.not_judged
    ]
    targets = [{**each, "key": each["key"] or each["name"] in captures.keyed} for each in meta["targets"]]
    writer.meta({**meta, "targets": targets, "from": list(captures.names), "not_run": rows})
    _write_traceability(writer, captures.targets)
    file = writer.exchanges("captured")
    try:
        for exchange in captures.exchanges:
            file.write(exchange)
    finally:
        file.close()


def _write_traceability(writer: BundleWriter, targets: list[Target]) -> None:
    if lines := traceability_lines(targets):
        writer.traceability(lines)


def _write_meta(writer: BundleWriter, meta: dict[str, Any], not_run: list[NotRun]) -> None:
    rows = [
        {"probe": item.probe, "target": item.target, "operation": item.operation, "reason": item.reason}
        for item in not_run
    ]
    writer.meta({**meta, "not_run": rows})
