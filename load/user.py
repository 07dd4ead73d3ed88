"""
Locust's user that streams.

Importing this module imports Locust, which patches the socket module: only Locust's own processes do.
"""

import random
from typing import Any

from locust import User, task
from locust.exception import StopUser

from streamgauge.load.arrivals import ClosedLoop
from streamgauge.load.client import Sent
from streamgauge.load.hooks import sender_of
from streamgauge.metrics.record import Outcome, Record

__all__ = ["StreamUser"]

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


class StreamUser(User):
    """
    One user of a closed loop: asks, reads the answer to its end, thinks, asks again.

    Subclass it for other weights, tags, waiting times or tasks; each call of :meth:`ask` is one request, one record and
    one of Locust's request events. In an open loop the schedule asks, and users only wait for its end.
    """

    abstract = True

    def on_start(self) -> None:
        """Take a number; all users of one process share its connections."""
        sender = sender_of(self.environment)
        if sender is None:
            raise StopUser  # this worker came too late to have a share of the run
        self._sender = sender
        self._number = sender.enter()
        self._count = 0
        self._pause_s = 0.0
        self._pauses = random.Random(f"{sender.plan.seed}/{sender.share.index}-{self._number}")  # noqa: S311 - no secret

    def wait_time(self) -> float:
        """The pause of the plan between an answer and the next request, in seconds."""
        loop = self._sender.plan.loop
        return self._pauses.expovariate(1 / loop.think_s) if isinstance(loop, ClosedLoop) and loop.think_s else 0.0

    @task
    def generate(self) -> None:
        """The only task of the plain user."""
        self.ask()

    def ask(self) -> Record:
        """
        Send one request of the workload and read its answer; pauses afterwards where the server wants that.

        Raises:
            StopUser: no more requests are to be sent.
        """
        sender = self._sender
        if sender.is_open:
            sender.over.wait()
        request = sender.next_request(f"{sender.share.index}-{self._number}-{self._count}")
        if request is None:
            raise StopUser
        self._count += 1
        sent = sender.send(request, context=self.context(), on_sent=self._on_sent)
        if self._pause_s:
            sender.stopped.wait(self._pause_s)  # who only waits must not hold up the end of the run
        return sent.record

    def _on_sent(self, sent: Sent) -> None:
        record = sent.record
        self._pause_s = _PAUSE_S.get(record.outcome, 0.0)
        if record.outcome is Outcome.RATE_LIMITED:
            self._pause_s = min(self._pause_s if sent.retry_after is None else sent.retry_after, LONGEST_PAUSE_S)
            record.detail = f"next request after {self._pause_s:g} s; {record.detail}"

    def context(self) -> dict[str, Any]:
        """What Locust's request event carries besides; empty unless a subclass says more."""
        return {}
