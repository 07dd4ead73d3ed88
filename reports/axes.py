"""Scales, axes and the frame that every chart shares."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgauge.reports.kinds import BLUE
from streamgauge.reports.svg import element

__all__ = [
    "BOTTOM",
    "HEIGHT",
    "LEFT",
    "RIGHT",
    "SINCE",
    "TOP",
    "WIDTH",
    "Scale",
    "figure",
    "legend",
    "scale_of",
    "shaded",
    "x_axis",
    "y_axis",
]

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 66, WIDTH - 18, 40, HEIGHT - 46
"""The plot's edges inside the drawing."""

SINCE = "seconds since the start"
"""What time axes show: since the start of the schedule, or of the first request where there is none."""

_FEWEST_TICKS = 4
"""Where a logarithmic scale has fewer at the powers of ten, there are some between."""

LOGARITHMIC_FROM = 20
"""Values whose largest is so many times the smallest are drawn on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high` to places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value; one outside lands on the edge."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> list[float]:
        """Round values inside the scale, at most so many where it is linear."""
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1,), (1, 2, 5), range(1, 10)):
                found = [step * 10.0**power for power in powers for step in steps]
                found = [tick for tick in found if self.low <= tick <= self.high]
                if len(found) >= _FEWEST_TICKS:
                    break
            return found
        step = next(
            step * 10.0**power
            for power in range(-6, 16)
            for step in (1, 2, 5)
            if (self.high - self.low) / (step * 10.0**power) <= most
        )
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scale_of(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Scale:
    """
    A scale that holds all values.

    Logarithmic where they spread widely, unless zero must be on it.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return Scale(0, 1, start, end)
    low, high = min(positive), max(positive)
    if not from_zero and high / low >= LOGARITHMIC_FROM:
        return Scale(low / 1.1, high * 1.1, start, end, logarithmic=True)
    return Scale(0, high * 1.06, start, end)


def x_axis(scale: Scale, title: str, bottom: float = BOTTOM) -> list[str]:
    """Ticks and title below the plot."""
    parts = [element("line", x1=LEFT, y1=bottom, x2=RIGHT, y2=bottom, stroke="currentColor", stroke_opacity="0.5")]
    for tick in scale.ticks():
        x = scale.at(tick)
        parts.append(element("line", x1=x, y1=bottom, x2=x, y2=bottom + 4, stroke="currentColor", stroke_opacity="0.5"))
        parts.append(element("text", text=figure(tick), x=x, y=bottom + 17, text_anchor="middle"))
    where = f"{title}, logarithmic" if scale.logarithmic else title
    parts.append(element("text", text=where, x=(LEFT + RIGHT) / 2, y=bottom + 36, text_anchor="middle", opacity="0.75"))
    return parts


def shaded(window: tuple[float, float] | None, scale: Scale, bottom: float = BOTTOM) -> list[str]:
    """The steady window behind the plot; nothing without one."""
    if window is None:
        return []
    start, end = map(scale.at, window)
    return [
        element("rect", x=start, y=TOP, width=end - start, height=bottom - TOP, fill=BLUE, fill_opacity="0.12"),
        *(
            element("line", x1=edge, x2=edge, y1=TOP, y2=bottom, stroke=BLUE, stroke_dasharray="4 3")
            for edge in (start, end)
        ),
        element("text", text="steady window", x=start + 6, y=TOP - 5, fill=BLUE),
    ]


def y_axis(scale: Scale, title: str, labels: Iterable[tuple[float, str]] | None = None) -> list[str]:
    """Grid lines with their values left of the plot, and the title above them."""
    where = f"{title}, logarithmic" if scale.logarithmic else title
    parts = [element("text", text=where, x=8, y=14, opacity="0.75")]
    for tick, label in labels or [(tick, figure(tick)) for tick in scale.ticks(5)]:
        y = scale.at(tick)
        parts.append(element("line", x1=LEFT, y1=y, x2=RIGHT, y2=y, stroke="currentColor", stroke_opacity="0.15"))
        parts.append(element("text", text=label, x=LEFT - 8, y=y + 4, text_anchor="end"))
    return parts


def legend(entries: Iterable[tuple[str, str]]) -> list[str]:
    """
    The key above the plot, aligned to its right edge.

    Args:
        entries: a swatch drawn around (0, 0), and its text.
    """
    listed = list(entries)
    x = RIGHT - sum(36 + 6.8 * len(text) for _, text in listed)
    parts = []
    for swatch, text in listed:
        parts.append(element("g", swatch, transform=f"translate({x + 8:.1f} 10)"))
        parts.append(element("text", text=text, x=x + 22, y=14))
        x += 36 + 6.8 * len(text)
    return parts


def figure(value: float) -> str:
    """A figure for reading: about three significant digits, thousands set apart by a narrow space."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}".replace(",", "\u202f")
    return text.rstrip("0").rstrip(".") if "." in text else text
