"""
Locust's user that streams, and what surrounds it in each of Locust's processes.

Importing this module imports Locust, which patches the socket module: only Locust's own processes do.
"""

import os
import signal
import sys
import weakref
from pathlib import Path
from typing import Any

import gevent
from locust import User, events, task
from locust.env import Environment
from locust.exception import StopUser
from locust.runners import STATE_RUNNING, STATE_SPAWNING, MasterRunner, WorkerRunner

from streamgauge.errors import StreamgaugeError
from streamgauge.load.arguments import add_arguments, plan_from
from streamgauge.load.client import StreamClient
from streamgauge.load.command import PARENT_VARIABLE
from streamgauge.load.plan import LoadPlan
from streamgauge.load.recording import RecordFile
from streamgauge.load.standalone import Standalone
from streamgauge.metrics.record import Outcome, Record
from streamgauge.outcomes import ExitCode
from streamgauge.wire.exchange import Credential

__all__ = ["RequestFailedError", "StreamUser"]

LONGEST_PAUSE_S = 60.0

_PAUSE_S: dict[Outcome, float] = {
    Outcome.RATE_LIMITED: 1.0,
    Outcome.REFUSED: 1.0,
    Outcome.TLS: 1.0,
    Outcome.RESET: 1.0,
    Outcome.HTTP_4XX: 1.0,
    Outcome.HTTP_5XX: 1.0,
    Outcome.CLIENT_OVERLOAD: 1.0,
}
"""
How long a user pauses after a failure that cost the server nothing, when the server names no time.

Without it a closed loop against a dead server would be a flood of connects, and of records.
"""


