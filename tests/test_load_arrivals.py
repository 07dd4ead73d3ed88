"""Schedules of arrivals: known truths, laws of the processes at fixed seeds, and what every schedule keeps."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.load.arrivals import PROCESSES, OpenLoop, Segment, schedule


def loop(*segments: tuple[float, float, float], process: str = "poisson", burstiness: float = 1.0) -> OpenLoop:
    """An open loop of segments (seconds, start, end)."""
    return OpenLoop(tuple(Segment(*each) for each in segments), process, burstiness)


def distance(sample: list[float], rate: float) -> float:
    """Kolmogorov-Smirnov's distance between a sample and the exponential distribution of this rate."""
    ordered = sorted(sample)
    n = len(ordered)
    expected = [1 - math.exp(-rate * value) for value in ordered]
    return max(max((index + 1) / n - at, at - index / n) for index, at in enumerate(expected))


def critical(n: int) -> float:
    """That distance is larger in one of a thousand samples (the asymptotic value: sqrt(-ln(0.0005) / 2) / sqrt(n))."""
    return math.sqrt(-math.log(0.0005) / 2 / n)


def test_constant_arrivals_are_evenly_spaced() -> None:
    """10 per second for 10 s: 100 arrivals, the first at once, each at its exact tenth of a second."""
    assert list(schedule(loop((10, 10, 10), process="constant"), 1)) == [index / 10 for index in range(100)]


def test_steps_of_a_constant_rate() -> None:
    """10 s at 1 per second and 5 s at 4 per second: 10 and 20 arrivals, each at its exact time."""
    arrivals = list(schedule(loop((10, 1, 1), (5, 4, 4), process="constant"), 1))
    assert arrivals == [*map(float, range(10)), *(10 + index / 4 for index in range(20))]


def test_a_ramp_follows_its_integral() -> None:
    """From 0 to 10 per second in 10 s, t*t/2 are expected by t: the k-th of an even process comes at sqrt(2k)."""
    arrivals = schedule(loop((10, 0, 10), process="constant"), 1)
    assert len(arrivals) == 50
    assert list(arrivals) == pytest.approx([math.sqrt(2 * index) for index in range(50)])


def test_a_ramp_down_ends_in_silence() -> None:
    """From 10 to 0 per second in 10 s: the mirror of the ramp up; a segment of rate 0 has no arrivals."""
    arrivals = schedule(loop((10, 10, 0), (5, 0, 0), (1, 1, 1), process="constant"), 1)
    assert list(arrivals) == pytest.approx([*(10 - math.sqrt(100 - 2 * index) for index in range(50)), 15.0])


@pytest.mark.parametrize("seed", range(20))
def test_poisson_gaps_are_exponential(seed: int) -> None:
    """500 per second for 30 s, 20 fixed seeds: the gaps pass a Kolmogorov-Smirnov test at 0.001."""
    arrivals = list(schedule(loop((30, 500, 500)), seed))
    gaps = [later - earlier for earlier, later in pairwise([0.0, *arrivals])]
    assert distance(gaps, 500) < critical(len(gaps))


@pytest.mark.parametrize("process", ["constant", "gamma"])
def test_the_test_tells_other_processes_apart(process: str) -> None:
    """Evenly spaced arrivals, and those of a gamma process of shape 0.5, fail where those of Poisson pass."""
    arrivals = list(schedule(loop((30, 500, 500), process=process, burstiness=0.5), 1))
    gaps = [later - earlier for earlier, later in pairwise([0.0, *arrivals])]
    assert distance(gaps, 500) > 5 * critical(len(gaps))


@pytest.mark.parametrize(("start", "end"), [(10, 190), (190, 10)])
def test_a_poisson_ramp_is_poisson_in_its_own_time(start: float, end: float) -> None:
    """Mapped back by the integral of the rate, the arrivals of a ramp are those of rate 1 (time rescaling)."""
    arrivals = schedule(loop((100, start, end)), 3)
    passed = [start * at + (end - start) / 200 * at * at for at in arrivals]
    gaps = [later - earlier for earlier, later in pairwise([0.0, *passed])]
    assert distance(gaps, 1) < critical(len(gaps))
    assert len(arrivals) == pytest.approx(10_000, abs=4 * 100)


@pytest.mark.parametrize("shape", [0.25, 1.0, 4.0])
def test_the_shape_of_gamma_is_its_burstiness(shape: float) -> None:
    """The index of dispersion of counts (variance over mean) tends to 1 / shape (Cox and Lewis, 1966, 4.2)."""
    arrivals = schedule(loop((2000, 50, 50), process="gamma", burstiness=shape), 5)
    counts = Counter(int(at // 10) for at in arrivals)
    sample = [counts[index] for index in range(200)]
    mean = sum(sample) / len(sample)
    dispersion = sum((value - mean) ** 2 for value in sample) / (len(sample) - 1) / mean
    assert mean == pytest.approx(500, rel=0.05)
    assert dispersion == pytest.approx(1 / shape, rel=0.4)  # four standard errors of a variance of 200 counts


segments = st.lists(
    st.builds(
        Segment,
        seconds=st.integers(1, 20).map(float),
        start=st.floats(0, 50, allow_subnormal=False),
        end=st.floats(0, 50, allow_subnormal=False),
    ),
    min_size=1,
    max_size=4,
)


@given(segments, st.sampled_from(sorted(PROCESSES)), st.floats(0.1, 10), st.integers(0, 2**31))
def test_every_schedule_is_ascending_within_the_run_and_of_its_seed(
    parts: list[Segment], process: str, burstiness: float, seed: int
) -> None:
    """Whatever the rate and the process; and the same seed gives the same schedule."""
    asked = OpenLoop(tuple(parts), process, burstiness)
    arrivals = schedule(asked, seed)
    assert all(earlier <= later for earlier, later in pairwise(arrivals))
    assert all(0 <= at <= asked.seconds for at in arrivals)
    assert arrivals == schedule(asked, seed)


@given(segments)
def test_a_constant_process_has_as_many_arrivals_as_expected(parts: list[Segment]) -> None:
    """Its points are 0, 1, 2, ...: as many as lie below the integral of the rate."""
    asked = OpenLoop(tuple(parts), "constant")
    assert len(schedule(asked, 0)) == math.ceil(asked.expected)


@given(segments, st.integers(1, 5))
def test_splitting_by_index_loses_nothing(parts: list[Segment], workers: int) -> None:
    """The shares `index % workers` of all workers are the schedule."""
    arrivals = schedule(OpenLoop(tuple(parts)), 1)
    assert sorted(at for worker in range(workers) for at in arrivals[worker::workers]) == list(arrivals)


def test_other_seeds_give_other_schedules() -> None:
    """Two seeds share no arrival."""
    assert not set(schedule(loop((10, 50, 50)), 1)) & set(schedule(loop((10, 50, 50)), 2))
