"""Steers one test from the process that the user started: all begin together, and the run ends when the last one is over."""

import time
from collections.abc import Callable

from streamgauge.load.distribution import Crew, finish
from streamgauge.load.window import Marks

__all__ = ["Conductor"]


class Conductor:
    """
    Brings a crew through one run.

    Args:
        crew: whoever sends.
        marks: where the course of the run is noted.
        end_run: tells Locust to end the test; called when the crew is over by itself.

    Attributes:
        over_by_itself: whether nobody had to end it.
    """

    def __init__(self, crew: Crew, marks: Marks, end_run: Callable[[], None]) -> None:
        self.crew, self.marks = crew, marks
        self.over_by_itself = False
        self._end_run = end_run
        self._ending = False

    def run(self) -> None:
        """From the first connection to the last answer."""
        self.crew.wait_ready()
        if not self._ending:
            epoch = time.time() + self.crew.lead_s
            self.marks.note("start", epoch)
            self.crew.begin(epoch)
            self.crew.wait_over()
        if not self._ending:
            self.over_by_itself = True
            self._end_run()

    def end(self) -> None:
        """
        Nothing new is sent; returns when the rest has ended, or was cut off.

        Whoever asks a second time, by a signal or by another Ctrl-C while it waits, does not want to wait.
        """
        again, self._ending = self._ending, True
        self.crew.end()
        self.marks.note("stopping", self.crew.ended_at or time.time())
        finish(self.crew, at_once=again)
        if not self.over_by_itself:
            self.marks.note("told_to_end", True)
        if self.crew.aborted:
            self.marks.note("aborted", self.crew.aborted)
        if self.crew.spent:
            self.marks.note("spent", True)
        if self.crew.lost:
            self.marks.note("lost", self.crew.lost)
        if (due := self.crew.due) is not None:
            self.marks.note("scheduled", due)
