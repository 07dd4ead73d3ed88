"""The conformance part of `check` and `run`: progress while it goes, a table of what was found at the end."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from streamgauge.baseline import Baseline
from streamgauge.bundle.layout import INFERRED
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter
from streamgauge.detection import tally, tries_for
from streamgauge.outcomes import ExitCode, Level, Outcome, exit_code_of
from streamgauge.target import Target

if TYPE_CHECKING:
    from streamgauge.captures.gather import Captures

__all__ = ["CheckPart", "check_captures", "check_into", "print_findings"]


@dataclasses.dataclass(frozen=True, slots=True)
class CheckPart:
    """What `check` and `run` may be told about checking."""

    sections: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    budget_tokens: int | None = None
    detect_rate: float | None = None
    explore_tokens: int | None = None
    explore_seed: int | None = None
    destructive: bool = False
    concurrency: int | None = None
    baseline: Baseline | None = None
    write_baseline: Path | None = None
    verbose: bool = False

    @property
    def about_sending(self) -> list[str]:
        """The options given that make sense only where probes are sent."""
        said = {
            "--select": self.select,
            "--budget-tokens": self.budget_tokens,
            "--detect-rate": self.detect_rate,
            "--explore-tokens": self.explore_tokens,
            "--explore-seed": self.explore_seed,
            "--destructive": self.destructive or None,
            "--concurrency": self.concurrency,
        }
        return [option for option, value in said.items() if value not in ((), None)]

    def require_sense(self) -> None:
        """
        Refuse what cannot be judged, before anything is sent.

        Raises:
            UsageError: a section or an entry of the baseline names no check; no tries detect the rate.
        """
        from streamgauge.conformance.session import checks_in, require_known

        checks_in(self.sections)
        if self.detect_rate is not None:
            tries_for(self.detect_rate)
        if self.baseline is not None:
            require_known(self.baseline)

    def require_probes(self, targets: list[Target]) -> None:
        """
        Refuse a selection of probes that selects nothing, before anything is sent.

        Raises:
            UsageError: a name is that of no probe of these targets.
        """
        if self.select:
            from streamgauge.conformance.plan import require_probes

            require_probes(targets, self.select, destructive=self.destructive)


def check_into(
    writer: BundleWriter, meta: dict[str, Any], targets: list[Target], part: CheckPart, console: Console
) -> bool:
    """
    Record and judge; everything is in the bundle afterwards.

    Returns:
        Whether the user interrupted the recording.

    Raises:
        CannotTellError: the suite itself broke.
    """
    from streamgauge.conformance.plan import Plan
    from streamgauge.conformance.runner import judge_all, throwaway_hypothesis
    from streamgauge.conformance.session import Settings, record_into
    from streamgauge.wire.exchange import Exchange
    from streamgauge.wire.recorder import Limits

    settings = Settings(
        targets=targets,
        directory=writer.path,
        sections=part.sections,
        select=part.select,
        budget_tokens=part.budget_tokens,
        detect_rate=part.detect_rate,
        explore_tokens=part.explore_tokens,
        explore_seed=part.explore_seed or 0,
        destructive=part.destructive,
        limits=Limits(concurrency=part.concurrency or Limits().concurrency),
        baseline=part.baseline,
    )
    with _progress(console) as progress, throwaway_hypothesis():
        sending = progress.add_task("sending probes", total=None)
        drawing = progress.add_task("drawing at random", total=None, visible=False)
        judging = progress.add_task("judging", total=len(settings.items()), visible=False)

        def on_plan(plan: Plan) -> None:
            progress.update(sending, total=len(plan.planned))
            if not console.is_terminal:
                tries = f", each curated one up to {plan.tries} times" if plan.tries > 1 else ""
                console.print(f"sending {len(plan.planned)} probes{tries}, up to {plan.tokens} tokens")
            if plan.not_run:
                count = f"{len(plan.not_run)} probe{'' if len(plan.not_run) == 1 else 's'}"
                console.print(f"left out by the budget, wholly or in part: {count}; the report says which and why")

        def on_exchange(exchange: Exchange) -> None:
            if not exchange.rate_limited:
                progress.advance(sending)

        def on_exploring(count: int) -> None:
            progress.update(drawing, total=count, visible=True)
            console.print(f"drawing requests at random: {count} explorations, seed {settings.explore_seed}")

        settings.on_plan, settings.on_exchange = on_plan, on_exchange
        settings.on_exploring, settings.on_explored = on_exploring, lambda: progress.advance(drawing)
        record_into(settings, writer, meta)
        if (inferred := writer.path / INFERRED).exists():
            console.print(f"answers that the document leaves open: the schema seen is in {inferred}", markup=False)
        progress.update(judging, visible=True)
        judge_all(settings, on_item=lambda: progress.advance(judging))
    return settings.interrupted


def check_captures(
    captures: "Captures", writer: BundleWriter, meta: dict[str, Any], part: CheckPart, console: Console
) -> bool:
    """
    Judge what was captured; everything is in the bundle afterwards.

    Returns:
        Whether the user interrupted the judging.

    Raises:
        CannotTellError: the suite itself broke.
    """
    from streamgauge.conformance.runner import judge_all
    from streamgauge.conformance.session import Settings, take_into

    settings = Settings(targets=captures.targets, directory=writer.path, sections=part.sections, baseline=part.baseline)
    with _progress(console) as progress:
        judging = progress.add_task("judging", total=len(settings.items()))
        take_into(captures, writer, meta)
        judge_all(settings, on_item=lambda: progress.advance(judging))
    return settings.interrupted


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal or console.quiet,
    )


_STYLE = {
    Outcome.ERROR: "magenta",
    Outcome.FAIL: "bold red",
    Outcome.IGNORED: "red",
    Outcome.WARN: "yellow",
    Outcome.INCONCLUSIVE: "cyan",
    Outcome.REFUSED: "blue",
    Outcome.PASS: "green",
}


def print_findings(directory: Path, console: Console, *, verbose: bool) -> None:
    """A table of outcomes, then each finding that counts; with `verbose` also those that do not, and the passes."""
    findings = Bundle(directory).findings
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("operation")
    shown = [outcome for outcome in Outcome if any(f["outcome"] == outcome for f in findings)]
    for outcome in shown:
        table.add_column(outcome.value, justify="right", style=_STYLE.get(outcome, "dim"))
    for name, counts in _by_operation(findings).items():
        table.add_row(name, *(str(counts[outcome] or "") for outcome in shown))
    console.print(table)
    passed = [finding for finding in findings if finding["outcome"] == Outcome.PASS]
    if verbose:
        for finding in passed:
            console.print(_headline([finding]), style="dim", markup=False, highlight=False)
    elif passed:
        fewest, most = (choose(sum(f["counts"].values()) for f in passed) for choose in (min, max))
        console.print(
            f"passes stand on {fewest} to {most} exchanges each; --verbose and the report say which rate of faults "
            "each excludes",
            style="dim",
        )
    shown_alike = _alike(findings, verbose=verbose)
    for number, alike in enumerate(shown_alike):
        if verbose or number < _IN_FULL:
            _print_in_full(alike if verbose else alike[:1], alike, console)
        else:
            console.print(_headline(alike), style=_style(alike), markup=False, highlight=False)
    if not verbose and len(shown_alike) > _IN_FULL:
        console.print("what was expected and what came: see the report, or --verbose", style="dim")


_IN_FULL = 8
"""How many checks are shown with what they expected; a screen holds no more."""


def _alike(findings: Sequence[Mapping[str, Any]], *, verbose: bool) -> list[list[Mapping[str, Any]]]:
    """What is to be shown, most severe first; what one check says alike of several operations is one entry."""
    entries: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for finding in sorted(findings, key=lambda f: list(Outcome).index(Outcome(f["outcome"]))):
        outcome, level = Outcome(finding["outcome"]), Level(finding["level"])
        counts_for_gate = exit_code_of(outcome, level) is not ExitCode.PASS
        if counts_for_gate or (verbose and outcome in (Outcome.IGNORED, Outcome.WARN, Outcome.REFUSED)):
            known = (finding.get("known") or {}).get("expires", "")
            entries.setdefault((outcome, finding["check"], known), []).append(finding)
    return list(entries.values())


def _by_operation(findings: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for finding in findings:
        counts.setdefault(f"{finding['target']}: {finding['operation']}", Counter())[finding["outcome"]] += 1
    return counts


def _print_in_full(shown: Sequence[Mapping[str, Any]], alike: Sequence[Mapping[str, Any]], console: Console) -> None:
    """The headline of an entry, and an example of each of the findings shown."""
    console.print(f"\n{_headline(alike)}", style=_style(alike), markup=False, highlight=False)
    for finding in shown:
        if len(shown) > 1:
            console.print(f"  {finding['operation']}", markup=False, highlight=False)
        for example in finding["examples"][:1]:
            console.print(f"  expected {example['expected']}", markup=False, highlight=False)
            console.print(f"  actual   {example['actual']}", markup=False, highlight=False)
        if finding["reason"] and finding["reason"] not in [each["actual"] for each in finding["examples"][:1]]:
            console.print(f"  {finding['reason']}", markup=False, highlight=False)


def _style(alike: Sequence[Mapping[str, Any]]) -> str:
    return "dim" if alike[0].get("known") else _STYLE.get(Outcome(alike[0]["outcome"]), "")


def _headline(alike: Sequence[Mapping[str, Any]]) -> str:
    """Outcome, check, level, and for each operation how many of how many exchanges."""
    first = alike[0]
    known, outcome = first.get("known"), Outcome(first["outcome"])
    label = f"known until {known['expires']}" if known else outcome.value
    names = [each["operation"] for each in alike]
    if len(set(names)) < len(names):
        names = [f"{each['target']}, {each['operation']}" for each in alike]
    told = "; ".join(f"{name}: {tally(outcome, each['counts'])}" for name, each in zip(names, alike, strict=True))
    return f"{label} {first['check']} [{first['level']}] {told}"
