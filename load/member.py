"""What our load does in one of Locust's processes during a test, whichever of its roles the process has."""

import functools
import os
import secrets
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import gevent
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from streamgauge.load.arguments import plan_from
from streamgauge.load.arrivals import ClosedLoop
from streamgauge.load.command import PARENT_VARIABLE
from streamgauge.load.conductor import Conductor
from streamgauge.load.counts import Counts
from streamgauge.load.dispatch import Share
from streamgauge.load.distribution import NEWS, LocalCrew, WorkerCrew, finish
from streamgauge.load.plan import LoadPlan
from streamgauge.load.sender import Sender
from streamgauge.load.window import MARKS, Marks
from streamgauge.metrics.record import Outcome, Record

if TYPE_CHECKING:
    from streamgauge.load.standalone import Standalone

__all__ = ["Member", "RequestFailedError"]


class RequestFailedError(Exception):
    """Tells Locust's statistics that a request failed; equal outcomes are counted together."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.outcome.value + (f" ({record.status})" if record.status else ""))


class Member:
    """
    One of Locust's processes in a run: it sends (a worker), it steers (a master), or both (Locust alone).

    Args:
        environment: Locust's own.

    Attributes:
        steers, sends: what it does.
        sender: what sends in it, while it has a share of a run.
        conductor: what steers from it, during a test.
        told: what its master said of its share; empty in a process that steers.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment: Any = environment
        self.runner = cast(Any, environment.runner)
        self.options = cast(Any, environment.parsed_options)
        self.steers = not isinstance(self.runner, WorkerRunner)
        self.sends = not isinstance(self.runner, MasterRunner)
        self._owned = PARENT_VARIABLE in os.environ
        self._run_time: int | None = self.options.run_time
        if self.steers and self.options.headless:
            # The run is over so long after its first request is due, not so long after Locust was started.
            self.options.run_time = None
        self._tests = 0
        self._to_be_over = self._ending = False
        self.told: dict[str, Any] = {}
        self.sender: Sender | None = None
        self.conductor: Conductor | None = None
        self._standalone: Standalone | None = None

    def plan(self) -> LoadPlan:
        """The plan that the options mean now; those of a worker come from its master."""
        options = Namespace(**vars(self.options))
        options.run_time = self.options.run_time or self._run_time
        return plan_from(options, self.environment.host, os.environ)

    def make_ready(self) -> None:
        """
        Compile the documents here, not within the run, and have Locust start a scenario's users, unless it was told of others.

        Raises:
            StreamgaugeError: there is no such plan.
        """
        loop = self.plan().loop
        if self.steers and self.options.num_users is None and isinstance(loop, ClosedLoop):
            self.options.num_users = loop.users

    @property
    def counts(self) -> Counts:
        """What has been seen so far, in all processes if this one steers."""
        if self.conductor is not None:
            return self.conductor.crew.counts
        return self.sender.counts if self.sender is not None else Counts()

    def share(self, told: dict[str, Any]) -> None:
        """Take what the master says of this worker's share, and what Locust itself does not pass on."""
        self.told = told
        self._run_time, self.options.num_users = told["run_time"], told["num_users"]

    def start(self) -> None:
        """
        A test begins.

        Raises:
            StreamgaugeError, OSError: it cannot.
        """
        self.sender = self.conductor = None
        self._tests += 1
        if self.steers and self._tests > 1:
            self.options.sg_drawn_seed = secrets.randbelow(2**31)  # or a cache would know the prompts
        plan = self.plan()
        self._to_be_over, self._ending = bool(plan.duration_s or plan.requests), False
        directory = Path(self.told.get("output") or self.options.sg_output)
        if self.steers and self._tests > 1:  # of the same Locust, from its web UI
            directory = directory.with_name(f"{directory.name}-{self._tests}")
        if self.steers:
            self._steer(plan, directory)
        elif self.told:
            share = Share(self.told["index"], self.told["count"])
            self.sender = self._sender(plan, share, directory)
            gevent.spawn(self._serve, self.sender)
        else:
            sys.stderr.write("streamgauge: this worker came after the start and takes no part in this run\n")

    def _steer(self, plan: LoadPlan, directory: Path) -> None:
        if not self._owned:
            from streamgauge.load.standalone import Standalone  # what `streamgauge load` starts has no use for it

            self._standalone = Standalone(plan, directory)
        crew: LocalCrew | WorkerCrew
        if self.sends:
            self.sender = self._sender(plan, Share(), directory)
            crew = LocalCrew(self.sender)
            gevent.spawn(self.sender.prepare)
        else:
            settings = {
                "output": str(directory),
                "run_time": self.options.run_time or self._run_time,
                "num_users": self.options.num_users,
            }
            crew = WorkerCrew(
                self.runner,
                settings,
                due_of=functools.partial(self._due_of, plan),
                drain_s=self.environment.stop_timeout,
            )
        self.conductor = Conductor(crew, Marks(Path(MARKS) if self._owned else None), self.end_run)
        gevent.spawn(self.conductor.run)

    def _sender(self, plan: LoadPlan, share: Share, directory: Path) -> Sender:
        return Sender(
            plan,
            share,
            directory,
            drain_s=self.environment.stop_timeout,
            on_record=self.fire,
            on_given_up=self.tell_master,
        )

    def _serve(self, sender: Sender) -> None:
        """The life of a worker's sender, told to its master."""
        sender.prepare()
        self.tell_master()
        sender.over.wait()
        self.tell_master()

    def tell_master(self, problem: str = "") -> None:
        """How this worker is; with a problem, it takes no part."""
        if self.steers:
            return
        sender = self.sender
        news = {
            "ready": sender is not None and sender.ready.is_set(),
            "over": sender is None or sender.over.is_set(),
            "aborted": problem or (sender.aborted if sender else ""),
            "spent": sender is not None and sender.spent,
            "due": sender.due if sender else None,
            "counts": self.counts.line(),
        }
        self.runner.send_message(NEWS, news)

    def end(self) -> None:
        """Locust ends the test: nothing new, and what is in flight comes to its end before Locust goes on."""
        if self.conductor is not None:
            self.conductor.end()
        elif self.sender is not None:
            again, self._ending = self._ending, True
            finish(LocalCrew(self.sender), at_once=again)
            self.tell_master()
        if not self.steers:
            # Nothing is in flight any more, and Locust would be idle for so long before it takes part in another test.
            self.environment.stop_timeout = 0.0

    def close(self) -> None:
        """The test has ended."""
        if self.conductor is None or self._standalone is None:
            return
        standalone, self._standalone = self._standalone, None
        # Without a planned end, and in the web UI, being told to end is how a run ends.
        interrupted = self._to_be_over and self.options.headless and not self.conductor.over_by_itself
        code = standalone.finish(self.conductor.marks.noted, self.counts, interrupted=interrupted)
        if self.environment.process_exit_code is None:
            self.environment.process_exit_code = code

    def quit(self) -> None:
        """Locust ends, by itself or told to; before it asks for an exit code, the test has to be over."""
        if isinstance(self.runner, MasterRunner):
            self.runner.stop(send_stop_to_client=False)
        else:
            self.runner.stop()

    def end_run(self) -> None:
        """Have Locust end the test; in the web UI it goes on waiting for another."""
        if self.options.headless:
            self.runner.quit()
        else:
            self.runner.stop()

    def fire(self, record: Record, context: Any) -> None:
        """One of Locust's request events, and only one, for one completed request."""
        over = record.token_times[-1] if record.token_times else record.closed
        self.environment.events.request.fire(
            request_type="POST",
            name=record.operation,
            response_time=(over - record.dispatched) / 1000,
            response_length=record.body_bytes,
            exception=None if record.outcome is Outcome.OK else RequestFailedError(record),
            context=context or {},
        )

    def _due_of(self, plan: LoadPlan, share: Share, moment: float) -> int | None:
        start = self.conductor.marks.noted.get("start") if self.conductor else None
        arrivals = plan.arrivals[share.index :: share.count]
        if not plan.arrivals:
            return None
        return 0 if start is None else sum(arrival <= moment - start for arrival in arrivals)
