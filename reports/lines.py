"""Lines over the time of a run: inline SVG, with the figures drawn as a table beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

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
from streamgauge.reports.slots import Slots
from streamgauge.reports.svg import drawing, element

__all__ = ["SMALL", "Line", "line_chart", "slot_means"]

SMALL = 200
"""Height of a chart that is beside the point."""


@dataclass(frozen=True, slots=True)
class Line:
    """
    One line.

    Attributes:
        name: in the legend and the table.
        colour: of the line.
        points: second and value, in the order of time; nothing is drawn without any.
        dash: tells it apart from others without colours; empty for a whole line.
        filled: whether it is drawn as an area behind the other lines.
        faint: whether it is one of many that only show the range.
    """

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    dash: str = ""
    filled: bool = False
    faint: bool = False


def line_chart(
    name: str,
    title: str,
    caption: str,
    unit: str,
    lines: Sequence[Line],
    slots: Slots,
    *,
    window: tuple[float, float] | None = None,
    height: int = HEIGHT,
) -> Chart | None:
    """
    Lines over a run; None where none has a point.

    Args:
        name: of the chart, for its ids.
        title: of the chart.
        caption: what to see in it.
        unit: of all values.
        lines: each with a column in the table, where its points are averaged over each slot.
        slots: of the run.
        window: the steady window, in seconds since the start.
        height: of the drawing.
    """
    lines = [line for line in lines if line.points]
    if not lines:
        return None
    bottom = height - (HEIGHT - BOTTOM)
    x = Scale(0, slots.count * slots.width, LEFT, RIGHT)
    y = scale_of([value for line in lines for _, value in line.points], bottom, TOP, from_zero=True)
    drawn = sorted(lines, key=lambda line: (not line.filled, not line.faint))
    parts = [
        *shaded(window, x, bottom),
        *y_axis(y, unit),
        *x_axis(x, SINCE, bottom),
        *(_path(line, x, y, bottom) for line in drawn),
        *legend((_swatch(line), line.name) for line in lines if not line.faint),
    ]
    columns = [slot_means(line.points, slots) for line in lines]
    return Chart(
        name,
        title,
        caption,
        drawing(name, title, " ".join(map(_told, lines)), WIDTH, height, parts),
        ("from (s)", "to (s)", *(f"{line.name} ({unit})" for line in lines)),
        tuple(
            (
                str(slot * slots.width),
                str((slot + 1) * slots.width),
                *("no value" if (mean := column[slot]) is None else figure(mean) for column in columns),
            )
            for slot in range(slots.count)
        ),
    )


def slot_means(points: Sequence[tuple[float, float]], slots: Slots) -> list[float | None]:
    """The mean of the values in each slot; None in one without any."""
    sums, counts = [0.0] * slots.count, [0] * slots.count
    for second, value in points:
        slot = slots.of(second)
        sums[slot] += value
        counts[slot] += 1
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


def _path(line: Line, x: Scale, y: Scale, bottom: float) -> str:
    places = [f"{x.at(second):.1f} {y.at(value):.1f}" for second, value in line.points]
    way = "M" + "L".join(places if len(places) > 1 else places * 2)  # a single point is a dot by its round ends
    if line.filled:
        first, last = x.at(line.points[0][0]), x.at(line.points[-1][0])
        area = f"{way}L{last:.1f} {bottom:.1f}L{first:.1f} {bottom:.1f}Z"
        return element("path", d=area, fill=line.colour, fill_opacity="0.3", stroke="none")
    return element(
        "path",
        *([] if line.faint else [element("title", text=line.name)]),
        d=way,
        fill="none",
        stroke=line.colour,
        stroke_width="1" if line.faint else "2.2",
        stroke_linecap="round",
        stroke_linejoin="round",
        **_dashed(line),
    )


def _swatch(line: Line) -> str:
    if line.filled:
        return element("rect", x=-10, y=-6, width=16, height=12, fill=line.colour, fill_opacity="0.3")
    return element("path", d="M-14 0L8 0", stroke=line.colour, stroke_width="2.2", **_dashed(line))


def _dashed(line: Line) -> dict[str, str]:
    return {"stroke_dasharray": line.dash} if line.dash else {}


def _told(line: Line) -> str:
    values = [value for _, value in line.points]
    return f"{line.name}: from {figure(min(values))} to {figure(max(values))}."
