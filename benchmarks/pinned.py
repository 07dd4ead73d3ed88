"""The paced server on one core, the client to be measured on another, and what both say."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil

from streamgauge.load.pacer import running

HERE = Path(__file__).parent
_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = _CORES[0], _CORES[-1]


@contextmanager
def on(core: int) -> Iterator[None]:
    """Whatever is started in the block runs on this core, and its children too."""
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, _CORES)


@dataclass(frozen=True)
class Paced:
    """A paced server that runs on a core of its own."""

    url: str

    def get(self, page: str) -> Any:
        """`stats` or `dump`."""
        with urlopen(f"{self.url}/{page}") as answer:
            return json.load(answer)

    def reset(self) -> None:
        """Forget what was counted."""
        with urlopen(Request(f"{self.url}/reset", method="POST")):
            pass


@contextmanager
def paced(*options: str) -> Iterator[Paced]:
    """A server while the block runs."""
    with on(SERVER_CORE):
        server = running(*options)
        url = server.__enter__()
    try:
        yield Paced(url)
    finally:
        server.__exit__(None, None, None)


@dataclass(frozen=True)
class Done:
    """
    A process that has ended.

    Attributes:
        code: its exit code.
        output: what it printed.
        wall_s, cpu_s: of the process and its children, start and end included.
        peak_mb: the most memory that they had together, in MiB; 0 when nobody looked.
    """

    code: int
    output: str
    wall_s: float
    cpu_s: float
    peak_mb: float


class FailedError(Exception):
    """A client did not end as it should."""


def pinned(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    codes: Sequence[int] = (0,),
    watch: bool = False,
    **environment: str,
) -> Done:
    """
    Run a command on the client's core to its end.

    Args:
        command: program and arguments.
        folder: where it runs.
        codes: exit codes that it may end with.
        watch: whether to look at its memory, ten times a second.
        environment: more variables.

    Raises:
        FailedError: it ended with another code.
    """
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        start = time.perf_counter()
        with on(CLIENT_CORE):
            child = subprocess.Popen(command, stdout=said, stderr=complained, cwd=folder, env=os.environ | environment)
        peaks: list[float] = []
        watcher = threading.Thread(target=_watch, args=(child.pid, peaks))
        if watch:
            watcher.start()
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start
        child.returncode = code = os.waitstatus_to_exitcode(status)
        if watch:
            watcher.join()
        for file in (said, complained):
            file.seek(0)
        output, errors = said.read(), complained.read()
    if code not in codes:
        raise FailedError(f"{' '.join(command[:4])} ended with {code}: {(errors or output)[-2000:]}")
    return Done(code, output, wall_s, used.ru_utime + used.ru_stime, max(peaks, default=0.0))


def _watch(pid: int, peaks: list[float]) -> None:
    """Note the memory of a process and all below it, until it ends; what they share counts once (PSS)."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            total = 0
            for each in (process, *process.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    total += each.memory_full_info().pss
            peaks.append(total / 2**20)
            time.sleep(0.1)


@dataclass(frozen=True)
class Work:
    """
    What one of our own small clients has to do.

    Attributes:
        url: of the paced server.
        streams: how many at once.
        tokens: of each answer.
        seconds: no request begins later than that; 0 for no such end.
        rounds: requests of each stream; 0 for no such end.
        pace: of the answers; None for answers in one write.
        spread_ms: over this time the streams begin; 0 for all at once.
        how: what to measure: `ends`, `all`, `10%`, or a kind of plain Locust.
    """

    url: str
    streams: int
    how: str
    tokens: int = 128
    seconds: float = 0.0
    rounds: int = 0
    pace: dict[str, float] | None = None
    spread_ms: float = 0.0

    def body(self, name: str, body: bytes) -> bytes:
        """A request's body with the pace put into it, under this name."""
        if self.pace is None:
            return body
        return body[:-1] + b',"pace":' + json.dumps(self.pace | {"name": name}).encode() + b"}"


@dataclass
class Seen:
    """
    What one of these clients tells.

    Attributes:
        cpu_s: processor time between the first request and the end of the last answer.
        events: how many tokens came.
        failed: requests that did not succeed.
        requests: of paced ones, by name: when it was sent, and when its tokens came (µs, monotonic).
        lag_us: by how much a first token may have come earlier than its stamp, by what ours says.
    """

    cpu_s: float = 0.0
    events: int = 0
    failed: int = 0
    requests: dict[str, list[int]] = field(default_factory=dict)
    lag_us: list[int] = field(default_factory=list)

    def tell(self) -> None:
        """Print it for :func:`see`."""
        print(json.dumps(asdict(self)))


def see(client: str, work: Work) -> Seen:
    """Run one of our own small clients (a file of this folder) on its core."""
    done = pinned([sys.executable, str(HERE / f"{client}.py"), json.dumps(asdict(work))])
    return Seen(**json.loads(done.output.splitlines()[-1]))


def work() -> Work:
    """What this process was asked to do."""
    return Work(**json.loads(sys.argv[1]))


def load_command(url: str, bundle: Path, *options: str) -> list[str]:
    """`streamgauge load` against the paced server; the bundle must not be there yet."""
    command = [sys.executable, "-P", "-m", "streamgauge", "load", "--base-url", url, "--spec", "openai-chat"]
    return [*command, "--model", "paced", "--quiet", "--output", str(bundle), *options]


def quantile(values: Sequence[float], p: float) -> float:
    """By linear interpolation."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * p
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
