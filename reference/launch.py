"""Starts the endpoint in a process of its own, for whoever needs one for a while."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence

from streamgauge.errors import CannotTellError
from streamgauge.reference.accelerator import Speed
from streamgauge.reference.settings import DEFAULT_KEY, DEFAULT_MODEL

__all__ = ["running"]

_READY = "listening on "
_SECONDS_TO_START = 60.0
_SECONDS_TO_STOP = 5.0


@contextlib.contextmanager
def running(
    *,
    ttft_ms: float = 0,
    itl_ms: float = 0,
    key: str = DEFAULT_KEY,
    models: Sequence[str] = (DEFAULT_MODEL,),
    profiles: Sequence[str] = (),
    faults: Sequence[str] = (),
    slots: int = 0,
    kv_tokens: int = 0,
    queue: int | None = None,
    speed: Speed | None = None,
    processes: int = 1,
    seed: int = 0,
) -> Iterator[str]:
    """
    Run the endpoint on a free loopback port while the block runs; yields its base URL.

    The process ends with the block however that ends, and with this process should it be killed.

    Args:
        ttft_ms: milliseconds from a request to the first token.
        itl_ms: milliseconds from each token to the next.
        key: the API key, handed over by the environment so that no process list shows it.
        models: names of the models that exist.
        profiles: whose documents to serve, by bundled name or path; all bundled ones by default.
        faults: what goes wrong, as `--fault` takes it.
        slots: how many answers are generated at a time; 0 for no bound.
        kv_tokens: how many tokens those may have together; 0 for no bound.
        queue: how many requests may wait; None for no bound.
        speed: of a simulated accelerator, which then sets the pace.
        processes: how many serve side by side.
        seed: of the draws that a fault's probability needs.

    Raises:
        CannotTellError: it did not start.
    """
    arguments = [sys.executable, "-m", "streamgauge", "serve", "--port", "0", "--until-stdin-closes"]
    arguments += ["--ttft-ms", str(ttft_ms), "--itl-ms", str(itl_ms), "--slots", str(slots)]
    arguments += ["--kv-tokens", str(kv_tokens), "--processes", str(processes), "--seed", str(seed)]
    if queue is not None:
        arguments += ["--queue", str(queue)]
    if speed is not None:
        arguments += ["--prefill-tokens-per-s", str(speed.prefill_tokens_per_s), "--step-ms", str(speed.step_ms)]
        arguments += ["--step-ms-per-stream", str(speed.step_ms_per_stream)]
    arguments += [f"--model={model}" for model in models]
    arguments += [f"--profile={profile}" for profile in profiles]
    arguments += [f"--fault={fault}" for fault in faults]
    with tempfile.TemporaryFile() as errors, _process(arguments, key, errors.fileno()) as process:
        line = _first_line(process)
        if not line.startswith(_READY):
            process.wait()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()
            raise CannotTellError("the reference endpoint did not start", hint=said or "It said nothing.")
        yield line.removeprefix(_READY).strip()


@contextlib.contextmanager
def _process(arguments: list[str], key: str, errors: int) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block has ended."""
    process = subprocess.Popen(
        arguments,
        env={**os.environ, "STREAMGAUGE_API_KEY": key},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        # Ctrl-C in the terminal is for the parent, which still needs the endpoint while it winds up.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


def _first_line(process: subprocess.Popen[str]) -> str:
    """What the process says first; empty when it ends before, or is too slow and is killed."""
    watchdog = threading.Timer(_SECONDS_TO_START, process.kill)
    watchdog.start()
    try:
        return process.stdout.readline() if process.stdout else ""
    finally:
        watchdog.cancel()
