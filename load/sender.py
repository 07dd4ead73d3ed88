"""One process's part of a load run: its requests, what comes of them, and when it is over. Without Locust."""

import os
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event

from streamgauge.bundle.layout import TELEMETRY
from streamgauge.bundle.writer import LineWriter
from streamgauge.contract.contract import JSON, SSE
from streamgauge.load.abort import AbortWatch
from streamgauge.load.arrivals import OpenLoop
from streamgauge.load.calibration import calibrate
from streamgauge.load.client import Sent, StreamClient
from streamgauge.load.counts import Counts
from streamgauge.load.dispatch import Arrival, Dispatcher, Share
from streamgauge.load.examples import Examples
from streamgauge.load.loopclock import make_room, now_us, wall_offset_us
from streamgauge.load.pacer import running as pacer_running
from streamgauge.load.plan import LoadPlan
from streamgauge.load.recording import RecordFile
from streamgauge.load.request import LoadRequest
from streamgauge.load.selfwatch import SelfWatch
from streamgauge.metrics.record import Judged, Outcome, Record

__all__ = ["Sender"]

_MOST_OPENED = 512
"""So many connections are opened beforehand at most, by one process."""

_CALIBRATED_BEFORE = 128
"""So many streams at most before a run, whose number of requests in flight nobody knows yet."""


