"""When requests arrive: absolute schedules computed from a seed, and the closed loop."""

import math
import random
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, repeat

__all__ = ["PROCESSES", "ClosedLoop", "OpenLoop", "Segment", "schedule"]


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """
    So many users, each with one request at a time.

    Attributes:
        users: how many at once.
        think_s: mean pause of a user between an answer and the next request, drawn from an exponential distribution;
            0 for none.
    """

    users: int = 8
    think_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Segment:
    """
    A part of the run in which the rate changes linearly.

    Attributes:
        seconds: how long.
        start, end: requests per second at its beginning and its end.
    """

    seconds: float
    start: float
    end: float

    @property
    def expected(self) -> float:
        """How many arrivals there are on average: the integral of the rate."""
        return (self.start + self.end) / 2 * self.seconds

    def when(self, expected: float) -> float:
        """The second within the segment up to which so many are expected."""
        # The root of start*x + slope*x*x/2 = expected in the form that loses no digits, whatever the slope is.
        slope = (self.end - self.start) / self.seconds
        root = self.start + math.sqrt(max(self.start * self.start + 2 * slope * expected, 0.0))
        return min(2 * expected / root, self.seconds) if root else 0.0


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """
    Requests that arrive whether the earlier ones are answered or not.

    Attributes:
        segments: the rate over the run.
        process: a key of :data:`PROCESSES`.
        burstiness: of `gamma`: its shape; 1 is Poisson, below 1 comes in bursts, above 1 is more regular.
        max_in_flight: an arrival beyond so many requests in flight in one process is dropped, and recorded so.
    """

    segments: tuple[Segment, ...]
    process: str = "poisson"
    burstiness: float = 1.0
    max_in_flight: int = 10_000

    @property
    def expected(self) -> float:
        """How many arrivals there are on average."""
        return sum(segment.expected for segment in self.segments)

    @property
    def seconds(self) -> float:
        """How long the run lasts."""
        return sum(segment.seconds for segment in self.segments)


def _constant(loop: OpenLoop, source: random.Random) -> Iterator[float]:
    return map(float, count())


def _poisson(loop: OpenLoop, source: random.Random) -> Iterator[float]:
    return accumulate(source.expovariate(1.0) for _ in repeat(None))


def _gamma(loop: OpenLoop, source: random.Random) -> Iterator[float]:
    shape = loop.burstiness
    return accumulate(source.gammavariate(shape, 1 / shape) for _ in repeat(None))


PROCESSES: dict[str, Callable[[OpenLoop, random.Random], Iterator[float]]] = {
    "constant": _constant,
    "gamma": _gamma,
    "poisson": _poisson,
}
"""Name of each process → its points at unit rate, ascending without end; those of `constant` begin with 0."""


def schedule(loop: OpenLoop, seed: int) -> "array[float]":
    """
    Every arrival of the run, in seconds since its start, ascending.

    One process of unit rate (its increments 1, exponential or gamma of mean 1) is drawn from the seed and mapped through
    the inverse of the integrated rate (time rescaling: Daley and Vere-Jones, An Introduction to the Theory of Point
    Processes, 7.4), so that the rate may change over the run.
    """
    points = PROCESSES[loop.process](loop, random.Random(f"{seed}/arrivals"))  # noqa: S311 - reproducible, no secret
    arrivals = array("d")
    point = next(points)
    begun_s = passed = 0.0
    for segment in loop.segments:
        end = passed + segment.expected
        while point < end:
            arrivals.append(begun_s + segment.when(point - passed))
            point = next(points)
        begun_s, passed = begun_s + segment.seconds, end
    return arrivals
