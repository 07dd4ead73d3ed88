"""Exact quantiles with distribution-free intervals, by order statistics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CERTIFIED_P99", "MINIMUM_P99", "Quantile", "quantile"]

MINIMUM_P99 = 100
"""Below so many values a p99 is only the maximum by another name: refused."""

CERTIFIED_P99 = 662
"""
From so many values on, a p99 is certified: with 99 % confidence the true one is not above the second largest value seen
(the smallest n with P(binomial(n, 0.01) <= 1) <= 0.01).
"""


@dataclass(frozen=True, slots=True)
class Quantile:
    """
    One quantile of a sample.

    Attributes:
        p: between 0 and 1.
        value: the order statistic at rank ceil(p n): a value that was really seen; None when refused.
        low, high: ends of the 95 % confidence interval; None where the sample cannot bound it.
        n: how many values there were.
    """

    p: float
    value: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def certified(self) -> bool:
        """Whether the second largest value bounds the true quantile from above with 99 % confidence."""
        above = 1 - self.p
        return self.p**self.n + self.n * above * self.p ** (self.n - 1) <= 0.01 if self.n else False


def quantile(ordered: Sequence[float], p: float) -> Quantile:
    """
    A quantile with its interval.

    The number of values below the true quantile is binomial(n, p); the interval is that of the order statistics whose
    ranks hold at least 95 % of it, 2.5 % outside on each side (Hahn and Meeker, Statistical Intervals, 5.2).

    Args:
        ordered: the sample, ascending.
        p: which quantile, 0 < p < 1.
    """
    n = len(ordered)
    if n == 0 or n < MINIMUM_P99 * 0.01 / (1 - p) - 1e-9:
        return Quantile(p, None, None, None, n)
    value = ordered[max(math.ceil(p * n - 1e-9), 1) - 1]
    lower, upper = _interval_ranks(n, p)
    return Quantile(
        p,
        value,
        ordered[lower - 1] if lower >= 1 else None,
        ordered[upper - 1] if upper <= n else None,
        n,
    )


def _interval_ranks(n: int, p: float, tail: float = 0.025) -> tuple[int, int]:
    """Ranks (from 1) of the interval's ends; 0 or n + 1 where the sample is too small to hold one."""
    log_p, log_q = math.log(p), math.log1p(-p)
    below = 0.0
    lower, upper = 0, n + 1
    for count in range(n + 1):
        log_mass = (
            math.lgamma(n + 1)
            - math.lgamma(count + 1)
            - math.lgamma(n - count + 1)
            + count * log_p
            + (n - count) * log_q
        )
        below += math.exp(log_mass)
        if below <= tail:
            lower = count + 1
        if below >= 1 - tail:
            upper = count + 1
            break
    return lower, upper
