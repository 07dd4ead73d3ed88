"""Watches this process while it measures: how late its loop runs, and what it costs. A line to the telemetry file each second."""

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import psutil

from streamgauge.bundle.writer import LineWriter
from streamgauge.load.loopclock import now_us
from streamgauge.metrics.statistics import at_rank

__all__ = ["SelfWatch"]

_EVERY_US = 10_000
_SPAN_US = 1_000_000
_SCHEDULING = Path("/proc/self/schedstat")
"""Linux: nanoseconds on a core, nanoseconds of waiting for one, times that one was given (Documentation/scheduler)."""

_GRAIN_US = 1_000
"""
The loop's own timers are as coarse as this (epoll waits for whole milliseconds): what goes beyond it is lag. A standstill that is
shorter is none.
"""


class SelfWatch:
    """
    Samples one process from :meth:`start` to :meth:`stop`.

    Args:
        lines: the process's telemetry file.
        running: how many requests are in flight.
        dropped: how many arrivals were dropped so far.
    """

    def __init__(self, lines: LineWriter, *, running: Callable[[], int], dropped: Callable[[], int]) -> None:
        self._lines = lines
        self._running = running
        self._dropped = dropped
        self._process = psutil.Process()
        self._timer: Any = None
        self._lags: list[int] = []
        self._late: list[int] = []
        self._waits = _waits()
        self._expected = self._since = self._cpu_ns = self._used_ns = self._collecting_since = self._gc_us = 0
        self._stills: list[int] = []

    def start(self) -> None:
        """Begin; what the process holds by now is kept out of further garbage collections."""
        gc.collect()
        gc.freeze()
        gc.callbacks.append(self._on_collection)
        self._waits = _waits()
        self._begin_span(now_us())
        self._expected, self._used_ns = self._since + _EVERY_US, time.thread_time_ns()
        self._timer = gevent.get_hub().loop.timer(_EVERY_US / 1e6, _EVERY_US / 1e6)
        self._timer.start(self._tick)

    def late(self, by_us: int) -> None:
        """Note how late a request was dispatched."""
        self._late.append(by_us)

    def stop(self) -> None:
        """Write the last sample and end."""
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None
            gc.callbacks.remove(self._on_collection)
            gc.unfreeze()
            self._write(now_us())

    def _tick(self) -> None:
        now, used_ns = now_us(), time.thread_time_ns()
        lag = max(now - self._expected - _GRAIN_US, 0)
        self._lags.append(lag)
        # It has computed for so long since the last tick: for the rest of its lag it stood still.
        if (still := lag - (used_ns - self._used_ns) // 1000) > _GRAIN_US:
            self._stills.append(still)
        self._expected, self._used_ns = now + _EVERY_US, used_ns
        if now - self._since >= _SPAN_US:
            self._write(now)

    def _write(self, now: int) -> None:
        before, self._waits = self._waits, _waits()
        lags, late, span_us = sorted(self._lags), sorted(self._late), now - self._since
        sample = {
            "time": time.time(),
            "span_s": span_us / 1_000_000,
            "cpu": round((time.process_time_ns() - self._cpu_ns) / 1000 / max(span_us, 1), 3),
            "loop_lag_p50_us": at_rank(lags or [0], 0.50),
            "loop_lag_p99_us": at_rank(lags or [0], 0.99),
            "loop_lag_max_us": lags[-1] if lags else 0,
            "standstills_us": list(self._stills),
            "gc_us": self._gc_us,
            **_waited(before, self._waits),
            "rss_mb": self._process.memory_info().rss >> 20,
            "running": self._running(),
            "late_p99_us": at_rank(late, 0.99) if late else None,
            "dropped": self._dropped(),
        }
        self._lines.write({"sample": sample})
        self._begin_span(now)

    def _begin_span(self, now: int) -> None:
        self._since, self._cpu_ns = now, time.process_time_ns()
        self._gc_us = 0
        self._lags.clear()
        self._stills.clear()
        self._late.clear()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = now_us()
        else:
            self._gc_us += now_us() - self._collecting_since


def _waits() -> tuple[int, int] | None:
    """How long this process has waited for a core so far (µs), and how often it got one; None where nobody says so."""
    try:
        _, waited_ns, slices = _SCHEDULING.read_text().split()
    except (OSError, ValueError):
        return None
    return int(waited_ns) // 1000, int(slices)


def _waited(before: tuple[int, int] | None, after: tuple[int, int] | None) -> dict[str, int | None]:
    if before is None or after is None:
        return {"core_wait_us": None, "core_wait_mean_us": None}
    waited, slices = after[0] - before[0], after[1] - before[1]
    return {"core_wait_us": waited, "core_wait_mean_us": waited // max(slices, 1)}
