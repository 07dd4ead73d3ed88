"""
A strict, lossless reader of server-sent events (WHATWG HTML, section 9.2).

Sans-I/O: bytes and their times of arrival in; lines, then events, out. Nothing is thrown away: each line keeps its bytes,
its ending, its offset and its time; each event keeps its lines, comments and unknown fields included.

Two layers, as in the standard:

1. *Lines* end in CRLF, LF or CR. A CR at the end of what has arrived may still be the first half of a CRLF: it ends
   the line at once, and a following LF joins the ending.
2. *Events* follow the algorithm of 9.2.6: a blank line dispatches; an event whose data buffer is empty is not
   dispatched (it is kept here with `dispatched=False`, because a check judges it); what the end of the stream leaves
   unfinished is never dispatched (it is kept in :attr:`SseReader.unfinished`).

How the bytes were cut into reads makes no difference to anything but the times.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["DONE", "Event", "Line", "SseReader", "read_events"]

DONE = "[DONE]"
"""The payload that ends a stream of completions."""

_BOM = b"\xef\xbb\xbf"
_ENDING = re.compile(rb"\r\n?|\n")
_LONGEST_RETRY = 10**18
"""Python refuses to read integers of thousands of digits; a wait of 30 million years is long enough."""


@dataclass(slots=True)
class Line:
    """One line as it came."""

    content: bytes
    ending: bytes
    """`\\r\\n`, `\\n` or `\\r`; empty for what the end of the stream cut off."""

    start: int
    """Offset of the first byte in the body."""

    time: float
    """Seconds, on the clock of whoever feeds the reader, when the line's last byte had arrived."""

    @property
    def end(self) -> int:
        """Offset just behind the line's ending."""
        return self.start + len(self.content) + len(self.ending)

    @property
    def field(self) -> tuple[str, str] | None:
        """Field name and value by 9.2.6; None for a blank line or a comment."""
        if not self.content or self.content.startswith(b":"):
            return None
        name, colon, value = self.content.partition(b":")
        if colon and value.startswith(b" "):
            value = value[1:]
        return name.decode("utf-8", "replace"), value.decode("utf-8", "replace")


@dataclass(slots=True)
class Event:
    """What stands between two blank lines."""

    lines: list[Line]
    """All lines, the closing blank one included."""

    data: str = ""
    """The data lines joined by LF."""

    type: str = "message"
    id: str = ""
    """The last event id by the time of this event."""

    number: int = -1
    """Position among the dispatched events, from 0; -1 when not dispatched."""

    dispatched: bool = False
    """Whether a browser's EventSource would have fired an event."""

    fields: list[tuple[str, str]] = field(default_factory=list)

    @property
    def start(self) -> int:
        """Offset of the event's first byte."""
        return self.lines[0].start

    @property
    def end(self) -> int:
        """Offset just behind the event."""
        return self.lines[-1].end

    @property
    def time(self) -> float:
        """When the event was complete."""
        return self.lines[-1].time


class SseReader:
    """
    Turns bytes into events as they arrive.

    Attributes:
        bom: whether the stream began with a byte order mark, which is skipped.
        retry: the reconnection time in ms that the stream set last; None when it set none.
        unfinished: after `close`, the lines that no blank line closed.
    """

    def __init__(self) -> None:
        self.bom = False
        self.retry: int | None = None
        self.unfinished: list[Line] = []
        self._buffer = b""
        self._offset = 0  # of the first byte of the buffer
        self._at_start = True
        self._after_cr: Line | None = None  # the last line, when an LF may still join its ending
        self._lines: list[Line] = []
        self._last_id = ""
        self._number = 0

    def feed(self, data: bytes, time: float = 0.0) -> list[Event]:
        """
        Take bytes that arrived at `time`; return the events that they complete, oldest first.

        An event that a bare CR closes is complete at the CR; a later LF then belongs to that same ending.
        """
        return list(self._events(data, time, final=False))

    def close(self, time: float = 0.0) -> list[Event]:
        """Say that the stream has ended; what is unfinished becomes visible in `unfinished`."""
        events = list(self._events(b"", time, final=True))
        if self._buffer:
            self._lines.append(Line(self._buffer, b"", self._offset, time))
            self._offset += len(self._buffer)
            self._buffer = b""
        self.unfinished, self._lines = self._lines, []
        return events

    def _events(self, data: bytes, time: float, *, final: bool) -> Iterator[Event]:
        for line in self._take_lines(data, time, final=final):
            self._lines.append(line)
            if not line.content:
                lines, self._lines = self._lines, []
                yield self._event(lines)

    def _take_lines(self, data: bytes, time: float, *, final: bool) -> Iterator[Line]:
        buffer = self._buffer + data
        if self._at_start:
            if not final and len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                self._buffer = buffer
                return
            self._at_start = False
            if buffer.startswith(_BOM):
                self.bom = True
                self._offset += len(_BOM)
                buffer = buffer[len(_BOM) :]
        if self._after_cr is not None and buffer:
            if buffer[0] == 0x0A:
                self._after_cr.ending = b"\r\n"
                self._offset += 1
                buffer = buffer[1:]
            self._after_cr = None
        position = 0
        # What was in the buffer before holds no ending: only the new bytes are searched.
        for match in _ENDING.finditer(buffer, max(0, len(buffer) - len(data))):
            ending = match.group()
            line = Line(buffer[position : match.start()], ending, self._offset + position, time)
            position = match.end()
            if ending == b"\r" and position == len(buffer):
                self._after_cr = line
            yield line
        self._offset += position
        self._buffer = buffer[position:]

    def _event(self, lines: list[Line]) -> Event:
        event = Event(lines)
        data: list[str] = []
        for line in lines:
            pair = line.field
            if pair is None:
                continue
            event.fields.append(pair)
            name, value = pair
            if name == "data":
                data.append(value)
            elif name == "event":
                event.type = value or "message"
            elif name == "id" and "\0" not in value:
                self._last_id = value
            elif name == "retry" and value.isascii() and value.isdigit():
                digits = value.lstrip("0") or "0"
                self.retry = int(digits) if len(digits) <= 18 else _LONGEST_RETRY
        event.id = self._last_id
        # 9.2.6: an empty data buffer is not dispatched; one `data` line without a value leaves a lone LF, which is
        # stripped only after that test in the algorithm's order, so it does dispatch an event with empty data.
        if data:
            event.data = "\n".join(data)
            event.dispatched = True
            event.number, self._number = self._number, self._number + 1
        return event


def read_events(body: bytes) -> tuple[list[Event], SseReader]:
    """All events of a whole body, and the reader with what is left over."""
    reader = SseReader()
    events = reader.feed(body)
    return events + reader.close(), reader
