"""
How the processes of one run act together: those that send, and the one that steers.

A `Crew` is whoever sends, as the steering process sees it: itself (:class:`LocalCrew`), or Locust's workers
(:class:`WorkerCrew`). All get their share, make ready, and begin at one moment, so that the schedule is the same however
many they are. Locust carries the messages; none of them blocks its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import gevent
from gevent.event import Event

from streamgauge.load.counts import Counts
from streamgauge.load.dispatch import Share
from streamgauge.load.sender import Sender

__all__ = ["BEGIN", "END", "NEWS", "SHARE", "Crew", "LocalCrew", "WorkerCrew", "finish"]

SHARE = "streamgauge_share"
"""Master to worker, before Locust's own message to spawn users: your part of the run, and what Locust does not pass on."""

BEGIN = "streamgauge_begin"
"""Master to worker: the schedule begins at this wall-clock time."""

END = "streamgauge_end"
"""Master to worker: nothing new from now on."""

NEWS = "streamgauge_news"
"""Worker to master: it is ready, it gives up, or it is over; with its counts."""

LEAD_S = 0.25
"""So long before its time the beginning is announced to workers: messages take some milliseconds."""

_READY_S = 60.0
_SLACK_S = 10.0
_LOOK_S = 0.1


class Crew(Protocol):
    """Whoever sends."""

    lead_s: float

    def wait_ready(self) -> None:
        """Until all are ready to begin."""

    def begin(self, epoch: float) -> None:
        """Begin at this wall-clock time."""

    def end(self) -> None:
        """Send nothing new."""

    def cut_off(self) -> None:
        """Wait for nothing that is in flight."""

    def wait_over(self) -> None:
        """Until all requests of all processes have ended."""

    @property
    def ended_at(self) -> float | None:
        """When nothing new was sent any more, seconds since 1970; None as long as that goes on."""

    @property
    def aborted(self) -> str:
        """Why the run was given up, or nothing."""

    @property
    def spent(self) -> bool:
        """Whether it ended since the budget was spent."""

    @property
    def due(self) -> int | None:
        """How many arrivals have been due; None in a closed loop."""

    @property
    def lost(self) -> int:
        """How many processes have gone without saying that they were over."""

    @property
    def counts(self) -> Counts:
        """What all of them have seen."""


def finish(crew: Crew, *, at_once: bool) -> None:
    """Have nothing new sent, and wait until the rest has ended; `at_once`, or after another Ctrl-C, it is cut off."""
    crew.end()
    try:
        if at_once:
            crew.cut_off()
        crew.wait_over()
    except KeyboardInterrupt:
        crew.cut_off()
        crew.wait_over()


class LocalCrew:
    """Only this process."""

    lead_s = 0.0

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.lost = 0

    def wait_ready(self) -> None:
        """See :class:`Crew`."""
        self._sender.ready.wait()

    def begin(self, epoch: float) -> None:
        """See :class:`Crew`."""
        self._sender.begin(epoch)

    def end(self) -> None:
        """See :class:`Crew`."""
        self._sender.stop()

    def cut_off(self) -> None:
        """See :class:`Crew`."""
        self._sender.cut_off()

    def wait_over(self) -> None:
        """See :class:`Crew`."""
        self._sender.over.wait()

    @property
    def ended_at(self) -> float | None:
        """See :class:`Crew`."""
        return self._sender.stopped_at

    @property
    def aborted(self) -> str:
        """See :class:`Crew`."""
        return self._sender.aborted

    @property
    def spent(self) -> bool:
        """See :class:`Crew`."""
        return self._sender.spent

    @property
    def due(self) -> int | None:
        """See :class:`Crew`."""
        return self._sender.due

    @property
    def counts(self) -> Counts:
        """See :class:`Crew`."""
        return self._sender.counts


@dataclass
class _Worker:
    share: Share
    ready: bool = False
    over: bool = False
    due: int | None = None
    counts: Counts = field(default_factory=Counts)


