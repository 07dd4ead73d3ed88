"""The command `streamgauge report`."""

from pathlib import Path

import click

from streamgauge.errors import BundleError

__all__ = ["command"]


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write here (for several runs: one directory below for each) and leave the bundles as they are.",
)
def command(runs: tuple[Path, ...], output: Path | None) -> None:
    """
    Write report.html, junit.xml and summary.json for each RUN, a bundle directory.

    Everything is computed from the bundle: nothing is sent, and the same bundle gives the same bytes.

    \b
    Examples:
      streamgauge report runs/2025-06-01T12-00-00
      streamgauge report runs/* --output site
    """
    from streamgauge.reports.write import write_all

    places = [output if output is None or len(runs) == 1 else output / run.resolve().name for run in runs]
    if output is not None and len(set(places)) < len(places):
        raise BundleError(
            "two of the runs have the same name, so one would overwrite the other's report",
            hint="Report on them one at a time, each with an --output of its own.",
        )
    for run, place in zip(runs, places, strict=True):
        for path in write_all(run, place):
            click.echo(path)
