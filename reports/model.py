"""The report before it is laid out: everything that the outputs say about a bundle, computed once."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Outcome
from streamgauge.reports.auth import KeyForm, key_forms
from streamgauge.reports.explored import Exploration, Failure, explorations_in
from streamgauge.reports.findings import Finding, findings_of
from streamgauge.reports.honour import HonourTable, honour_table
from streamgauge.reports.load import LoadReport, load_report
from streamgauge.reports.traceability import Statements, statements_in
from streamgauge.reports.words import plural

__all__ = ["Report", "Step", "Topic", "Verdict", "counted", "report_of"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    The gate's decision and what it means.

    Attributes:
        word: pass, fail, inconclusive, interrupted or none (the run did not reach the gate).
        meaning: in one sentence.
        exit_code: of the process; None without a verdict.
        reasons: the gate's own.
        baseline: known, stale and expired entries; empty when no baseline was used.
    """

    word: str
    meaning: str
    exit_code: int | None
    reasons: tuple[str, ...]
    baseline: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do next, and the place in the report that it is about."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Topic:
    """The findings of the checks whose id begins with one word, most severe first."""

    name: str
    findings: tuple[Finding, ...]
    cells: tuple[dict[Outcome, int], ...]
    """Findings by outcome, for each column of :attr:`Report.columns`."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """
    The schema of answers that the document leaves open.

    Attributes:
        form: `whole` or `chunk`.
        instances: how many were seen.
        text: the schema as JSON.
    """

    target: str
    operation: str
    form: str
    instances: int
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that can be said about one run."""

    meta: dict[str, Any]
    verdict: Verdict
    steps: tuple[Step, ...]
    columns: tuple[tuple[str, str], ...]
    """Target and operation of each column of the overview."""

    topics: tuple[Topic, ...]
    """Those with the most severe findings first."""

    findings: tuple[Finding, ...]
    inferred: tuple[Inferred, ...]
    """Of answers that the documents leave open."""

    statements: tuple[Statements, ...]
    """Of the operations whose documents we ship."""

    honour: HonourTable
    """What each operation does about the properties of requests."""

    explored: tuple[Exploration, ...]
    """What requests drawn at random have shown."""

    keys: tuple[KeyForm, ...]
    """The forms of the key that were tried out."""

    load: LoadReport | None
    """None when no load was applied."""

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many findings have which outcome."""
        return counted(self.findings)

    @property
    def smallest(self) -> dict[str, list[tuple[Exploration, Failure]]]:
        """By the place of a finding, the explorations that found its check, with the smallest request that still fails."""
        found: dict[str, list[tuple[Exploration, Failure]]] = {}
        for each in self.explored:
            if each.failure and each.failure.anchor:
                found.setdefault(each.failure.anchor, []).append((each, each.failure))
        return found

    @property
    def captured(self) -> bool:
        """Whether stored answers were judged, and nothing was sent."""
        return "from" in self.meta

    @property
    def widened(self) -> list[Finding]:
        """The findings in which something passed only because the profile lets it."""
        return [finding for finding in self.findings if finding.widened]


_MEANING = {
    "pass": "No MUST is broken, and the gate's other conditions hold.",
    "fail": "At least one MUST is broken, or another condition of the gate does not hold.",
    "inconclusive": "The evidence allows no verdict: this is neither a pass nor a fail.",
    "interrupted": "The run was stopped before its end; what it saw until then is here.",
    "none": "The run did not reach its gate; what it saw until then is here.",
}


def report_of(directory: Path) -> Report:
    """
    The report on the bundle in `directory`.

    Raises:
        BundleError: there is no bundle that this version reads.
    """
    bundle = Bundle(directory)
    findings = tuple(findings_of(bundle))
    columns = _columns(bundle.meta, findings)
    verdict = _verdict(bundle.gate)
    load = load_report(bundle)
    return Report(
        meta=bundle.meta,
        verdict=verdict,
        steps=tuple(_steps(verdict, findings, load, bundle.meta)),
        columns=columns,
        topics=tuple(_topics(findings, columns)),
        findings=findings,
        inferred=tuple(_inferred(line) for line in bundle.inferred),
        statements=statements_in(bundle, findings),
        honour=honour_table(bundle, columns, findings),
        explored=explorations_in(bundle, findings),
        keys=key_forms(bundle, columns),
        load=load,
    )


def _inferred(line: dict[str, Any]) -> Inferred:
    said = {name: line[name] for name in ("target", "operation", "form", "instances")}
    return Inferred(**said, text=json.dumps(line["schema"], indent=2, sort_keys=True))


def _verdict(gate: dict[str, Any]) -> Verdict:
    word = gate.get("verdict", "none")
    return Verdict(
        word=word,
        meaning=_MEANING[word],
        exit_code=gate.get("exit_code"),
        reasons=tuple(gate.get("reasons", ())),
        baseline=gate.get("baseline", {}),
    )


def _columns(meta: dict[str, Any], findings: Iterable[Finding]) -> tuple[tuple[str, str], ...]:
    """The contract's operations in its order, then whatever else findings are about."""
    declared = [(target["name"], operation["name"]) for target in meta["targets"] for operation in target["operations"]]
    concerned = {(finding.target, finding.operation) for finding in findings}
    return tuple(column for column in declared if column in concerned) + tuple(sorted(concerned - set(declared)))


def _topics(findings: Iterable[Finding], columns: tuple[tuple[str, str], ...]) -> Iterator[Topic]:
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:  # sorted by severity, so topics come in the order of their worst finding
        by_name.setdefault(finding.topic, []).append(finding)
    for name, members in by_name.items():
        cells = tuple(
            counted(finding for finding in members if (finding.target, finding.operation) == column)
            for column in columns
        )
        yield Topic(name, tuple(members), cells)


def counted(findings: Iterable[Finding]) -> dict[Outcome, int]:
    """How many of them have which outcome, most severe first; only outcomes that occur."""
    counts = Counter(finding.outcome for finding in findings)
    return {outcome: counts[outcome] for outcome in Outcome if outcome in counts}


def _steps(
    verdict: Verdict, findings: tuple[Finding, ...], load: LoadReport | None, meta: dict[str, Any]
) -> Iterator[Step]:
    broken: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.breaks_must and not finding.known:
            broken.setdefault(finding.check, []).append(finding)
    for check, alike in broken.items():
        where = "; ".join(f"{finding.target}, {finding.operation}" for finding in alike)
        yield Step(f"Fix {check}: {alike[0].title} ({where})", alike[0].anchor)
    errors = [finding for finding in findings if finding.outcome is Outcome.ERROR]
    if errors:
        told = f"Report {plural(len(errors), 'error')} of the harness itself: they say nothing about the server"
        yield Step(told, errors[0].anchor)
    expired, stale = verdict.baseline.get("expired", []), verdict.baseline.get("stale", [])
    if expired:
        yield Step(f"Fix, or date anew, what the baseline excused until now: {', '.join(expired)}", "verdict")
    if stale:
        yield Step(f"Delete baseline entries that no longer fail: {', '.join(stale)}", "verdict")
    undecided = [finding for finding in findings if finding.outcome is Outcome.INCONCLUSIVE]
    if undecided:
        told = f"Run {plural(len(undecided), 'inconclusive check')} again once the reasons are gone"
        yield Step(told, undecided[0].anchor)
    if load:
        yield from (Step(text, anchor) for text, anchor in load.steps)
    if meta.get("not_run") and "from" not in meta:
        yield Step(f"Decide whether {plural(len(meta['not_run']), 'unsent probe')} would matter to you", "not-sent")
