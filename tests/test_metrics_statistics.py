"""Quantiles by brute force, and the coverage of their intervals."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.statistics import (
    CERTIFIED_P99,
    MINIMUM_P99,
    Clusters,
    binomial_at_most,
    quantile,
    share_interval,
)

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


@pytest.mark.parametrize("n", [1, 7, 60, 500])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.95])
def test_binomial_by_brute_force(n: int, p: float) -> None:
    """The distribution function is the sum of its terms."""
    for k in range(-1, n + 1):
        brute = sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))
        assert binomial_at_most(k, n, p) == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0), (1, 100, 0.00025, 0.0545), (0, 0, 0.0, 1.0)],
)
def test_share_interval(k: int, n: int, low: float, high: float) -> None:
    """Known intervals of Clopper and Pearson; of 0 of n the upper end is 1 - 0.025^(1/n)."""
    assert share_interval(k, k, n) == pytest.approx((low, high), abs=1e-4)


def test_a_large_sample_takes_no_time() -> None:
    """Ten million values cost a few thousand terms, and the interval closes around the share."""
    low, high = share_interval(9_900_000, 9_900_000, 10_000_000)
    assert low < 0.99 < high
    assert high - low < 2e-4
    found = quantile(range(10_000_000), 0.99)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low < 2500


@given(groups=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), data=st.data())
def test_clusters_ignore_order(groups: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whoever comes first, the sample is worth the same, and never more than it holds."""
    worths = set()
    for order in (groups, data.draw(st.permutations(groups))):
        found = Clusters()
        for kept, rest in order:
            found.add(kept, kept + rest)
        worths.add(found.worth)
        assert 0 <= found.worth <= found.n
    assert len(worths) == 1


def test_equal_values_of_one_request_are_worth_one() -> None:
    """Ten requests of a hundred values each, all alike within a request, tell as much as ten values (nearly: 9)."""
    found = Clusters()
    for number in range(10):
        found.add(100 if number < 6 else 0, 100)
    assert (found.kept, found.n) == (600, 1000)
    assert found.worth == 9


def test_independent_values_are_worth_themselves() -> None:
    """Where requests do not differ by more than chance, nothing is taken off."""
    source = random.Random(3)
    found = Clusters()
    for _ in range(2000):
        found.add(sum(source.random() < 0.9 for _ in range(20)), 20)
    assert found.worth > 0.9 * found.n


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_coverage_with_clusters(p: float) -> None:
    """
    Slow and fast requests: the naive interval of pooled gaps misses the truth in every second run or more, ours hardly does.

    Each request draws a speed, and its forty gaps lie around it; the truth comes from a sample ten thousand times as large.
    """
    source = random.Random(5)

    def request() -> list[float]:
        speed = source.lognormvariate(0, 0.5)
        return [speed * source.uniform(0.9, 1.1) for _ in range(40)]

    truth = quantile(sorted(value for _ in range(20_000) for value in request()), p).value
    assert truth is not None
    naive = ours = 0
    for _ in range(100):
        sample = [request() for _ in range(300)]
        ordered = sorted(value for values in sample for value in values)
        seen = quantile(ordered, p)
        assert seen.value is not None
        found = Clusters()
        for values in sample:
            found.add(sum(value <= seen.value for value in values), len(values))
        worth = quantile(ordered, p, found.worth)
        assert worth.worth < 0.2 * worth.n
        naive += _holds(seen.low, truth, seen.high)
        ours += _holds(worth.low, truth, worth.high)
    assert naive < 60
    assert ours >= 88


def _holds(low: float | None, truth: float, high: float | None) -> bool:
    return (low is None or low <= truth) and (high is None or truth <= high)