class WorkerCrew:
    """
    Locust's workers, seen from the master.

    Args:
        runner: Locust's master.
        settings: what every worker is told besides its share.
        due_of: how many arrivals of a share have been due at a moment (wall clock): for workers that are lost.
        drain_s: so long may requests in flight go on after the end.
    """

    lead_s = LEAD_S

    def __init__(
        self,
        runner: Any,
        settings: dict[str, Any],
        *,
        due_of: Callable[[Share, float], int | None],
        drain_s: float,
    ) -> None:
        self._runner = runner
        self._due_of = due_of
        self._drain_s = drain_s
        self.ended_at: float | None = None
        self._changed = Event()
        self.aborted, self.spent = "", False
        clients = [*runner.clients.ready, *runner.clients.spawning, *runner.clients.running]
        self._workers = {
            id: _Worker(Share(index, len(clients)))
            for index, id in enumerate(_in_locusts_order(client.id for client in clients))
        }
        for id, worker in self._workers.items():
            share = worker.share
            runner.send_message(SHARE, {**settings, "index": share.index, "count": share.count}, client_id=id)

    def wait_ready(self) -> None:
        """See :class:`Crew`; a worker that is lost meanwhile is not waited for."""
        self._wait(lambda worker: worker.ready, _READY_S)

    def begin(self, epoch: float) -> None:
        """See :class:`Crew`."""
        self._tell(BEGIN, {"epoch": epoch})

    def end(self) -> None:
        """See :class:`Crew`."""
        if self.ended_at is None:
            self.ended_at = time.time()
            self._tell(END, {"now": False})

    def cut_off(self) -> None:
        """See :class:`Crew`."""
        self._tell(END, {"now": True})

    def wait_over(self) -> None:
        """See :class:`Crew`; who does not answer for long after the end is lost."""
        self._wait(lambda worker: worker.over)

    def news(self, id: str, data: dict[str, Any]) -> None:
        """Take what a worker says of itself."""
        worker = self._workers.get(id)
        if worker is None:
            return
        worker.ready |= data["ready"]
        worker.over |= data["over"]
        worker.due = data["due"]
        self.report(id, data["counts"])
        if data["aborted"] or data["spent"]:
            self.aborted = self.aborted or data["aborted"]
            self.spent |= data["spent"]
            self.end()
        self._changed.set()

    def report(self, id: str, counts: dict[str, Any]) -> None:
        """Take a worker's counts; they replace what it reported before."""
        if id in self._workers:
            self._workers[id].counts = Counts.from_line(counts)

    @property
    def due(self) -> int | None:
        """See :class:`Crew`; of a lost worker, what its share of the schedule says."""
        found = [
            worker.due if worker.over else self._due_of(worker.share, self._end) for worker in self._workers.values()
        ]
        return None if not found or None in found else sum(filter(None, found))

    @property
    def lost(self) -> int:
        """See :class:`Crew`."""
        return sum(not worker.over for worker in self._workers.values())

    @property
    def counts(self) -> Counts:
        """See :class:`Crew`."""
        return Counts.merged(worker.counts for worker in self._workers.values())

    @property
    def _end(self) -> float:
        return time.time() if self.ended_at is None else self.ended_at

    def _tell(self, message: str, data: dict[str, Any]) -> None:
        for id in self._workers:
            if self._lives(id):
                self._runner.send_message(message, data, client_id=id)

    def _lives(self, id: str) -> bool:
        client = self._runner.clients.get(id)
        return client is not None and client.state != "missing"

    def _wait(self, done: Callable[[_Worker], bool], seconds: float | None = None) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        while not all(done(worker) or not self._lives(id) for id, worker in self._workers.items()):
            self._changed.clear()
            late = self.ended_at is not None and time.time() > self.ended_at + self._drain_s + _SLACK_S
            if late or (until is not None and time.monotonic() > until):
                return
            self._changed.wait(_LOOK_S)
        gevent.sleep(0)


def _in_locusts_order(ids: Iterable[str]) -> list[str]:
    """As Locust's dispatcher orders its workers, so that the first ones get one user more: all first ones of a host, by id."""
    seen: Counter[str] = Counter()
    placed = []
    for id in sorted(ids):
        host = id.split("_")[0]
        placed.append((seen[host], id))
        seen[host] += 1
    return [id for _, id in sorted(placed)]
