"""Runs a load plan: Locust in a child process, its records followed, `load.json` kept true."""

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from streamgauge.bundle.layout import LOAD
from streamgauge.bundle.writer import write_whole
from streamgauge.errors import UsageError
from streamgauge.load.child import Child
from streamgauge.load.command import locust_arguments, locust_environment, port_for_workers, refuse_owned
from streamgauge.load.outcome import LoadOutcome, conclude
from streamgauge.load.plan import AUTO, LoadPlan
from streamgauge.load.scraping import scraping
from streamgauge.load.standby import order, standing_by
from streamgauge.load.tally import Progress, Tally
from streamgauge.load.window import MARKS, read_marks
from streamgauge.outcomes import ExitCode
from streamgauge.runs import utc_now

__all__ = ["LoadOutcome", "run_load"]

LOG = "locust.log"
"""What Locust wrote, in the bundle's directory."""

_INTERVAL_S = 0.25
_GRACE_AFTER_SIGTERM_S = 5.0
_GRACE_WHEN_CUT_OFF_S = 3.0
_LONGEST_END_S = 60
"""So long after the planned end and all patience the child may still live: beyond, it hangs."""


def run_load(
    plan: LoadPlan,
    directory: Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    standby: Child | None = None,
) -> LoadOutcome:
    """
    Run a plan to its end; records and `load.json` are in the directory then, whatever happened.

    Ctrl-C lets the requests in flight come to their end, a second one does not. Called in the main thread only, it
    takes SIGINT and SIGTERM over while it runs.

    Args:
        plan: what to run.
        directory: an open bundle's.
        on_progress: called about four times a second.
        standby: the child, if it was started before; it has ended afterwards.

    Raises:
        UsageError: Locust's own arguments contradict the plan, or it does not take them.
    """
    refuse_owned(plan.locust_arguments)
    described = {
        **plan.describe(),
        "started": utc_now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        "locust": version("locust"),
    }
    write_whole(directory / LOAD, {**described, "state": "running", "detail": ""})
    redactor = plan.target.redactor
    outcome = LoadOutcome("failed", "streamgauge itself broke off", None, 0)
    try:
        with tempfile.TemporaryDirectory(prefix="streamgauge-load-") as folder, _signals() as asked:
            scratch = Path(folder)
            tally = Tally(directory, plan, scratch / MARKS)
            own = locust_arguments(plan, directory, scratch)
            environment = locust_environment(plan, os.environ, scratch)
            scraped = scraping(plan.metrics_page, plan.target, directory, optional=plan.metrics_url == AUTO)
            with port_for_workers(own) as arguments, scraped, standby or standing_by() as child:
                child.tell(order(arguments, environment, scratch), log=directory / LOG, redactor=redactor)
                code = _follow(child, plan, tally, asked, on_progress)
            tally.poll()
            marks = read_marks(scratch / MARKS)
            interrupted = bool(asked.count) or "told_to_end" in marks
            failed = _failure(code, child, tally)
            outcome = conclude(plan, tally.span, marks, interrupted=interrupted, failed=failed)
    finally:
        write_whole(directory / LOAD, {**described, **outcome.line(), "detail": redactor.text(outcome.detail)})
    if code == ExitCode.USAGE and not outcome.requests:
        raise UsageError(
            redactor.text(outcome.detail), hint="What stands behind -- are Locust's own options: `locust --help`."
        )
    return outcome


class _Asked:
    """How often, and how urgently, this process was asked to end."""

    def __init__(self) -> None:
        self.count = 0
        self.urgent = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.urgent |= number == signal.SIGTERM


@contextlib.contextmanager
def _signals() -> Iterator[_Asked]:
    asked = _Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(
    child: Child, plan: LoadPlan, tally: Tally, asked: _Asked, on_progress: Callable[[Progress], None] | None
) -> int | None:
    """Watch the child until it has ended; its exit code, or None when it had to be killed."""
    told = cut_off = False
    urgent_from = float("inf")
    deadline = time.monotonic() + plan.duration_s + plan.drain_s + _LONGEST_END_S if plan.duration_s else float("inf")
    while (code := child.wait(_INTERVAL_S)) is None:
        now = time.monotonic()
        if asked.count and not told:
            told = True
            child.ask_to_end()
            urgent_from = now + (_GRACE_AFTER_SIGTERM_S if asked.urgent else plan.drain_s)
            deadline = urgent_from + _LONGEST_END_S
        elif told and not cut_off and (asked.count > 1 or now > urgent_from):
            cut_off = True
            child.ask_to_end()  # asked twice, it waits for nothing
            deadline = now + _GRACE_WHEN_CUT_OFF_S
        if now > deadline:
            return None
        tally.poll()
        if on_progress is not None:
            on_progress(tally.progress(stopping=told))
    return code


def _failure(code: int | None, child: Child, tally: Tally) -> str:
    """Why the run has failed as far as the child's end tells, or nothing."""
    if code is None:
        return "Locust did not come to an end and was killed"
    if code != 0:
        return f"Locust ended with exit code {code}: {child.last_words}"
    if not tally.span.count:
        return f"Locust ended without a single request: {child.last_words}"
    return ""
