"""
A strict, lossless reader of server-sent events (WHATWG HTML, section 9.2).

Sans-I/O: bytes and their times of arrival in; lines, then events, out. Nothing is thrown away: each line keeps its bytes,
its ending, its offset and its time; each event keeps its lines, comments and unknown fields included.

Two layers, as in the standard:

1. *Lines* (9.2.5): :mod:`streamgauge.wire.lines`.
2. *Events* follow the algorithm of 9.2.6: a blank line dispatches; an event whose data buffer is empty is not
   dispatched (it is kept here all the same, because a check judges it); what the end of the stream leaves unfinished is
   never dispatched (it is kept in :attr:`SseReader.unfinished`).

Nearly every event of a completion is *plain*: `data: `, a payload, LF, LF. Runs of these are cut out of a read at once, and
their lines are made only when somebody asks. That is speed and nothing else: both ways give the same events.

How the bytes were cut into reads makes no difference to anything but the times.

Memory is bounded by the limits below, whatever arrives. What is past a limit is counted, not kept, and the event and the
reader say so in `excess`: whoever judges them can then abstain.
"""

from dataclasses import dataclass

from streamgauge.wire.lines import Line, LineReader, NotUtf8

__all__ = [
    "DONE",
    "LONGEST_EVENT",
    "LONGEST_LINE",
    "MOST_EVENTS",
    "MOST_LINES",
    "Event",
    "Excess",
    "SseReader",
    "read_events",
]

DONE = "[DONE]"
"""The payload that ends a stream of completions."""

LONGEST_LINE = 8 * 2**20
"""So many bytes of one line are kept. Of a longer line the beginning is kept, and `Line.lost` counts the rest."""

LONGEST_EVENT = 16 * 2**20
"""So many bytes are kept in the lines of one event. A line that would exceed it is counted in `Event.lost`, not kept."""

MOST_LINES = 2**16
"""So many lines of one event are kept, however short they are. Others are counted in `Event.lost`."""

MOST_EVENTS = 2**18
"""So many events of one stream are worth keeping: whoever keeps them stops there. The reader itself keeps none."""

_MESSAGE = "message"
_LONGEST_RETRY = 10**18
"""Python refuses to read integers of thousands of digits; a wait of 30 million years is long enough."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit of this reader that the stream went beyond, which says nothing about the stream's being right."""

    limit: str
    """`LONGEST_LINE`, `LONGEST_EVENT`, `MOST_LINES` or `MOST_EVENTS`."""

    value: int
    """What the limit was."""

    offset: int
    """Of the first byte in the body that was not kept."""

    def __str__(self) -> str:
        return f"not kept from byte {self.offset} on: more than {self.limit} ({self.value})"


