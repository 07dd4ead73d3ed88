"""Each metric against records whose values can be worked out by hand."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.definitions import METRICS, RATES, credible_tokens
from streamgauge.metrics.record import Outcome, Record

BY_ID = {metric.id: metric for metric in METRICS}


def record(**fields: Any) -> Record:
    """A streamed success that was dispatched at 1 s and closed at 9 s, changed by `fields`."""
    base = {
        "id": "1",
        "target": "t",
        "operation": "o",
        "stream": True,
        "scheduled": 900_000,
        "dispatched": 1_000_000,
        "closed": 9_000_000,
        "outcome": Outcome.OK,
        "max_tokens": 64,
    }
    return Record(**{**base, **fields})


CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    ("headers", {"headers": 1_050_000}, [50.0]),
    ("headers", {}, []),
    ("ttack", {"first_event": 1_060_000, "token_times": [1_250_000]}, [60.0]),
    ("ttack", {}, []),
    ("ttft_intended", {"token_times": [1_250_000, 1_300_000]}, [350.0]),
    ("ttft_intended", {"first_event": 1_100_000}, []),
    ("e2e_intended", {"token_times": [2_000_000, 3_500_000]}, [2600.0]),
    ("e2e_intended", {"stream": False}, [8100.0]),
    ("e2e_intended", {}, []),
    ("tail", {"token_times": [2_000_000, 8_990_000]}, [10.0]),
    ("tail", {"stream": False}, []),
    ("late", {}, [100.0]),
    ("late", {"connect_us": 80_000}, [20.0]),
    ("late", {"replaced": True}, []),
    ("ttft", {"token_times": [1_250_000, 1_300_000]}, [250.0]),
    ("ttft", {"first_event": 1_100_000}, []),
    ("ttfo", {"token_times": [1_250_000], "first_visible": 1_400_000}, [400.0]),
    ("ttfo", {"token_times": [1_250_000]}, []),
    ("tpot", {"token_times": [2_000_000, 2_030_000, 2_090_000]}, [45.0]),
    ("tpot", {"token_times": [2_000_000, 2_090_000], "completion_tokens": 10}, [10.0]),
    ("tpot", {"token_times": [2_000_000], "completion_tokens": 10}, []),
    ("tpot", {"token_times": [2_000_000, 2_090_000], "completion_tokens": 1}, []),
    ("tpot", {"token_times": [2_000_000]}, []),
    ("tpot", {"token_times": [2_000_000, 2_090_000], "completion_tokens": 10**12}, []),
    ("tpot", {"token_times": [2_000_000, 2_090_000], "completion_tokens": 0}, []),
    ("tpot", {}, []),
    ("gap", {"token_times": [2_000_000, 2_030_000, 2_030_500]}, [30.0, 0.5]),
    ("gap", {"token_times": [2_000_000]}, []),
    ("itl", {"token_times": [2_000_000, 2_030_000, 2_040_000]}, [30.0, 10.0]),
    (
        "itl",
        {"token_times": [2_000_000, 2_030_000, 2_040_000], "completion_tokens": 5},
        [15.0, 15.0, 5.0, 5.0],
    ),
    ("itl", {"token_times": [2_000_000, 2_030_000, 2_040_000], "completion_tokens": 2}, [40.0]),
    ("itl", {"token_times": [2_000_000, 2_030_000], "completion_tokens": 10**12}, []),
    ("e2e", {"token_times": [2_000_000, 3_500_000]}, [2500.0]),
    ("e2e", {}, []),
    ("e2e", {"stream": False}, [8000.0]),
    ("connect", {"connect_us": 1_500}, [1.5]),
    ("connect", {"connect_us": 0}, []),
]


@pytest.mark.parametrize(("metric", "fields", "values"), CASES)
def test_value(metric: str, fields: dict[str, Any], values: list[float]) -> None:
    """A metric has the value that its formula gives, and none where it is undefined."""
    assert list(BY_ID[metric].of(record(**fields))) == pytest.approx(values)


def test_every_metric_is_tried() -> None:
    """The table above leaves no metric out."""
    assert {name for name, _, _ in CASES} == set(BY_ID)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_declaration(metric: Any) -> None:
    """A metric says its formula and source, and needs only fields that a record has."""
    assert metric.formula
    assert metric.source
    assert set(metric.needs) <= set(Record.__dataclass_fields__)


def test_ids_are_unique() -> None:
    """No id stands for two things."""
    ids = [each.id for each in (*METRICS, *RATES)]
    assert len(ids) == len(set(ids))


@given(
    gaps=st.lists(st.integers(0, 10**6), min_size=1, max_size=20),
    tokens=st.integers(2, 64),
)
def test_itl_loses_no_time(gaps: list[int], tokens: int) -> None:
    """The inter-token latencies of a request add up to the time between its first and its last token."""
    times = list(itertools.accumulate([2_000_000, *gaps]))
    values = BY_ID["itl"].of(record(token_times=times, completion_tokens=tokens))
    assert len(values) == tokens - 1
    assert sum(values) == pytest.approx(sum(gaps) / 1000)
    assert BY_ID["tpot"].of(record(token_times=times, completion_tokens=tokens)) == pytest.approx(
        [sum(values) / len(values)]
    )


@pytest.mark.parametrize(
    ("usage", "asked", "credible"),
    [
        (64, 64, 64),
        (128, 64, 128),
        (129, 64, None),
        (10**9, 0, 10**9),
        (None, 64, 2),
        (0, 64, None),
        (-5, 64, None),
        (1, 9, 1),
    ],
)
def test_credible_tokens(usage: int | None, asked: int, credible: int | None) -> None:
    """A usage far above the limit asked for is not believed, nor one of nothing where something came."""
    found = credible_tokens(record(token_times=[2, 3], completion_tokens=usage, max_tokens=asked))
    assert found == credible


@pytest.mark.parametrize(
    ("metric", "fields", "slack"),
    [
        ("ttft", {}, (0.4, 0.0)),
        ("ttft_intended", {}, (0.4, 0.0)),
        ("ttfo", {}, (0.4, 0.0)),
        ("ttfo", {"first_visible": 2_040_000}, (3.0, 0.0)),
        ("e2e", {}, (3.0, 0.0)),
        ("e2e_intended", {}, (3.0, 0.0)),
        ("gap", {}, (3.0, 3.0)),
        ("itl", {}, (3.0, 3.0)),
        ("tpot", {"completion_tokens": 5}, (0.75, 0.1)),
    ],
)
def test_slack(metric: str, fields: dict[str, Any], slack: tuple[float, float]) -> None:
    """
    A token came up to its lag before its stamp, so a latency may be lower by that, and a time between two tokens either way.

    True times are drawn within the lags: no value of the truth lies outside the slack.
    """
    fields = {"first_visible": 2_000_000, **fields}
    seen = record(token_times=[2_000_000, 2_040_000], first_lag_us=400, lag_us=3000, **fields)
    of, slack_of = BY_ID[metric].of, BY_ID[metric].slack
    assert slack_of is not None
    assert slack_of(seen) == pytest.approx(slack)
    below, above = slack_of(seen)
    for first, last in itertools.product((0, 200, 400), (0, 1500, 3000)):
        times = [2_000_000 - first, 2_040_000 - last]
        visible = times[0] if fields["first_visible"] == 2_000_000 else times[1]
        truth = record(token_times=times, **{**fields, "first_visible": visible})
        for value, true in zip(of(seen), of(truth), strict=True):
            assert value - below - 1e-9 <= true <= value + above + 1e-9


def test_what_has_no_known_bound() -> None:
    """The lag is measured for tokens only; other stamps have no error bar, rather than one of zero."""
    assert {metric.id for metric in METRICS if metric.slack is None} == {"headers", "ttack", "tail", "late", "connect"}


def test_a_role_only_event_stops_no_clock_but_its_own() -> None:
    """The TTFT of vLLM's client would say 1.6 ms here, where the first token takes 250 ms (load-notes, 1)."""
    seen = record(first_event=1_001_600, token_times=[1_250_000])
    assert BY_ID["ttft"].of(seen) == [250.0]
    assert BY_ID["ttack"].of(seen) == pytest.approx([1.6])


def test_intended_latency_sees_what_service_latency_hides() -> None:
    """A request that waited two seconds for its turn took two seconds longer for whoever came on time."""
    seen = record(scheduled=1_000_000, dispatched=3_000_000, token_times=[3_100_000])
    assert BY_ID["ttft"].of(seen) == [100.0]
    assert BY_ID["ttft_intended"].of(seen) == [2100.0]
