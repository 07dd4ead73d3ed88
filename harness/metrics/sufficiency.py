"""When a client was too slow to know what it reports: thresholds, and the reasons that name the delay. Pure."""

import math
from collections.abc import Iterator, Sequence

from streamgauge.metrics.definitions import METRICS
from streamgauge.metrics.distribution import LEVELS, Edge, ordered_values
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.statistics import quantile
from streamgauge.metrics.telemetry import Calibration, Sample

__all__ = [
    "CALIBRATION_GAP_MS",
    "CALIBRATION_TTFT_MS",
    "ERROR_MS",
    "ERROR_SHARE",
    "LATENESS_MS",
    "STANDSTILL_SHARE",
    "TAIL",
    "allowed_error_ms",
    "calibration_reasons",
    "core_wait_reasons",
    "doubt_ms",
    "lag_reasons",
    "lateness_ms",
    "lateness_reasons",
    "overload_reasons",
    "standstill_reasons",
]

ERROR_MS = 1.0
"""A quantile of TTFT may be in doubt by so much: half of what it takes for the best peer to be wrong at p99."""

ERROR_SHARE = 0.05
"""Or by this share of the median TTFT (of E2E where nothing was streamed): less than servers differ from run to run."""

TAIL = 2
"""At the p99 of TTFT twice as much may be in doubt: one in a hundred is what a moment's hiccup of any machine reaches."""

LATENESS_MS = 10.0
"""
The p99 of lateness, or :data:`ERROR_SHARE` of the median TTFT: beyond it the arrivals are no longer those of the schedule, and
intended latencies are this client's. Twice what a machine of its own shows at 500 requests a second.
"""

CALIBRATION_TTFT_MS = 2.0
"""
The p90 of the error of TTFT against a server whose times are known, or :data:`ERROR_SHARE` of the run's median TTFT.

Not the p99: a calibration is short, its p99 is nearly its maximum, and one hiccup of the machine says nothing about the run.
"""

CALIBRATION_GAP_MS = 1.0
"""The p90 of the error of gaps against such a server, or :data:`ERROR_SHARE` of the p99 of the run's gaps."""

STANDSTILL_SHARE = 0.01
"""A process that stood still for so much of the run may have got every value beyond the p99 wrong."""

_BY_ID = {metric.id: metric for metric in METRICS}


def allowed_error_ms(successes: Sequence[Record]) -> float:
    """By how much a quantile of TTFT may be in doubt."""
    return max(ERROR_MS, ERROR_SHARE * _basis(successes))


def lag_reasons(successes: Sequence[Record]) -> Iterator[str]:
    """First tokens were read so late that a quantile of TTFT is in doubt by more than is allowed."""
    low, seen = (ordered_values(_BY_ID["ttft"], successes, edge) for edge in (Edge.LOWEST, Edge.SEEN))
    if not seen:
        return
    allowed = {p: allowed_error_ms(successes) * (TAIL if p == LEVELS[-1] else 1) for p in LEVELS}
    ranks = [(p, quantile(low, p).value, quantile(seen, p).value) for p in LEVELS]
    known = [(p, least, most) for p, least, most in ranks if least is not None and most is not None]
    if not known:
        return
    p, least, most = max(known, key=lambda rank: (rank[2] - rank[1]) / allowed[rank[0]])
    if most - least > allowed[p]:
        yield (
            f"the client read first tokens late: the p{p * 100:g} of TTFT is {most:.1f} ms or up to {most - least:.1f} ms less "
            f"(read lag; at most {allowed[p]:.1f} ms may be in doubt)"
        )


def lateness_ms(counted: Sequence[Record]) -> float | None:
    """The p99 of lateness over all requests that were sent, whatever became of them; None below 100."""
    sent = [record for record in counted if record.outcome is not Outcome.DROPPED]
    return quantile(ordered_values(_BY_ID["late"], sent, Edge.SEEN), 0.99).value


def lateness_reasons(late: float | None, successes: Sequence[Record]) -> Iterator[str]:
    """Requests were sent so late that the arrivals are not those of the schedule."""
    allowed = max(LATENESS_MS, ERROR_SHARE * _basis(successes))
    if late is not None and late > allowed:
        yield f"the client sent late: lateness of dispatch is {late:.1f} ms at p99 (at most {allowed:.1f} ms allowed)"


