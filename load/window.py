"""The steady window of a run: all users running, and none of them planned to stop yet."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.bundle.reader import read_lines
from streamgauge.bundle.writer import LineWriter
from streamgauge.metrics.record import Record

__all__ = ["MARKS", "Marks", "Span", "read_marks", "steady_window"]

MARKS = "marks.jsonl"
"""File, in the current folder of a run that `streamgauge load` started, with when Locust started and stopped."""


class Marks:
    """
    Notes when a run started and when it began to stop, on the wall clock.

    Args:
        path: file to keep them in; None to keep them in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self.times: dict[str, float] = {}
        self._path = path

    def note(self, name: str, wall: float) -> None:
        """Note that `start` or `stopping` happened; the first time counts."""
        self.times.setdefault(name, wall)
        if self._path is not None:
            with LineWriter(self._path) as lines:
                lines.write({name: wall})


def read_marks(path: Path) -> dict[str, float]:
    """What :class:`Marks` wrote; the first time of each counts."""
    marks: dict[str, float] = {}
    for line in read_lines(path):
        marks = {**line, **marks}
    return marks


class Span:
    """Gathers from the records what the window depends on; times are seconds since 1970."""

    def __init__(self) -> None:
        self.first_by_user: dict[str, float] = {}
        self.last_dispatch = 0.0
        self.last_close = 0.0
        self.count = 0

    def add(self, record: Record, offset_us: int) -> None:
        """Take a record whose clock is `offset_us` behind the wall."""
        dispatched = (record.dispatched + offset_us) / 1_000_000
        user = record.id.rpartition("-")[0]
        self.first_by_user[user] = min(dispatched, self.first_by_user.get(user, dispatched))
        self.last_dispatch = max(self.last_dispatch, dispatched)
        self.last_close = max(self.last_close, (record.closed + offset_us) / 1_000_000)
        self.count += 1

    def take(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take the lines of one record file."""
        offset = 0
        for line in lines:
            if "anchor" in line:
                offset = round(line["anchor"]["wall"] * 1_000_000) - line["anchor"]["monotonic_us"]
            else:
                self.add(Record.from_line(dict(line)), offset)


def steady_window(
    span: Span, marks: Mapping[str, float], *, users: int, duration_s: int, requests: int | None
) -> tuple[float, float] | None:
    """
    From the moment when every user had sent something until the first one was to stop.

    It stops at the planned end of the run, at an interruption, or when the last of the planned requests was sent, whatever
    comes first. None when not all users came to send anything, or nothing lies between.
    """
    if not span.first_by_user or len(span.first_by_user) < users or "start" not in marks:
        return None
    ends = [marks["start"] + duration_s] if duration_s else []
    ends.append(marks.get("stopping", span.last_close))
    if requests is not None and span.count >= requests:
        ends.append(span.last_dispatch)
    start, end = max(span.first_by_user.values()), min(ends)
    return (start, end) if end > start else None
