"""Follows the files of a run while it goes, however many processes write them."""

import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from streamgauge.bundle.layout import RECORDS, TELEMETRY
from streamgauge.load.arrivals import OpenLoop
from streamgauge.load.plan import LoadPlan
from streamgauge.load.window import Span, clock_offset_us, read_marks
from streamgauge.metrics.record import Outcome

__all__ = ["Progress", "Tally"]

RECENT_S = 5.0
"""The live rates look so far back."""

_LATENCIES = 1000
"""The live quantiles look so many requests back."""

_TELEMETRY_S = 3.0
"""What a process said of itself longer ago is no news."""


@dataclass(frozen=True, slots=True)
class Progress:
    """
    Where a run stands.

    Attributes:
        elapsed_s, planned_s: time since the schedule began (negative before), time planned.
        requests, planned_requests: records so far; how many are planned, None for no limit.
        outcomes: what became of them.
        asked_per_s: what rate the schedule asks for just now; None in a closed loop.
        done_per_s: requests that ended in the last 5 s, each second.
        tokens_per_s: their output tokens, each second.
        ttft_ms, e2e_ms: of the latest 1,000 successful requests, ascending.
        running: requests in flight; None where no process has said so.
        lag_ms: the largest p99 of how late a process's event loop woke up, within its last second; None as above.
        stopping: whether what runs is only waited for.
    """

    elapsed_s: float
    planned_s: float
    requests: int
    planned_requests: int | None
    outcomes: Mapping[Outcome, int]
    asked_per_s: float | None
    done_per_s: float
    tokens_per_s: float
    ttft_ms: tuple[float, ...]
    e2e_ms: tuple[float, ...]
    running: int | None
    lag_ms: float | None
    stopping: bool


@dataclass
class _Tail:
    """A file that grows, and how far it has been read."""

    path: Path
    position: int = 0
    offset_us: int = 0
    sample: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[bytes]:
        """The lines that are whole by now and have not been read."""
        with self.path.open("rb") as stream:
            stream.seek(self.position)
            whole, newline, _ = stream.read().rpartition(b"\n")
        self.position += len(whole) + len(newline)
        return whole.splitlines()


class Tally:
    """
    Reads what was appended since the last look.

    Args:
        directory: of the bundle.
        plan: what is run.
        marks: where the process that steers the run notes its course.

    Attributes:
        outcomes: how many requests ended how.
        span: what the steady window is computed from.
    """

    def __init__(self, directory: Path, plan: LoadPlan, marks: Path) -> None:
        self._directory, self._plan, self._marks = directory, plan, marks
        self._files: dict[str, _Tail] = {}
        self._start: float | None = None
        self._recent: deque[tuple[float, int]] = deque()
        self._ttft: deque[float] = deque(maxlen=_LATENCIES)
        self._e2e: deque[float] = deque(maxlen=_LATENCIES)
        self.outcomes: Counter[Outcome] = Counter()
        self.span = Span()

    def poll(self) -> None:
        """Take every line that is whole by now."""
        if self._start is None:
            self._start = read_marks(self._marks).get("start")
        for tail in self._tails(RECORDS):
            for line in tail.lines():
                self._take(tail, orjson.loads(line))
        for tail in self._tails(TELEMETRY):
            for line in tail.lines():
                tail.sample = orjson.loads(line).get("sample", tail.sample)

    def progress(self, *, stopping: bool) -> Progress:
        """The state as of the last :meth:`poll`."""
        now = time.time()
        elapsed = now - self._start if self._start is not None else -1.0
        while self._recent and self._recent[0][0] < now - RECENT_S:
            self._recent.popleft()
        recent_s = max(min(elapsed, RECENT_S), 0.001)
        fresh = [tail.sample for tail in self._tails(TELEMETRY) if tail.sample.get("time", 0) > now - _TELEMETRY_S]
        return Progress(
            elapsed_s=elapsed,
            planned_s=self._plan.duration_s,
            requests=self.span.count,
            planned_requests=self._plan.requests,
            outcomes=self.outcomes,
            asked_per_s=self._asked(elapsed),
            done_per_s=len(self._recent) / recent_s,
            tokens_per_s=sum(tokens for _, tokens in self._recent) / recent_s,
            ttft_ms=tuple(sorted(self._ttft)),
            e2e_ms=tuple(sorted(self._e2e)),
            running=sum(sample["running"] for sample in fresh) if fresh else None,
            lag_ms=max(sample["loop_lag_p99_us"] for sample in fresh) / 1000 if fresh else None,
            stopping=stopping,
        )

    def _tails(self, name: str) -> list[_Tail]:
        paths = sorted(self._directory.glob(name.format("*")))
        return [self._files.setdefault(path.name, _Tail(path)) for path in paths]

    def _asked(self, elapsed: float) -> float | None:
        """The rate of the schedule so long after its start."""
        loop = self._plan.loop
        if not isinstance(loop, OpenLoop):
            return None
        for segment, end in zip(loop.segments, accumulate(each.seconds for each in loop.segments), strict=True):
            if 0 <= elapsed < end:
                return segment.end + (segment.start - segment.end) * (end - elapsed) / segment.seconds
        return 0.0

    def _take(self, tail: _Tail, line: dict[str, Any]) -> None:
        # A Record of each line would cost more than all of the rest.
        if "anchor" in line:
            tail.offset_us = clock_offset_us(line["anchor"])
            return
        self.span.add(line, tail.offset_us)
        outcome = Outcome(line["outcome"])
        self.outcomes[outcome] += 1
        if outcome is not Outcome.DROPPED:
            times = line.get("token_times", ())
            closed = (line["closed"] + tail.offset_us) / 1_000_000
            self._recent.append((closed, line.get("completion_tokens", len(times))))
        if outcome is Outcome.OK:
            # Times of tokens are written as differences.
            self._e2e.append(((sum(times) if times else line["closed"]) - line["dispatched"]) / 1000)
            if times:
                self._ttft.append((times[0] - line["dispatched"]) / 1000)
