"""The way of `check`, `load` and `run` from a preflight to the last line: bundle, parts, gate, report, exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from streamgauge.bundle.layout import GATE
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import write_whole
from streamgauge.gate import Gate, decide
from streamgauge.outcomes import ExitCode
from streamgauge.target import Target

if TYPE_CHECKING:
    from streamgauge.cli.checking import CheckPart
    from streamgauge.cli.loading import LoadPart
    from streamgauge.config import TargetFlags

__all__ = ["console_for", "judge_captures", "perform"]

_REASONS = 5
"""How many of the gate's reasons are printed."""

WIDTH_IN_FILES = 160
"""Columns of a table that goes into a file or a CI log."""


def console_for(*, quiet: bool) -> Console:
    """Where progress and tables go; the verdict is printed even when quiet."""
    console = Console(quiet=quiet, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH_IN_FILES
    return console


def profile_told(target: Target) -> str:
    """The profile that the target is judged by, and why it is this one."""
    from streamgauge.contract.profile import GENERIC

    profile = target.contract.profile
    documents = list(dict.fromkeys(operation.document.name for operation in target.contract.operations))
    if set(documents) <= set(profile.documents):
        return f"judged by the profile {profile.name}, which goes with {', '.join(documents)}"
    if profile.name == GENERIC:
        return f"judged by the generic profile {GENERIC}; --profile names another (`streamgauge list profiles`)"
    return f"judged by the profile {profile.name}"


def perform(
    command: str,
    targets: list[Target],
    console: Console,
    *,
    output: Path | None,
    check: "CheckPart | None" = None,
    load: "LoadPart | None" = None,
) -> ExitCode:
    """
    Preflight, check, load, gate, report: whatever of it was asked for.

    Returns:
        The exit code of the gate.
    """
    from streamgauge.preflight import preflight
    from streamgauge.runs import open_bundle

    if check is not None:
        check.require_probes(targets)
    targets, notes = preflight(targets)
    for note in notes:
        console.print(note, markup=False)
    for target in targets:
        for operation in target.contract.operations:
            console.print(f"{target.name}: {operation.name} at {target.url(operation)}", markup=False)
        console.print(f"{target.name}: {profile_told(target)}", markup=False)
    writer, meta = open_bundle(command, targets, output=output, seed=load.seed if load else 0, notes=notes)
    interrupted = False
    load_verdict: tuple[ExitCode, str] | None = None
    if check is not None:
        from streamgauge.cli.checking import check_into, print_findings
        from streamgauge.cli.explored import print_explored
        from streamgauge.cli.honour import print_honour

        interrupted = check_into(writer, meta, targets, check, console)
        print_findings(writer.path, console, verbose=check.verbose)
        print_honour(writer.path, console, verbose=check.verbose)
        print_explored(writer.path, console)
    if load is not None and not interrupted:
        load_verdict = load.run(targets, writer, console)
    return _conclude(writer.path, console, check=check, load=load_verdict, interrupted=interrupted)


def judge_captures(
    paths: Sequence[Path], flags: "TargetFlags", console: Console, *, output: Path | None, check: "CheckPart"
) -> ExitCode:
    """
    Check what was captured before, gate, report: `check --from`. Nothing is sent.

    Returns:
        The exit code of the gate.
    """
    from streamgauge.captures.gather import gather, gather_targets
    from streamgauge.captures.sources import sources
    from streamgauge.cli.checking import check_captures, print_findings
    from streamgauge.cli.honour import print_honour
    from streamgauge.runs import open_bundle

    found = sources(paths)
    captures = gather(found, gather_targets(found, flags))
    profiles = [f"{target.name}: {profile_told(target)}" for target in captures.targets]
    for line in (*captures.notes, *profiles, *captures.summary.splitlines()):
        console.print(line, markup=False)
    writer, meta = open_bundle("check", captures.targets, output=output, notes=captures.notes)
    interrupted = check_captures(captures, writer, meta, check, console)
    print_findings(writer.path, console, verbose=check.verbose)
    print_honour(writer.path, console, verbose=check.verbose)
    return _conclude(writer.path, console, check=check, interrupted=interrupted)


def _conclude(
    directory: Path,
    console: Console,
    *,
    check: "CheckPart | None",
    load: tuple[ExitCode, str] | None = None,
    interrupted: bool = False,
) -> ExitCode:
    bundle = Bundle(directory)
    baseline = check.baseline if check else None
    gate = decide(bundle.findings, baseline=baseline, load=load, interrupted=interrupted)
    write_whole(directory / GATE, gate.line())
    if check is not None and check.write_baseline is not None:
        from streamgauge.baseline import write_baseline
        from streamgauge.runs import utc_now

        count = write_baseline(check.write_baseline, bundle.findings, utc_now().date())
        console.print(
            f"\nwrote {count} known findings to {check.write_baseline}: say in each why it is accepted",
            markup=False,
        )
    _print_verdict(directory, gate)
    return gate.exit_code


def _print_verdict(directory: Path, gate: Gate) -> None:
    from streamgauge.reports.write import write_all

    written = write_all(directory)
    loud = console_for(quiet=False)
    style = {ExitCode.PASS: "bold green", ExitCode.GATE_FAILED: "bold red"}.get(gate.exit_code, "bold yellow")
    loud.print(f"\nverdict: {gate.verdict.upper()} (exit {int(gate.exit_code)})", style=style)
    for reason in gate.reasons[:_REASONS]:
        loud.print(f"  {reason}", markup=False)
    if len(gate.reasons) > _REASONS:
        loud.print(f"  and {len(gate.reasons) - _REASONS} more: see the report")
    loud.print(f"report:  {next(path for path in written if path.suffix == '.html')}", markup=False, soft_wrap=True)