class Sender:
    """
    Sends one process's share of a plan, and writes a record of each request.

    Made before anything is sent; :meth:`prepare`, then :meth:`begin`, and it ends by itself: at the end of the schedule or of the
    planned time, when its share of the planned requests is sent, when a rule of `--abort-on` is met or the budget is spent, or
    when :meth:`stop` is called. What is in flight then is waited for, and cut off when that takes too long.

    Args:
        plan: what is run.
        share: which part of it is this process's.
        directory: where the records go.
        drain_s: so long may requests in flight go on after the end.
        on_record: called with each record that stands for a completed request, once it is written.
        on_given_up: called once when it ends by a rule of `--abort-on`, or since the budget is spent.

    Attributes:
        counts: what this process has seen so far.
        ready: connections are open; the run may begin.
        begun: requests may be sent, or it is over already.
        stopped: nothing new is sent.
        over: every request has ended and is on disk.
        aborted: the rule that ended it, in words, or nothing.
        spent: whether it ended since its share of the budget was spent.
    """

    def __init__(
        self,
        plan: LoadPlan,
        share: Share,
        directory: Path,
        *,
        drain_s: float,
        on_record: Callable[[Record, Any], None],
        on_given_up: Callable[[], None],
    ) -> None:
        self.plan, self.share = plan, share
        self.process = f"{share.index}-{os.getpid()}"
        target = plan.target
        tls = target.tls() if plan.urls[0].startswith("https:") else None
        self._client = StreamClient(plan.urls[0], target.request_headers(target.credential), tls=tls)
        self._workload = plan.workload
        self._arrivals = plan.arrivals
        self._records = RecordFile(directory, self.process, target.redactor)
        self._examples = Examples(directory, self.process, target)
        self.counts = Counts()
        self.ready, self.begun, self.stopped, self.over = Event(), Event(), Event(), Event()
        self.aborted, self.spent = "", False
        self._drain_s = drain_s
        self._on_record, self._on_given_up = on_record, on_given_up
        self._abort = AbortWatch(plan.abort_on)
        self._left = None if plan.requests is None or self.is_open else share.of_users(plan.requests, plan.users)
        self._budget = None if plan.budget_tokens is None else share.of(plan.budget_tokens)
        self._spent = 0
        self._asked = 0
        self._users = 0
        self._start_us = self._stopped_us = 0
        self._in_flight: set[gevent.Greenlet] = set()
        self._most_in_flight = 0
        self._idle, self._exhausted = Event(), Event()
        self._idle.set()
        self._life: gevent.Greenlet | None = None
        self._dispatcher: Dispatcher | None = None
        self._telemetry = LineWriter(directory / TELEMETRY.format(self.process))
        self._watch = SelfWatch(
            self._telemetry, running=lambda: self.running, dropped=lambda: self.counts.outcomes[Outcome.DROPPED]
        )
        self._hurried = False
        self._equipment = ExitStack()
        self._pacer = ""

    @property
    def is_open(self) -> bool:
        """Whether requests follow a schedule, and not the users."""
        return isinstance(self.plan.loop, OpenLoop)

    @property
    def due(self) -> int | None:
        """How many arrivals of this process's share have been due; None in a closed loop."""
        return (self._dispatcher.due if self._dispatcher else 0) if self.is_open else None

    @property
    def stopped_at(self) -> float | None:
        """When it began to send nothing new, seconds since 1970."""
        return (self._stopped_us + wall_offset_us()) / 1_000_000 if self.stopped.is_set() else None

    @property
    def running(self) -> int:
        """How many requests are in flight."""
        return len(self._in_flight)

    def prepare(self) -> None:
        """Open the connections, and see how well this process reads a stream whose times are known."""
        try:
            self._pacer = self._equipment.enter_context(pacer_running())
        except (OSError, ValueError) as problem:  # the run is worth having without
            sys.stderr.write(f"streamgauge: no calibration, since its server does not start: {problem}\n")
        make_room()
        self._client.open(self._connections())
        for part in self.plan.mix:  # compiled now, not when the first answer comes
            part.operation.response(200, SSE if part.stream else JSON)
        self._calibrate("before")
        self._watch.start()
        self.ready.set()

    def begin(self, epoch: float) -> None:
        """The schedule begins at this moment (seconds since 1970)."""
        self._begin_at(round(epoch * 1_000_000) - wall_offset_us())

    def stop(self) -> None:
        """Send nothing new from now on; :attr:`over` is set when the rest has ended."""
        if not self.stopped.is_set():
            self._stopped_us = now_us()
            self.stopped.set()
            self.begun.set()
            self._begin_at(self._stopped_us + 1)  # where it had not begun: after its end, so that nothing was ever due

    def cut_off(self) -> None:
        """End what is in flight at once: each request is a record that says so."""
        self._hurried = True
        gevent.killall(list(self._in_flight))

    def enter(self) -> int:
        """Number for one more user of a closed loop."""
        self._users += 1
        return self._users - 1

    def next_request(self, id: str) -> LoadRequest | None:
        """The next request of a closed loop; None when there is to be no more."""
        self.begun.wait()
        if self.stopped.is_set() or self.is_open or self._left == 0:
            return None
        if self._left is not None:
            self._left -= 1
        number = self._asked * self.share.count + self.share.index
        self._asked += 1
        return self._workload.request(id, number)

    def send(
        self,
        request: LoadRequest,
        *,
        scheduled: int | None = None,
        warm_up: bool | None = None,
        context: Any = None,
        on_sent: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """
        Send one request and wait for the end of its answer; its record is on disk then.

        Args:
            request: what to send.
            scheduled: when it was to be sent, on the monotonic clock; now by default.
            warm_up: whether it belongs to the warm-up; by default, if that still goes on.
            context: handed on to `on_record` with the record.
            on_sent: called before the record is written.
        """
        me = gevent.getcurrent()
        self._enter_flight(me)
        if warm_up is None:
            warm_up = now_us() < self._start_us + self.plan.warm_up_s * 1_000_000
        try:
            return self._client.send(
                request,
                scheduled=scheduled,
                judged=self._judged(request.id),
                warm_up=warm_up,
                on_record=partial(self._keep, request, context, on_sent),
            )
        finally:
            self._leave_flight(me)

    def _begin_at(self, start_us: int) -> None:
        if self._life is None:
            self._start_us = start_us
            self._life = gevent.spawn(self._live)

    def _live(self) -> None:
        if not self.is_open:
            self.stopped.wait(max(self._start_us / 1e6 - time.monotonic(), 0))
        self.begun.set()
        if self.is_open:
            self._dispatcher = Dispatcher(
                self._arrivals,
                self.share,
                build=lambda number: self._workload.request(str(number), number),
                dispatch=self._dispatch,
                leave_out=self._leave_out,
                stopped=self.stopped,
            )
            self._dispatcher.run(self._start_us, lambda: self._stopped_us)
        else:
            self._check_exhausted()
            left_s = self._start_us / 1e6 + self.plan.duration_s - time.monotonic() if self.plan.duration_s else None
            gevent.wait([self.stopped, self._exhausted], timeout=left_s, count=1)
        self.stop()
        gevent.sleep(0)  # what was dispatched last begins
        if not self._idle.wait(self._drain_s):
            self.cut_off()
            self._idle.wait()
        self._watch.stop()
        self._calibrate("after")
        for each in (self._equipment, self._client, self._records, self._examples, self._telemetry):
            each.close()
        self.over.set()

    def _calibrate(self, phase: str) -> None:
        if self._pacer and not self._hurried:
            # How many requests an open loop has in flight is known afterwards.
            streams = self._most_in_flight or min(self._connections(), _CALIBRATED_BEFORE)
            self._telemetry.write(calibrate(self._pacer, self.plan.operation, streams=streams, phase=phase))

    def _connections(self) -> int:
        """How many requests are going to be in flight: in an open loop, those of the busiest second."""
        loop = self.plan.loop
        if isinstance(loop, OpenLoop):
            peak = max((max(segment.start, segment.end) for segment in loop.segments), default=0.0)
            total = min(len(self._arrivals), round(peak) or 1, loop.max_in_flight * self.share.count)
        else:
            total = min(loop.users, self.plan.requests or loop.users)
        return min(max(self.share.of(total), 1), _MOST_OPENED)

    def _dispatch(self, arrival: Arrival) -> bool:
        loop = self.plan.loop
        assert isinstance(loop, OpenLoop)
        if len(self._in_flight) >= loop.max_in_flight:
            return False
        greenlet = gevent.Greenlet(self._send_arrival, arrival)
        self._enter_flight(greenlet)
        greenlet.start()
        return True

    def _send_arrival(self, arrival: Arrival) -> None:
        self._watch.late(now_us() - arrival.due)
        self.send(arrival.request, scheduled=arrival.due, warm_up=arrival.after_s < self.plan.warm_up_s)

    def _leave_out(self, arrival: Arrival, outcome: Outcome, why: str) -> None:
        request, now = arrival.request, now_us()
        record = Record(
            id=request.id,
            target=request.target,
            operation=request.operation.name,
            stream=request.stream,
            dispatched=now,
            closed=now,
            outcome=outcome,
            scheduled=arrival.due,
            detail=why,
            max_tokens=request.max_tokens,
            warm_up=arrival.after_s < self.plan.warm_up_s,
        )
        self._records.write(record)
        self.counts.add(record)
        self._judge_run(record)

    def _keep(self, request: LoadRequest, context: Any, on_sent: Callable[[Sent], None] | None, sent: Sent) -> None:
        record = sent.record
        if on_sent is not None:
            on_sent(sent)
        self._records.write(record)
        self._examples.take(request, sent)
        self.counts.add(record)
        self._spent += (record.prompt_tokens or 0) + record.tokens
        if record.outcome is not Outcome.UNFINISHED_AT_STOP:
            self._on_record(record, context)
        self._judge_run(record)

    def _judge_run(self, record: Record) -> None:
        reason = self._abort.add(record.outcome)
        spent = self._budget is not None and self._spent >= self._budget
        if (reason or spent) and not self.stopped.is_set():
            self.aborted, self.spent = reason, spent
            self.stop()
            self._on_given_up()

    def _judged(self, id: str) -> Judged:
        """Drawn by the seed and the request's id, so that the same answers are looked at in each run and by any worker."""
        if self.plan.judge >= 1:
            return Judged.ALL
        drawn = zlib.crc32(f"{self.plan.seed}/{id}".encode()) / 2**32
        return Judged.ALL if drawn < self.plan.judge else Judged.ENDS

    def _enter_flight(self, greenlet: gevent.Greenlet) -> None:
        self._in_flight.add(greenlet)
        self._most_in_flight = max(self._most_in_flight, len(self._in_flight))
        self._idle.clear()

    def _leave_flight(self, greenlet: gevent.Greenlet) -> None:
        self._in_flight.discard(greenlet)
        if not self._in_flight:
            self._idle.set()
            self._check_exhausted()

    def _check_exhausted(self) -> None:
        if self._left == 0 and not self._in_flight:
            self._exhausted.set()
