"""Follows the record files of a run while it goes, however many processes write them."""

import json
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgauge.bundle.layout import RECORDS
from streamgauge.load.window import Span
from streamgauge.metrics.record import Outcome, Record

__all__ = ["Progress", "Tally"]

RECENT_S = 5.0
"""The live rate looks so far back."""

_LATENCIES = 1000
"""The live quantiles look so many requests back."""


@dataclass(frozen=True, slots=True)
class Progress:
    """
    Where a run stands.

    Attributes:
        elapsed_s, planned_s: time gone, time planned.
        requests, planned_requests: records so far; how many are planned, None for no limit.
        outcomes: what became of them.
        tokens_per_s: output tokens of the requests that ended in the last 5 s, each second.
        ttft_ms, e2e_ms: of the latest 1,000 successful requests, ascending.
        stopping: whether what runs is only waited for.
    """

    elapsed_s: float
    planned_s: int
    requests: int
    planned_requests: int | None
    outcomes: Mapping[Outcome, int]
    tokens_per_s: float
    ttft_ms: tuple[float, ...]
    e2e_ms: tuple[float, ...]
    stopping: bool


class _File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset_us = 0
        self.position = 0


class Tally:
    """
    Reads what was appended since the last look.

    Attributes:
        outcomes: how many requests ended how.
        span: what the steady window is computed from.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, _File] = {}
        self._started = time.monotonic()
        self._recent: deque[tuple[float, int]] = deque()
        self._ttft: deque[float] = deque(maxlen=_LATENCIES)
        self._e2e: deque[float] = deque(maxlen=_LATENCIES)
        self.outcomes: Counter[Outcome] = Counter()
        self.span = Span()

    def poll(self) -> None:
        """Take every line that is whole by now."""
        for path in self._directory.glob(RECORDS.format("*")):
            file = self._files.setdefault(path.name, _File(path))
            with path.open("rb") as stream:
                stream.seek(file.position)
                whole, newline, _ = stream.read().rpartition(b"\n")
            file.position += len(whole) + len(newline)
            for line in whole.splitlines():
                self._take(file, line)

    def progress(self, *, planned_s: int, planned_requests: int | None, stopping: bool) -> Progress:
        """The state as of the last :meth:`poll`."""
        now = time.monotonic()
        elapsed = now - self._started
        while self._recent and self._recent[0][0] < now - RECENT_S:
            self._recent.popleft()
        return Progress(
            elapsed_s=elapsed,
            planned_s=planned_s,
            requests=self.span.count,
            planned_requests=planned_requests,
            outcomes=self.outcomes,
            tokens_per_s=sum(tokens for _, tokens in self._recent) / max(min(elapsed, RECENT_S), 0.001),
            ttft_ms=tuple(sorted(self._ttft)),
            e2e_ms=tuple(sorted(self._e2e)),
            stopping=stopping,
        )

    def _take(self, file: _File, line: bytes) -> None:
        data = json.loads(line)
        if "anchor" in data:
            file.offset_us = round(data["anchor"]["wall"] * 1_000_000) - data["anchor"]["monotonic_us"]
            return
        record = Record.from_line(data)
        self.span.add(record, file.offset_us)
        self.outcomes[record.outcome] += 1
        self._recent.append((time.monotonic(), record.tokens))
        if record.outcome is Outcome.OK:
            over = record.token_times[-1] if record.token_times else record.closed
            self._e2e.append((over - record.dispatched) / 1000)
            if record.token_times:
                self._ttft.append((record.token_times[0] - record.dispatched) / 1000)
