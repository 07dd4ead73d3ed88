"""What the processes of a run report of themselves, merged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.load.counts import Counts
from streamgauge.metrics.definitions import BY_ID
from streamgauge.metrics.record import Outcome, Record


@st.composite
def records(draw: st.DrawFn) -> Record:
    """A record of a request that ended somehow."""
    start = draw(st.integers(1, 10**9))
    gaps = draw(st.lists(st.integers(0, 100_000), max_size=5))
    times = [start + sum(gaps[: number + 1]) for number in range(len(gaps))]
    return Record(
        id="0-0-0",
        target="t",
        operation="o",
        stream=True,
        dispatched=start,
        closed=max([start, *times]) + draw(st.integers(0, 1000)),
        outcome=draw(st.sampled_from(list(Outcome))),
        token_times=times,
        completion_tokens=draw(st.none() | st.integers(0, 50)),
        warm_up=draw(st.booleans()),
    )


def counted(found: list[Record]) -> Counts:
    """What one process with these records says."""
    counts = Counts()
    for record in found:
        counts.add(record)
    return counts


@given(st.lists(records(), max_size=40))
def test_split_over_workers(found: list[Record]) -> None:
    """One record set split over 1, 2 and 3 workers gives identical counts, through JSON and in any order."""
    whole = counted(found).line()
    for workers in (1, 2, 3):
        lines = [json.loads(json.dumps(counted(found[index::workers]).line())) for index in range(workers)]
        assert Counts.merged(map(Counts.from_line, lines)).line() == whole
        assert Counts.merged(map(Counts.from_line, reversed(lines))).line() == whole


@given(st.lists(records(), max_size=40))
def test_what_counts(found: list[Record]) -> None:
    """Every record is counted by its outcome; latencies are those that are declared, of successes after the warm-up."""
    counts = counted(found)
    assert counts.requests == len(found) == sum(counts.summary()["outcomes"].values())
    good = [record for record in found if record.outcome is Outcome.OK and not record.warm_up]
    for name, histogram in counts.latencies.items():
        values = [value for record in good for value in BY_ID[name].of(record)]
        assert histogram.count == len(values)
        assert histogram.total == pytest.approx(1000 * sum(values), abs=len(values))
    assert counts.tokens == sum(record.tokens for record in found)


def test_summary() -> None:
    """A p99 is shown from 100 values on."""
    record = Record("0-0-0", "t", "o", True, 1_000, 9_000, Outcome.OK, token_times=[2_500, 8_000])
    few, many = counted([record] * 99).summary()["ms"]["ttft"], counted([record] * 100).summary()["ms"]["ttft"]
    assert (few["p50"], few["p99"], many["p99"]) == (1.5, None, 1.5)
