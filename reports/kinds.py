"""Colours of the charts, and how kinds of request outcomes are told apart: by shape and by colour, both."""

from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.metrics.record import Outcome
from streamgauge.reports.svg import element

__all__ = ["BLUE", "GREEN", "GREY", "KINDS", "ORANGE", "RED", "TEAL", "VIOLET", "Kind", "kind_of"]

BLUE, ORANGE, GREEN, RED, VIOLET, TEAL, GREY = (
    "#3b82f6",
    "#d9780a",
    "#1f9d57",
    "#e5484d",
    "#9a6dd7",
    "#0d9488",
    "#7d8590",
)
"""Each has a contrast of at least 3 to white and to a dark page."""


@dataclass(frozen=True, slots=True)
class Kind:
    """
    Outcomes that look alike in a chart.

    Attributes:
        name: in legends and tables.
        colour: reads on white and on a dark page.
        mark: draws it at a place.
        outcomes: what belongs to it.
    """

    name: str
    colour: str
    mark: Callable[[float, float, str, str], str]
    outcomes: frozenset[Outcome]


def _circle(x: float, y: float, colour: str, hover: str) -> str:
    return element("circle", *_title(hover), cx=x, cy=y, r=3, fill=colour, fill_opacity="0.75")


def _polygon(*corners: tuple[float, float]) -> Callable[[float, float, str, str], str]:
    def draw(x: float, y: float, colour: str, hover: str) -> str:
        points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        return element("polygon", *_title(hover), points=points, fill=colour)

    return draw


def _strokes(path: str) -> Callable[[float, float, str, str], str]:
    def draw(x: float, y: float, colour: str, hover: str) -> str:
        return element(
            "path",
            *_title(hover),
            d=path,
            transform=f"translate({x:.1f} {y:.1f})",
            stroke=colour,
            stroke_width=2,
            fill="none",
        )

    return draw


def _title(hover: str) -> list[str]:
    return [element("title", text=hover)] if hover else []


KINDS: tuple[Kind, ...] = (
    Kind("ok", BLUE, _circle, frozenset({Outcome.OK})),
    Kind(
        "broken answer",
        RED,
        _strokes("M-4 -4L4 4M-4 4L4 -4"),
        frozenset(
            {
                Outcome.HTTP_5XX,
                Outcome.IN_BAND_ERROR,
                Outcome.TRUNCATED,
                Outcome.MALFORMED_SSE,
                Outcome.MALFORMED_JSON,
                Outcome.SCHEMA_VIOLATION,
                Outcome.EMPTY,
            }
        ),
    ),
    Kind(
        "rejected",
        ORANGE,
        _polygon((0, -5), (5, 4), (-5, 4)),
        frozenset({Outcome.HTTP_4XX, Outcome.RATE_LIMITED}),
    ),
    Kind(
        "timeout",
        VIOLET,
        _polygon((-4, -4), (4, -4), (4, 4), (-4, 4)),
        frozenset(
            {
                Outcome.TIMEOUT_CONNECT,
                Outcome.TIMEOUT_FIRST_TOKEN,
                Outcome.TIMEOUT_IDLE,
                Outcome.TIMEOUT_TOTAL,
            }
        ),
    ),
    Kind(
        "connection",
        TEAL,
        _polygon((0, -5), (5, 0), (0, 5), (-5, 0)),
        frozenset({Outcome.REFUSED, Outcome.RESET, Outcome.TLS}),
    ),
    Kind(
        "client",
        GREY,
        _strokes("M-5 0L5 0M0 -5L0 5"),
        frozenset({Outcome.CLIENT_OVERLOAD, Outcome.DROPPED, Outcome.CANCELLED, Outcome.UNFINISHED_AT_STOP}),
    ),
)
"""Every outcome belongs to exactly one kind."""


def kind_of(outcome: Outcome) -> Kind:
    """The kind that an outcome belongs to."""
    return next(kind for kind in KINDS if outcome in kind.outcomes)
