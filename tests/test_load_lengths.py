"""Lengths in tokens: how they are written, what they draw, and what is refused."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import UsageError
from streamgauge.load.lengths import LONGEST, Lengths

FORMS = ["64", "uniform:16..256", "normal:128,32", "lognormal:128,0.5", "lognormal:100,1.25"]


def draws(text: str, count: int = 4000) -> list[int]:
    """So many draws at a fixed seed."""
    source = random.Random(1)
    lengths = Lengths.parse(text)
    return [lengths.draw(source) for _ in range(count)]


@pytest.mark.parametrize("text", FORMS)
def test_what_is_written_reads_back(text: str) -> None:
    """Each form is read, and written as it was."""
    assert str(Lengths.parse(text)) == text


def test_a_constant_is_always_the_same() -> None:
    """One number, however it was made."""
    assert set(draws("64")) == {64}
    assert Lengths.constant(64) == Lengths.parse("64")


def test_uniform_takes_both_ends() -> None:
    """Every whole number of the range, its ends included, and no other."""
    assert set(draws("uniform:3..6")) == {3, 4, 5, 6}


def test_normal_has_its_mean_and_deviation() -> None:
    """Within four standard errors."""
    sample = draws("normal:128,32")
    assert statistics.mean(sample) == pytest.approx(128, abs=4 * 32 / 4000**0.5)
    assert statistics.stdev(sample) == pytest.approx(32, rel=0.05)


def test_lognormal_has_its_median_and_sigma() -> None:
    """The median is the first parameter; 84 % lie below median * e^sigma (one standard deviation of the logarithm)."""
    sample = sorted(draws("lognormal:1000,0.5"))
    assert statistics.median(sample) == pytest.approx(1000, rel=0.05)
    assert sample[int(0.8413 * len(sample))] == pytest.approx(1000 * 2.718281828**0.5, rel=0.05)


@pytest.mark.parametrize("text", ["normal:1,1000", "lognormal:1,50", "lognormal:1000000,50"])
def test_no_draw_is_out_of_bounds(text: str) -> None:
    """Every draw is at least 1 and at most LONGEST, whatever the tail of the distribution."""
    assert all(1 <= length <= LONGEST for length in draws(text))


@given(st.sampled_from(FORMS), st.integers())
def test_the_same_seed_draws_the_same(text: str, seed: int) -> None:
    """A draw depends on the source alone."""
    lengths = Lengths.parse(text)
    assert lengths.draw(random.Random(seed)) == lengths.draw(random.Random(seed))


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-5", "many", "6.5", "1000001", "constant:5"),
        *("uniform:5", "uniform:0..5", "uniform:9..5", "uniform:1.5..5"),
        *("normal:128", "normal:128,32,1", "normal:x,1", "lognormal:0,1", "zipf:1,2"),
    ],
)
def test_what_is_no_length_is_refused(text: str) -> None:
    """The message repeats what was written and shows every form."""
    with pytest.raises(UsageError) as caught:
        Lengths.parse(text)
    assert repr(text) in caught.value.what
    assert all(kind in caught.value.hint for kind in ("64", "uniform:", "normal:", "lognormal:"))
