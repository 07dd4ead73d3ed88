"""The figures of a run against runs whose figures are known, and laws that they keep."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.record import Outcome, Record, TokenSource
from streamgauge.metrics.summary import Summary, summarise, token_arrivals

SECOND = 1_000_000


def record(number: int = 0, **fields: Any) -> Record:
    """A streamed success: dispatched at `number` s, five tokens 100 ms apart from 200 ms on."""
    start = number * SECOND
    base: dict[str, Any] = {
        "id": str(number),
        "target": "t",
        "operation": "o",
        "stream": True,
        "dispatched": start,
        "closed": start + 700_000,
        "outcome": Outcome.OK,
        "max_tokens": 64,
        "token_times": [start + 200_000 + step * 100_000 for step in range(5)],
        "completion_tokens": 5,
    }
    return Record(**{**base, **fields})


def test_regular_run() -> None:
    """Ten equal requests give the figures that arithmetic gives."""
    found = summarise([record(number) for number in range(10)], (2 * SECOND, 8 * SECOND))
    assert found.requests == 10
    assert found.outcomes == {Outcome.OK: 10}
    assert found.token_sources == {TokenSource.USAGE: 10}
    assert found.output_tokens_per_s == pytest.approx(30 / 6)
    assert found.output_tokens_per_s_whole == pytest.approx(50 / 9.7)
    assert found.requests_per_s == pytest.approx(1)
    ttft, gap = found.distributions["ttft"], found.distributions["gap"]
    assert (ttft.n, ttft.mean, ttft.low, ttft.high, ttft.p50.value) == (10, 200, 200, 200, 200)
    assert (gap.n, gap.p99.value) == (40, None)
    assert found.distributions["e2e"].mean == pytest.approx(600)
    assert found.distributions["tpot"].mean == pytest.approx(100)
    assert "ttfo" not in found.distributions


def test_only_successes_feed_latencies() -> None:
    """A slow failure counts as an outcome and as tokens, never as a latency."""
    slow = record(1, outcome=Outcome.TRUNCATED, token_times=[60 * SECOND])
    found = summarise([record(), slow], None)
    assert found.outcomes == {Outcome.OK: 1, Outcome.TRUNCATED: 1}
    assert found.distributions["ttft"].n == 1
    assert found.distributions["ttft"].high == 200


def test_window_is_half_open() -> None:
    """A token at the window's start is inside, one at its end is outside."""
    times = [1 * SECOND, 2 * SECOND, 3 * SECOND]
    found = summarise([record(token_times=times, completion_tokens=3)], (SECOND, 3 * SECOND))
    assert found.output_tokens_per_s == pytest.approx(2 / 2)


def test_tokens_spread_over_events() -> None:
    """Where usage counts more tokens than there were events, each event carries its share."""
    found = list(token_arrivals(record(token_times=[1, 2], completion_tokens=5)))
    assert found == [(1, 2.5), (2, 2.5)]


def test_tokens_of_a_whole_answer_arrive_when_it_closes() -> None:
    """Without a stream there is one moment for all tokens."""
    assert list(token_arrivals(record(stream=False, token_times=[], completion_tokens=7))) == [(700_000, 7.0)]


def test_incredible_usage_counts_by_events() -> None:
    """Tokens that cannot have come are not credited."""
    assert sum(tokens for _, tokens in token_arrivals(record(completion_tokens=10**9))) == 5


def test_nothing_was_sent() -> None:
    """No records, or only dropped ones, give no figures and do not fail."""
    dropped = record(outcome=Outcome.DROPPED, token_times=[], completion_tokens=None)
    for records in ([], [dropped]):
        found = summarise(records, None)
        assert found.distributions == {}
        assert found.output_tokens_per_s_whole is None
        assert found.requests == len(records)


NOTES: list[tuple[list[Record], str]] = [
    ([record(outcome=Outcome.RESET)], "did not succeed"),
    ([record()], "no steady window"),
    ([record(completion_tokens=10)], "2.00 tokens per event"),
    ([record(completion_tokens=10)], "several tokens"),
    ([record(completion_tokens=10**6)], "not plausible"),
    ([record(completion_tokens=None)], "without usage"),
    ([record()], "refused below 100 values: TTFT"),
    ([record(number) for number in range(100)], "uncertified below 662 values: TTFT"),
]


@pytest.mark.parametrize(("records", "said"), NOTES, ids=[said for _, said in NOTES])
def test_notes(records: list[Record], said: str) -> None:
    """What limits the figures is said."""
    assert any(said in note for note in summarise(records, None).notes)


def test_a_sound_run_needs_no_notes() -> None:
    """Nothing is said where nothing limits the figures."""
    assert summarise([record(number) for number in range(700)], (0, 700 * SECOND)).notes == []


records_strategy = st.lists(
    st.builds(
        record,
        number=st.integers(0, 20),
        outcome=st.sampled_from(Outcome),
        stream=st.booleans(),
        completion_tokens=st.none() | st.integers(0, 130),
        token_times=st.lists(st.integers(0, 10**6), max_size=8).map(lambda gaps: list(itertools.accumulate(gaps))),
        first_visible=st.none() | st.integers(0, 10**7),
    ),
    max_size=12,
)


@given(records=records_strategy, data=st.data())
def test_order_makes_no_difference(records: list[Record], data: st.DataObject) -> None:
    """Whichever worker wrote a record, and when, the figures are the same."""
    shuffled = data.draw(st.permutations(records))
    assert summarise(shuffled, (SECOND, 5 * SECOND)) == summarise(records, (SECOND, 5 * SECOND))


@given(left=records_strategy, right=records_strategy)
def test_counts_and_values_add_up(left: list[Record], right: list[Record]) -> None:
    """The counts and pooled values of two workers together are those of each, merged."""
    one, two, both = (summarise(records, (0, SECOND)) for records in (left, right, left + right))
    assert both.requests == one.requests + two.requests
    assert Counter(both.outcomes) == Counter(one.outcomes) + Counter(two.outcomes)
    assert Counter(both.token_sources) == Counter(one.token_sources) + Counter(two.token_sources)
    assert both.output_tokens_per_s == pytest.approx(_rate(one) + _rate(two))
    for name, found in both.distributions.items():
        halves = [each.distributions[name].ordered for each in (one, two) if name in each.distributions]
        assert found.ordered == tuple(sorted(itertools.chain(*halves)))


def _rate(summary: Summary) -> float:
    assert summary.output_tokens_per_s is not None
    return summary.output_tokens_per_s
