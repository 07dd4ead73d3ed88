"""A bundle of an open-loop run for the report's tests: every verdict, a busy client, a server that counts otherwise."""

import random
from pathlib import Path
from typing import Any

from report_bundles import CHAT, HOSTILE, START, TEXT, load, meta, validate_bundle

from streamgauge.bundle.layout import SERVER_METRICS
from streamgauge.bundle.writer import BundleWriter, LineWriter
from streamgauge.metrics.record import Judged, Outcome, Record
from streamgauge.metrics.server import Phase, Sample

__all__ = ["open_bundle", "open_load"]

_SECONDS = 20
_US = 1_000_000


def open_load() -> dict[str, Any]:
    """What the run was: a ramp of ten seconds and ten steady ones, two operations, four objectives."""
    return {name: value for name, value in load().items() if name != "users"} | {
        "users": None,
        "duration_s": _SECONDS,
        "loop": {
            "kind": "open",
            "segments": [{"seconds": 10, "start": 2, "end": 20}, {"seconds": 10, "start": 20, "end": 20}],
            "process": "gamma",
            "burstiness": 0.5,
            "max_in_flight": 40,
        },
        "mix": [
            {"operation": CHAT, "stream": True, "weight": 3.0},
            {"operation": TEXT, "stream": False, "weight": 1.0},
        ],
        "prompt_tokens": "lognormal:256,0.5",
        "max_tokens": "uniform:16..64",
        "shared_prefix": 128,
        "dataset": None,
        "warm_up_s": 2.0,
        "judge": 0.25,
        "slos": ["ttft:p95<=100ms", "errors<=3%", "goodput>=5%", "gap:p50<=50ms"],
        "abort_on": ["errors>50%", "consecutive>=20"],
        "budget_tokens": 100_000,
        "metrics_url": "http://127.0.0.1:9/metrics",
        "scheduled": 310,
        "start": START,
        "window": [START + 2, START + _SECONDS],
        "detail": HOSTILE.replace("\ud800", ""),
    }


def open_bundle(directory: Path, *, lag_us: int = 30_000, without: tuple[str, ...] = ()) -> Path:
    """
    The bundle.

    Args:
        directory: where.
        lag_us: how late the client was at worst.
        without: parts to leave out: `telemetry`, `server`.
    """
    writer = BundleWriter(directory)
    writer.meta(meta())
    writer.load(open_load())
    for process in (0, 1):
        with LineWriter(directory / f"records-{process}-7.jsonl") as records:
            records.write({"anchor": {"monotonic_us": 1_000 * process, "wall": START}})
            for line in _records(process, lag_us):
                records.write(line.line())
    if "telemetry" not in without:
        for process in (0, 1):
            with LineWriter(directory / f"telemetry-{process}-7.jsonl") as telemetry:
                for told in _telemetry(process):
                    telemetry.write(told)
    if "server" not in without:
        with LineWriter(directory / SERVER_METRICS) as server:
            for told in _server():
                server.write(told)
    writer.gate({"exit_code": 1, "verdict": "fail", "reasons": ["load: ttft:p95<=100ms is broken"]})
    validate_bundle(directory)
    return directory


def _records(process: int, lag_us: int) -> list[Record]:
    source = random.Random(process)
    fates = {7: Outcome.DROPPED, 31: Outcome.TRUNCATED, 61: Outcome.HTTP_5XX, 91: Outcome.UNFINISHED_AT_STOP}
    return [_record(number, process, fates.get(number % 100, Outcome.OK), lag_us, source) for number in range(150)]


def _record(number: int, process: int, outcome: Outcome, lag_us: int, source: random.Random) -> Record:
    scheduled = 1_000 * process + int(number / 150 * _SECONDS * _US)
    stream = number % 4 > 0
    start = scheduled + source.randrange(200, 4_000)
    times = [start + int(source.lognormvariate(12, 0.3))]
    for _ in range(15):
        times.append(times[-1] + int(source.lognormvariate(9.9, 0.2)))
    came = outcome in (Outcome.OK, Outcome.TRUNCATED) and stream
    return Record(
        f"{process}-{number}",
        "house",
        CHAT if stream else TEXT,
        stream,
        start,
        times[-1] + 2_000 if outcome is not Outcome.DROPPED else start,
        outcome,
        scheduled=scheduled,
        written=start + 50 if outcome is not Outcome.DROPPED else None,
        token_times=times if came else [],
        status=200 if outcome is Outcome.OK else 0,
        finish_reason="length" if outcome is Outcome.OK else "",
        prompt_tokens=256 if outcome is Outcome.OK else None,
        completion_tokens=16 if outcome is Outcome.OK else None,
        max_tokens=64,
        warm_up=scheduled < 2 * _US,
        judged=Judged.ALL if number % 4 == 0 else Judged.ENDS,
        violations=int(number == 44),
        detail=HOSTILE.replace("\ud800", "") if number == 44 else "",
        first_lag_us=source.randrange(lag_us),
        lag_us=lag_us,
    )


def _telemetry(process: int) -> list[dict[str, Any]]:
    errors = {"n": 30, "p50": 400, "p90": 900, "p99": 9_000, "max": 12_345}
    nothing: dict[str, Any] = {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}
    calibration = {"phase": "before", "streams": 30, "events": 600, "ttft_error_us": errors, "gap_error_us": errors}
    samples = [
        {
            "time": START + second + 0.9,
            "span_s": 1.0,
            "cpu": 0.5 + 0.02 * second + 0.1 * process,
            "loop_lag_p50_us": 10,
            "loop_lag_p99_us": 500 * second,
            "loop_lag_max_us": 900 * second,
            "gc_us": 1_500,
            "core_wait_us": 2_000 * second,
            "core_wait_mean_us": 100 * second if process else None,
            "rss_mb": 60,
            "running": 5,
            "late_p99_us": 3_000,
            "dropped": 0,
        }
        for second in range(_SECONDS)
    ]
    after = {**calibration, "phase": "after", "events": 0, "ttft_error_us": nothing, "gap_error_us": nothing}
    return [
        {"calibration": {"time": START - 1, **calibration}},
        *({"sample": sample} for sample in samples),
        {"calibration": {"time": START + 25, **after}},
    ]


def _server() -> list[dict[str, Any]]:
    page = {"url": "http://127.0.0.1:9/metrics", "server": "vLLM", "families": ["vllm:num_requests_running"]}

    def sample(second: float, phase: Phase, done: int) -> dict[str, Any]:
        values = {
            "finished": 10.0 + done,
            "prompt_tokens": 256.0 * done,
            "completion_tokens": 16.0 * done,
            "running": 0.0 if phase is Phase.BEFORE else 1.0,
            "waiting": 2.0,
        }
        return Sample(START + second, phase, values).line()

    between = [sample(second, Phase.DURING, 13 * second) for second in range(1, _SECONDS)]
    return [
        {"page": page},
        sample(-2, Phase.BEFORE, 0),
        *between,
        sample(_SECONDS + 2, Phase.AFTER, 400),
        {"time": START + 5, "note": f"a line could not be read: {HOSTILE}".replace("\ud800", "")},
    ]
