"""`streamgauge check`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.cli.options import output_options, resolve_targets, target_options
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.config import TargetFlags

__all__ = ["command"]


@click.command("check")
@click.argument("sections", metavar="[SECTION]...", nargs=-1)
@target_options
@click.option(
    "--select",
    metavar="PROBE",
    multiple=True,
    help="Send only these probes (form, refusal, auth, generated, or an id). Repeatable.",
)
@click.option(
    "--budget-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help="Tokens that one operation may cost. [default: 20000]",
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Requests at once. [default: 8]")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Known findings; a stale or expired entry fails.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what fails now as a baseline.",
)
@click.option("--dry-run", is_flag=True, help="Show the probes and their worst-case tokens; send nothing.")
@output_options
def command(
    sections: tuple[str, ...],
    target_flags: "TargetFlags",
    select: tuple[str, ...],
    budget_tokens: int | None,
    concurrency: int | None,
    baseline: Path | None,
    write_baseline: Path | None,
    dry_run: bool,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> ExitCode:
    """
    Does the endpoint keep its contract?

    Sends probes from the document and from our tables, judges every answer by every check that applies, and writes a
    bundle with report.html, junit.xml and summary.json. SECTIONs are topics or ids of checks: `sse`, `finish.stream-once`.

    \b
    Examples:
      streamgauge check --base-url http://127.0.0.1:8000 --spec seekr-chat
      streamgauge check sse chunk --target staging
      streamgauge check --target staging --dry-run
      streamgauge check --target staging --write-baseline known.yaml
      streamgauge check --target staging --baseline known.yaml
    """
    from streamgauge.baseline import load_baseline
    from streamgauge.cli.checking import CheckOptions
    from streamgauge.cli.verdict import console_for
    from streamgauge.conformance.session import checks_in
    from streamgauge.runs import utc_now

    checks_in(sections)
    today = utc_now().date()
    options = CheckOptions(
        sections=sections,
        select=select,
        budget_tokens=budget_tokens,
        concurrency=concurrency,
        baseline=load_baseline(baseline, today) if baseline else None,
    )
    targets = resolve_targets(target_flags)
    console = console_for(quiet=quiet)
    if dry_run:
        from streamgauge.cli.dryrun import print_plan

        print_plan(targets, options, console)
        return ExitCode.PASS
    from streamgauge.cli.verdict import CheckPart, perform

    return perform("check", targets, console, output=output, check=CheckPart(options, verbose, write_baseline))
