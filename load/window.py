"""When a run was under way: the marks of its course, and the steady window that the rates are taken from."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamgauge.bundle.reader import read_lines
from streamgauge.bundle.writer import LineWriter
from streamgauge.load.arrivals import OpenLoop
from streamgauge.load.plan import LoadPlan

__all__ = ["MARKS", "Marks", "Span", "read_marks", "steady_window"]

MARKS = "marks.jsonl"
"""File, in the current folder of a run that `streamgauge load` started, with what Locust's own process knows of its course."""


class Marks:
    """
    Notes what the process that steers a run knows of its course.

    * `start`: when the schedule begins, seconds since 1970;
    * `stopping`: when nothing new was sent any more;
    * `told_to_end`: whether somebody ended it before it was over;
    * `aborted`: the rule by which the run was given up;
    * `spent`: whether it ended since the budget was spent;
    * `scheduled`: how many arrivals of an open loop had been due by the end;
    * `lost`: how many workers had gone before the end.

    Args:
        path: file to keep them in; None to keep them in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self.noted: dict[str, Any] = {}
        self._path = path

    def note(self, name: str, value: Any) -> None:
        """Note one of them; the first time counts."""
        if name in self.noted:
            return
        self.noted[name] = value
        if self._path is not None:
            with LineWriter(self._path) as lines:
                lines.write({name: value})


def read_marks(path: Path) -> dict[str, Any]:
    """What :class:`Marks` wrote."""
    marks: dict[str, Any] = {}
    for line in read_lines(path):
        marks = {**line, **marks}
    return marks


class Span:
    """
    Gathers from the lines of record files what the window depends on; times are seconds since 1970.

    Attributes:
        first_by_user: when each user of a closed loop sent its first request.
        first_dispatch, last_dispatch, last_close: of all requests; 0 without any.
        count: how many records there are.
    """

    def __init__(self) -> None:
        self.first_by_user: dict[str, float] = {}
        self.first_dispatch = self.last_dispatch = self.last_close = 0.0
        self.count = 0

    def add(self, line: Mapping[str, Any], offset_us: int) -> None:
        """Take a record's line whose clock is `offset_us` behind the wall."""
        dispatched = (line["dispatched"] + offset_us) / 1_000_000
        user = line["id"].rpartition("-")[0]
        if user:
            self.first_by_user[user] = min(dispatched, self.first_by_user.get(user, dispatched))
        self.first_dispatch = min(dispatched, self.first_dispatch or dispatched)
        self.last_dispatch = max(self.last_dispatch, dispatched)
        self.last_close = max(self.last_close, (line["closed"] + offset_us) / 1_000_000)
        self.count += 1

    def take(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take the lines of one record file."""
        offset = 0
        for line in lines:
            if "anchor" in line:
                offset = clock_offset_us(line["anchor"])
            else:
                self.add(line, offset)


def clock_offset_us(anchor: Mapping[str, Any]) -> int:
    """How far a process's clock is behind the wall, by the anchor line of its file."""
    wall, monotonic_us = float(anchor["wall"]), int(anchor["monotonic_us"])
    return round(wall * 1_000_000) - monotonic_us


def steady_window(span: Span, marks: Mapping[str, Any], plan: LoadPlan) -> tuple[float, float] | None:
    """
    From the moment when the load was on in full until it was to end; the warm-up is left out.

    A closed loop is on in full when every user has sent something, an open one with its first request. It ends at the planned
    end of the run or schedule, at an interruption, or when the last of the planned requests was sent, whatever comes first.
    None when it never was on in full, or nothing lies between.
    """
    start = marks.get("start")
    if start is None or not span.count:
        return None
    ends = [marks.get("stopping", span.last_close)]
    if isinstance(plan.loop, OpenLoop):
        on = span.first_dispatch
        ends.append(start + sum(segment.seconds for segment in plan.loop.segments))
    else:
        if len(span.first_by_user) < plan.users:
            return None
        on = max(span.first_by_user.values())
        ends += [start + plan.duration_s] if plan.duration_s else []
    if plan.requests is not None and span.count >= plan.requests:
        ends.append(span.last_dispatch)
    begin, end = max(on, start + plan.warm_up_s), min(ends)
    return (begin, end) if end > begin else None
