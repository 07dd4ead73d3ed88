"""How late an arrival may be noticed: the clock of one event loop (gevent's)."""

import time
import weakref
from typing import Any

import gevent

__all__ = ["LoopClock", "loop_clock", "now_us"]

_WAITED_US = 20
"""A poll that took longer than this has waited: what it reports came while it did."""


def now_us() -> int:
    """Microseconds on this process's monotonic clock."""
    return time.monotonic_ns() // 1000


class LoopClock:
    """
    Knows when the loop last looked at its sockets.

    A poll that had to wait returns with the first arrival; one that did not reports what came since the poll before it.
    So whatever a poll reports came at or after `since`, unless this process had to wait for a core when it was woken:
    that it cannot see from within, and :mod:`streamgauge.load.selfwatch` asks the system.

    Attributes:
        polled: when the last poll returned, in microseconds on the monotonic clock.
        since: what the last poll reported came at this moment or later, by the same clock.
    """

    def __init__(self, loop: Any) -> None:
        self.since = self.polled = self._asked = now_us()
        # First behind the poll, and last before it: behind gevent's own watcher, which runs the greenlets.
        self._after = loop.check(ref=False, priority=loop.MAXPRI)
        self._before = loop.prepare(ref=False, priority=loop.MINPRI)
        self._after.start(self._has_polled)
        self._before.start(self._will_poll)

    def _will_poll(self) -> None:
        self._asked = time.monotonic_ns() // 1000

    def _has_polled(self) -> None:
        now = time.monotonic_ns() // 1000
        self.since = now if now - self._asked > _WAITED_US else self.polled
        self.polled = now


_clocks: "weakref.WeakKeyDictionary[Any, LoopClock]" = weakref.WeakKeyDictionary()


def loop_clock() -> LoopClock:
    """The clock of this thread's loop."""
    hub = gevent.get_hub()
    if hub not in _clocks:
        _clocks[hub] = LoopClock(hub.loop)
    return _clocks[hub]
