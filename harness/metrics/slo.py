"""Service level objectives: what a run has to keep, as text and as numbers."""

import math
import re
from dataclasses import dataclass
from typing import Self

from streamgauge.errors import UsageError
from streamgauge.metrics.definitions import BY_ID, Metric

__all__ = ["SHARES", "Slo"]

SHARES = ("goodput", "errors")
"""What an objective may be about besides a latency metric: shares of the requests."""

_LATENCY = re.compile(r"([a-z0-9_]+):p(\d+(?:\.\d+)?)<=(\d+(?:\.\d+)?)(us|ms|s|m)", re.ASCII)
_SHARE = re.compile(r"(goodput>=|errors<=)(\d+(?:\.\d+)?)%", re.ASCII)
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
_HINT = (
    "Write ttft:p95<=500ms, e2e:p50<=2s, goodput>=95% or errors<=1%. Metrics: "
    f"{', '.join(BY_ID)}; times in us, ms, s or m."
)


@dataclass(frozen=True, slots=True)
class Slo:
    """
    One objective of `--slo`.

    Attributes:
        metric: id of a latency metric, or `goodput`, or `errors`.
        p: which quantile, between 0 and 1; None for a share.
        limit: in the metric's unit (ms), or a share between 0 and 1. A value equal to it keeps it.
    """

    metric: str
    p: float | None
    limit: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        From `ttft:p95<=500ms`, `goodput>=95%` or `errors<=1%`; blanks do not matter.

        Raises:
            UsageError: it is none of these, or about a metric that there is not.
        """
        bare = "".join(text.split())
        if (found := _SHARE.fullmatch(bare)) and float(found[2]) <= 100:
            return cls(found[1][:-2], None, float(found[2]) / 100)
        if (found := _LATENCY.fullmatch(bare)) and found[1] in BY_ID and 0 < float(found[2]) < 100:
            return cls(found[1], float(found[2]) / 100, float(found[3]) * _MILLISECONDS[found[4]])
        raise UsageError(f"{text!r} is no objective", where="--slo", hint=_HINT)

    def __str__(self) -> str:
        """The text that :meth:`parse` reads."""
        if self.p is None:
            return f"{self.metric}{'>=' if self.metric == 'goodput' else '<='}{_digits(self.limit * 100)}%"
        return f"{self.metric}:p{_digits(self.p * 100)}<={_digits(self.limit)}ms"

    @property
    def latency(self) -> Metric | None:
        """The metric that it limits; None where it is about a share of the requests."""
        return BY_ID.get(self.metric)


def _digits(number: float) -> str:
    """Without an exponent, and without the noise of binary fractions."""
    rounded = round(number, 9)
    return str(int(rounded)) if rounded == math.floor(rounded) else f"{rounded:.9f}".rstrip("0")
