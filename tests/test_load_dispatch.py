"""The open loop in one process: every arrival of its share is sent at its time, or left out and said to be."""

import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent.event import Event
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.load.alarm import Alarm
from streamgauge.load.dispatch import Arrival, Dispatcher, Share
from streamgauge.load.loopclock import now_us
from streamgauge.metrics.record import Outcome

ALONE = Share()


class Noted:
    """A dispatcher, and what it did."""

    def __init__(
        self, schedule: list[float], share: Share = ALONE, room: int = 10**6, busy: Callable[[], None] | None = None
    ) -> None:
        self.sent: list[tuple[Any, int]] = []
        self.left_out: list[tuple[Any, Outcome]] = []
        self.stopped = Event()
        self.stopped_us = 0
        self._room = room
        self._busy = busy
        self.start = now_us()
        self.dispatcher = Dispatcher(
            schedule,
            share,
            build=lambda number: number,  # type: ignore[arg-type, return-value]  # a number stands for its request
            dispatch=self._dispatch,
            leave_out=lambda arrival, outcome, why: self.left_out.append((arrival.request, outcome)),
            stopped=self.stopped,
        )

    def _dispatch(self, arrival: Arrival) -> bool:
        if len(self.sent) >= self._room:
            return False
        self.sent.append((arrival.request, now_us() - self.start))
        if self._busy is not None:
            self._busy()
        return True

    def run(self) -> None:
        """From now on."""
        self.start = now_us()
        self.dispatcher.run(self.start, lambda: self.stopped_us)

    def stop(self) -> None:
        """Nothing new."""
        self.stopped_us = now_us()
        self.stopped.set()


@given(st.integers(0, 200), st.integers(1, 40), st.integers(1, 7))
def test_shares_of_users(total: int, users: int, count: int) -> None:
    """What belongs to users adds up to all of it, is none of a process without users, and about the same for each user."""
    shares = [Share(index, count) for index in range(count)]
    found = [share.of_users(total, users) for share in shares]
    assert sum(found) == total
    for share, things in zip(shares, found, strict=True):
        assert abs(things - share.of(users) * total / users) < 1
        assert share.of(users) or not things


@given(st.integers(0, 200), st.integers(1, 7))
def test_shares(total: int, count: int) -> None:
    """The shares of so many things add up to all of them, and differ by one at most."""
    shares = [Share(index, count).of(total) for index in range(count)]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


@given(st.lists(st.floats(0, 0.002), max_size=30), st.integers(1, 3))
def test_every_arrival_is_somebodys(schedule: list[float], count: int) -> None:
    """The processes together send every arrival once; each takes every `count`-th, in order and never early."""
    schedule.sort()
    numbers = []
    for index in range(count):
        noted = Noted(schedule, Share(index, count))
        noted.run()
        assert [number for number, _ in noted.sent] == list(range(index, len(schedule), count))
        assert all(when >= round(schedule[number] * 1e6) for number, when in noted.sent)
        assert noted.dispatcher.due == len(noted.sent)
        numbers += [number for number, _ in noted.sent]
    assert sorted(numbers) == list(range(len(schedule)))


def test_no_room() -> None:
    """Beyond the limit an arrival is dropped at its time, with the reason; the schedule goes on."""
    noted = Noted([0.0, 0.001, 0.002, 0.003], room=2)
    noted.run()
    assert [number for number, _ in noted.sent] == [0, 1]
    assert noted.left_out == [(2, Outcome.DROPPED), (3, Outcome.DROPPED)]
    assert noted.dispatcher.due == 4


def test_stopped_between_two_arrivals() -> None:
    """What was not due yet when the run was stopped never was: it is neither sent nor recorded."""
    noted = Noted([0.0, 0.01, 30.0])
    running = gevent.spawn(noted.run)
    while len(noted.sent) < 2:
        gevent.sleep(0.001)
    noted.stop()
    running.join(30)
    assert running.dead
    assert (len(noted.sent), noted.left_out, noted.dispatcher.due) == (2, [], 2)


def test_stopped_while_late() -> None:
    """What had been due and was not sent yet, since this process was busy, is unfinished, and counted as due."""

    def busy() -> None:  # nobody else runs
        while now_us() < noted.start + 6_000:
            pass
        noted.stop()

    noted = Noted([0.0, 0.005, 0.006, 60.0], busy=busy)
    noted.run()
    assert [number for number, _ in noted.sent] == [0]
    assert noted.left_out == [(1, Outcome.UNFINISHED_AT_STOP), (2, Outcome.UNFINISHED_AT_STOP)]
    assert noted.dispatcher.due == 3


@pytest.mark.parametrize("ahead_us", [-5_000, 0, 300, 30_000])
def test_alarm(ahead_us: int) -> None:
    """It wakes nobody before the moment, and lets others run even when that has passed."""
    alarm, ran = Alarm(), Event()
    gevent.spawn(ran.set)
    moment = now_us() + ahead_us
    assert alarm.wait_until(moment, Event())
    assert now_us() >= moment
    assert ran.is_set()
    alarm.close()


def test_alarm_unless() -> None:
    """An event that is set ends the wait, before and in the middle of it."""
    alarm, event = Alarm(), Event()
    gevent.spawn_later(0.01, event.set)
    started = time.monotonic()
    assert not alarm.wait_until(now_us() + 60_000_000, event)
    assert not alarm.wait_until(now_us() + 60_000_000, event)
    assert time.monotonic() - started < 30
    alarm.close()
