"""Exact quantiles and shares with distribution-free intervals, by order statistics and the binomial distribution."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = [
    "CERTIFIED_P99",
    "MINIMUM_P99",
    "OUTSIDE",
    "Clusters",
    "Quantile",
    "at_rank",
    "binomial_at_most",
    "quantile",
    "share_interval",
]

MINIMUM_P99 = 100
"""Below so many values a p99 is only the maximum by another name: refused."""

CERTIFIED_P99 = 662
"""
From so many values on, a p99 is certified: with 99 % confidence the true one is not above the second largest value seen
(the smallest n with P(binomial(n, 0.01) <= 1) <= 0.01).
"""

_Value = TypeVar("_Value", int, float)

OUTSIDE = 0.025
"""What a 95 % interval leaves outside on each side."""

_FAR = 9
"""So many standard deviations from its mean a binomial has no mass that a double could show."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """
    One quantile of a sample.

    Attributes:
        p: between 0 and 1.
        value: the order statistic at rank ceil(p n): a value that was really seen; None when refused.
        low, high: ends of the 95 % confidence interval; None where the sample cannot bound it.
        n: how many values there were.
        worth: how many independent values they are worth; n where they are independent.
    """

    p: float
    value: float | None
    low: float | None
    high: float | None
    n: int
    worth: int

    @property
    def certified(self) -> bool:
        """Whether the second largest value bounds the true quantile from above with 99 % confidence."""
        n, above = self.worth, 1 - self.p
        return self.p**n + n * above * self.p ** (n - 1) <= 0.01 if n else False


def at_rank(ordered: Sequence[_Value], p: float) -> _Value:
    """The value at rank ceil(p n) of an ascending sample that is not empty: one that was really seen."""
    return ordered[max(math.ceil(p * len(ordered) - 1e-9), 1) - 1]


def quantile(ordered: Sequence[float], p: float, worth: int | None = None) -> Quantile:
    """
    A quantile with its interval.

    The number of values below the true quantile is binomial(n, p); the interval is that of the order statistics whose
    ranks hold at least 95 % of it, 2.5 % outside on each side (Hahn and Meeker, Statistical Intervals, 5.2). Where the
    values are worth fewer independent ones, the ranks are those of so many values, spread over all.

    Args:
        ordered: the sample, ascending.
        p: which quantile, 0 < p < 1.
        worth: how many independent values the sample is worth (:class:`Clusters`); all by default.
    """
    n = len(ordered)
    worth = n if worth is None else min(worth, n)
    if n == 0 or n < MINIMUM_P99 * 0.01 / (1 - p) - 1e-9:
        return Quantile(p, None, None, None, n, worth)
    value = at_rank(ordered, p)
    lower, upper = _interval_ranks(worth, p)
    return Quantile(
        p,
        value,
        ordered[max(lower * n // worth, 1) - 1] if lower >= 1 else None,
        ordered[min(-(-upper * n // worth), n) - 1] if upper <= worth else None,
        n,
        worth,
    )


def binomial_at_most(k: int, n: int, p: float) -> float:
    """The probability that a binomial(n, p) is not above k, for 0 < p < 1."""
    first, last = _massive(n, p)
    return min(math.fsum(_masses(first, min(k, last), n, p)), 1.0) if k < last else 1.0


def share_interval(low: int, high: int, n: int) -> tuple[float, float]:
    """
    The 95 % interval of a share of which between `low` and `high` of n were seen.

    By Clopper and Pearson (Biometrika 26, 1934, 404-413); its lower end is that of `low`, its upper end that of `high`.
    """
    least = _root(lambda p: 1 - binomial_at_most(low - 1, n, p) - OUTSIDE) if low > 0 else 0.0
    most = _root(lambda p: OUTSIDE - binomial_at_most(high, n, p)) if high < n else 1.0
    return least, most


class Clusters:
    """
    How many independent values a sample is worth whose values come in groups that belong together.

    The design effect of a share, estimated by linearisation over the groups, and the sample's size divided by it (Korn
    and Graubard, Survey Methodology 24, 1998, 193-201). Never more than the sample holds; only as much as there are groups
    where the share is 0 or 1 and nothing can be estimated.
    """

    def __init__(self) -> None:
        self._groups = self._n = self._kept = 0
        self._n_n = self._kept_n = self._kept_kept = 0

    def add(self, kept: int, n: int) -> None:
        """Take a group of n values, of which so many belong to the share."""
        self._groups += 1
        self._n += n
        self._kept += kept
        self._n_n += n * n
        self._kept_n += kept * n
        self._kept_kept += kept * kept

    @property
    def kept(self) -> int:
        """How many values belong to the share."""
        return self._kept

    @property
    def n(self) -> int:
        """How many values there are."""
        return self._n

    @property
    def worth(self) -> int:
        """How many independent values would tell as much about the share; 0 without any value."""
        if not 0 < self._kept < self._n or self._groups < 2:
            return min(self._groups, self._n)
        # All in integers, n times the share kept, so that the order of the groups makes no difference.
        n, kept = self._n, self._kept
        spread = n * n * self._kept_kept - 2 * n * kept * self._kept_n + kept * kept * self._n_n
        clustered = spread / n**2 * self._groups / (self._groups - 1)
        independent = kept * (n - kept) / n
        return max(min(n, int(n * independent / clustered)), 1) if clustered > 0 else n


def _interval_ranks(n: int, p: float) -> tuple[int, int]:
    """Ranks (from 1) of the interval's ends; 0 or n + 1 where the sample is too small to hold one."""
    first, last = _massive(n, p)
    below = 0.0
    lower, upper = first, n + 1
    for count, mass in enumerate(_masses(first, last, n, p), first):
        below += mass
        if below <= OUTSIDE:
            lower = count + 1
        if below >= 1 - OUTSIDE:
            upper = count + 1
            break
    return lower, upper


def _massive(n: int, p: float) -> tuple[int, int]:
    """From where to where a binomial has any mass to speak of."""
    reach = _FAR * math.sqrt(n * p * (1 - p)) + 2 * _FAR
    return max(math.floor(n * p - reach), 0), min(math.ceil(n * p + reach), n)


def _masses(first: int, last: int, n: int, p: float) -> list[float]:
    log_p, log_q, whole = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    return [
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_p + (n - k) * log_q)
        for k in range(first, last + 1)
    ]


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
