"""Lets greenlets compute one after the other, with a look at the sockets between any two."""

from collections import deque
from typing import Any

import gevent
from gevent.event import Event

from streamgauge.load.loopclock import loop_clock

__all__ = ["Turns"]


class Turns:
    """
    A queue for work that can wait, in one event loop.

    When many answers end at once, judging them all would take long enough for other answers to be noticed late. So each greenlet
    waits for its turn; one is given with each look at the sockets, and then everything that has come is stamped first.
    """

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._clock = loop_clock()
        self._last_poll = 0
        loop = gevent.get_hub().loop
        self._polled = loop.check(ref=False)
        self._hurry = loop.idle()  # while it is active, the loop only looks at the sockets and does not wait for them
        self._active = False

    def wait(self) -> None:
        """Return when it is this greenlet's turn: at once for the first one after a look at the sockets."""
        if not self._waiting and self._clock.polled != self._last_poll:
            self._last_poll = self._clock.polled
            return
        turn = Event()
        self._waiting.append(turn)
        if not self._active:
            self._active = True
            self._polled.start(self._give)
            self._hurry.start(_nothing)
        try:
            turn.wait()
        except BaseException:
            if turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def _give(self) -> None:
        if self._waiting:
            self._last_poll = self._clock.polled
            self._waiting.popleft().set()
        if not self._waiting:
            self._active = False
            self._polled.stop()
            self._hurry.stop()


def _nothing(*_: Any) -> None:
    pass
