"""Lets the pace of the answers run by the event loop's clock."""

import asyncio

from streamgauge.reference.metrics import Metrics
from streamgauge.reference.pace import Pace
from streamgauge.reference.room import Job

__all__ = ["Turns"]


class Turns:
    """
    Whose answer has its place, and how far it is, now.

    Args:
        pace: what says so for any time.
        metrics: shows how much of the budget of tokens is reserved.
    """

    def __init__(self, pace: Pace, metrics: Metrics) -> None:
        self.pace = pace
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def arrive(self, job: Job, now: float) -> None:
        """Take an answer in."""
        self.pace.arrive(job, now)
        self._changed()

    def leave(self, job: Job) -> None:
        """The answer is written, or its client has gone."""
        self.pace.leave(job, self._loop.time())
        self._changed()

    def catch_up(self) -> None:
        """Let happen what is to happen until now."""
        self.pace.advance(self._loop.time())
        self._changed()

    def close(self) -> None:
        """Let nothing happen any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _changed(self) -> None:
        self._metrics.cached(self.pace.room.usage)
        if self._timer is not None:
            if self._timer.when() == self.pace.next_at:
                return
            self._timer.cancel()
            self._timer = None
        if self.pace.next_at is not None:
            self._timer = self._loop.call_at(self.pace.next_at, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.catch_up()
