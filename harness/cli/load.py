"""`streamgauge load`."""

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamgauge.cli.options import output_options, resolve_targets, target_options
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.config import TargetFlags

__all__ = ["Duration", "command"]

_COUNT = click.IntRange(min=1)


class Duration(click.ParamType):
    """Whole seconds, written as `90`, `20s`, `2m`, `1h` or `1m30s`."""

    name = "duration"
    _FORM = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The length in seconds."""
        if isinstance(value, int):
            return value
        found = self._FORM.fullmatch(str(value).strip())
        hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
        total = 3600 * hours + 60 * minutes + seconds
        if total < 1:
            self.fail(f"{value!r} is no length of time; write 20s, 2m or 1m30s", param, ctx)
        return total


def _print_locustfile(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.resources import files

        click.echo(files("streamgauge.load").joinpath("locustfile.py"))
        ctx.exit()


@click.command("load")
@target_options
@click.option("--users", type=_COUNT, default=8, show_default=True, metavar="N", help="Users at once, each with one request at a time.")
@click.option("--duration", type=Duration(), default="20s", show_default=True, metavar="TIME", help="After it no new request begins: 20s, 2m, 1m30s.")
@click.option("--requests", type=_COUNT, metavar="N", help="Stop earlier, after so many requests in all.")
@click.option("--prompt-tokens", type=_COUNT, default=64, show_default=True, metavar="N", help="Length of each prompt, about.")
@click.option("--max-tokens", type=_COUNT, default=64, show_default=True, metavar="N", help="Limit of each answer.")
@click.option("--no-stream", is_flag=True, help="Ask for whole answers instead of streams.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the prompts. [default: drawn anew, so that no cache knows them]")
@click.option("--operation", metavar="NAME", help="Operation to ask. [default: the first]")
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
    users: int,
    duration: int,
    requests: int | None,
    prompt_tokens: int,
    max_tokens: int,
    no_stream: bool,
    seed: int | None,
    operation: str | None,
    output: Path | None,
    quiet: bool,
    verbose: bool,
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
    from streamgauge.cli.verdict import console_for
    from streamgauge.load.command import refuse_owned
    from streamgauge.load.measure import measure
    from streamgauge.load.plan import plan_for
    from streamgauge.preflight import preflight
    from streamgauge.runs import open_bundle

    console = console_for(quiet=quiet)
    refuse_owned(locust_arguments)
    seed = secrets.randbelow(2**31) if seed is None else seed
    targets = resolve_targets(target_flags)
    plan_for(targets, operation)
    targets, notes = preflight(targets)
    plan = plan_for(
        targets,
        operation,
        users=users,
        duration_s=duration,
        requests=requests,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        stream=not no_stream,
        seed=seed,
        locust_arguments=locust_arguments,
    )
    for note in notes:
        console.print(note, markup=False)
    writer, _ = open_bundle("load", [plan.target], output=output, seed=seed, notes=notes)
    code, reason = measure(plan, writer, console)
    loud = console_for(quiet=False)
    loud.print(f"\n{reason}", markup=False)
    loud.print(f"bundle: {writer.path}", markup=False, soft_wrap=True)
    return code
