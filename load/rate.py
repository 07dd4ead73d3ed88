"""The rate of an open loop as it is written: constant, as a ramp, or in steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from streamgauge.errors import UsageError
from streamgauge.load.arrivals import Segment
from streamgauge.load.texts import decimal, time_text, whole_seconds, written

__all__ = ["Rate", "rate_of"]

MOST_ARRIVALS = 20_000_000
"""A longer schedule would not fit into memory beside its records."""

_HINT = "Write 50 (each second), 10..100 (a ramp), or 10@30s,20@30s (steps, each with its time)."


@dataclass(frozen=True, slots=True)
class Rate:
    """
    A rate over the run.

    Attributes:
        pieces: requests per second at the beginning and the end of each piece, and its whole seconds; None for the only
            piece, where it lasts as long as the run.
    """

    pieces: tuple[tuple[float, float, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        From `50`, `10..100`, `10@30s,20@30s`, or `1..50@30s,50@2m`.

        Raises:
            UsageError: it is none of these, or nothing ever arrives.
        """
        items = text.split(",")
        pieces = tuple(map(_piece, items))
        if len(pieces) > 1 and any(seconds is None for _, _, seconds in pieces):
            raise UsageError(f"{text!r} has a step without its time", hint=_HINT)
        if not any(start or end for start, end, _ in pieces):
            raise UsageError(f"{text!r} is a rate at which nothing arrives", hint=_HINT)
        return cls(pieces)

    def segments(self, duration_s: int, *, given: bool) -> tuple[Segment, ...]:
        """
        The rate as segments of a run.

        Args:
            duration_s: how long the run lasts.
            given: whether the user said so; else the times of the pieces count alone.

        Raises:
            UsageError: the times contradict the duration, or there would be too many arrivals.
        """
        total = sum(seconds or 0 for _, _, seconds in self.pieces)
        if given and total and total != duration_s:
            raise UsageError(
                f"its times add up to {time_text(total)}, and the duration is {time_text(duration_s)}",
                hint="Leave the duration out: the rate says it.",
            )
        segments = tuple(Segment(seconds or duration_s, start, end) for start, end, seconds in self.pieces)
        if not segments[0].seconds:
            raise UsageError("a rate needs a duration", hint="Give one, or write it with the rate: 50@2m.")
        expected = sum(segment.expected for segment in segments)
        if expected > MOST_ARRIVALS:
            raise UsageError(f"would be {expected:.0f} requests, and at most {MOST_ARRIVALS} are possible")
        return segments


def _piece(item: str) -> tuple[float, float, int | None]:
    rate, at, time = item.strip().partition("@")
    start, dots, end = rate.partition("..")
    try:
        first = decimal(start, "rate")
        return first, decimal(end, "rate") if dots else first, whole_seconds(time) if at else None
    except UsageError as problem:
        raise UsageError(problem.what, hint=_HINT) from None


def rate_of(segments: Sequence[Segment]) -> str:
    """The text that makes these segments again."""
    return ",".join(f"{_span(segment)}@{time_text(segment.seconds)}" for segment in segments)


def _span(segment: Segment) -> str:
    if segment.start == segment.end:
        return written(segment.start)
    return f"{written(segment.start)}..{written(segment.end)}"
