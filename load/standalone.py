"""Makes the records of a plain `locust` run a bundle of its own, so that reports can be had from it as well."""

import time
from pathlib import Path
from typing import Any

from streamgauge.bundle.layout import LOAD, META, RECORDS, VERSION
from streamgauge.bundle.reader import read_lines
from streamgauge.bundle.writer import write_whole
from streamgauge.load.plan import LoadPlan
from streamgauge.load.window import MARKS, Marks, Span, steady_window
from streamgauge.runs import describe_run, utc_now

__all__ = ["Standalone"]


class Standalone:
    """
    One test of Locust's, seen from the process that steers it.

    Args:
        plan: what is run.
        directory: where the records go.
        owned: whether `streamgauge load` writes the bundle; then the times of the test are left for it, and that is all.
    """

    def __init__(self, plan: LoadPlan, directory: Path, *, owned: bool) -> None:
        self._plan = plan
        self._directory = None if owned else directory
        self._marks = Marks(Path(MARKS) if owned else None)
        self._marks.note("start", time.time())
        self._started = utc_now().isoformat(timespec="seconds").replace("+00:00", "Z")
        if self._directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            meta = describe_run("load", [plan.target], seed=plan.seed)
            write_whole(directory / META, {"version": VERSION, **meta})
            self._write("running")

    def stopping(self) -> None:
        """No user begins anything new from now on."""
        self._marks.note("stopping", time.time())

    def stopped(self) -> None:
        """The users of this process have ended; those of other processes may still be reading."""
        if self._directory is None:
            return
        span = Span()
        for path in sorted(self._directory.glob(RECORDS.format("*"))):
            span.take(read_lines(path))
        plan = self._plan
        window = steady_window(
            span, self._marks.times, users=plan.users, duration_s=plan.duration_s, requests=plan.requests
        )
        self._write("finished", window=window)

    def _write(self, state: str, window: tuple[float, float] | None = None) -> None:
        assert self._directory is not None
        line: dict[str, Any] = {**self._plan.describe(), "started": self._started, "state": state, "detail": ""}
        if window is not None:
            line["window"] = list(window)
        write_whole(self._directory / LOAD, line)
