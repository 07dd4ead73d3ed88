"""What was asked for, what was delivered, and how much ran at once, over the time of a run."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from streamgauge.metrics.record import NO_FAILURE, Outcome, Record
from streamgauge.metrics.server import Quantity, Sample
from streamgauge.reports.charts import Chart
from streamgauge.reports.kinds import BLUE, GREEN, GREY, ORANGE, RED, TEAL
from streamgauge.reports.lines import Line, line_chart
from streamgauge.reports.slots import Slots

__all__ = ["rate_chart", "running_chart"]

_US = 1_000_000
_NOT_FAILED = NO_FAILURE | {Outcome.DROPPED}
"""Of these the chart shows success and drops as lines of their own; the others only tell that the run was over."""


def rate_chart(
    records: Sequence[Record],
    origin: int,
    slots: Slots,
    window: tuple[float, float] | None,
    loop: dict[str, Any],
) -> Chart | None:
    """
    Requests per second: planned, asked for, sent, answered; None without records.

    Args:
        records: of all workers.
        origin: the start of the run, in microseconds.
        slots: of the run.
        window: the steady window, in seconds since the start.
        loop: as load.json describes it; without a schedule nothing was planned or asked for.
    """
    if not records:
        return None
    scheduled = loop.get("kind") == "open"
    sent = [record for record in records if record.outcome is not Outcome.DROPPED]

    def line(name: str, colour: str, stamps: Iterable[int], dash: str = "", *, filled: bool = False) -> Line:
        counts = Counter(slots.of((stamp - origin) / _US) for stamp in stamps)
        points = tuple((slots.middle(slot), counts[slot] / slots.width) for slot in range(slots.count))
        return Line(name, colour, points if counts else (), dash, filled=filled)

    asked = (record.scheduled for record in records) if scheduled else ()
    dropped = (record.scheduled for record in records if record.outcome is Outcome.DROPPED)
    lines = (
        line("asked for", BLUE, asked, filled=True),
        Line("planned", GREY, _planned(loop), "3 3"),
        line("sent", BLUE, (record.dispatched for record in sent)),
        line("succeeded", GREEN, (record.closed for record in sent if record.outcome is Outcome.OK), "9 3"),
        line("failed", RED, (record.closed for record in records if record.outcome not in _NOT_FAILED), "2 3"),
        line("dropped", ORANGE, dropped, "6 3 2 3"),
    )
    said = "; asked for is what its schedule drew, planned the rate it was drawn from" if scheduled else ""
    return line_chart(
        "rates",
        "Requests per second over the run",
        f"By the second in which they were sent, and in which they were over, {slots.width} s a step{said}.",
        "1/s",
        lines,
        slots,
        window=window,
    )


def running_chart(
    records: Sequence[Record],
    origin: int,
    slots: Slots,
    window: tuple[float, float] | None,
    samples: Sequence[Sample],
) -> Chart | None:
    """
    Requests at once: ours, and what the server itself says; None when nothing was sent.

    Args:
        records: of all workers.
        origin: the start of the run, in microseconds.
        slots: of the run.
        window: the steady window, in seconds since the start.
        samples: of the server's own counters.
    """
    sent = [record for record in records if record.outcome is not Outcome.DROPPED]
    if not sent:
        return None
    spans = [(record.dispatched - origin, record.closed - origin) for record in sent]
    means = _at_once(spans, slots)
    lines = (
        Line("ours", BLUE, tuple((slots.middle(slot), mean) for slot, mean in enumerate(means))),
        Line("running at the server", ORANGE, _gauge(samples, Quantity.RUNNING, origin, slots), "9 3"),
        Line("waiting at the server", TEAL, _gauge(samples, Quantity.WAITING, origin, slots), "2 3"),
    )
    told = "; the server's own gauges, as they were read" if any(line.points for line in lines[1:]) else ""
    return line_chart(
        "running",
        "Requests at once over the run",
        f"Ours from their dispatch until they were over, on average over each {slots.width} s{told}.",
        "requests",
        lines,
        slots,
        window=window,
    )


def _planned(loop: dict[str, Any]) -> tuple[tuple[float, float], ...]:
    """The corners of the rate over time."""
    segments = loop.get("segments", ())
    ends = list(accumulate(segment["seconds"] for segment in segments))
    return tuple(
        corner
        for end, segment in zip(ends, segments, strict=True)
        for corner in ((end - segment["seconds"], segment["start"]), (end, segment["end"]))
    )


def _at_once(spans: Sequence[tuple[int, int]], slots: Slots) -> list[float]:
    """How many of the spans (in microseconds) cover each slot, on average; all in integers, so that no order matters."""
    width = slots.width * _US
    end_of_run = slots.count * width
    steps, parts = [0] * (slots.count + 1), [0] * slots.count
    longest = 0
    for span in spans:
        begin, end = (min(max(edge, 0), end_of_run - 1) for edge in span)
        first, last = begin // width, end // width
        longest = max(longest, end)
        # Whole slots from the first on and until before the last, less and more what the ends cut off and leave over.
        steps[first] += 1
        steps[last] -= 1
        parts[first] -= begin - first * width
        parts[last] += end - last * width
    covered = [whole * width + part for whole, part in zip(accumulate(steps[:-1]), parts, strict=True)]
    # The last slot is as long as the run goes on in it.
    lengths = [max(min(longest - slot * width, width), 1) for slot in range(slots.count)]
    return [amount / length for amount, length in zip(covered, lengths, strict=True)]


def _gauge(samples: Sequence[Sample], quantity: Quantity, origin: int, slots: Slots) -> tuple[tuple[float, float], ...]:
    seconds = ((sample.time - origin / _US, sample.values.get(quantity)) for sample in samples)
    return tuple(
        (second, value) for second, value in seconds if value is not None and 0 <= second < slots.count * slots.width
    )
