"""The figures of a run against runs whose figures are known, and laws that they keep."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.histogram import BOUND, Histogram
from streamgauge.metrics.record import Judged, Outcome, Record, TokenSource
from streamgauge.metrics.slo import Slo
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
        "scheduled": start,
        "dispatched": start,
        "closed": start + 700_000,
        "outcome": Outcome.OK,
        "status": 200,
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
    assert not list(token_arrivals(record(stream=False, token_times=[], completion_tokens=10**9, max_tokens=16)))
    assert not list(token_arrivals(record(stream=False, token_times=[], completion_tokens=-7)))


def test_nothing_was_sent() -> None:
    """No records, or only dropped ones, give no figures and do not fail."""
    dropped = record(outcome=Outcome.DROPPED, token_times=[], completion_tokens=None)
    for records in ([], [dropped]):
        found = summarise(records, None)
        assert found.distributions == {}
        assert found.output_tokens_per_s_whole is None
        assert found.requests == len(records)


def bursts(number: int) -> list[int]:
    """Twenty tokens, four at a time every 100 ms."""
    return [number * SECOND + 200_000 + burst * 100_000 + step * 20 for burst in range(5) for step in range(4)]


NOTES: list[tuple[list[Record], str]] = [
    ([record(outcome=Outcome.RESET)], "did not succeed"),
    ([record()], "no steady window"),
    ([record(completion_tokens=10)], "2.00 tokens per event"),
    ([record(completion_tokens=10)], "several tokens"),
    ([record(completion_tokens=10**6)], "not plausible"),
    ([record(completion_tokens=None)], "without usage"),
    ([record()], "refused below 100 values: TTFT"),
    ([record(number) for number in range(100)], "uncertified below 662 values: TTFT"),
    ([record(replaced=True), record(1)], "1 requests were sent again on a new connection"),
    ([record(judged=Judged.ENDS)], "no stream was judged event by event"),
    (
        [record(number, judged=Judged.ENDS) for number in range(9)] + [record()],
        "a sample of 10 % of the streams (1 of 10)",
    ),
    ([record(judged=Judged.ENDS)], "Gaps are estimated"),
    (
        [record(violations=2, detail="index is no integer"), record(violations=1)],
        "3 events or bodies of 2 requests broke",
    ),
    ([record(warm_up=True), record(1)], "1 requests of the warm-up"),
    (
        [record(number, token_times=bursts(number)) for number in range(5)],
        "5 of 5 streams events come in bursts (4 at a time",
    ),
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
        halves = [each.distributions[name] for each in (one, two) if name in each.distributions]
        assert found.n == sum(half.n for half in halves)
        if found.histogram is None:
            assert found.ordered == tuple(sorted(itertools.chain(*(half.ordered for half in halves))))
        else:
            total = Histogram()
            for half in halves:
                assert half.histogram is not None
                total.merge(half.histogram)
            assert total == found.histogram


def _rate(summary: Summary) -> float:
    assert summary.output_tokens_per_s is not None
    return summary.output_tokens_per_s


def test_gaps_come_from_the_histogram() -> None:
    """Request metrics are exact; gaps are told within 0.2 %, their count, mean, smallest and largest exactly (DESIGN 4)."""
    gaps = [10_001, 20_003, 40_007, 90_011]
    times = list(itertools.accumulate([200_000, *gaps]))
    found = summarise([record(token_times=times, completion_tokens=5)], None).distributions["gap"]
    assert found.histogram is not None
    assert (found.n, found.low, found.high) == (4, 10.001, 90.011)
    assert found.mean == pytest.approx(sum(gaps) / 4000)
    assert found.p50.value == pytest.approx(20.003, rel=BOUND)
    assert [round(value) for value, _ in found.counts()] == [10, 20, 40, 90]
    e2e = summarise([record(token_times=times), record(token_times=times)], None).distributions["e2e"]
    assert e2e.histogram is None
    assert list(e2e.counts()) == [(360.022, 2)]


def test_gaps_of_one_request_count_as_one() -> None:
    """Ten requests of a hundred gaps each, slow ones and fast ones: the median's interval knows that it rests on ten."""
    slow = [record(number, token_times=evenly(number, 30_000)) for number in range(5)]
    fast = [record(number, token_times=evenly(number, 10_000)) for number in range(5, 10)]
    gap = summarise([*slow, *fast], None).distributions["gap"]
    assert (gap.p50.n, gap.p50.worth) == (1000, 9)
    assert (gap.p50.low, gap.p50.high) == (pytest.approx(10, rel=BOUND), pytest.approx(30, rel=BOUND))
    assert not gap.p99.certified


