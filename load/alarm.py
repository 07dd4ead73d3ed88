"""Sleeping until a moment, to within some tens of microseconds and without spinning."""

import ctypes
import os
import sys
import time

import gevent
from gevent.event import Event

from streamgauge.load.loopclock import READ, now_us

__all__ = ["Alarm"]

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_NEAR_S = 0.02
"""The event loop's own timer, which knows only whole milliseconds, wakes so long before the moment."""


class _Setting(ctypes.Structure):
    """`struct itimerspec`."""

    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns")]


class Alarm:
    """
    Wakes the calling greenlet at a moment of the monotonic clock.

    The event loop polls with a timeout in whole milliseconds, so a plain sleep is late by up to one. On Linux a timer of the
    kernel's (timerfd_create(2)) that the loop watches like a socket is as exact as the loop is quick; elsewhere the
    loop's own timer has to do.
    """

    def __init__(self) -> None:
        self._fd = -1
        if sys.platform == "linux":
            self._library = ctypes.CDLL(None, use_errno=True)
            self._fd = self._library.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self._fd >= 0:
            self._watcher = gevent.get_hub().loop.io(self._fd, READ)

    def wait_until(self, moment_us: int, unless: Event) -> bool:
        """
        Sleep until then, or until the event is set; whether the moment has come first.

        Others run in any case, also when the moment has passed.
        """
        if (left := moment_us / 1e6 - time.monotonic()) > _NEAR_S:
            unless.wait(left - _NEAR_S)
        while not unless.is_set() and now_us() < moment_us:
            self._sleep(moment_us)
        if unless.is_set():
            return False
        gevent.sleep(0)
        return not unless.is_set()

    def close(self) -> None:
        """Give the timer back."""
        if self._fd >= 0:
            self._watcher.stop()
            os.close(self._fd)
            self._fd = -1

    def _sleep(self, moment_us: int) -> None:
        if self._fd < 0:
            gevent.sleep(max(moment_us / 1e6 - time.monotonic(), 0))
            return
        setting = _Setting(0, 0, moment_us // 1_000_000, moment_us % 1_000_000 * 1000)
        if self._library.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(setting), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        gevent.get_hub().wait(self._watcher)
        os.read(self._fd, 8)
