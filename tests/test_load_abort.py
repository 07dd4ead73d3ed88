"""When a run is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import UsageError
from streamgauge.load.abort import LEAST, WINDOW, AbortRule, AbortWatch
from streamgauge.metrics.record import Outcome

PARSED = [
    ("errors>50%", AbortRule("errors", 0.5)),
    (" errors > 2.5 % ", AbortRule("errors", 0.025)),
    ("errors>0%", AbortRule("errors", 0.0)),
    ("consecutive>=20", AbortRule("consecutive", 20)),
    ("consecutive >= 1", AbortRule("consecutive", 1)),
]


@pytest.mark.parametrize(("text", "rule"), PARSED)
def test_parsed(text: str, rule: AbortRule) -> None:
    """Both kinds are understood, and are written as they are read."""
    assert AbortRule.parse(text) == rule
    assert AbortRule.parse(str(rule)) == rule


@given(st.integers(0, 100 * 10**10 - 1), st.integers(1, 10**15))
def test_no_digit_is_lost(percent: int, failures: int) -> None:
    """A rule is written as it was given, to the tenth decimal place of a per cent and without an exponent."""
    for text in (f"errors>{percent // 10**10}.{percent % 10**10:010}%", f"consecutive>={failures}"):
        rule = AbortRule.parse(text)
        assert AbortRule.parse(str(rule)) == rule
        assert "e+" not in str(rule)


@pytest.mark.parametrize(
    "text", ["", "errors", "errors>50", "errors>100%", "errors>=5%", "errors>-1%", "consecutive>=0", "consecutive>3"]
)
def test_nonsense_is_refused(text: str) -> None:
    """What is no rule, or can never be met, is wrong use."""
    with pytest.raises(UsageError):
        AbortRule.parse(text)


def first_met(rules: list[AbortRule], outcomes: list[Outcome]) -> int | None:
    """After how many outcomes a rule is met."""
    watch = AbortWatch(rules)
    return next((number for number, outcome in enumerate(outcomes, 1) if watch.add(outcome)), None)


OK, BAD = Outcome.OK, Outcome.HTTP_5XX
HALF = AbortRule("errors", 0.5)
MET = [
    ([HALF], [BAD] * 40, LEAST),
    ([HALF], [BAD] * (LEAST - 1), None),
    ([HALF], [OK, BAD] * 200, None),
    ([HALF], [OK] * WINDOW + [BAD] * WINDOW, WINDOW + WINDOW // 2 + 1),
    ([AbortRule("consecutive", 3)], [BAD, BAD, OK, BAD, BAD, BAD], 6),
    ([AbortRule("consecutive", 3)], [BAD, BAD, Outcome.UNFINISHED_AT_STOP, BAD], 4),
    ([AbortRule("consecutive", 2)], [Outcome.DROPPED, Outcome.DROPPED], 2),
    ([HALF, AbortRule("consecutive", 5)], [BAD] * 9, 5),
    ([], [BAD] * 500, None),
]


@pytest.mark.parametrize(("rules", "outcomes", "expected"), MET)
def test_when_a_rule_is_met(rules: list[AbortRule], outcomes: list[Outcome], expected: int | None) -> None:
    """The share is over the latest 100 requests, from the 20th on; a success ends a row of failures."""
    assert first_met(rules, outcomes) == expected


@given(st.lists(st.sampled_from([OK, BAD, Outcome.EMPTY]), max_size=300), st.floats(0, 0.99))
def test_the_window_by_definition(outcomes: list[Outcome], limit: float) -> None:
    """The running count says the same as counting the window anew."""
    watch = AbortWatch([AbortRule("errors", limit)])
    for number, outcome in enumerate(outcomes, 1):
        window = outcomes[max(number - WINDOW, 0) : number]
        failed = sum(each is not OK for each in window)
        assert bool(watch.add(outcome)) == (len(window) >= LEAST and failed > limit * len(window))
