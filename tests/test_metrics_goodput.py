"""Which requests are good, and the share of them."""

from typing import Any

import pytest

from streamgauge.metrics.distribution import Edge
from streamgauge.metrics.goodput import goodput, is_good
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.slo import Slo


def record(ttft_ms: float = 200, gaps_ms: tuple[float, ...] = (20, 20), **fields: Any) -> Record:
    """A streamed success."""
    times = [round(ttft_ms * 1000)]
    for gap in gaps_ms:
        times.append(times[-1] + round(gap * 1000))
    base: dict[str, Any] = {"outcome": Outcome.OK, "token_times": times, "max_tokens": 64}
    return Record("1", "t", "o", True, 0, times[-1] + 5, **{**base, **fields})


CASES: list[tuple[str, Record, tuple[str, ...], bool]] = [
    ("no limit", record(), (), True),
    ("a failure within every limit", record(outcome=Outcome.TRUNCATED), ("ttft:p95<=1s",), False),
    ("within", record(199), ("ttft:p95<=200ms",), True),
    ("at the limit", record(200), ("ttft:p50<=200ms",), True),
    ("beyond", record(200.001), ("ttft:p50<=200ms",), False),
    ("one of two limits", record(100), ("ttft:p95<=200ms", "e2e:p95<=120ms"), False),
    ("undefined breaks nothing", record(100, ()), ("gap:p50<=1ms", "tpot:p99<=1ms"), True),
    ("shares are about no single request", record(), ("errors<=0%", "goodput>=100%"), True),
    # A naive mean of these gaps, 29 ms, would keep the limit, a naive maximum would break it at p50.
    ("its own p99 is the longest of ten", record(100, (10,) * 9 + (200,)), ("gap:p99<=100ms",), False),
    ("its own p90 leaves one of ten out", record(100, (10,) * 9 + (200,)), ("gap:p90<=100ms",), True),
    ("its own p99 leaves one of a hundred out", record(100, (10,) * 99 + (200,)), ("gap:p99<=100ms",), True),
    ("but not two", record(100, (10,) * 98 + (200, 200)), ("gap:p99<=100ms",), False),
]


@pytest.mark.parametrize(("name", "one", "slos", "good"), CASES, ids=[case[0] for case in CASES])
def test_good(name: str, one: Record, slos: tuple[str, ...], good: bool) -> None:
    """A request is good when it succeeded and its own values keep each limit."""
    assert is_good(one, [Slo.parse(text) for text in slos]) is good


def test_the_clients_lag() -> None:
    """A token read 30 ms late may have come in time: good at most, not good at least."""
    late = record(220, first_lag_us=30_000, lag_us=30_000)
    slos = [Slo.parse("ttft:p95<=200ms")]
    assert [is_good(late, slos, edge) for edge in Edge] == [True, False, False]
    found = goodput([late, record()], slos, 2)
    assert found is not None
    assert (found.least, found.good, found.most, found.n) == (1, 1, 2, 2)


def test_of_all_scheduled() -> None:
    """The denominator holds what failed, was dropped, or left no record: of the answers alone 100 % would be good."""
    records = [record(), record(outcome=Outcome.DROPPED, token_times=[]), record(outcome=Outcome.RESET, token_times=[])]
    found = goodput(records, [], 4)
    assert found is not None
    assert found.share == 0.25
    assert (found.low, found.high) == (pytest.approx(0.0063, abs=1e-4), pytest.approx(0.8059, abs=1e-4))


def test_nothing_was_scheduled() -> None:
    """A share of nothing is none."""
    assert goodput([], [], 0) is None
