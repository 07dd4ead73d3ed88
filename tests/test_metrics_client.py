"""What the client says about itself: error bars that hold the truth, and when it was not quick enough."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.metrics.client import ClientReport, judge_client
from streamgauge.metrics.definitions import METRICS
from streamgauge.metrics.distribution import Edge, ordered_values
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.statistics import quantile
from streamgauge.metrics.sufficiency import ERROR_MS
from streamgauge.metrics.telemetry import Calibration, Errors, Sample, Telemetry

BY_ID = {metric.id: metric for metric in METRICS}


def record(ttft_us: int = 200_000, **fields: Any) -> Record:
    """A streamed success of five tokens, 20 ms apart."""
    times = [ttft_us + step * 20_000 for step in range(5)]
    base: dict[str, Any] = {"token_times": times, "outcome": Outcome.OK, "completion_tokens": 5, "stream": True}
    return Record("1", "t", "o", dispatched=0, closed=times[-1] + 10, **{**base, **fields})


def run(n: int = 700, **fields: Any) -> list[Record]:
    """So many of them."""
    return [record(**fields) for _ in range(n)]


def sample(process: str = "1", **fields: Any) -> Sample:
    """A second of a client at ease."""
    base: dict[str, Any] = {
        "time": 1.0,
        "span_s": 1.0,
        "cpu": 0.4,
        "loop_lag_p50_us": 20,
        "loop_lag_p99_us": 300,
        "loop_lag_max_us": 900,
        "gc_us": 1000,
    }
    return Sample(process, **{**base, **fields})


def calibration(ttft_us: float = 300, gap_us: float = 200, phase: str = "before") -> Calibration:
    """A calibration with these errors at p90, and much larger ones beyond."""
    ttft, gap = Errors(64, 50, ttft_us, 20 * ttft_us, 30 * ttft_us), Errors(4032, 20, gap_us, 20 * gap_us, 30 * gap_us)
    return Calibration("1", 1.0, phase, 64, 4096, ttft, gap)


STILL = sample(loop_lag_max_us=160_000, standstills_us=[5_000, 150_000])
"""Its loop woke up 160 ms late, and used 10 ms of the processor meanwhile; 5 ms it stood still at another time."""

UNTOLD = Calibration("1", 1.0, "after", 64, 0, Errors(0, None, None, None, None), Errors(0, None, None, None, None))


def judged(records: list[Record], *calibrations: Calibration, samples: tuple[Sample, ...] = ()) -> ClientReport:
    """The report on these."""
    return judge_client(records, Telemetry(samples, calibrations))


def test_a_client_at_ease() -> None:
    """Small lags are shown as error bars, and are no reason for anything."""
    found = judged(run(first_lag_us=80, lag_us=400), calibration(), calibration(phase="after"), samples=(sample(),))
    assert found.sufficient
    assert found.reasons == found.warnings == ()
    bar = found.bars["ttft"][0.99]
    assert (bar.low, bar.high) == (pytest.approx(199.92), 200.0)
    gap = found.bars["gap"][0.5]
    assert (gap.low, gap.high) == (pytest.approx(19.6, rel=0.002), pytest.approx(20.4, rel=0.002))
    assert (found.cpu, found.loop_lag_p99_ms, found.gc_ms, found.processes) == (0.4, 0.3, 1.0, 1)
    assert found.lateness_p99_ms == 0


@given(
    truths=st.lists(
        st.tuples(st.integers(1000, 10**6), st.integers(0, 50_000), st.integers(0, 50_000)), min_size=2, max_size=120
    ),
    data=st.data(),
)
def test_the_bars_hold_the_truth(truths: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Whatever the client's delay within its certified lag was, the quantile of the true times lies within its bar."""
    true, seen = [], []
    for ttft, lag, late in truths:
        delay = min(late, lag)
        true.append(record(ttft, token_times=[ttft]))
        seen.append(record(ttft, token_times=[ttft + delay], first_lag_us=lag, lag_us=lag))
    found = judged(seen)
    for name in ("ttft", "e2e"):
        ordered = ordered_values(BY_ID[name], true, Edge.SEEN)
        for p, bar in found.bars[name].items():
            value = quantile(ordered, p).value
            assert value is not None
            assert bar.low - 1e-9 <= value <= bar.high + 1e-9


