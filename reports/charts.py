"""Charts of how latencies are distributed: inline SVG, with the figures drawn as a table beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.metrics.summary import Distribution, Summary
from streamgauge.reports.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    figure,
    legend,
    scale_of,
    x_axis,
    y_axis,
)
from streamgauge.reports.kinds import BLUE, ORANGE
from streamgauge.reports.svg import drawing, element

__all__ = ["Chart", "cumulative_chart", "gap_chart"]

_BINS = 36
_SHARES = (0.01, 0.05, *(step / 20 for step in range(2, 19)), 0.95, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, what to see in it, and its figures."""

    name: str
    title: str
    caption: str
    svg: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def cumulative_chart(summary: Summary) -> Chart | None:
    """Which share of requests had its first and its last token by when; None without a single latency."""
    series = [
        (name, label, colour, dash, summary.distributions[name])
        for name, label, colour, dash in (("ttft", "TTFT", BLUE, ""), ("e2e", "E2E", ORANGE, "7 4"))
        if name in summary.distributions
    ]
    if not series:
        return None
    x = scale_of([value for *_, found in series for value in found.ordered], LEFT, RIGHT)
    y = Scale(0, 1, BOTTOM, TOP)
    levels = [(level, f"{level:.0%}") for level in (0, 0.25, 0.5, 0.75, 0.9, 0.99)]
    parts = [*y_axis(y, "share of requests", levels), *x_axis(x, "ms")]
    for _, label, colour, dash, found in series:
        parts.append(
            element(
                "path",
                element("title", text=f"{label}: median {figure(_rank(found, 0.5))} ms, n {found.n}"),
                d=_cumulative_path(found, x, y),
                fill="none",
                stroke=colour,
                stroke_width=2.2,
                **({"stroke_dasharray": dash} if dash else {}),
            )
        )
    parts += legend(
        (
            element(
                "path",
                d="M-14 0L8 0",
                stroke=colour,
                stroke_width=2.2,
                **({"stroke_dasharray": dash} if dash else {}),
            ),
            label,
        )
        for _, label, colour, dash, _ in series
    )
    title = "First and last token: share of requests by latency"
    return Chart(
        "cumulative",
        title,
        "Read upwards from a latency: the share of successful requests that were at most so slow.",
        drawing("cumulative", title, _description(series), WIDTH, HEIGHT, parts),
        ("share of requests", *(f"{label} (ms)" for _, label, *_ in series)),
        tuple((f"{share:.0%}", *(figure(_rank(found, share)) for *_, found in series)) for share in _SHARES),
    )


def gap_chart(summary: Summary) -> Chart | None:
    """How long the pauses between events are; None without any."""
    found = summary.distributions.get("gap")
    if found is None or found.high <= 0:
        return None
    low = max(found.low, found.high / 1e5, 0.01)
    x = Scale(low / 1.05, max(found.high, low * 2) * 1.05, LEFT, RIGHT, logarithmic=True)
    edges = [x.low * (x.high / x.low) ** (index / _BINS) for index in range(_BINS + 1)]
    counts = [0] * _BINS
    for value, count in found.counts():
        place = math.log(max(value, x.low) / x.low) / math.log(x.high / x.low)
        counts[min(int(place * _BINS), _BINS - 1)] += count
    y = scale_of(counts, BOTTOM, TOP, from_zero=True)
    parts = [*y_axis(y, "gaps"), *x_axis(x, "ms")]
    for index, count in enumerate(counts):
        left, right = x.at(edges[index]), x.at(edges[index + 1])
        if count:
            parts.append(
                element(
                    "rect",
                    element("title", text=f"{figure(edges[index])} to {figure(edges[index + 1])} ms: {count} gaps"),
                    x=left + 0.5,
                    y=min(y.at(count), BOTTOM - 1),
                    width=right - left - 1,
                    height=max(BOTTOM - y.at(count), 1),
                    fill=BLUE,
                )
            )
    title = "Gaps between token-bearing events"
    return Chart(
        "gaps",
        title,
        "Pooled over all successful requests. A second hill to the right is a stall, one at the far left a burst.",
        drawing("gaps", title, f"{found.n} gaps, the longest {figure(found.high)} ms.", WIDTH, HEIGHT, parts),
        ("from (ms)", "to (ms)", "gaps"),
        tuple(
            (figure(edges[index]), figure(edges[index + 1]), str(count)) for index, count in enumerate(counts) if count
        ),
    )


def _rank(found: Distribution, share: float) -> float:
    return found.ordered[max(math.ceil(share * found.n - 1e-9), 1) - 1]


def _cumulative_path(found: Distribution, x: Scale, y: Scale) -> str:
    steps = min(found.n, 200)
    ranks = sorted({max(math.ceil(found.n * step / steps), 1) for step in range(1, steps + 1)} | {1})
    places = [f"{x.at(found.ordered[0]):.1f} {y.at(0):.1f}"]
    places += [f"{x.at(found.ordered[rank - 1]):.1f} {y.at(rank / found.n):.1f}" for rank in ranks]
    return "M" + "L".join(places)


def _description(series: Sequence[tuple[str, str, str, str, Distribution]]) -> str:
    return " ".join(
        f"{label}: {found.n} requests, from {figure(found.low)} to {figure(found.high)} ms, "
        f"median {figure(_rank(found, 0.5))} ms."
        for _, label, _, _, found in series
    )
