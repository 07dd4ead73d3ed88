"""The statistics of the pair oracle: exact where the truth is known, and seldom wrong about noisy servers that are right."""

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.conformance import pairing
from streamgauge.conformance.pairing import (
    Floor,
    Group,
    Groups,
    Verdict,
    chance_apart,
    floor_of,
    names_of,
    p_apart,
    p_streams,
    verdict,
)

ANSWERS = st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple)
GROUPS = st.builds(Group, ANSWERS, ANSWERS)

QUIET = Group((0,) * 4, (0,) * 4)
NOISY = Group((0, 0, 0, 1), (0, 0, 2, 0))
APART = Group((0,) * 4, (1,) * 4)


@pytest.mark.parametrize(
    ("group", "others", "expected"),
    [
        pytest.param(QUIET, (), Verdict.SAME, id="all equal"),
        pytest.param(Group((0,), (0,)), (), Verdict.SAME, id="one pair, equal"),
        pytest.param(Group((0,), (1,)), (), Verdict.UNCLEAR, id="one pair, different: no floor"),
        pytest.param(Group((0, 0), (1,)), (), Verdict.UNCLEAR, id="one stream: no floor of its own"),
        pytest.param(Group((0, 0), (1, 1)), (), Verdict.DIFFERENT, id="each form equal in itself, apart, two of each"),
        pytest.param(APART, (), Verdict.DIFFERENT, id="the same, four of each"),
        pytest.param(APART, (QUIET,) * 3, Verdict.DIFFERENT, id="apart in one question of a quiet model"),
        pytest.param(APART, (QUIET, QUIET, NOISY), Verdict.DIFFERENT, id="apart, the model seldom noisy"),
        pytest.param(APART, (Group((0, 1, 0, 1), (1, 0, 1, 0)),), Verdict.UNCLEAR, id="apart, the model a coin"),
        pytest.param(NOISY, (), Verdict.NOISE, id="noise that both forms share"),
        pytest.param(Group((0, 0, 0, 1), (0,) * 4), (), Verdict.NOISE, id="only the whole form varies"),
        pytest.param(Group((0,) * 4, (0, 0, 0, 1)), (QUIET,), Verdict.NOISE, id="one stream says another thing"),
        pytest.param(
            Group((0,) * 4, (0, 0, 0, 1), damaged=True), (QUIET,), Verdict.UNCLEAR, id="one stream lacks a part"
        ),
        pytest.param(
            Group((0,) * 4, (0, 0, 0, 1), damaged=True), (NOISY,), Verdict.NOISE, id="the same beside shared noise"
        ),
        pytest.param(
            Group((0,) * 4, (0, 0, 1, 2)),
            (Group((0,) * 4, (0, 0, 1, 2)), Group((0,) * 4, (1, 2, 0, 0))),
            Verdict.UNCLEAR,
            id="six of twelve streams and no whole one: too many for noise, too few for a verdict",
        ),
        pytest.param(
            Group((0,) * 13, (0,) * 5 + (1,) * 8), (QUIET,), Verdict.DIFFERENT, id="8 of 13 streams, no whole one"
        ),
        pytest.param(Group((0, 0, 1, 2), (3, 3, 3, 3)), (), Verdict.UNCLEAR, id="no overlap, whole form noisy"),
        pytest.param(Group((0, 0, 0, 1), (3, 3, 3, 4)), (QUIET,) * 9, Verdict.UNCLEAR, id="no overlap, both noisy"),
        pytest.param(Group((0, 1, 2, 3), (4, 5, 6, 7)), (), Verdict.UNCLEAR, id="no two answers agree"),
        pytest.param(
            Group((0, 1, 2, 3), (4, 5, 6, 7)), (NOISY,), Verdict.NOISE, id="the same, one of several questions"
        ),
        pytest.param(
            Group((0,) * 9 + (1,), (2,) * 9 + (3,)),
            (QUIET,),
            Verdict.DIFFERENT,
            id="no overlap, seldom noisy, ten of each",
        ),
    ],
)
def test_verdict(group: Group, others: tuple[Group, ...], expected: Verdict) -> None:
    """Known truths, one for each rule."""
    assert verdict(group, Groups((group, *others))) is expected


@given(st.lists(GROUPS, min_size=1, max_size=3), st.permutations(range(4)))
def test_names_are_only_names(groups: list[Group], other: list[int]) -> None:
    """Law: what the answers are called changes nothing."""
    original = Groups(groups)
    renamed = Groups(
        Group(tuple(other[each] for each in group.whole), tuple(other[each] for each in group.streamed))
        for group in groups
    )

    assert [verdict(group, original) for group in original] == [verdict(group, renamed) for group in renamed]


@given(GROUPS)
def test_p_apart_is_the_share_of_labelings(group: Group) -> None:
    """The permutation test by its definition: every choice of streamed answers, cross-form less within-form mismatches."""
    answers = group.all

    def statistic(streamed: tuple[int, ...]) -> float:
        chosen = set(streamed)
        pairs = list(itertools.combinations(range(len(answers)), 2))
        cross = [pair for pair in pairs if (pair[0] in chosen) != (pair[1] in chosen)]
        within = [pair for pair in pairs if pair not in cross]
        rate = [sum(answers[a] != answers[b] for a, b in some) / max(1, len(some)) for some in (cross, within)]
        return rate[0] - rate[1]

    places = range(len(answers))
    observed = statistic(tuple(places[len(group.whole) :]))
    all_ = [statistic(chosen) for chosen in itertools.combinations(places, len(group.streamed))]

    assert p_apart([group]) == pytest.approx(sum(each >= observed - 1e-9 for each in all_) / len(all_))


