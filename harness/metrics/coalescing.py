"""Tells when something collects events and lets them go in bursts: a buffering proxy, Nagle's algorithm, the server itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from streamgauge.metrics.record import Record

__all__ = ["Coalescing", "coalescing"]

_TOGETHER_US = 1_000
"""Events so close to each other came together: in one segment, or in the segments of one write."""

_APART_US = 5_000
"""Below so long a time between bursts nobody sees them, and TCP itself makes some."""

_BURSTS = 3
"""Fewer bursts than this in one stream are no pattern: one stall makes two."""

_WHOLE_EVENTS = 8
_WHOLE_WAIT_US = 50_000
"""So many events at once, after so long a wait, were held back until the answer was complete."""

_SHARE = 0.5
"""It is said from so large a share of the streams on: what collects events is on the way of all, a stall only of some."""


@dataclass(frozen=True, slots=True)
class Coalescing:
    """
    How events arrive in bursts.

    Attributes:
        streams: in how many streams they do, ...
        judged: ... of how many that were long enough to tell, and whose client was not too busy.
        events: median number of events in a burst.
        every_ms: median time between bursts; None where each answer came as a single one.
    """

    streams: int
    judged: int
    events: float
    every_ms: float | None

    def __str__(self) -> str:
        rhythm = "all at once" if self.every_ms is None else f"{self.events:g} at a time, every {self.every_ms:.0f} ms"
        return (
            f"In {self.streams} of {self.judged} streams events come in bursts ({rhythm}): something between (a proxy that "
            "buffers, Nagle's algorithm) or the server itself collects them, so that gaps are those between bursts."
        )


def coalescing(records: Sequence[Record]) -> Coalescing | None:
    """
    What collects events, by the shape of the gaps of successful streams; None where few or none show it.

    Evidence is a stream of at least three bursts of two events or more on average, much longer apart than they last. A stream
    that a busy client read late (its certified lag could have made the bursts) is none, nor is one that stalled once.
    """
    judged = 0
    shapes: list[tuple[float, float | None]] = []
    for record in records:
        times = record.token_times
        if not record.stream or len(times) < _WHOLE_EVENTS:
            continue
        judged += 1
        found = _whole(record) or _bursts(record)
        if found is not None:
            shapes.append(found)
    if not shapes or len(shapes) < _SHARE * judged:
        return None
    spaced = [every for _, every in shapes if every is not None]
    return Coalescing(
        len(shapes),
        judged,
        median(size for size, _ in shapes),
        median(spaced) if 2 * len(spaced) >= len(shapes) else None,
    )


def _whole(record: Record) -> tuple[float, None] | None:
    times = record.token_times
    wait = times[0] - record.dispatched
    came_at_once = times[-1] - times[0] <= _TOGETHER_US
    if came_at_once and wait >= _WHOLE_WAIT_US and record.lag_us < wait / 2:
        return float(len(times)), None
    return None


def _bursts(record: Record) -> tuple[float, float] | None:
    gaps = record.gaps_us
    pauses = [gap for gap in gaps if gap > _TOGETHER_US]
    if len(pauses) < _BURSTS - 1:
        return None
    sizes = list(_sizes(gaps))
    pause = median(pauses)
    lasting = sum(gaps) - sum(pauses)
    together = len(record.token_times) >= 2 * len(sizes) and lasting <= 0.2 * sum(pauses)
    if together and pause >= _APART_US and record.lag_us < pause / 4:
        return median(sizes), pause / 1000
    return None


def _sizes(gaps: Sequence[int]) -> Iterator[int]:
    """How many events each burst has."""
    size = 1
    for together, group in groupby(gaps, lambda gap: gap <= _TOGETHER_US):
        length = sum(1 for _ in group)
        if together:
            size += length
        else:
            yield size
            yield from [1] * (length - 1)
            size = 1
    yield size
