"""When a client was too slow to know what it reports: thresholds, and the reasons that name the delay. Pure."""

import math
from collections.abc import Iterator, Sequence

from streamgauge.metrics.definitions import BY_ID
from streamgauge.metrics.distribution import LEVELS, Edge, ordered_values
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.statistics import CERTIFIED_P99, quantile
from streamgauge.metrics.telemetry import Calibration, Sample

__all__ = [
    "CALIBRATION_GAP_MS",
    "CALIBRATION_TTFT_MS",
    "ERROR_MS",
    "ERROR_SHARE",
    "LATENESS_MS",
    "TAIL",
    "allowed_error_ms",
    "calibration_reasons",
    "calibration_warnings",
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


def allowed_error_ms(successes: Sequence[Record]) -> float:
    """By how much a quantile of TTFT may be in doubt."""
    return max(ERROR_MS, ERROR_SHARE * _basis(successes))


def lag_reasons(successes: Sequence[Record]) -> Iterator[str]:
    """First tokens (whole answers where nothing was streamed) were read so late that a quantile is in doubt by too much."""
    metric, what = BY_ID["ttft"], "first tokens"
    if not any(metric.of(record) for record in successes):
        metric, what = BY_ID["e2e"], "whole answers"
    low, seen = (ordered_values(metric, successes, edge) for edge in (Edge.LOWEST, Edge.SEEN))
    allowed = {p: _allowed_at(p, allowed_error_ms(successes)) for p in LEVELS}
    ranks = [(p, quantile(low, p).value, quantile(seen, p).value) for p in _levels(len(seen))]
    known = [(p, least, most) for p, least, most in ranks if least is not None and most is not None]
    if not known:
        return
    p, least, most = max(known, key=lambda rank: (rank[2] - rank[1]) / allowed[rank[0]])
    if most - least > allowed[p]:
        yield (
            f"the client read {what} late: the p{p * 100:g} of {metric.id.upper()} is {most:.1f} ms or up to "
            f"{most - least:.1f} ms less (read lag; at most {allowed[p]:.1f} ms may be in doubt)"
        )


def lateness_ms(counted: Sequence[Record]) -> float | None:
    """The p99 of lateness over all requests that were sent, whatever became of them; None below 100."""
    sent = [record for record in counted if record.outcome is not Outcome.DROPPED]
    return quantile(ordered_values(BY_ID["late"], sent, Edge.SEEN), 0.99).value


def lateness_reasons(late: float | None, successes: Sequence[Record]) -> Iterator[str]:
    """Requests were sent so late that the arrivals are not those of the schedule."""
    allowed = max(LATENESS_MS, ERROR_SHARE * _basis(successes))
    if late is not None and late > allowed:
        yield f"the client sent late: lateness of dispatch is {late:.1f} ms at p99 (at most {allowed:.1f} ms allowed)"


def _levels(n: int) -> Sequence[float]:
    """The quantiles whose doubt is a reason: a p99 that is uncertified anyway stands for nothing."""
    return LEVELS if n >= CERTIFIED_P99 else LEVELS[:-1]


def standstill_reasons(samples: Sequence[Sample], allowed: float, n: int) -> Iterator[str]:
    """
    A process stood still, which it cannot see in its requests: what comes meanwhile is read at once when it goes on.

    Its event loop woke up late, for longer than it had used the processor since it last did: for so long it wanted to run and did
    not (other processes, a limit on the container, a paused virtual machine). What came in the last `limit` ms of such a
    time was read in time; all before was not, and its share of the run is that of the values that may be wrong by more.

    Args:
        samples: of all processes.
        allowed: by how much a quantile may be in doubt (ms).
        n: how many requests succeeded.
    """
    whole_ms = max(sum(sample.span_s for sample in samples) * 1000, 1)
    stills = [still / 1000 for sample in samples for still in sample.standstills_us]
    for p in _levels(n):
        limit = _allowed_at(p, allowed)
        share = sum(still - limit for still in stills if still > limit) / whole_ms
        if share > 1 - p:
            yield (
                f"the client's processes stood still: for {share:.1%} of the run they read what came more than {limit:.1f} ms "
                f"late, up to {max(stills):.1f} ms (loop lag without use of the processor): other work on this machine, or a "
                "limit on what it may use"
            )
            return


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
    """
    Against a server whose times are known, the client was wrong by more than is allowed, before the run and after it.

    What lasts through a run shows on both sides of it. A machine that was busy on one side only says nothing about the
    time between, of which the standstills and the waits for a core tell.
    """
    for title, name, allowed in _calibration_limits(successes):
        wrong = [_least_wrong(each, name) for each in _by_process(calibrations)]
        worst = max(wrong, key=lambda found: _p90_ms(found, name), default=None)
        if worst is not None and (error := _p90_ms(worst, name)) > allowed:
            yield (
                f"calibration {worst.phase} the run: with {worst.streams} streams of known times this client's {title} was "
                f"wrong by {error:.1f} ms at p90 (at most {allowed:.1f} ms allowed)"
            )


def calibration_warnings(calibrations: Sequence[Calibration], successes: Sequence[Record]) -> Iterator[str]:
    """The client was wrong by more than is allowed on one side of the run only, or one side tells nothing."""
    for found in calibrations:
        if not found.ttft_error_us.n:
            yield (
                f"calibration {found.phase} the run told nothing about process {found.process}: none of {found.streams} "
                "streams came whole"
            )
    for title, name, allowed in _calibration_limits(successes):
        for each in _by_process(calibrations):
            worst = max(each, key=lambda found: _p90_ms(found, name))
            if _p90_ms(worst, name) > allowed >= _p90_ms(_least_wrong(each, name), name):
                yield (
                    f"calibration {worst.phase} the run, and not on its other side: this client's {title} was wrong by "
                    f"{_p90_ms(worst, name):.1f} ms at p90"
                )


def _calibration_limits(successes: Sequence[Record]) -> Iterator[tuple[str, str, float]]:
    """What a calibration may be wrong in: its title, the attribute, and by how many ms."""
    gap = _figure("gap", successes, 0.99)
    yield "TTFT", "ttft_error_us", max(CALIBRATION_TTFT_MS, ERROR_SHARE * _basis(successes))
    yield "gap", "gap_error_us", max(CALIBRATION_GAP_MS, ERROR_SHARE * gap) if gap else math.inf


def _by_process(calibrations: Sequence[Calibration]) -> list[list[Calibration]]:
    """Those that tell something, of each process."""
    telling: dict[str, list[Calibration]] = {}
    for found in calibrations:
        if found.ttft_error_us.n:
            telling.setdefault(found.process, []).append(found)
    return [telling[process] for process in sorted(telling)]


def _least_wrong(calibrations: Sequence[Calibration], name: str) -> Calibration:
    return min(calibrations, key=lambda found: _p90_ms(found, name))


def _p90_ms(calibration: Calibration, name: str) -> float:
    """The p90 of its error; 0 where it has no value."""
    return (getattr(calibration, name).p90 or 0) / 1000


def overload_reasons(counted: Sequence[Record]) -> Iterator[str]:
    """Requests came to nothing through the client itself."""
    overloaded = sum(record.outcome is Outcome.CLIENT_OVERLOAD for record in counted)
    if overloaded:
        yield f"{overloaded} requests ended at limits of the client itself, not of the server"


def doubt_ms(samples: Sequence[Sample], calibrations: Sequence[Calibration]) -> float:
    """By how much more than its lag a value may be wrong: the longest standstill, the longest mean wait, the largest error."""
    errors = [found.p90 or 0 for each in calibrations for found in (each.ttft_error_us, each.gap_error_us)]
    waits = [sample.core_wait_mean_us or 0 for sample in samples]
    stood = [still for sample in samples for still in sample.standstills_us]
    return max([0.0, *(each / 1000 for each in (*errors, *waits, *stood))])


def _allowed_at(p: float, allowed: float) -> float:
    return allowed * (TAIL if p == LEVELS[-1] else 1)


def _basis(successes: Sequence[Record]) -> float:
    """The median TTFT; of E2E where nothing was streamed."""
    return _figure("ttft", successes, 0.5) or _figure("e2e", successes, 0.5)


def _figure(metric: str, successes: Sequence[Record], p: float) -> float:
    """The quantile as it was seen; with too few values the largest one; 0 without any."""
    values = ordered_values(BY_ID[metric], successes, Edge.SEEN)
    found = quantile(values, p).value
    return found if found is not None else (values[-1] if values else 0.0)
