"""What n passes exclude and how many tries show a fault: known values, and the binomial by brute force."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.detection import CONFIDENCE, LEAST_RATE, POWER, excluded, excluded_rate, tally, tries_for
from streamgauge.errors import UsageError
from streamgauge.outcomes import Outcome


def at_most(hits: int, n: int, rate: float) -> float:
    """Probability of no more than so many faults in n exchanges, added up term by term."""
    return math.fsum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(hits + 1))


# The upper ends of the one-sided 95 % interval for 0 of n in common tables of Clopper and Pearson's interval.
@pytest.mark.parametrize(
    ("n", "rate"), [(1, 0.95), (2, 0.7764), (3, 0.6316), (5, 0.4507), (10, 0.2589), (13, 0.2058), (100, 0.0295)]
)
def test_known_bounds(n: int, rate: float) -> None:
    """The bound for 0 of n is that of the tables."""
    assert excluded_rate(n) == pytest.approx(rate, abs=5e-5)


@given(n=st.integers(1, 2000))
def test_bound_is_where_the_binomial_says_so(n: int) -> None:
    """At the bound n passes have a probability of 5 %: less above it, more below."""
    rate = excluded_rate(n)

    assert at_most(0, n, rate) == pytest.approx(1 - CONFIDENCE)
    assert at_most(0, n, rate + (1 - rate) / 100) < 1 - CONFIDENCE < at_most(0, n, rate * 0.99)


@given(n=st.integers(1, 10**6))
def test_more_passes_exclude_more_and_three_over_n_is_enough(n: int) -> None:
    """The bound falls with n and stays below the rule of three."""
    assert excluded_rate(n + 1) < excluded_rate(n) < 3 / n


@pytest.mark.parametrize(
    ("rate", "tries"), [(0.3, 13), (0.5, 7), (0.1, 44), (0.05, 90), (0.01, 459), (0.99, 1), (0.999, 1), (0.001, 4603)]
)
def test_known_tries(rate: float, tries: int) -> None:
    """13 tries see a fault of 3 in 10 with 99 % power; the rest by the same formula, computed by hand."""
    assert tries_for(rate) == tries


@given(rate=st.floats(LEAST_RATE, 0.999))
def test_tries_are_the_fewest_that_suffice(rate: float) -> None:
    """So many tries miss the fault once in a hundred at most, and one try fewer misses it more often."""
    n = tries_for(rate)
    missed = 1 - POWER
    assume(all(abs((1 - rate) ** tries - missed) > 1e-12 for tries in (n, n - 1)))

    assert 1 - at_most(0, n, rate) >= POWER
    assert at_most(0, n - 1, rate) > missed


@pytest.mark.parametrize("rate", [0, -0.1, 1, 1.5, 0.0009, math.nan, math.inf])
def test_what_is_no_rate_is_refused(rate: float) -> None:
    """A rate of 0 takes tries without end, one of 1 or more is none: the message names the option and what it takes."""
    with pytest.raises(UsageError, match="--detect-rate") as caught:
        tries_for(rate)

    assert "0.3 takes 13 tries" in str(caught.value)


@given(n=st.integers(1, 100_000))
def test_rates_are_rounded_up(n: int) -> None:
    """The percentage shown is never lower than what n passes exclude, and no more than a step above."""
    shown = float(excluded(n).removesuffix(" %")) / 100

    assert excluded_rate(n) <= shown + 1e-11
    assert shown - excluded_rate(n) <= (0.01 if excluded_rate(n) >= 0.1 else 0.001)


@pytest.mark.parametrize(
    ("outcome", "counts", "told"),
    [
        (Outcome.FAIL, {Outcome.FAIL: 1, Outcome.PASS: 12}, "1 of 13"),
        (Outcome.WARN, {"pass": 3, "warn": 9}, "9 of 12"),
        (Outcome.REFUSED, {"pass": 1, "refused": 1}, "1 of 2"),
        (
            Outcome.PASS,
            {Outcome.PASS: 13},
            "13 of 13; a fault in more than 21 % of such requests would have shown, at 95 %",
        ),
        (
            Outcome.PASS,
            {"pass": 600},
            "600 of 600; a fault in more than 0.5 % of such requests would have shown, at 95 %",
        ),
        (Outcome.NOT_RUN, {}, ""),
    ],
)
def test_tally(outcome: Outcome, counts: dict[str, int], told: str) -> None:
    """How many of how many for every outcome; a pass says what n excludes; nothing is said of nothing."""
    assert tally(outcome, counts) == told
