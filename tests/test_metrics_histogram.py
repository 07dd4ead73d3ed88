"""The histogram against brute force and against HdrHistogram, and the laws of merging."""

import json
import math
import random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.histogram import BOUND, Histogram

LEVELS = (0.5, 0.9, 0.95, 0.99)
VALUES = st.one_of(st.integers(0, 600), st.integers(0, 10**7), st.integers(0, 10**13))
LISTS = st.lists(VALUES, max_size=60)


def exact(values: list[int], p: float) -> int:
    """The value at rank ceil(p n)."""
    return sorted(values)[max(math.ceil(p * len(values) - 1e-9), 1) - 1]


@given(values=st.lists(VALUES, min_size=1, max_size=100), p=st.sampled_from(LEVELS))
def test_within_the_bound(values: list[int], p: float) -> None:
    """A quantile is that of the values themselves, to 0.2 % (DESIGN 4), and to nothing at all below 512 µs."""
    found, truth = Histogram.of(values).quantile(p), exact(values, p)
    assert found is not None
    assert abs(found - truth) <= BOUND * truth
    assert BOUND <= 0.002
    if truth < 512:
        assert found == truth


@given(values=st.lists(VALUES, min_size=1, max_size=100))
def test_what_stays_exact(values: list[int]) -> None:
    """Count, sum, smallest and largest are those of the values; every value is there once."""
    found = Histogram.of(values)
    assert (found.count, found.total, found.low, found.high) == (len(values), sum(values), min(values), max(values))
    ranked = found.ranked()
    assert len(ranked) == len(values)
    assert ranked[-1] <= max(values)
    for told, truth in zip(ranked, sorted(values), strict=True):
        assert abs(told - truth) <= BOUND * truth
    assert ranked[1:3] == [ranked[place] for place in range(1, min(3, len(ranked)))]
    assert sum(count for _, count in ranked.counts()) == len(values)


def test_edges_of_buckets() -> None:
    """Around each doubling, where an index off by one would show, nothing is off by more than the bound."""
    for bits in range(8, 45):
        for value in range(2**bits - 2, 2**bits + 3):
            (told,) = Histogram.of([value]).ranked()
            assert told == value  # alone, it is its own smallest and largest
            told = Histogram.of([value, 0, 10**14]).ranked()[1]
            assert abs(told - value) <= BOUND * value


def test_a_bound_is_needed() -> None:
    """The bound is no looser than it has to be: a wide bucket's edge is off by nearly all of it."""
    told = Histogram.of([0, 2**40, 2**50]).ranked()[1]
    assert 0.9 * BOUND < abs(told - 2**40) / 2**40 <= BOUND


@pytest.mark.parametrize("seed", range(3))
def test_against_hdrhistogram(seed: int) -> None:
    """HdrHistogram with three significant digits (0.1 %) tells the same quantiles, of one sample and of two merged."""
    source = random.Random(seed)
    halves = [[int(source.lognormvariate(9.9, 1.2)) for _ in range(5000)] for _ in range(2)]
    ours, theirs = Histogram(), HdrHistogram(1, 3_600_000_000, 3)
    for half in halves:
        ours.merge(Histogram.of(half))
        other = HdrHistogram(1, 3_600_000_000, 3)
        for value in half:
            other.record_value(value)
        theirs.add(other)
    assert ours.count == theirs.get_total_count()
    for p in (*LEVELS, 0.001, 0.25, 0.999):
        assert ours.quantile(p) == pytest.approx(theirs.get_value_at_percentile(p * 100), rel=BOUND + 0.001)
    assert ours.total / ours.count == pytest.approx(theirs.get_mean_value(), rel=0.001)


@given(one=LISTS, two=LISTS, three=LISTS)
def test_merging_is_associative_and_commutative(one: list[int], two: list[int], three: list[int]) -> None:
    """Whichever worker's histogram comes first, the sum is the histogram of all values."""

    def merged(*parts: list[int]) -> Histogram:
        total = Histogram()
        for part in parts:
            total.merge(Histogram.of(part))
        return total

    whole = Histogram.of([*one, *two, *three])
    assert merged(one, two, three) == merged(three, one, two) == whole
    right = merged(two, three)
    left = Histogram.of(one)
    left.merge(right)
    assert left == whole
    assert right == merged(two, three)  # what was merged is left as it was


@given(values=LISTS)
def test_to_json_and_back(values: list[int]) -> None:
    """What a worker sends is what the master reads, and as sparse as the values."""
    found = Histogram.of(values)
    text = json.dumps(found.data())
    assert Histogram.from_data(json.loads(text)) == found
    assert len(found.data()["counts"]) <= len(set(values))


def test_other_buckets_are_refused() -> None:
    """Histograms of another layout would be added up wrongly."""
    with pytest.raises(ValueError, match="8 bits"):
        Histogram.from_data({**Histogram.of([1]).data(), "bits": 8})


def test_negative_lengths_are_refused() -> None:
    """No length of time is negative."""
    with pytest.raises(ValueError, match="negative"):
        Histogram.of([5, -1])


def test_nothing() -> None:
    """An empty histogram has no quantile, and no values."""
    found = Histogram()
    assert found.quantile(0.5) is None
    assert list(found.ranked()) == []
    with pytest.raises(IndexError):
        found.ranked()[0]
