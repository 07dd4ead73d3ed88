"""
A lean reader of one HTTP/1.1 response (RFC 9112), for the path where every microsecond shows in a latency.

Sans-I/O. :mod:`streamgauge.wire.http` is the strict reader that judges; a property test holds this one equal to it on
what both accept.
"""

import enum
import re

__all__ = ["ResponseReader"]

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: ([^\r\n]*))?")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_LONGEST_HEAD = 1 << 18
_LONGEST_LINE = 1 << 14


class _Part(enum.Enum):
    HEAD = enum.auto()
    LENGTH = enum.auto()
    CHUNK_SIZE = enum.auto()
    CHUNK_DATA = enum.auto()
    CHUNK_END = enum.auto()
    TRAILERS = enum.auto()
    UNTIL_CLOSE = enum.auto()
    DONE = enum.auto()


class ResponseReader:
    """
    Takes bytes as they come, gives the body without its transfer coding.

    Attributes:
        status: of the final response; 0 until its head is complete.
        headers: names in lower case; repeated fields joined by a comma (RFC 9110, 5.3).
        complete: whether the message ended as its framing announced.
        error: what makes the bytes no HTTP/1.1 message; empty when nothing does.
    """

    def __init__(self) -> None:
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        self.error = ""
        self._keep = False
        self._part = _Part.HEAD
        self._buffer = b""
        self._left = 0

    @property
    def complete(self) -> bool:
        """Whether the message ended as its framing announced."""
        return self._part is _Part.DONE

    @property
    def reusable(self) -> bool:
        """Whether the connection can carry another request: kept open, and nothing came behind the message."""
        return self.complete and self._keep and not self._buffer

    @property
    def media_type(self) -> str:
        """Type and subtype of Content-Type in lower case; empty when there is none."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return the body's bytes among them. After an `error` nothing more is returned."""
        if self.error:
            return b""
        self._buffer += data
        body: list[bytes] = []
        try:
            while self._step(body):
                pass
        except ValueError as problem:
            self.error = str(problem)
        return b"".join(body)

    def close(self) -> None:
        """Say that the connection has ended; that completes a body without framing (RFC 9112, 6.3)."""
        self._keep = False
        if self._part is _Part.UNTIL_CLOSE:
            self._part = _Part.DONE

    def _step(self, body: list[bytes]) -> bool:
        """Go one part further; False when more bytes are needed, or nothing is left to do."""
        match self._part:
            case _Part.HEAD:
                return self._read_head()
            case _Part.LENGTH | _Part.CHUNK_DATA:
                return self._read_data(body)
            case _Part.CHUNK_SIZE:
                return self._read_chunk_size()
            case _Part.CHUNK_END:
                return self._read_chunk_end()
            case _Part.TRAILERS:
                line = self._line()
                if line == b"":
                    self._part = _Part.DONE
                return line is not None
            case _Part.UNTIL_CLOSE:
                body.append(self._buffer)
                self._buffer = b""
        return False

    def _read_head(self) -> bool:
        end = _END_OF_HEAD.search(self._buffer)
        if end is None:
            if len(self._buffer) > _LONGEST_HEAD:
                raise ValueError("the header section has no end")
            return False
        lines = self._buffer[: end.start()].replace(b"\r\n", b"\n").rstrip(b"\r").split(b"\n")
        self._buffer = self._buffer[end.end() :]
        status_line = _STATUS_LINE.fullmatch(lines[0])
        if status_line is None:
            raise ValueError(f"no HTTP/1.1 status line: {lines[0][:40]!r}")
        status = int(status_line[2])
        if 100 <= status < 200:
            return True
        self.headers = _fields(lines[1:])
        self.status, self.reason = status, (status_line[3] or b"").decode("latin-1")
        tokens = [token.strip().lower() for token in self.headers.get("connection", "").split(",")]
        self._keep = status_line[1] == b"1" and "close" not in tokens
        self._begin_body()
        return True

    def _begin_body(self) -> None:
        length = self.headers.get("content-length")
        if self.status in (204, 304):
            self._part = _Part.DONE
        elif "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].strip().lower() != "chunked":
                raise ValueError(f"unknown transfer coding {self.headers['transfer-encoding'][:40]}")
            self._part = _Part.CHUNK_SIZE
        elif length is not None:
            values = {value.strip() for value in length.split(",")}
            value = values.pop()
            if values or not (value.isascii() and value.isdigit()) or len(value) > 18:
                raise ValueError(f"bad Content-Length: {length[:40]}")
            self._left = int(value)
            self._part = _Part.LENGTH if self._left else _Part.DONE
        else:
            self._part = _Part.UNTIL_CLOSE

    def _read_data(self, body: list[bytes]) -> bool:
        piece = self._buffer[: self._left]
        if not piece:
            return False
        body.append(piece)
        self._buffer = self._buffer[len(piece) :]
        self._left -= len(piece)
        if self._left == 0:
            self._part = _Part.DONE if self._part is _Part.LENGTH else _Part.CHUNK_END
        return self._left == 0

    def _read_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise ValueError(f"bad chunk size: {line[:40]!r}")
        self._left = int(size[1], 16)
        self._part = _Part.CHUNK_DATA if self._left else _Part.TRAILERS
        return True

    def _read_chunk_end(self) -> bool:
        if not b"\r\n".startswith(self._buffer[:2]):
            raise ValueError(f"a chunk is longer than it said: {self._buffer[:40]!r} stands where it should end")
        if len(self._buffer) < 2:
            return False
        self._buffer = self._buffer[2:]
        self._part = _Part.CHUNK_SIZE
        return True

    def _line(self) -> bytes | None:
        line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            if len(self._buffer) > _LONGEST_LINE:
                raise ValueError("a line of the chunked coding has no end")
            return None
        self._buffer = rest
        return line


def _fields(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[:1] in (b" ", b"\t") and name:
            headers[name] += " " + line.strip().decode("latin-1")  # obsolete line folding (RFC 9112, 5.2)
            continue
        raw, colon, value = line.partition(b":")
        if not colon or not raw or raw != raw.strip():
            raise ValueError(f"no header field: {line[:40]!r}")
        name = raw.decode("latin-1").lower()
        text = value.strip().decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers
