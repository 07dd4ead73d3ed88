"""The open loop in one process: its share of the schedule, each request sent when it is due, whatever became of the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gevent.event import Event

from streamgauge.load.alarm import Alarm
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Outcome

__all__ = ["Arrival", "Dispatcher", "Share"]


@dataclass(frozen=True, slots=True)
class Share:
    """
    Which part of the run one process has.

    Attributes:
        index: number of the process, from 0.
        count: how many processes there are.
    """

    index: int = 0
    count: int = 1

    def of(self, total: int) -> int:
        """How many of so many things are this process's."""
        return total // self.count + (self.index < total % self.count)

    def of_users(self, total: int, users: int) -> int:
        """How many of so many things are this process's, where each belongs to one of so many users, who are shared out."""
        before = self.index * (users // self.count) + min(self.index, users % self.count)
        return total * (before + self.of(users)) // users - total * before // users


@dataclass(frozen=True, slots=True)
class Arrival:
    """
    One request of the schedule.

    Attributes:
        request: what to send.
        due: when, microseconds on this process's monotonic clock.
        after_s: when, seconds since the start of the schedule.
    """

    request: LoadRequest
    due: int
    after_s: float


class Dispatcher:
    """
    Goes through the schedule once; it is never anchored anew, so that what is late stays late and is seen to be.

    Args:
        schedule: all arrivals of the run, in seconds since its start, ascending.
        share: which of them are this process's: every `count`-th, from number `index` on.
        build: makes the request of a number; called before its time.
        dispatch: sends an arrival without waiting for anything; False when there is no room for it.
        leave_out: told of an arrival that is not sent, what its record is to say became of it, and why.
        stopped: ends the dispatching.

    Attributes:
        due: how many arrivals of this process have been due so far; each was sent or left out.
    """

    def __init__(
        self,
        schedule: Sequence[float],
        share: Share,
        *,
        build: Callable[[int], LoadRequest],
        dispatch: Callable[[Arrival], bool],
        leave_out: Callable[[Arrival, Outcome, str], None],
        stopped: Event,
    ) -> None:
        self._schedule = schedule
        self._numbers = range(share.index, len(schedule), share.count)
        self._build = build
        self._dispatch = dispatch
        self._leave_out = leave_out
        self._stopped = stopped
        self.due = 0

    def run(self, start_us: int, stopped_us: Callable[[], int]) -> None:
        """
        Dispatch until the end of the schedule, or until it is stopped: what was due by then and not sent yet is unfinished.

        Args:
            start_us: when the schedule begins, on this process's monotonic clock.
            stopped_us: when it was stopped; asked only if it was.
        """
        alarm = Alarm()
        try:
            for position, number in enumerate(self._numbers):
                arrival = self._arrival(number, start_us)
                if not alarm.wait_until(arrival.due, self._stopped):
                    self._left_over(self._numbers[position:], start_us, stopped_us())
                    return
                self.due += 1
                if not self._dispatch(arrival):
                    self._leave_out(arrival, Outcome.DROPPED, "too many requests are in flight in this process")
        finally:
            alarm.close()

    def _left_over(self, numbers: range, start_us: int, until_us: int) -> None:
        for number in numbers:
            arrival = self._arrival(number, start_us)
            if arrival.due > until_us:
                return
            self.due += 1
            self._leave_out(arrival, Outcome.UNFINISHED_AT_STOP, "the run ended before it was sent")

    def _arrival(self, number: int, start_us: int) -> Arrival:
        after_s = self._schedule[number]
        return Arrival(self._build(number), start_us + round(after_s * 1_000_000), after_s)
