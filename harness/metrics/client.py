"""Whether the client was quick enough to know what it reports, and by how much its figures may be wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from streamgauge.metrics.definitions import METRICS, Metric
from streamgauge.metrics.distribution import LEVELS, Edge, ordered_values
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.statistics import quantile
from streamgauge.metrics.sufficiency import (
    allowed_error_ms,
    calibration_reasons,
    calibration_warnings,
    core_wait_reasons,
    doubt_ms,
    lag_reasons,
    lateness_ms,
    lateness_reasons,
    overload_reasons,
    standstill_reasons,
)
from streamgauge.metrics.telemetry import Calibration, Telemetry

__all__ = ["CPU_CORES", "Bar", "ClientReport", "judge_client"]

CPU_CORES = 0.9
"""
A process that uses more of its one core has no room left. Only a warning: load alone is no error, and what it does to the
figures shows in the lags.
"""

_LOOP_LAG_MS = 10.0
"""An event loop that wakes up so late at p99 gets a warning; what it did to the requests is in their own lags."""


@dataclass(frozen=True, slots=True)
class Bar:
    """
    The error bar of a quantile: where it lies if every value is as low, or as high, as the client's lag allows.

    Attributes:
        low, high: its ends, in the metric's unit.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClientReport:
    """
    What the client knows about itself.

    Attributes:
        sufficient: whether it was quick enough for its figures to be the server's.
        reasons: why it was not, each naming the delay that caused it.
        warnings: what is worth knowing beside.
        doubt_ms: by how much a value may be wrong beyond its bar, since a process stood still or calibration was off; 0 for a
            sufficient client.
        bars: by metric id and quantile (0.5, 0.9, ...); without metrics or quantiles that have no value or no known bound.
        lateness_p99_ms: of all requests that were sent; None below 100 of them.
        cpu: mean cores used by the busiest process; None without telemetry.
        loop_lag_p99_ms: the worst second's, of any process; None without telemetry.
        gc_ms: all time in garbage collection, of all processes; None without telemetry.
        processes: how many said something about themselves.
        calibrations: before and after the run.
    """

    sufficient: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    doubt_ms: float
    bars: dict[str, dict[float, Bar]]
    lateness_p99_ms: float | None
    cpu: float | None
    loop_lag_p99_ms: float | None
    gc_ms: float | None
    processes: int
    calibrations: tuple[Calibration, ...]


def judge_client(records: Sequence[Record], telemetry: Telemetry) -> ClientReport:
    """
    Whether the client was quick enough.

    Args:
        records: of all workers, on one clock; those of the warm-up make no difference.
        telemetry: of all processes.
    """
    counted = [record for record in records if not record.warm_up]
    successes = [record for record in counted if record.outcome is Outcome.OK]
    bars = {metric.id: found for metric in METRICS if (found := _bars(metric, successes))}
    late, allowed = lateness_ms(counted), allowed_error_ms(successes)
    busiest = max(_cpu(telemetry).items(), key=lambda item: item[1], default=None)
    lag = max((sample.loop_lag_p99_us / 1000 for sample in telemetry.samples), default=None)
    beyond_lags = (
        *standstill_reasons(telemetry.samples, allowed, len(successes)),
        *core_wait_reasons(telemetry.samples, allowed),
        *calibration_reasons(telemetry.calibrations, successes),
    )
    reasons = (
        *lag_reasons(successes),
        *lateness_reasons(late, successes),
        *beyond_lags,
        *overload_reasons(counted),
    )
    return ClientReport(
        sufficient=not reasons,
        reasons=reasons,
        warnings=(*_warnings(busiest, lag, bars, allowed), *calibration_warnings(telemetry.calibrations, successes)),
        doubt_ms=doubt_ms(telemetry.samples, telemetry.calibrations) if beyond_lags else 0.0,
        bars=bars,
        lateness_p99_ms=late,
        cpu=busiest[1] if busiest else None,
        loop_lag_p99_ms=lag,
        gc_ms=sum(sample.gc_us for sample in telemetry.samples) / 1000 if telemetry.samples else None,
        processes=len(telemetry.processes),
        calibrations=telemetry.calibrations,
    )


def _bars(metric: Metric, successes: Sequence[Record]) -> dict[float, Bar]:
    if metric.slack is None:
        return {}
    lowest, highest = (ordered_values(metric, successes, edge) for edge in (Edge.LOWEST, Edge.HIGHEST))
    bars = {}
    for p in LEVELS:
        low, high = quantile(lowest, p).value, quantile(highest, p).value
        if low is not None and high is not None:
            bars[p] = Bar(low, high)
    return bars


def _cpu(telemetry: Telemetry) -> dict[str, float]:
    used: dict[str, list[float]] = {}
    for sample in telemetry.samples:
        used.setdefault(sample.process, []).append(sample.cpu)
    return {process: fmean(values) for process, values in sorted(used.items())}


def _warnings(
    busiest: tuple[str, float] | None, lag: float | None, bars: dict[str, dict[float, Bar]], allowed: float
) -> Iterator[str]:
    if busiest is not None and busiest[1] > CPU_CORES:
        yield f"process {busiest[0]} used {busiest[1]:.0%} of a core: more processes would leave it room"
    if lag is not None and lag > _LOOP_LAG_MS:
        yield f"an event loop woke up {lag:.1f} ms late at p99 of its worst second"
    gap = bars.get("gap", {}).get(0.99)
    if gap is not None and gap.high - gap.low > allowed:
        yield f"read lag leaves the p99 of gaps between {gap.low:.1f} and {gap.high:.1f} ms"
