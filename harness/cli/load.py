"""`streamgauge load`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.cli.loading import LoadPart, load_options
from streamgauge.cli.options import output_options, resolve_targets, target_options
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.config import TargetFlags

__all__ = ["command"]


def _print_locustfile(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.resources import files

        click.echo(files("streamgauge.load").joinpath("locustfile.py"))
        ctx.exit()


@click.command("load")
@target_options
@load_options
@click.option(
    "--locustfile",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_locustfile,
    help="Print the path of the locustfile that ships with streamgauge, and exit.",
)
@output_options
@click.argument("locust_arguments", metavar="[-- LOCUST...]", nargs=-1, type=click.UNPROCESSED)
def command(
    target_flags: "TargetFlags",
    load: LoadPart,
    output: Path | None,
    quiet: bool,
    locust_arguments: tuple[str, ...],
) -> ExitCode:
    """
    How much load does the endpoint hold?

    Runs Locust with users that stream in a closed loop, judges every answer (status 200 alone is no success), and writes one
    record for each request into a bundle. Every prompt is new, so that no prefix cache answers for the model. Locust's own
    options follow after --.

    \b
    Examples:
      streamgauge load --base-url http://127.0.0.1:8000 --spec seekr-chat
      streamgauge load --target staging --users 64 --duration 2m --prompt-tokens 512 --max-tokens 256
      streamgauge load --target staging --users 4 --requests 100
      streamgauge load --target staging --users 200 -- --processes 2
      locust -f "$(streamgauge load --locustfile)" --host http://127.0.0.1:8000 --sg-model MODEL

    \b
    Exit codes:
      0    every request succeeded, or was still running when the run ended
      1    some requests failed
      2    wrong use or configuration
      3    cannot tell: unreachable, or not one request succeeded
      130  interrupted; what was measured is kept. Ctrl-C once lets the requests in flight end, twice does not.
    """
    from streamgauge.cli.verdict import console_for, perform

    load = dataclasses.replace(load, locust_arguments=locust_arguments)
    targets = resolve_targets(target_flags)
    load.require_sense(targets)
    return perform("load", targets, console_for(quiet=quiet), output=output, load=load)
