"""Charts of a run over its time: inline SVG, with the figures drawn as a table beside it."""

import math
from collections.abc import Sequence
from statistics import median

from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.summary import token_arrivals
from streamgauge.reports.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    SINCE,
    TOP,
    WIDTH,
    Scale,
    figure,
    legend,
    scale_of,
    shaded,
    x_axis,
    y_axis,
)
from streamgauge.reports.charts import Chart
from streamgauge.reports.kinds import GREEN, KINDS, ORANGE, kind_of
from streamgauge.reports.slots import slots_of
from streamgauge.reports.svg import drawing, element

__all__ = ["throughput_chart", "timeline_chart"]

MOST_POINTS = 1500
"""More successes than this are thinned evenly in the timeline; failures never are."""

_SLICES = 10


def timeline_chart(records: Sequence[Record], origin: int) -> Chart | None:
    """TTFT of each request over the run, by outcome; None without records."""
    if not records:
        return None
    ordered = sorted(
        records, key=lambda record: (record.dispatched, record.closed, record.id, record.outcome, record.token_times)
    )
    shown = _thinned(ordered)
    seconds = [(max(record.dispatched - origin, 0)) / 1_000_000 for record in ordered]
    waits = [wait for record in ordered if (wait := _ttft(record)) is not None]
    x = Scale(0, max(*seconds, 1) * 1.02, LEFT, RIGHT)
    y = scale_of(waits, BOTTOM - 30, TOP)
    floor = BOTTOM - 12
    parts = [
        *y_axis(y, "TTFT (ms)"),
        element(
            "rect",
            x=LEFT,
            y=BOTTOM - 24,
            width=RIGHT - LEFT,
            height=24,
            fill="currentColor",
            fill_opacity="0.06",
        ),
        element("text", text="no TTFT", x=LEFT - 8, y=floor + 4, text_anchor="end"),
        *x_axis(x, SINCE),
    ]
    for record in shown:
        kind, wait = kind_of(record.outcome), _ttft(record)
        at = max(record.dispatched - origin, 0) / 1_000_000
        hover = f"{figure(at)} s: {record.outcome}" + ("" if wait is None else f", {figure(wait)} ms")
        parts.append(kind.mark(x.at(at), floor if wait is None else y.at(wait), kind.colour, hover))
    present = [kind for kind in KINDS if any(record.outcome in kind.outcomes for record in ordered)]
    parts += legend((kind.mark(0, 0, kind.colour, ""), kind.name) for kind in present)
    title = "Time to first token over the run"
    thinned = (
        f" {len(shown)} of {len(ordered)} requests are drawn, every failure among them."
        if len(shown) < len(ordered)
        else ""
    )
    return Chart(
        "timeline",
        title,
        "One mark for each request, at the moment of its dispatch; those without any, whole answers among them, lie at the "
        "bottom." + thinned,
        drawing(
            "timeline",
            title,
            f"{len(ordered)} requests over {figure(max(seconds))} seconds.",
            WIDTH,
            HEIGHT,
            parts,
        ),
        ("from (s)", "to (s)", "requests", *(kind.name for kind in present), "median TTFT (ms)"),
        tuple(_slices(ordered, origin, x.high, [kind.outcomes for kind in present])),
    )


def throughput_chart(
    records: Sequence[Record], origin: int, window: tuple[int, int] | None, rate: float | None
) -> Chart | None:
    """Output tokens over the run, the steady window marked; None when no token came."""
    arrivals = [((time - origin) / 1_000_000, tokens) for record in records for time, tokens in token_arrivals(record)]
    if not arrivals:
        return None
    slots = slots_of(max(*(time for time, _ in arrivals), 0))
    width = slots.width
    bins = [0.0] * slots.count
    for time, tokens in arrivals:
        bins[slots.of(time)] += tokens / width
    edges = ((window[0] - origin) / 1_000_000, (window[1] - origin) / 1_000_000) if window else None
    x = Scale(0, len(bins) * width, LEFT, RIGHT)
    y = scale_of(bins, BOTTOM, TOP, from_zero=True)
    parts = [
        *shaded(edges, x),
        *y_axis(y, "output tok/s"),
        *x_axis(x, SINCE),
    ]
    for index, value in enumerate(bins):
        left, right = x.at(index * width), x.at((index + 1) * width)
        parts.append(
            element(
                "rect",
                element("title", text=f"{index * width} to {(index + 1) * width} s: {figure(value)} tok/s"),
                x=left + 0.5,
                y=y.at(value),
                width=max(right - left - 1, 0.5),
                height=BOTTOM - y.at(value),
                fill=GREEN,
            )
        )
    swatches = [(element("rect", x=-8, y=-6, width=12, height=12, fill=GREEN), "output tok/s")]
    if edges and rate is not None:
        start, end = map(x.at, edges)
        mean = element("line", x1=start, y1=y.at(rate), x2=end, y2=y.at(rate), stroke=ORANGE, stroke_width=2)
        parts.append(mean)
        swatches.append(
            (element("path", d="M-14 0L8 0", stroke=ORANGE, stroke_width=2), f"window: {figure(rate)} tok/s")
        )
    parts += legend(swatches)
    title = "Output tokens per second over the run"
    return Chart(
        "throughput",
        title,
        f"Tokens of all requests by the time they came, {width} s a bar; the steady window is shaded."
        if window
        else f"Tokens of all requests by the time they came, {width} s a bar; there was no steady window.",
        drawing("throughput", title, f"{len(bins)} bars of {width} seconds.", WIDTH, HEIGHT, parts),
        ("from (s)", "to (s)", "output tok/s"),
        tuple((str(index * width), str((index + 1) * width), figure(value)) for index, value in enumerate(bins)),
    )


def _ttft(record: Record) -> float | None:
    return (record.token_times[0] - record.dispatched) / 1000 if record.token_times else None


def _thinned(ordered: Sequence[Record]) -> list[Record]:
    ok = KINDS[0].outcomes
    successes = sum(record.outcome in ok for record in ordered)
    every = math.ceil(successes / MOST_POINTS) if successes else 1
    shown, seen = [], 0
    for record in ordered:
        if record.outcome in ok:
            seen += 1
            if seen % every:
                continue
        shown.append(record)
    return shown


def _slices(
    ordered: Sequence[Record], origin: int, length: float, kinds: Sequence[frozenset[Outcome]]
) -> list[tuple[str, ...]]:
    rows = []
    width = length / _SLICES
    members: list[list[Record]] = [[] for _ in range(_SLICES)]
    for record in ordered:
        place = max(record.dispatched - origin, 0) / 1_000_000 / width
        members[min(int(place), _SLICES - 1)].append(record)
    for index, group in enumerate(members):
        waits = [wait for record in group if (wait := _ttft(record)) is not None]
        rows.append(
            (
                figure(index * width),
                figure((index + 1) * width),
                str(len(group)),
                *(str(sum(record.outcome in outcomes for record in group)) for outcomes in kinds),
                figure(median(waits)) if waits else "no value",
            )
        )
    return rows
