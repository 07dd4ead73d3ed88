"""`streamgauge check`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.cli.options import check_options, output_options, resolve_targets, target_options
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.cli.checking import CheckPart
    from streamgauge.config import TargetFlags

__all__ = ["command"]


@click.command("check")
@click.argument("sections", metavar="[SECTION]...", nargs=-1)
@target_options
@check_options
@click.option(
    "--from",
    "captured",
    type=click.Path(path_type=Path),
    metavar="PATH",
    multiple=True,
    help="Judge stored bytes and send nothing: a bundle, a HAR file, `curl -i` output, or a folder of those. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be sent and its worst-case tokens; send nothing.")
@output_options
def command(
    sections: tuple[str, ...],
    target_flags: "TargetFlags",
    check: "CheckPart",
    captured: tuple[Path, ...],
    dry_run: bool,
    output: Path | None,
    quiet: bool,
) -> ExitCode:
    """
    Does the endpoint keep its contract?

    Sends probes from the document and from our tables, then requests drawn at random, judges every answer by every check
    that applies, and writes a bundle with report.html, junit.xml and summary.json. At the end it says of each property of
    a request whether it is honoured, ignored or refused. SECTIONs are topics or ids of checks: `sse`, `stop.honoured`.

    \b
    Examples:
      streamgauge check --base-url http://127.0.0.1:8000 --spec seekr-chat
      streamgauge check sse stop.honoured --target staging
      streamgauge check --target staging --dry-run
      streamgauge check --target staging --select law.stop --select form
      streamgauge check --target staging --explore-seed 7 --select explore
      streamgauge check --target staging --write-baseline known.yaml
      streamgauge check --target staging --baseline known.yaml
      streamgauge check --from captures/ --spec openai-chat --spec openai-completions
      streamgauge check --from runs/20260101T120000Z-check
    """
    from streamgauge.cli.verdict import console_for, judge_captures, perform

    check = dataclasses.replace(check, sections=sections)
    check.require_sense()
    if captured:
        _require_offline(target_flags, check, dry_run=dry_run)
        return judge_captures(captured, target_flags, console_for(quiet=quiet), output=output, check=check)
    targets = resolve_targets(target_flags)
    console = console_for(quiet=quiet)
    if dry_run:
        from streamgauge.cli.dryrun import print_plan

        print_plan(targets, check, console)
        return ExitCode.PASS
    return perform("check", targets, console, output=output, check=check)


def _require_offline(flags: "TargetFlags", check: "CheckPart", *, dry_run: bool) -> None:
    """Refuse what makes no sense where nothing is sent."""
    from streamgauge.errors import UsageError

    said = [*flags.about_sending, *check.about_sending, *(["--dry-run"] if dry_run else [])]
    if said:
        hint = "It takes --spec, --profile, --model, --path, --baseline, --write-baseline and --output."
        raise UsageError(f"--from sends nothing, so it does not go with {', '.join(said)}", hint=hint)
