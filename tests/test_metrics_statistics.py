"""Quantiles by brute force, and the coverage of their intervals."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.statistics import CERTIFIED_P99, MINIMUM_P99, quantile

LEVELS = (0.5, 0.9, 0.95, 0.99)


@given(values=st.lists(st.integers(0, 1000), min_size=100, max_size=400).map(sorted), p=st.sampled_from(LEVELS))
def test_value_is_the_smallest_that_covers_p(values: list[int], p: float) -> None:
    """The quantile is the smallest value seen that at least a share `p` of the sample does not exceed."""
    brute = next(value for value in values if sum(other <= value for other in values) >= p * len(values) - 1e-9)
    assert quantile(values, p).value == brute


@given(values=st.lists(st.floats(0, 1e6), max_size=300).map(sorted), p=st.sampled_from(LEVELS))
def test_interval_holds_the_value(values: list[float], p: float) -> None:
    """Where there are interval ends, the value lies between them."""
    found = quantile(values, p)
    assert found.n == len(values)
    if found.value is not None:
        assert found.low is None or found.low <= found.value
        assert found.high is None or found.value <= found.high


@pytest.mark.parametrize(("n", "p"), [(20, 0.5), (60, 0.9), (200, 0.95), (700, 0.99)])
def test_interval_ranks_by_brute_force(n: int, p: float) -> None:
    """At most 2.5 % of the binomial lies outside each end, and no narrower pair of ranks would do."""

    def at_most(count: int) -> float:
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count + 1))

    found = quantile(range(1, n + 1), p)
    assert found.low is not None
    low = int(found.low)
    assert at_most(low - 1) <= 0.025 < at_most(low)
    if found.high is not None:
        high = int(found.high)
        assert at_most(high - 2) < 0.975 <= at_most(high - 1)


@pytest.mark.parametrize(("n", "p"), [(100, 0.5), (200, 0.9), (800, 0.99)])
def test_coverage(n: int, p: float) -> None:
    """The interval holds the true quantile in about 95 of 100 samples, and hardly less often."""
    source = random.Random(20)
    truth = -math.log(1 - p)
    runs = 400
    held = 0
    for _ in range(runs):
        found = quantile(sorted(source.expovariate(1) for _ in range(n)), p)
        held += (found.low is None or found.low <= truth) and (found.high is None or truth <= found.high)
    assert held / runs >= 0.93


@pytest.mark.parametrize(
    ("n", "p", "given"),
    [
        (0, 0.5, False),
        (1, 0.5, False),
        (2, 0.5, True),
        (19, 0.95, False),
        (20, 0.95, True),
        (99, 0.99, False),
        (100, 0.99, True),
    ],
)
def test_refusal(n: int, p: float, given: bool) -> None:
    """A quantile that would be the maximum by another name is refused."""
    assert (quantile(range(n), p).value is not None) is given


def test_certified_from() -> None:
    """The constants are the smallest samples for which they hold."""
    assert quantile(range(MINIMUM_P99), 0.99).value is not None
    assert not quantile(range(CERTIFIED_P99 - 1), 0.99).certified
    assert quantile(range(CERTIFIED_P99), 0.99).certified
