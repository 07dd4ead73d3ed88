"""`streamgauge load`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamgauge.cli.loading import LoadPart, load_options
from streamgauge.cli.options import output_options, resolve_targets, target_options
from streamgauge.cli.sections import SectionedCommand
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.config import TargetFlags

__all__ = ["command"]


def _print_locustfile(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.resources import files

        click.echo(files("streamgauge.load").joinpath("locustfile.py"))
        ctx.exit()


_LOCUST = "streamgauge.load.locust_arguments"
_STANDBY = "streamgauge.load.standby"


class _WithLocust(SectionedCommand):
    """
    A command that leaves what follows the first -- to Locust; Click would take it for more of its own arguments.

    It starts Locust first of all, since that takes as long to import as everything that has to be known before it is of use.
    """

    def invoke(self, ctx: click.Context) -> Any:
        from streamgauge.load.standby import standing_by

        with standing_by() as ctx.meta[_STANDBY]:
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta[_LOCUST] = tuple(args[len(ours) + 1 :])
        return super().parse_args(ctx, ours)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- LOCUST...]"]


@click.command("load", cls=_WithLocust)
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
@click.argument("scenario", required=False, type=click.Path(path_type=Path))
@click.pass_context
def command(
    ctx: click.Context,
    target_flags: "TargetFlags",
    load: LoadPart,
    output: Path | None,
    quiet: bool,
) -> ExitCode:
    """
    How much load does the endpoint hold?

    Sends requests by users who each wait for their answer (--users), or at a rate that no slow answer holds up (--rate),
    judges every answer (status 200 alone is no success), and writes one record for each request into a bundle. Every
    prompt is new, so that no prefix cache answers for the model. SCENARIO is a YAML file with these options as keys
    (prompt_tokens for --prompt-tokens); an option stands in place of what the file says. Locust does the work; its own
    options follow after --. Plain `locust` takes these options as --sg-rate, --sg-prompt-tokens and so on, and a scenario
    as --sg-scenario.

    \b
    Examples:
      streamgauge load --base-url http://127.0.0.1:8000 --spec seekr-chat
      streamgauge load --target staging --users 64 --duration 2m --prompt-tokens 512 --max-tokens 256
      streamgauge load --target staging --rate 20 --duration 5m --warm-up 30s --slo "ttft:p95<=500ms"
      streamgauge load --target staging --rate 1..50@2m,50@5m --prompt-tokens lognormal:512,0.8 --abort-on "errors>20%"
      streamgauge load --target staging --mix seekr-chat=3,seekr-completions:whole=1 --prompts prompts.jsonl
      streamgauge load --target staging scenario.yaml --seed 7
      streamgauge load --target staging --rate 500 -- --processes 2
      locust -f "$(streamgauge load --locustfile)" --host http://127.0.0.1:8000 --sg-model MODEL --sg-rate 20 -t 1m

    \b
    Exit codes:
      0    every request succeeded (or was still running when the run ended), and every --slo holds
      1    some requests failed, or an --slo does not hold
      2    wrong use or configuration
      3    cannot tell: unreachable, not one request succeeded, too few of them, or this client was too slow to know
      130  interrupted; what was measured is kept. Ctrl-C once lets the requests in flight end, twice does not.
    """
    from streamgauge.cli.verdict import console_for, perform

    load = dataclasses.replace(load, locust_arguments=ctx.meta[_LOCUST], standby=ctx.meta[_STANDBY])
    targets = resolve_targets(target_flags)
    load.require_sense(targets)
    return perform("load", targets, console_for(quiet=quiet), output=output, load=load)