REASONS: list[tuple[str, ClientReport, str]] = [
    ("lag of every request", judged(run(first_lag_us=11_000)), "read first tokens late: the p"),
    (
        "lag of the slow ones only",
        judged([*run(680), *run(20, first_lag_us=190_000, ttft_us=400_000)]),
        "the p99 of TTFT",
    ),
    (
        "lag of whole answers",
        judged(run(stream=False, token_times=[], lag_us=15_000)),
        "read whole answers late: the p50 of E2E is 280.0 ms or up to 15.0 ms less",
    ),
    ("lag of two requests", judged(run(2, first_lag_us=11_000)), "the p50 of TTFT"),
    (
        "waiting for a core",
        judged(run(), samples=(sample(core_wait_mean_us=10_100),)),
        "waited 10.1 ms for a core each",
    ),
    (
        "a standstill",
        judged(run(), samples=(STILL, *[sample()] * 11)),
        "for 1.1% of the run they read what came more than 20.0 ms late, up to 150.0 ms",
    ),
    (
        "many short standstills",
        judged(run(), samples=(sample(standstills_us=[16_000] * 10),)),
        "for 6.0% of the run they read what came more than 10.0 ms late",
    ),
    ("lag beside a small TTFT", judged(run(ttft_us=5_000, first_lag_us=1_100)), "up to 1.1 ms less"),
    ("lateness", judged(run(scheduled=-11_000)), "lateness of dispatch is 11.0 ms at p99"),
    ("lateness of failures", judged([*run(100), *run(50, outcome=Outcome.RESET, scheduled=-90_000)]), "sent late"),
    ("calibration of TTFT", judged(run(), calibration(ttft_us=10_100)), "this client's TTFT was wrong by 10.1 ms"),
    ("calibration of gaps", judged(run(), calibration(gap_us=1_100, phase="after")), "calibration after the run"),
    (
        "calibration on both sides",
        judged(run(), calibration(gap_us=9_000), calibration(gap_us=1_100, phase="after")),
        "this client's gap was wrong by 1.1 ms",
    ),
    ("one side that tells nothing", judged(run(), calibration(gap_us=9_000), UNTOLD), "wrong by 9.0 ms"),
    (
        "overload",
        judged([*run(), record(outcome=Outcome.CLIENT_OVERLOAD)]),
        "1 requests ended at limits of the client itself",
    ),
]


@pytest.mark.parametrize(("name", "found", "said"), REASONS, ids=[name for name, *_ in REASONS])
def test_not_sufficient(name: str, found: ClientReport, said: str) -> None:
    """Each delay beyond its threshold is a reason, alone, and named."""
    assert not found.sufficient
    (reason,) = found.reasons
    assert said in reason