def standstill_reasons(samples: Sequence[Sample], allowed: float) -> Iterator[str]:
    """
    A process stood still, which it cannot see in its requests: what comes meanwhile is read at once when it goes on.

    Its event loop woke up late, for longer than it used the processor in that second at all: so much of it, at least, it
    wanted to run and did not (other processes, a limit on the container, a paused virtual machine).
    """
    lost = [still for sample in samples if (still := _standstill_ms(sample)) > allowed]
    share = sum(lost) / max(sum(sample.span_s for sample in samples) * 1000, 1)
    if share > STANDSTILL_SHARE:
        yield (
            f"the client's processes stood still for {share:.1%} of the run, up to {max(lost):.1f} ms at a time (loop lag "
            "without use of the processor): other work on this machine, or a limit on what it may use"
        )


def core_wait_reasons(samples: Sequence[Sample], allowed: float) -> Iterator[str]:
    """
    A process had to wait for a core whenever something came, which it cannot see in its requests either.

    Linux counts it: /proc/self/schedstat, documented in its Documentation/scheduler/sched-stats.
    """
    known = [(sample.core_wait_mean_us, sample.span_s) for sample in samples if sample.core_wait_mean_us is not None]
    mean = sum(wait * span for wait, span in known) / 1000 / max(sum(span for _, span in known), 1e-9)
    if mean > allowed:
        yield (
            f"the client's processes waited {mean:.1f} ms for a core each time that something came (at most {allowed:.1f} ms "
            "allowed): other work on this machine"
        )


def calibration_reasons(calibrations: Sequence[Calibration], successes: Sequence[Record]) -> Iterator[str]:
    """Against a server whose times are known, the client was wrong by more than is allowed."""
    if not calibrations:
        return
    gap = _figure("gap", successes, 0.99)
    limits = (
        ("TTFT", "ttft_error_us", max(CALIBRATION_TTFT_MS, ERROR_SHARE * _basis(successes))),
        ("gap", "gap_error_us", max(CALIBRATION_GAP_MS, ERROR_SHARE * gap) if gap else math.inf),
    )
    for title, name, allowed in limits:
        worst = max(calibrations, key=lambda found: getattr(found, name).p90 or 0)
        error = (getattr(worst, name).p90 or 0) / 1000
        if error > allowed:
            yield (
                f"calibration {worst.phase} the run: with {worst.streams} streams of known times this client's {title} was "
                f"wrong by {error:.1f} ms at p90 (at most {allowed:.1f} ms allowed)"
            )


def overload_reasons(counted: Sequence[Record]) -> Iterator[str]:
    """Requests came to nothing through the client itself."""
    overloaded = sum(record.outcome is Outcome.CLIENT_OVERLOAD for record in counted)
    if overloaded:
        yield f"{overloaded} requests ended at limits of the client itself, not of the server"


def doubt_ms(samples: Sequence[Sample], calibrations: Sequence[Calibration]) -> float:
    """By how much more than its lag a value may be wrong: the longest standstill, the longest mean wait, the largest error."""
    errors = [found.p90 or 0 for each in calibrations for found in (each.ttft_error_us, each.gap_error_us)]
    waits = [sample.core_wait_mean_us or 0 for sample in samples]
    return max([0.0, *map(_standstill_ms, samples), *(each / 1000 for each in (*errors, *waits))])


def _standstill_ms(sample: Sample) -> float:
    return max(sample.loop_lag_max_us / 1000 - sample.cpu * sample.span_s * 1000, 0.0)


def _basis(successes: Sequence[Record]) -> float:
    """The median TTFT; of E2E where nothing was streamed."""
    return _figure("ttft", successes, 0.5) or _figure("e2e", successes, 0.5)


def _figure(metric: str, successes: Sequence[Record], p: float) -> float:
    """The quantile as it was seen; with too few values the largest one; 0 without any."""
    values = ordered_values(_BY_ID[metric], successes, Edge.SEEN)
    found = quantile(values, p).value
    return found if found is not None else (values[-1] if values else 0.0)
