"""Makes the records of a plain `locust` run a bundle of its own, prints what came of it, and tells its exit code."""

import json
import os
import sys
from pathlib import Path

from streamgauge.bundle.layout import LOAD, META, RECORDS, VERSION
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.bundle.writer import write_whole
from streamgauge.load.counts import Counts
from streamgauge.load.outcome import LoadOutcome, conclude
from streamgauge.load.plan import LoadPlan
from streamgauge.load.window import Span
from streamgauge.metrics.figures import figures
from streamgauge.metrics.record import Outcome
from streamgauge.outcomes import ExitCode
from streamgauge.runs import describe_run, utc_now

__all__ = ["Standalone"]


class Standalone:
    """
    The bundle of one test of Locust's, kept by the process that steers it.

    Args:
        plan: what is run.
        directory: where the records go.
    """

    def __init__(self, plan: LoadPlan, directory: Path) -> None:
        self._plan, self._directory = plan, directory
        self._started = utc_now().isoformat(timespec="seconds").replace("+00:00", "Z")
        directory.mkdir(parents=True, exist_ok=True)
        meta = describe_run("load", [plan.target], seed=plan.seed)
        write_whole(directory / META, {"version": VERSION, **meta})
        self._write({"state": "running", "detail": ""})

    def finish(self, marks: dict[str, object], counts: Counts, *, interrupted: bool) -> ExitCode:
        """
        Write how the run went, and print it.

        Args:
            marks: the course of the run.
            counts: of all processes; their records may lie on other machines.
            interrupted: whether it was told to end.
        """
        span = Span()
        for path in sorted(self._directory.glob(RECORDS.format("*"))):
            span.take(read_lines(path))
        elsewhere = counts.requests - span.count
        span.count = max(span.count, counts.requests)
        outcome = conclude(self._plan, span, marks, interrupted=interrupted)
        self._write(outcome.line())
        if elsewhere > 0:
            return self._by_counts(outcome, counts, elsewhere)
        return self._by_records(outcome)

    def _by_records(self, outcome: LoadOutcome) -> ExitCode:
        from rich.console import Console

        from streamgauge.load.measure import print_figures
        from streamgauge.load.verdict import load_verdict

        found = figures(Bundle(self._directory))
        console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120)
        print_figures(found, console)
        code, reason = load_verdict(outcome, found.summary, found.objectives, found.client)
        self._say(f"{reason} (exit {int(code)})")
        self._say(f"records: {self._directory}; `streamgauge report {self._directory}` makes the report")
        return code

    def _by_counts(self, outcome: LoadOutcome, counts: Counts, elsewhere: int) -> ExitCode:
        """The records are on other machines: counts and latencies are known, but nothing that needs single requests."""
        self._say(json.dumps(counts.summary()))
        self._say(f"{elsewhere} records are on other machines: gather them into {self._directory} for a report")
        succeeded = counts.outcomes[Outcome.OK]
        failed = counts.requests - succeeded - counts.outcomes[Outcome.UNFINISHED_AT_STOP]
        if outcome.state == "interrupted":
            self._say("load: interrupted")
            return ExitCode.INTERRUPTED
        if outcome.state == "failed" or not succeeded:
            self._say(f"load: cannot tell: {outcome.detail or 'not one request succeeded'}")
            return ExitCode.CANNOT_TELL
        if failed:
            self._say(f"load: {failed} of {counts.requests} requests failed")
            return ExitCode.GATE_FAILED
        if self._plan.slos:
            self._say("load: cannot tell: whether the objectives were kept is seen in the records alone")
            return ExitCode.CANNOT_TELL
        self._say(f"load: {counts.requests} requests, none failed")
        return ExitCode.PASS

    def _say(self, text: str) -> None:
        sys.stdout.write(f"streamgauge: {text}{os.linesep}")

    def _write(self, ending: dict[str, object]) -> None:
        write_whole(self._directory / LOAD, {**self._plan.describe(), "started": self._started, **ending})