class RequestFailedError(Exception):
    """Tells Locust's statistics that a request failed; equal outcomes are counted together."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.outcome.value + (f" ({record.status})" if record.status else ""))


class _Run:
    """What one process's users share during one test."""

    def __init__(self, environment: Environment, plan: LoadPlan, directory: Path) -> None:
        runner: Any = environment.runner
        index, workers = 0, 1
        if isinstance(runner, WorkerRunner):
            options = _options(environment)
            index, workers = max(runner.worker_index, 0), max(options.expect_workers, 1)
        self.plan = plan
        self.process = f"{index}-{os.getpid()}"
        self.workload = plan.workload
        self.tls = plan.target.tls() if plan.target.url(plan.operation).startswith("https:") else None
        self.records = RecordFile(directory, self.process, plan.target.redactor)
        self._left = None if plan.requests is None else plan.requests // workers + (index < plan.requests % workers)
        self._users = 0

    def enter(self) -> int:
        """Number for one more user."""
        self._users += 1
        return self._users - 1

    def take(self) -> bool:
        """Whether one more request may be sent; this process's share of the planned requests is one smaller then."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


_runs: "weakref.WeakKeyDictionary[Environment, _Run]" = weakref.WeakKeyDictionary()
_standalone: "weakref.WeakKeyDictionary[Environment, Standalone]" = weakref.WeakKeyDictionary()


class StreamUser(User):
    """
    One user of a closed loop: asks, reads the answer to its end, asks again.

    Subclass it for other weights, tags, waiting times or tasks; each call of :meth:`ask` is one request, one record and
    one of Locust's request events.
    """

    abstract = True

    def on_start(self) -> None:
        """Take a number and a client; its connection is opened before the first request is timed."""
        self._run = _runs[self.environment]
        self._number = self._run.enter()
        self._count = 0
        self._pause_s = 0.0
        target = self._run.plan.target
        credential = Credential.VALID if target.key else Credential.UNCONFIGURED
        self._client = StreamClient(
            target.url(self._run.plan.operation), target.request_headers(credential), tls=self._run.tls
        )

    def on_stop(self) -> None:
        """Hang up."""
        self._client.close()

    @task
    def generate(self) -> None:
        """The only task of the plain user."""
        self.ask()

    def ask(self) -> Record:
        """
        Send one request of the workload and read its answer; pauses afterwards where the server wants that.

        Raises:
            StopUser: the planned requests are all sent.
        """
        if not self._run.take():
            raise StopUser
        request = self._run.workload.request(f"{self._run.process}-{self._number}-{self._count}")
        self._count += 1
        record = self._client.send(request, self._on_record)
        self._sleep(self._pause_s)
        return record

    def _on_record(self, record: Record) -> None:
        self._pause_s = _PAUSE_S.get(record.outcome, 0.0)
        if record.outcome is Outcome.RATE_LIMITED:
            asked = self._client.retry_after
            self._pause_s = min(self._pause_s if asked is None else asked, LONGEST_PAUSE_S)
            record.detail = f"next request after {self._pause_s:g} s; {record.detail}"
        self._run.records.write(record)
        if record.outcome is Outcome.UNFINISHED_AT_STOP:
            return  # Locust counts what was completed; what the end of the run cut off is in the records
        over = record.token_times[-1] if record.token_times else record.closed
        self.environment.events.request.fire(
            request_type="POST",
            name=record.operation,
            response_time=(over - record.dispatched) / 1000,
            response_length=record.body_bytes,
            exception=None if record.outcome is Outcome.OK else RequestFailedError(record),
            context=self.context(),
        )

    def _sleep(self, seconds: float) -> None:
        # In short pieces: a user who only waits must not hold up the end of the run.
        runner: Any = self.environment.runner
        while seconds > 0 and runner.state in (STATE_SPAWNING, STATE_RUNNING):
            piece = min(seconds, 0.2)
            gevent.sleep(piece)
            seconds -= piece


def _on_init(environment: Environment, **_: Any) -> None:
    if PARENT_VARIABLE in os.environ:
        gevent.spawn(_end_with_parent, os.getppid())
    # The documents are compiled here, not within the run. A worker may yet get other options from its master.
    steers, headless = not isinstance(environment.runner, WorkerRunner), _options(environment).headless
    try:
        _plan(environment)
    except StreamgaugeError as problem:
        if steers and headless:
            sys.stderr.write(f"streamgauge: {_one_line(problem)}\n")
            sys.exit(ExitCode.USAGE)


def _on_test_start(environment: Environment, **_: Any) -> None:
    try:
        plan = _plan(environment)
        directory = Path(_options(environment).sg_output)
        if not isinstance(environment.runner, MasterRunner):
            _runs[environment] = _Run(environment, plan, directory)
    except (StreamgaugeError, OSError) as problem:
        sys.stderr.write(f"streamgauge: {_one_line(problem)}\n")
        gevent.spawn(_end_run, environment)
        return
    if not isinstance(environment.runner, WorkerRunner):
        _standalone[environment] = Standalone(plan, directory, owned=PARENT_VARIABLE in os.environ)
        if plan.requests is not None:
            gevent.spawn(_end_when_all_sent, environment)


def _on_test_stopping(environment: Environment, **_: Any) -> None:
    if environment in _standalone:
        _standalone[environment].stopping()


def _on_test_stop(environment: Environment, **_: Any) -> None:
    if environment in _standalone:
        _standalone[environment].stopped()


def _options(environment: Environment) -> Any:
    return environment.parsed_options


def _plan(environment: Environment) -> LoadPlan:
    return plan_from(_options(environment), environment.host, os.environ)


def _end_when_all_sent(environment: Environment) -> None:
    """End the run once every user has gone home for want of requests."""
    runner: Any = environment.runner
    while runner.state == STATE_SPAWNING or (runner.state == STATE_RUNNING and runner.user_count > 0):
        gevent.sleep(0.1)
    if runner.state == STATE_RUNNING:
        _end_run(environment)


def _end_run(environment: Environment) -> None:
    runner: Any = environment.runner
    if _options(environment).headless:
        runner.quit()
    else:
        runner.stop()


def _end_with_parent(parent: int) -> None:
    """End this process when its parent is gone: nobody else would."""
    while os.getppid() == parent:
        gevent.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())


_LISTENERS = {
    "init_command_line_parser": add_arguments,
    "init": _on_init,
    "test_start": _on_test_start,
    "test_stopping": _on_test_stopping,
    "test_stop": _on_test_stop,
}

for _hook, _listener in _LISTENERS.items():
    getattr(events, _hook).add_listener(_listener)
