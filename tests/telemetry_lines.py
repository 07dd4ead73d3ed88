"""Telemetry lines of a client at ease, as a process writes them."""

__all__ = ["CALIBRATION", "ERRORS", "SAMPLE", "WALL"]

WALL = 1_700_000_000.25
SAMPLE = {
    "time": WALL,
    "span_s": 1.0,
    "cpu": 0.5,
    "loop_lag_p50_us": 20,
    "loop_lag_p99_us": 300,
    "loop_lag_max_us": 900,
    "gc_us": 1500,
    "rss_mb": 60.5,
    "running": 64,
    "late_p99_us": None,
    "dropped": 0,
}
ERRORS = {"n": 64, "p50": 50, "p90": 100, "p99": 200, "max": 400}
CALIBRATION = {
    "time": WALL,
    "phase": "before",
    "streams": 64,
    "events": 4096,
    "ttft_error_us": ERRORS,
    "gap_error_us": ERRORS,
}
