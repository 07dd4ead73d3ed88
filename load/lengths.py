"""Lengths in tokens: a constant, or a distribution to draw from."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from streamgauge.errors import UsageError
from streamgauge.load.texts import decimal, written

__all__ = ["Lengths"]

LONGEST = 1_000_000
"""No draw is longer: beyond every context window, it would only be a slip of the tail of a distribution."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """
    One kind of distribution.

    Attributes:
        form: how it is written, for messages.
        parameters: how many it has.
        between: what stands between them.
        draw: one value, before it is rounded and bounded.
    """

    form: str
    parameters: int
    between: str
    draw: Callable[..., float]


def _uniform(source: random.Random, low: float, high: float) -> float:
    return source.randint(int(low), int(high))


def _lognormal(source: random.Random, median: float, sigma: float) -> float:
    return median * math.exp(min(source.gauss(0, sigma), 100))


_KINDS = {
    "constant": _Kind("64", 1, "", lambda source, length: length),
    "uniform": _Kind("uniform:16..256 (from, to)", 2, "..", _uniform),
    "normal": _Kind(
        "normal:128,32 (mean, deviation)", 2, ",", lambda source, mean, deviation: source.gauss(mean, deviation)
    ),
    "lognormal": _Kind("lognormal:128,0.5 (median, sigma)", 2, ",", _lognormal),
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """
    A distribution of lengths; every draw is at least 1.

    Attributes:
        kind: a key of the table of kinds (`constant`, `uniform`, `normal`, `lognormal`).
        parameters: its parameters, in the order in which :meth:`parse` takes them.
    """

    kind: str
    parameters: tuple[float, ...]

    @classmethod
    def constant(cls, length: int) -> Self:
        """Always the same."""
        return cls("constant", (length,))

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        From `64`, `uniform:16..256`, `normal:128,32` (mean, standard deviation), `lognormal:128,0.5` (median, sigma).

        Raises:
            UsageError: it is none of these.
        """
        name, colon, rest = text.strip().partition(":")
        name, rest = (name, rest) if colon else ("constant", name)
        kind = _KINDS.get(name)
        if kind is None or (colon and name == "constant"):
            raise _wrong(text, "no length in tokens")
        parts = rest.split(kind.between) if kind.between else [rest]
        if len(parts) != kind.parameters:
            raise _wrong(text, f"no {name} length: it is written {kind.form}")
        try:
            parameters = tuple(decimal(part, "number") for part in parts)
        except UsageError as problem:
            raise _wrong(text, f"no length in tokens: {problem.what}") from None
        whole = parameters if name in ("constant", "uniform") else parameters[:1]
        if any(value != int(value) or not 1 <= value <= LONGEST for value in whole):
            raise _wrong(text, f"no length in tokens: it is a whole number from 1 to {LONGEST}")
        if name == "uniform" and parameters[0] > parameters[1]:
            raise _wrong(text, "no range: its end is below its beginning")
        return cls(name, parameters)

    def draw(self, source: random.Random) -> int:
        """One length."""
        value = _KINDS[self.kind].draw(source, *self.parameters)
        return min(max(round(value), 1), LONGEST)

    def __str__(self) -> str:
        """The text that :meth:`parse` takes."""
        parameters = _KINDS[self.kind].between.join(map(written, self.parameters))
        return parameters if self.kind == "constant" else f"{self.kind}:{parameters}"


def _wrong(text: str, what: str) -> UsageError:
    return UsageError(f"{text!r} is {what}", hint=f"Write one of: {'; '.join(kind.form for kind in _KINDS.values())}.")
