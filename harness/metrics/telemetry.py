"""What the client's own processes said about themselves: samples about each second, and calibrations."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.errors import BundleError

__all__ = ["Calibration", "Errors", "Sample", "Telemetry", "load_telemetry"]


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One process over about a second.

    Attributes:
        process: which one, by its file.
        time: when, seconds since 1970.
        span_s: over how long.
        cpu: cores used.
        loop_lag_p50_us, loop_lag_p99_us, loop_lag_max_us: how late its event loop woke up.
        gc_us: time in garbage collection.
        rss_mb: memory.
        running: requests in flight.
        late_p99_us: lateness of dispatch; None without a schedule.
        dropped: arrivals dropped so far.
        core_wait_us: how long it wanted to run and had no core; None where the system does not say.
        core_wait_mean_us: the same for each time that it was given one, so about what a stamp is late by.
        standstills_us: how long its event loop did not run each time that it should have and the process did not use the
            processor; without those of a millisecond or less.
    """

    process: str
    time: float
    span_s: float
    cpu: float
    loop_lag_p50_us: float
    loop_lag_p99_us: float
    loop_lag_max_us: float
    gc_us: float = 0.0
    rss_mb: float = 0.0
    running: int = 0
    late_p99_us: float | None = None
    dropped: int = 0
    core_wait_us: float | None = None
    core_wait_mean_us: float | None = None
    standstills_us: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of a client's stamps against the truth, in microseconds; None where there were none to see (n = 0)."""

    n: int
    p50: float | None
    p90: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """
    A process against a server whose times are known.

    Attributes:
        process: which one, by its file.
        time: when, seconds since 1970.
        phase: `before` or `after` the run.
        streams, events: how many, in all.
        ttft_error_us, gap_error_us: what the client's stamps were wrong by.
    """

    process: str
    time: float
    phase: str
    streams: int
    events: int
    ttft_error_us: Errors
    gap_error_us: Errors


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Everything that the processes of a run said about themselves; empty for a run that kept none."""

    samples: tuple[Sample, ...] = ()
    calibrations: tuple[Calibration, ...] = ()

    @property
    def processes(self) -> frozenset[str]:
        """Which ones said something."""
        return frozenset(
            (*(sample.process for sample in self.samples), *(found.process for found in self.calibrations))
        )


def load_telemetry(bundle: Bundle) -> Telemetry:
    """
    The telemetry of every process. Lines of other kinds are left for others to read.

    Raises:
        BundleError: a line is no telemetry.
    """
    samples: list[Sample] = []
    calibrations: list[Calibration] = []
    for name, line in bundle.telemetry_lines():
        process = name.removeprefix("telemetry-").removesuffix(".jsonl")
        try:
            if "sample" in line:
                samples.append(Sample(process, **_known(Sample, line["sample"])))
            elif "calibration" in line:
                calibrations.append(_calibration(process, line["calibration"]))
        except (AttributeError, KeyError, TypeError) as problem:
            where = str(bundle.path / name)
            raise BundleError(f"a line is neither a sample nor a calibration: {problem}", where=where) from None
    return Telemetry(tuple(samples), tuple(calibrations))


def _calibration(process: str, data: dict[str, Any]) -> Calibration:
    errors = {name: Errors(**_known(Errors, data[name])) for name in ("ttft_error_us", "gap_error_us")}
    return Calibration(process, **{**_known(Calibration, data), **errors})


def _known(kind: type[Sample | Errors | Calibration], data: dict[str, Any]) -> dict[str, Any]:
    """What this version knows of it; a later one may have said more."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in data.items() if name in names}
