"""`streamgauge run`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.cli.loading import LoadPart, load_options
from streamgauge.cli.options import check_options, output_options, resolve_targets, target_options
from streamgauge.cli.sections import SectionedCommand
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from streamgauge.cli.checking import CheckPart
    from streamgauge.config import TargetFlags

__all__ = ["command"]

BUILT_IN_TTFT_MS = 40
BUILT_IN_ITL_MS = 10
"""Pace of the built-in endpoint: slow enough for latencies to be seen, fast enough for a first look."""

_SECOND_PATH = "deepinfra-completions=/v1/openai/completions"
"""Where the built-in endpoint has DeepInfra's operation: the document's path is taken by the OpenAI-compatible one."""


@click.command("run", cls=SectionedCommand)
@target_options
@check_options
@load_options
@click.option(
    "--scenario", type=click.Path(path_type=Path), metavar="FILE", help="Settings of the load, as `load` takes them."
)
@output_options
def command(
    target_flags: "TargetFlags",
    check: "CheckPart",
    load: LoadPart,
    output: Path | None,
    quiet: bool,
) -> ExitCode:
    """
    Check, then load, then report.

    With no target named it starts the built-in reference endpoint and shows what streamgauge does: the chat and text
    completions of Seekr and of OpenAI-compatible servers and DeepInfra's are checked, then 20 seconds of load.

    \b
    Examples:
      streamgauge run
      streamgauge run --base-url http://127.0.0.1:8000 --spec seekr-chat --path /v1/chat/completions --model tiny
      streamgauge run --target staging --users 32 --duration 1m --baseline known.yaml
    """
    import os

    from streamgauge.cli.verdict import console_for, perform

    check.require_sense()
    console = console_for(quiet=quiet)
    with contextlib.ExitStack() as stack:
        flags = target_flags
        if not flags.with_environment(os.environ).names_a_target:
            console.print("no target named: starting the built-in endpoint")
            flags = stack.enter_context(_built_in(flags))
        targets = resolve_targets(flags)
        load.require_sense(targets)
        return perform("run", targets, console, output=output, check=check, load=load)


@contextlib.contextmanager
def _built_in(flags: "TargetFlags") -> Iterator["TargetFlags"]:
    """The reference endpoint in a process of its own, and the flags that name it."""
    import dataclasses
    import tempfile

    from streamgauge.catalog import DOCUMENTS
    from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
    from streamgauge.reference.launch import running

    with running(ttft_ms=BUILT_IN_TTFT_MS, itl_ms=BUILT_IN_ITL_MS) as url, tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "key"
        key_file.write_text(DEFAULT_KEY, encoding="utf-8")
        yield dataclasses.replace(
            flags,
            base_url=url,
            model=flags.model or DEFAULT_MODEL,
            spec=flags.spec or tuple(DOCUMENTS),
            path=flags.path if flags.spec else (*flags.path, _SECOND_PATH),
            api_key_file=flags.api_key_file or key_file,
        )