def evenly(number: int, gap: int) -> list[int]:
    """A hundred and one tokens."""
    return [number * SECOND + 200_000 + step * gap for step in range(101)]


def test_only_what_was_guessed_is_estimated() -> None:
    """Gaps are estimated as soon as one answer was judged at its ends only; ITL always is; TTFT never."""
    whole = summarise([record()], None).distributions
    ends = summarise([record(), record(judged=Judged.ENDS)], None).distributions
    assert [whole[name].estimated for name in ("ttft", "gap", "itl")] == [False, False, True]
    assert [ends[name].estimated for name in ("ttft", "gap", "itl")] == [False, True, True]


def test_the_warm_up_counts_in_no_figure_of_a_request() -> None:
    """A slow, failing warm-up changes neither latencies nor outcomes, goodput nor the whole run's rate; it is counted."""
    warm = [
        record(0, warm_up=True, token_times=[900_000], closed=910_000, violations=3),
        record(1, warm_up=True, outcome=Outcome.RESET, closed=70 * SECOND),
    ]
    counted = [record(number) for number in range(2, 12)]
    found, alone = summarise([*warm, *counted], (0, 8 * SECOND)), summarise(counted, (2 * SECOND, 8 * SECOND))
    assert (found.requests, found.warm_up) == (10, 2)
    assert (alone.requests, alone.warm_up) == (10, 0)
    for name in ("outcomes", "violations", "distributions", "goodput", "output_tokens_per_s_whole", "token_sources"):
        assert getattr(found, name) == getattr(alone, name)


def test_the_window_begins_after_the_warm_up() -> None:
    """
    Rates look at a span of time that begins with the first request that counts.

    In it, tokens for the warm-up count too: the server makes them then. Leaving them out would tell 25 tokens in 5 s here.
    """
    lasting = record(
        1, warm_up=True, token_times=[1_500_000, 2_500_000, 3_500_000], completion_tokens=3, closed=3_600_000
    )
    found = summarise([lasting, *(record(number) for number in range(3, 8))], (0, 8 * SECOND))
    assert found.output_tokens_per_s == pytest.approx((25 + 1) / 5)
    assert found.requests_per_s == pytest.approx(6 / 5)
    assert summarise([record(1, warm_up=True)], (0, 8 * SECOND)).output_tokens_per_s is None


def test_everything_scheduled_is_accounted_for() -> None:
    """Success + each failure + dropped + unfinished + what left no record = scheduled, and goodput's denominator is all of it."""
    records = [
        record(0, warm_up=True),
        record(1),
        record(2),
        record(3, outcome=Outcome.DROPPED, token_times=[], completion_tokens=None),
        record(4, outcome=Outcome.UNFINISHED_AT_STOP),
        record(5, outcome=Outcome.RATE_LIMITED, token_times=[]),
    ]
    found = summarise(records, None, scheduled=8)
    assert found.scheduled == 8
    assert found.missing == 2
    assert sum(found.outcomes.values()) + found.warm_up + found.missing == 8
    assert found.goodput is not None
    assert (found.goodput.good, found.goodput.n) == (2, 7)
    assert any("2 of 8 scheduled requests left no record" in note for note in found.notes)
    complete = summarise(records, None, scheduled=6)
    assert complete.missing == 0
    assert not any("left no record" in note for note in complete.notes)


def test_good_requests_per_second() -> None:
    """Of the requests that ended within the window, those that kept each limit: here every second one."""
    records = [record(n, token_times=[n * SECOND + (200_000 if n % 2 else 600_000)]) for n in range(10)]
    found = summarise(records, (0, 10 * SECOND), slos=[Slo.parse("ttft:p50<=300ms")])
    assert (found.requests_per_s, found.good_per_s) == (1.0, 0.5)
    assert summarise(records, (0, 10 * SECOND)).good_per_s == 1.0
    assert found.goodput is not None
    assert found.goodput.share == 0.5
