"""
The command line. Each command is a module of its own, imported only when it is called, and imports what is heavy only
when it runs: `streamgauge --help` answers at once.
"""

import atexit
import gc
import importlib
import sys
from typing import Any

import click

from streamgauge.errors import StreamgaugeError
from streamgauge.outcomes import ExitCode

__all__ = ["cli", "main"]

_COMMANDS: dict[str, str] = {
    "run": "Check, then load, then report; with no target, the built-in endpoint.",
    "check": "Does the endpoint keep its contract?",
    "load": "How much load does it hold?",
    "report": "HTML, JUnit and JSON from bundles.",
    "lint": "What is wrong with an OpenAPI document?",
    "serve": "The built-in reference endpoint.",
    "list": "Checks, probes, faults, metrics, outcomes, profiles, documents, rules, runs.",
    "explain": "A check, fault, metric, outcome, profile, document or rule in full, with its source.",
}
"""Name → one line for `--help`; the command itself is `streamgauge.cli.<name>.command` (`list_` for `list`)."""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"streamgauge.cli.{'list_' if cmd_name == 'list' else cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        import streamgauge

        click.echo(f"streamgauge {streamgauge.__version__}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """
    Tells the truth about an OpenAI-compatible inference endpoint: does it keep its contract, and how much load does it
    hold?

    \b
    First steps:
      streamgauge run                                   everything, on the built-in endpoint
      streamgauge check --base-url http://127.0.0.1:8000 --spec seekr-chat
      streamgauge load  --base-url http://127.0.0.1:8000 --spec seekr-chat --users 8
    The key comes from STREAMGAUGE_API_KEY or --api-key-file, never from the command line.

    \b
    Exit codes: 0 pass, 1 the gate fails, 2 wrong use or configuration, 3 cannot tell, 130 interrupted (results kept).
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; every problem on purpose is a few lines on stderr and an exit code, never a traceback."""
    atexit.register(gc.freeze)  # else the interpreter goes through everything once more before it ends
    try:
        code = cli.main(args=arguments, prog_name="streamgauge", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except click.ClickException as problem:
        problem.show()
        sys.exit(ExitCode.USAGE)
    except StreamgaugeError as problem:
        click.echo(f"streamgauge: {problem}", err=True)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else ExitCode.PASS)