AT_EASE: list[tuple[str, ClientReport]] = [
    ("lag of 5 % of the median TTFT", judged(run(first_lag_us=10_000))),
    ("a millisecond beside a small TTFT", judged(run(ttft_us=5_000, first_lag_us=1_000))),
    # A naive maximum of the lags would be 190 ms; no quantile that is shown depends on these requests.
    ("lag of fast requests only", judged([*run(690), *run(6, first_lag_us=190_000, ttft_us=195_000)])),
    ("lag of the warm-up", judged([*run(), *run(warm_up=True, first_lag_us=100_000, scheduled=-(10**6))])),
    ("connecting is no lateness", judged(run(scheduled=-90_000, connect_us=90_000))),
    ("lateness of 10 ms", judged(run(scheduled=-10_000))),
    ("what was dropped was never sent", judged([*run(), *run(50, outcome=Outcome.DROPPED, scheduled=-(10**6))])),
    ("calibration", judged(run(), calibration(ttft_us=10_000, gap_us=1_000))),
    ("one side of the run", judged(run(), calibration(ttft_us=90_000, gap_us=9_000), calibration(phase="after"))),
    ("calibration of gaps beside long ones", judged(run(token_times=[200_000, 400_000]), calibration(gap_us=9_000))),
    # The same lag of a process that used the processor all the while is in the lags of its requests.
    ("a busy loop", judged(run(), samples=(sample(cpu=0.16, loop_lag_max_us=160_000),))),
    ("standstills that the p99 may bear", judged(run(), samples=(sample(standstills_us=[15_000] * 10),))),
    (
        "calibration beside whole answers",
        judged(run(stream=False, token_times=[]), calibration(ttft_us=10_000, gap_us=9_000)),
    ),
    ("a standstill that only an uncertified p99 could show", judged(run(600), samples=(STILL, *[sample()] * 4))),
    (
        "lag of the slow ones, where the p99 is uncertified",
        judged([*run(580), *run(20, first_lag_us=190_000, ttft_us=400_000)]),
    ),
    ("a short standstill", judged(run(), samples=(STILL, *[sample()] * 12))),
    (
        "waiting for a core now and then",
        judged(run(), samples=(sample(core_wait_mean_us=29_000), *[sample(core_wait_mean_us=400)] * 2)),
    ),
    (
        "a system that does not tell of waits",
        judged(run(), samples=(sample(core_wait_us=None, core_wait_mean_us=None),)),
    ),
    (
        "a hiccup at the p99",
        judged([*run(680), *run(20, first_lag_us=19_000, ttft_us=400_000)]),
    ),
    ("many very short ones", judged(run(), samples=(sample(standstills_us=[10_000] * 50),))),
    ("nothing at all", judged([])),
    ("failures only", judged(run(outcome=Outcome.RESET, token_times=[], first_lag_us=10**6))),
]


@pytest.mark.parametrize(("name", "found"), AT_EASE, ids=[name for name, _ in AT_EASE])
def test_sufficient(name: str, found: ClientReport) -> None:
    """What lies at its threshold, or makes no difference to a figure, is no reason."""
    assert found.reasons == ()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            judged(run(), samples=(sample(), sample("2", cpu=0.99), sample("2", cpu=0.85))),
            "process 2 used 92% of a core",
        ),
        (judged(run(), samples=(sample(loop_lag_p99_us=12_000), sample())), "woke up 12.0 ms late"),
        (judged(run(lag_us=6_000)), "p99 of gaps between 14.0 and 26.0 ms"),
        (judged(run(), calibration(), UNTOLD), "calibration after the run told nothing"),
        (judged(run(), calibration(gap_us=9_000), calibration(phase="after")), "gap was wrong by 9.0 ms"),
    ],
)
def test_only_warnings(found: ClientReport, said: str) -> None:
    """A busy processor, a late loop and doubtful gaps are worth knowing; what they did to latencies is told by the lags."""
    assert found.sufficient
    (warning,) = found.warnings
    assert said in warning


def test_what_lags_do_not_know() -> None:
    """Beyond the lags of requests, a value is in doubt by the longest standstill or the largest error of a calibration."""
    assert judged(run(), samples=(STILL,)).doubt_ms == pytest.approx(150)
    assert judged(run(), calibration(gap_us=7_000)).doubt_ms == pytest.approx(7)
    assert judged(run(first_lag_us=90_000), calibration()).doubt_ms == 0


def test_without_telemetry() -> None:
    """A run that kept none has error bars all the same, and no figures of its processes."""
    found = judged(run())
    assert (found.cpu, found.loop_lag_p99_ms, found.gc_ms, found.processes) == (None, None, None, 0)
    assert set(found.bars) >= {"ttft", "e2e", "gap", "tpot"}
    assert not set(found.bars) & {"late", "connect", "headers"}


def test_order_makes_no_difference() -> None:
    """Whichever worker wrote what, the report is the same."""
    source = random.Random(1)
    records = [record(source.randrange(10**5, 10**6), lag_us=source.randrange(5000)) for _ in range(150)]
    one = judge_client(records, Telemetry((sample(), sample("2", cpu=0.6)), (calibration(),)))
    two = judge_client(records[::-1], Telemetry((sample("2", cpu=0.6), sample()), (calibration(),)))
    assert one == two
    assert one.cpu == 0.6
    assert ERROR_MS == 1.0
