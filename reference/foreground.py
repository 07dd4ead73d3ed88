"""Runs the endpoint in this process until a signal comes, and says on standard output how to call it."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

from streamgauge.contract.contract import CHAT
from streamgauge.errors import UsageError
from streamgauge.reference.processes import Fleet
from streamgauge.reference.responder import Responder
from streamgauge.reference.server import serve
from streamgauge.reference.settings import DEFAULT_KEY, Settings

__all__ = ["run"]


def run(settings: Settings, host: str, port: int, *, until_stdin_closes: bool = False) -> None:
    """
    Serve until SIGINT or SIGTERM.

    Args:
        settings: of the endpoint.
        host: address to listen on.
        port: 0 for a free one.
        until_stdin_closes: stop at the end of standard input too: that is how a parent's death shows.

    Raises:
        UsageError: the address cannot be listened on.
        CannotTellError: one of several processes ended by itself.
    """
    responder = Responder(settings)
    # Documents and validators live as long as the process: whoever collects garbage need not look at them time and again.
    gc.freeze()
    with contextlib.ExitStack() as stack:
        # Forked before there is an event loop, which no two processes may share.
        fleet = Fleet(responder, settings.processes) if settings.processes > 1 else None
        if fleet is not None:
            stack.callback(fleet.close)
        _serve(responder, fleet, settings, host, port, until_stdin_closes=until_stdin_closes)


def _serve(
    responder: Responder, fleet: Fleet | None, settings: Settings, host: str, port: int, *, until_stdin_closes: bool
) -> None:
    serving = partial(serve, responder) if fleet is None else fleet.serve
    try:
        asyncio.run(_run(serving, responder, settings, host, port, until_stdin_closes=until_stdin_closes))
    except OSError as problem:
        reason = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
        raise UsageError(
            f"cannot listen there: {reason}",
            where=f"{host}:{port}",
            hint="Give another --port; 0 picks a free one.",
        ) from None


async def _run(
    serving: Callable[..., Awaitable[None]],
    responder: Responder,
    settings: Settings,
    host: str,
    port: int,
    *,
    until_stdin_closes: bool,
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end, sys.stdin.fileno(), stop)

    def ready(bound: int) -> None:
        base = f"http://{f'[{host}]' if ':' in host else host}:{bound}"
        print(f"listening on {base}", flush=True)  # noqa: T201 - what a parent process waits for
        print(_how_to_call(responder, settings, base), flush=True)  # noqa: T201 - this is what the command is for

    await serving(host, port, ready=ready, stop=stop)


def _stop_at_end(descriptor: int, stop: asyncio.Event) -> None:
    if not os.read(descriptor, 4096):
        stop.set()


def _how_to_call(responder: Responder, settings: Settings, base: str) -> str:
    """A curl line for the first operation. A key that is not the public one is named, not shown."""
    contract = responder.contracts[0]
    operation = contract.operations[0]
    key = DEFAULT_KEY if settings.key == DEFAULT_KEY else "$STREAMGAUGE_API_KEY"
    ask = '"messages": [{"role": "user", "content": "Hello"}]' if operation.family == CHAT else '"prompt": "Hello"'
    paths = [path for served in responder.paths.values() for path in served]
    return "\n".join(
        [
            f"It serves POST {', '.join(paths)}. Try it (Ctrl-C stops it):",
            f"  curl -N {base}{responder.paths[operation.name][0]} \\",
            f'    -H "{contract.profile.auth.header}: {contract.profile.auth.value(key)}" \\',
            '    -H "Content-Type: application/json" \\',
            f'    -d \'{{"model": "{settings.models[0]}", {ask}, "max_tokens": 8, "stream": true}}\'',
        ]
    )