@given(st.lists(GROUPS, min_size=1, max_size=2))
def test_p_streams_is_the_share_of_labelings(groups: list[Group]) -> None:
    """Fisher's test by its definition, over all questions at once."""
    known = [group for group in groups if group.usual is not None]

    def odd(group: Group, streamed: tuple[int, ...]) -> int:
        return sum(group.all[place] != group.usual for place in streamed)

    observed = sum(odd(group, tuple(range(len(group.whole), len(group.all)))) for group in known)
    each = [
        [odd(group, some) for some in itertools.combinations(range(len(group.all)), len(group.streamed))]
        for group in known
    ]
    sums = [sum(parts) for parts in itertools.product(*each)]

    assert p_streams(groups) == pytest.approx(sum(total >= observed for total in sums) / len(sums))


def test_many_labelings_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many to go through, a fixed seed draws them; never is a result impossible."""
    group = Group((0, 0, 0, 1, 0, 0, 0, 2), (0, 3, 3, 0, 3, 3, 0, 3))
    exact = p_apart([group])
    monkeypatch.setattr(pairing, "EXACT", 0)

    assert p_apart([group]) == p_apart([group]) == pytest.approx(exact, abs=0.02)
    assert p_apart([Group((0,) * 99, (1,) * 99)]) == pytest.approx(1 / 4001)


def test_floor() -> None:
    """How often answers of one form differ, over all questions: 3 + 3 of 2 x 6 pairs."""
    assert floor_of([NOISY]) == Floor(6, 12)
    assert floor_of([QUIET, NOISY]).rate == 6 / 24
    assert floor_of([Group((0,), (1,))]).rate == 0


def test_chance_apart_is_that_of_a_model_with_two_answers() -> None:
    """With the rate e of the other answer, two answers differ with 2e(1 - e), and four in a row are the other with e^4."""
    coin = Group((0, 1), (0, 1))
    fifth = Group((0, 0, 0, 0, 1), (0, 0, 0, 0, 1))  # 8 of 20 pairs differ: 2e(1 - e) = 0.4

    assert chance_apart(APART, Groups([APART])) == 0
    assert chance_apart(APART, Groups([APART, coin])) == 2 * 0.5**4
    assert chance_apart(APART, Groups([APART, fifth])) == pytest.approx(2 * ((1 - math.sqrt(0.2)) / 2) ** 4)


def test_names_of() -> None:
    """Each value has the number of the first that is the same."""
    assert names_of([1.0, 5.0, 1.05, 5.0], lambda a, b: abs(a - b) < 0.1) == [0, 1, 0, 1]


# --- simulated servers ------------------------------------------------------------------------------------------------

RUNS = 400
OTHERS = {"two": 1, "few": 3, "many": 10**9}
"""How many things a noisy model may say beside the usual one."""


def _simulated(noise: float, others: int, damage: float, times: int = 4, questions: int = 4) -> Counter[str]:
    """The outcome of each run: the worst verdict over all questions."""
    draws = random.Random(7)

    def answer() -> int:
        return draws.randint(1, others) if draws.random() < noise else 0

    outcomes: Counter[str] = Counter()
    for _ in range(RUNS):
        made = []
        for _ in range(questions):
            whole = [answer() for _ in range(times)]
            streamed = [-1 - each if draws.random() < damage else each for each in (answer() for _ in range(times))]
            made.append(Group(tuple(whole), tuple(streamed), damaged=any(each < 0 for each in streamed)))
        groups = Groups(made)
        found = {verdict(group, groups) for group in groups}
        worst = [each for each in (Verdict.DIFFERENT, Verdict.UNCLEAR) if each in found]
        outcomes[worst[0].name if worst else "PASS"] += 1
    return outcomes


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("noise", [0, 0.01, 0.05, 0.3])
def test_a_right_noisy_server_is_seldom_called_wrong(noise: float, others: int) -> None:
    """Less than 1 % false failures at any noise, and seldom no verdict."""
    outcomes = _simulated(noise, others, damage=0)

    assert outcomes["DIFFERENT"] / RUNS < 0.01
    assert outcomes["UNCLEAR"] / RUNS < 0.03


@pytest.mark.parametrize("noise", [0, 0.01, 0.05, 0.3])
def test_a_wrong_stream_is_seen_through_the_noise(noise: float) -> None:
    """A fault in every stream fails nearly always, though a third of the answers vary."""
    assert _simulated(noise, OTHERS["many"], damage=1)["DIFFERENT"] / RUNS > 0.98


def test_an_occasional_fault_is_never_passed_and_more_tries_show_it() -> None:
    """A stream damaged in 30 % of cases: four times leave it open or show it, the 13 of `--detect-rate 0.3` show it."""
    assert _simulated(0, 1, damage=0.3)["PASS"] / RUNS < 0.02
    assert _simulated(0, 1, damage=0.3, times=13)["DIFFERENT"] / RUNS > 0.95
