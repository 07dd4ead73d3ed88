"""How late an arrival may be noticed: the clock of one event loop (gevent's)."""

import contextlib
import os
import time
import weakref
from typing import Any

import gevent

__all__ = ["READ", "WRITE", "LoopClock", "loop_clock", "make_room", "now_us", "wall_offset_us"]

READ, WRITE = 1, 2
"""What a watcher of gevent's loops looks for: libev's EV_READ and EV_WRITE."""

_WAITED_US = 20
"""A poll that took longer than this has waited: what it reports came while it did."""

_BRIEF_US = 100
"""
Behind more work than this, a poll has to prove that it waited: time that it needed itself is no waiting. Before libev looks,
it tells the system of each socket that is new, and 10 of them take longer than :data:`_WAITED_US`. Behind less work,
nothing can be late by more than that, and looking at the processor's clock costs more than it could tell.
"""


_ROOM = 1024
"""For so many sockets that are ready at once; libev makes more by itself when a look was not enough."""

_ROOM_S = 0.005

_READINGS = 10
"""So often the wall clock is read between two looks at the monotonic one, to know how far they are apart."""


def now_us() -> int:
    """Microseconds on this process's monotonic clock."""
    return time.monotonic_ns() // 1000


def wall_offset_us() -> int:
    """
    By how many microseconds the wall clock (since 1970) is ahead of this process's monotonic clock.

    Nobody reads two clocks at once, and a process may have to wait for a core in between. So they are read several times, and
    the reading that took the least time counts.
    """
    readings = []
    for _ in range(_READINGS):
        before, wall, after = time.monotonic_ns(), time.time(), time.monotonic_ns()
        readings.append((after - before, round(wall * 1_000_000) - (before + after) // 2000))
    return min(readings)[1]


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
        self._used_ns: int | None = None
        # First behind the poll, and last before it: behind gevent's own watcher, which runs the greenlets.
        self._after = loop.check(ref=False, priority=loop.MAXPRI)
        self._before = loop.prepare(ref=False, priority=loop.MINPRI)
        self._after.start(self._has_polled)
        self._before.start(self._will_poll)

    def _will_poll(self) -> None:
        asked = self._asked = time.monotonic_ns() // 1000
        self._used_ns = time.thread_time_ns() if asked - self.polled > _BRIEF_US else None

    def _has_polled(self) -> None:
        now = time.monotonic_ns() // 1000
        waited = now - self._asked
        if waited > _WAITED_US and self._used_ns is not None:
            waited -= (time.thread_time_ns() - self._used_ns) // 1000
        self.since = now if waited > _WAITED_US else self.polled
        self.polled = now


_clocks: "weakref.WeakKeyDictionary[Any, LoopClock]" = weakref.WeakKeyDictionary()


def loop_clock() -> LoopClock:
    """The clock of this thread's loop."""
    hub = gevent.get_hub()
    if hub not in _clocks:
        _clocks[hub] = LoopClock(hub.loop)
    return _clocks[hub]


def make_room() -> None:
    """
    Have the loop see all sockets that are ready in one look, as :class:`LoopClock` takes for granted.

    libev's first look with epoll sees 64 of them, and twice as many whenever that was not enough: what it leaves for the next
    look would seem to have come after the one before. So it is shown many at once before anything is measured. The calling
    greenlet waits meanwhile.
    """
    loop = gevent.get_hub().loop
    ours, theirs = os.pipe()
    ready, watchers = [ours], []
    try:
        os.write(theirs, b"x")
        with contextlib.suppress(OSError):  # as many as this process may open
            while len(ready) < _ROOM:
                ready.append(os.dup(ours))
        watchers = [loop.io(each, READ) for each in ready]
        for watcher in watchers:
            watcher.start(_nothing)
        gevent.sleep(_ROOM_S)
    finally:
        for watcher in watchers:
            watcher.stop()
            watcher.close()
        for each in (*ready, theirs):
            os.close(each)


def _nothing() -> None:
    pass