class Event:
    """
    What stands between two blank lines.

    Attributes:
        data: the data lines joined by LF.
        type: the event's type; `message` by default.
        id: the last event id by the time of this event.
        number: position among the dispatched events, from 0; -1 when not dispatched.
        lost: how many lines were counted, but not kept.
        excess: the first limit that the event went beyond; None when all of it was kept.
        not_utf8: the first bytes in it that are not UTF-8; None when all that was kept is.
    """

    __slots__ = (
        "_lines",
        "_plain",
        "_start",
        "_time",
        "data",
        "excess",
        "id",
        "lost",
        "not_utf8",
        "number",
        "type",
    )

    _plain: bytes
    _start: int
    _time: float

    def __init__(self, lines: list[Line] | None, data: str, type: str, id: str, number: int) -> None:
        self.data = data
        self.type = type
        self.id = id
        self.number = number
        self.lost = 0
        self.excess: Excess | None = None
        self.not_utf8: NotUtf8 | None = None
        self._lines = lines

    @classmethod
    def plain(cls, content: bytes, start: int, time: float, data: str, id: str, number: int) -> "Event":
        """An event of the line `content`, which begins with `data: `, and a blank one, both of which end in LF."""
        event = cls(None, data, _MESSAGE, id, number)
        event._plain = content
        event._start = start
        event._time = time
        return event

    @property
    def lines(self) -> list[Line]:
        """All lines that were kept, the closing blank one included."""
        if self._lines is None:
            line = Line(self._plain, b"\n", self._start, self._time)
            self._lines = [line, Line(b"", b"\n", line.end, self._time)]
        return self._lines

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Name and value of each field, unknown ones included."""
        return [field for line in self.lines if (field := line.field) is not None]

    @property
    def dispatched(self) -> bool:
        """Whether a browser's EventSource would have fired an event."""
        return self.number >= 0

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
        retry: the reconnection time in ms that the stream set last; None when it set none.
        unfinished: after `close`, the lines that no blank line closed.
        excess: the first limit that the stream went beyond; None when all of it was kept.
        not_utf8: the first bytes of the stream that are not UTF-8, comments included; None when all that was kept is.
    """

    def __init__(
        self,
        *,
        longest_line: int = LONGEST_LINE,
        longest_event: int = LONGEST_EVENT,
        most_lines: int = MOST_LINES,
    ) -> None:
        self.retry: int | None = None
        self.unfinished: list[Line] = []
        self.excess: Excess | None = None
        self.not_utf8: NotUtf8 | None = None
        self._longest_line = longest_line
        self._longest_event = longest_event
        self._most_lines = most_lines
        self._reader = LineReader(longest_line)
        self._last_id = ""
        self._number = 0
        self._start_event()

    @property
    def bom(self) -> bool:
        """Whether the stream began with a byte order mark, which is skipped."""
        return self._reader.bom

    def feed(self, data: bytes, time: float = 0.0) -> list[Event]:
        """
        Take bytes that arrived at `time`; return the events that they complete, oldest first.

        An event that a bare CR closes is complete at the CR; a later LF then belongs to that same ending.
        """
        events: list[Event] = []
        data = self._reader.begin(data)
        if b"\n\n" in data and not (self._lines or self._lost):
            data = self._take_plain(data, time, events)
        for line in self._reader.take(data, time):
            self._add(line)
            if not (line.content or line.lost):
                events.append(self._finish())
        return events

    def close(self, time: float = 0.0) -> None:
        """Say that the stream has ended; what is unfinished becomes visible in `unfinished`."""
        line = self._reader.close(time)
        if line is not None:
            self._add(line)
        self.unfinished = self._lines
        self._start_event()

    def _take_plain(self, data: bytes, time: float, events: list[Event]) -> bytes:
        """Read the plain events at the beginning; return what stands behind them."""
        text = self._reader.joined(data, min(self._longest_line, self._longest_event))
        if text is None:
            return data
        offset, last_id, number = self._reader.offset, self._last_id, self._number
        size = 0
        for content in text.split(b"\n\n")[:-1]:
            if not content.startswith(b"data: ") or b"\n" in content:
                break
            try:
                value = content[6:].decode("utf-8")
            except UnicodeDecodeError:
                break
            events.append(Event.plain(content, offset + size, time, value, last_id, number))
            number += 1
            size += len(content) + 2
        if not size:
            return data
        self._number = number
        self._reader.skip(size)
        return text[size:]

    def _start_event(self) -> None:
        self._lines: list[Line] = []
        self._size = 0
        self._lost = 0
        self._excess: Excess | None = None
        self._not_utf8: NotUtf8 | None = None

    def _add(self, line: Line) -> None:
        """Keep the line as far as the limits allow; the blank one that closes the event always."""
        size = len(line.content)
        if line.lost:
            self._exceed("LONGEST_LINE", self._longest_line, line.start + size)
        if len(self._lines) >= self._most_lines and line.size:
            self._exceed("MOST_LINES", self._most_lines, line.start)
            self._lost += 1
            return
        if self._size + size > self._longest_event:
            self._exceed("LONGEST_EVENT", self._longest_event, line.start)
            self._lost += 1
            return
        self._lines.append(line)
        self._size += size
        if not line.content.isascii():
            self._not_utf8 = self._not_utf8 or line.not_utf8
            self.not_utf8 = self.not_utf8 or self._not_utf8

    def _exceed(self, limit: str, value: int, offset: int) -> None:
        self._excess = self._excess or Excess(limit, value, offset)
        self.excess = self.excess or self._excess

    def _finish(self) -> Event:
        """The event that the last line closed, interpreted field by field."""
        data: list[str] = []
        type_ = _MESSAGE
        for line in self._lines:
            pair = line.field
            if pair is None:
                continue
            name, value = pair
            if name == "data":
                data.append(value)
            elif name == "event":
                type_ = value or _MESSAGE
            elif line.lost:
                continue  # of an id or a time that is not known to its end nothing can be said
            elif name == "id" and "\0" not in value:
                self._last_id = value
            elif name == "retry" and value.isascii() and value.isdigit():
                digits = value.lstrip("0") or "0"
                self.retry = int(digits) if len(digits) <= 18 else _LONGEST_RETRY
        # 9.2.6: an empty data buffer is not dispatched; one `data` line without a value leaves a lone LF, which is
        # stripped only after that test in the algorithm's order, so it does dispatch an event with empty data.
        event = Event(self._lines, "\n".join(data), type_, self._last_id, self._number if data else -1)
        if data:
            self._number += 1
        event.lost, event.excess, event.not_utf8 = self._lost, self._excess, self._not_utf8
        self._start_event()
        return event


def read_events(body: bytes) -> tuple[list[Event], SseReader]:
    """All events of a whole body, and the reader with what is left over."""
    reader = SseReader()
    events = reader.feed(body)
    reader.close()
    return events, reader
