"""Objectives as text: what is read, what is refused, and that both directions agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import UsageError
from streamgauge.metrics.definitions import METRICS
from streamgauge.metrics.slo import Slo

READ: list[tuple[str, Slo, str]] = [
    ("ttft:p95<=500ms", Slo("ttft", 0.95, 500.0), "ttft:p95<=500ms"),
    ("tpot:p99<=50ms", Slo("tpot", 0.99, 50.0), "tpot:p99<=50ms"),
    ("e2e:p50<=2s", Slo("e2e", 0.5, 2000.0), "e2e:p50<=2000ms"),
    ("e2e:p50<=1.5m", Slo("e2e", 0.5, 90_000.0), "e2e:p50<=90000ms"),
    ("gap:p99.9<=250us", Slo("gap", 0.999, 0.25), "gap:p99.9<=0.25ms"),
    (" ttft_intended : p90 <= 1 s ", Slo("ttft_intended", 0.9, 1000.0), "ttft_intended:p90<=1000ms"),
    ("goodput>=95%", Slo("goodput", None, 0.95), "goodput>=95%"),
    ("goodput >= 99.9 %", Slo("goodput", None, 0.999), "goodput>=99.9%"),
    ("errors<=1%", Slo("errors", None, 0.01), "errors<=1%"),
    ("errors<=0%", Slo("errors", None, 0.0), "errors<=0%"),
]


@pytest.mark.parametrize(("text", "slo", "told"), READ, ids=[text for text, *_ in READ])
def test_read(text: str, slo: Slo, told: str) -> None:
    """Each form has its meaning, and is told in one way."""
    found = Slo.parse(text)
    assert (found.metric, found.p) == (slo.metric, pytest.approx(slo.p) if slo.p else slo.p)
    assert found.limit == pytest.approx(slo.limit)
    assert str(found) == told
    assert (found.latency is None) is (slo.p is None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ttft",
        "ttft<=500ms",
        "ttft:p95<500ms",
        "ttft:p95>=500ms",
        "ttft:p95<=500",
        "ttft:p95<=-5ms",
        "ttft:p100<=500ms",
        "ttft:p0<=500ms",
        "ttft:95<=500ms",
        "latency:p95<=500ms",
        "goodput<=95%",
        "goodput>=0.95",
        "goodput>=101%",
        "errors>=1%",
        "errors:p95<=1%",
        "ttft:p95<=500ms,e2e:p95<=2s",
        "ttft:p95<=1e3ms",
        "ttft:p95<=\u0665ms",
    ],
)
def test_refused(text: str) -> None:
    """What is no objective is refused with the forms that are, and the metrics that there are."""
    with pytest.raises(UsageError) as caught:
        Slo.parse(text)
    assert caught.value.where == "--slo"
    assert "ttft:p95<=500ms" in caught.value.hint
    assert all(metric.id in caught.value.hint for metric in METRICS)


@given(
    metric=st.sampled_from([metric.id for metric in METRICS]),
    p=st.integers(1, 99_999).map(lambda number: number / 100_000),
    limit=st.integers(0, 10**9).map(lambda number: number / 1000),
)
def test_both_directions(metric: str, p: float, limit: float) -> None:
    """What load.json says of an objective is that objective."""
    found = Slo.parse(str(Slo(metric, p, limit)))
    assert (found.metric, found.p, found.limit) == (metric, pytest.approx(p, rel=1e-12), limit)
    assert str(found) == str(Slo(metric, p, limit))


@given(
    limit=st.integers(0, 100_000).map(lambda number: number / 100_000), metric=st.sampled_from(["goodput", "errors"])
)
def test_both_directions_of_shares(metric: str, limit: float) -> None:
    """So is a share."""
    found = Slo.parse(str(Slo(metric, None, limit)))
    assert (found.metric, found.p, found.limit) == (metric, None, pytest.approx(limit, abs=1e-12))
