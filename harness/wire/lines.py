"""
The lines of an event stream, the first layer of :mod:`streamgauge.wire.sse` (WHATWG HTML, section 9.2.5).

A line ends in CRLF, LF or CR. A CR at the end of what has arrived may still be the first half of a CRLF: it ends the
line at once, and a following LF joins the ending. Of a line longer than the limit the beginning is kept and the rest
counted, so that offsets stay true in bounded memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Line", "LineReader", "NotUtf8"]

_BOM = b"\xef\xbb\xbf"
_ENDING = re.compile(rb"\r\n?|\n")


class NotUtf8(NamedTuple):
    """Bytes that are not UTF-8; each such group becomes one U+FFFD (WHATWG Encoding, UTF-8 decode)."""

    start: int
    """Offset of the first bad byte in the body."""

    end: int
    """Offset behind the last one."""

    reason: str


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

    lost: int = 0
    """How many bytes between `content` and `ending` were counted, but not kept."""

    @property
    def size(self) -> int:
        """How many bytes the line really had, its ending aside."""
        return len(self.content) + self.lost

    @property
    def end(self) -> int:
        """Offset just behind the line's ending."""
        return self.start + self.size + len(self.ending)

    @property
    def field(self) -> tuple[str, str] | None:
        """Field name and value by 9.2.6; None for a blank line or a comment."""
        if not self.content or self.content.startswith(b":"):
            return None
        name, _, value = self.content.decode("utf-8", "replace").partition(":")
        return name, value.removeprefix(" ")

    @property
    def not_utf8(self) -> NotUtf8 | None:
        """The first bytes that are not UTF-8; None when all that is kept is."""
        try:
            self.content.decode("utf-8")
        except UnicodeDecodeError as problem:
            if self.lost and problem.end == len(self.content) and "end of data" in problem.reason:
                return None  # we cut the character, not the server
            return NotUtf8(self.start + problem.start, self.start + problem.end, problem.reason)
        return None


class LineReader:
    """
    Turns bytes into lines as they arrive.

    Attributes:
        bom: whether the stream began with a byte order mark, which is skipped.
        offset: of the first byte that is in no line yet.
    """

    def __init__(self, longest: int) -> None:
        self.bom = False
        self.offset = 0
        self._longest = longest
        self._head: bytes | None = b""  # what may be the beginning of a byte order mark; None once that is decided
        self._kept = bytearray()  # of the unfinished line
        self._lost = 0
        self._after_cr: Line | None = None  # the last line, when an LF may still join its ending

    def begin(self, data: bytes) -> bytes:
        """Take the byte order mark away; every piece has to pass through here before it is taken."""
        if self._head is None:
            return data
        data = self._head + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._head = data
            return b""
        self._head = None
        if data.startswith(_BOM):
            self.bom = True
            self.offset = len(_BOM)
            data = data[len(_BOM) :]
        return data

    def joined(self, data: bytes, most: int) -> bytes | None:
        """The unfinished line and `data` behind it; None where a CR, or a size beyond `most`, asks for a closer look."""
        if self._after_cr is not None or len(self._kept) + self._lost + len(data) > most or b"\r" in data:
            return None
        return bytes(self._kept) + data if self._kept else data

    def skip(self, size: int) -> None:
        """Leave out the first bytes of :meth:`joined`, the unfinished line among them: they have been read elsewhere."""
        self._kept.clear()
        self.offset += size

    def take(self, data: bytes, time: float) -> Iterator[Line]:
        """The lines that `data`, which arrived at `time`, completes."""
        position = 0
        if self._after_cr is not None and data:
            if data.startswith(b"\n"):
                self._after_cr.ending = b"\r\n"
                self.offset += 1
                position = 1
            self._after_cr = None
        for match in _ENDING.finditer(data, position):
            start, end = match.span()
            if self._kept or self._lost or start - position > self._longest:
                self._keep(data, position, start)
                line = self._line(data[start:end], time)
            else:
                line = Line(data[position:start], data[start:end], self.offset, time)
                self.offset += end - position
            position = end
            if end == len(data) and line.ending == b"\r":
                self._after_cr = line
            yield line
        self._keep(data, position, len(data))

    def close(self, time: float) -> Line | None:
        """What stands behind the last ending, if anything does."""
        if self._head:
            self._kept += self._head
        self._head = None
        return self._line(b"", time) if self._kept or self._lost else None

    def _keep(self, data: bytes, start: int, end: int) -> None:
        kept = min(end - start, self._longest - len(self._kept))
        self._kept += data[start : start + kept]
        self._lost += end - start - kept

    def _line(self, ending: bytes, time: float) -> Line:
        line = Line(bytes(self._kept), ending, self.offset, time, self._lost)
        self.offset = line.end
        self._kept.clear()
        self._lost = 0
        return line
