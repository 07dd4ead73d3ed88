"""Events that something collects, and shapes that only look like it."""

import itertools
import random
from typing import Any

import pytest

from streamgauge.metrics.coalescing import coalescing
from streamgauge.metrics.record import Outcome, Record


def stream(gaps_us: list[int], **fields: Any) -> Record:
    """A streamed success that waits 200 ms for its first event."""
    times = list(itertools.accumulate([200_000, *gaps_us]))
    return Record("1", "t", "o", True, 0, times[-1] + 5, Outcome.OK, token_times=times, **fields)


def steady(seed: int) -> list[int]:
    """Sixty events about 20 ms apart."""
    source = random.Random(seed)
    return [int(source.lognormvariate(9.9, 0.25)) for _ in range(60)]


def collected(every_us: int, seed: int = 0) -> list[int]:
    """The same events, each let go only at the next multiple of a time: the truth of a buffering proxy."""
    times = itertools.accumulate([200_000, *steady(seed)])
    let_go = [-(-time // every_us) * every_us + place * 15 for place, time in enumerate(times)]
    return [after - before for before, after in itertools.pairwise(let_go)]


def test_a_buffering_proxy() -> None:
    """Events 20 ms apart, let go every 100 ms, come about five at a time."""
    found = coalescing([stream(collected(100_000, seed)) for seed in range(10)])
    assert found is not None
    assert (found.streams, found.judged) == (10, 10)
    assert found.events == pytest.approx(5, abs=1)
    assert found.every_ms == pytest.approx(100, abs=2)
    assert "proxy" in str(found)
    assert "every 100 ms" in str(found)


@pytest.mark.parametrize(
    ("shape", "gaps"),
    [
        ("regular", [20_000] * 60),
        ("irregular", steady(1)),
        ("exponential", [int(random.Random(4).expovariate(1 / 20_000)) for _ in range(60)]),
        ("quick", [300] * 60),
        ("quick with one stall", [300] * 30 + [2_000_000] + [300] * 30),
        # A naive rule, gaps below a tenth of the mean, takes these for bursts.
        ("one stall", [20_000] * 30 + [60_000_000] + [20_000] * 30),
        ("two events in one segment now and then", ([20_000] * 9 + [10]) * 6),
        ("small packets every 3 ms", [10, 3_000] * 30),
        ("bursts that last as long as the pauses", ([900] * 20 + [10_000]) * 4),
        ("few events", [10, 100_000, 10, 100_000, 10]),
    ],
)
def test_no_bursts(shape: str, gaps: list[int]) -> None:
    """Irregular, quick and stalling streams are none of it."""
    assert coalescing([stream(gaps) for _ in range(5)]) is None


def test_a_busy_client_proves_nothing() -> None:
    """The same bursts, where this client was up to 80 ms late to read: it may have made them itself."""
    assert coalescing([stream(collected(100_000), lag_us=80_000)]) is None
    assert coalescing([stream(collected(100_000), lag_us=8_000)]) is not None


def test_a_few_streams_are_no_rule() -> None:
    """Two in five is not said, they may have stalled and caught up; one in two is, with its share."""
    bursts, plain = stream(collected(100_000)), stream(steady(1))
    assert coalescing([bursts, bursts, *[plain] * 3]) is None
    found = coalescing([bursts, plain])
    assert found is not None
    assert (found.streams, found.judged) == (1, 2)


def test_the_whole_answer_at_once() -> None:
    """Forty events within a millisecond after a long wait were held back until the end."""
    found = coalescing([stream([10] * 40)])
    assert found is not None
    assert found.every_ms is None
    assert "all at once" in str(found)
    assert coalescing([quick()]) is None


def quick() -> Record:
    """Forty events at once, but at once after the request, too."""
    return Record("1", "t", "o", True, 0, 900, Outcome.OK, token_times=[400 + 10 * step for step in range(40)])


def test_whole_answers_have_no_shape() -> None:
    """What is no stream, or nothing at all, is not judged."""
    assert coalescing([]) is None
    assert coalescing([Record("1", "t", "o", False, 0, 900_000, Outcome.OK)]) is None
