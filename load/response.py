"""
A lean reader of one HTTP/1.1 response (RFC 9112), for the path where every microsecond shows in a latency.

Sans-I/O. :mod:`streamgauge.wire.http` is the strict reader that judges; a property test holds this one equal to it on
what both accept.
"""

import enum
import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

import httptools

__all__ = ["ResponseReader"]

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: ([^\r\n]*))?")
_LONGEST_HEAD = 1 << 18
_CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class _Part(enum.Enum):
    HEAD = enum.auto()
    LENGTH = enum.auto()
    CHUNKS = enum.auto()
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
        self.headers: Mapping[str, str] = {}
        self.error = ""
        self._keep = False
        self._part = _Part.HEAD
        self._buffer = b""
        self._left = 0
        self._chunks: _Chunks | None = None

    @property
    def sized(self) -> bool:
        """Whether the message said how long it is: then any bytes may complete it."""
        return self._part is _Part.LENGTH

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
        if self._chunks is not None and self._part is _Part.CHUNKS:
            return self._feed_chunks(self._chunks, data)
        self._buffer = self._buffer + data if self._buffer else data
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
            case _Part.LENGTH:
                return self._read_data(body)
            case _Part.CHUNKS:
                assert self._chunks is not None
                data, self._buffer = self._buffer, b""
                body.append(self._feed_chunks(self._chunks, data))
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
        head = _head(self._buffer[: end.start()])
        self._buffer = self._buffer[end.end() :]
        if head.status >= 200:
            self.status, self.reason, self.headers, self._keep = head
            self._begin_body()
        return True

    def _begin_body(self) -> None:
        length = self.headers.get("content-length")
        if self.status in (204, 304):
            self._part = _Part.DONE
        elif "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].strip().lower() != "chunked":
                raise ValueError(f"unknown transfer coding {self.headers['transfer-encoding'][:40]}")
            self._part = _Part.CHUNKS
            self._chunks = _Chunks()
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
            self._part = _Part.DONE
        return self._left == 0

    def _feed_chunks(self, chunks: "_Chunks", data: bytes) -> bytes:
        try:
            pieces = chunks.feed(data)
        except ValueError as problem:
            self.error = str(problem)
            pieces = chunks.pieces
        if chunks.complete:
            self._part = _Part.DONE
            self._keep = self._keep and not chunks.surplus
            chunks.close()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _Chunks:
    """
    Takes the chunked coding off, by llhttp's parser, which takes a tenth of the time that a loop of ours would.

    It is given a head of its own: ours was read before, more strictly.
    """

    def __init__(self) -> None:
        self.complete = self.surplus = False
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append
        self._parser = httptools.HttpResponseParser(self)
        # A sender may pad the size, to write it once it is known: RFC 9112, 7.1.1 lets white space stand there.
        self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._parser.feed_data(_CHUNKED_HEAD)

    def on_message_begin(self) -> None:
        """The parser's: another message would begin."""
        self.surplus = self.complete

    def on_message_complete(self) -> None:
        """The parser's: the last chunk and the trailers are over."""
        self.complete = True

    def close(self) -> None:
        """Let go of the parser, which holds us: else all that was read waits for the next collection of garbage."""
        del self._parser

    def feed(self, data: bytes) -> list[bytes]:
        """
        The body's pieces among these bytes.

        Raises:
            ValueError: they are not in the chunked coding.
        """
        self.pieces.clear()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            if not self.complete:
                raise ValueError(f"not in the chunked coding: {problem}") from None
            self.surplus = True
        return self.pieces


class _Head(NamedTuple):
    status: int
    reason: str
    headers: Mapping[str, str]
    keep: bool


@functools.lru_cache(maxsize=64)  # a server's heads differ from one another by the second, if at all
def _head(text: bytes) -> _Head:
    lines = text.replace(b"\r\n", b"\n").rstrip(b"\r").split(b"\n")
    status_line = _STATUS_LINE.fullmatch(lines[0])
    if status_line is None:
        raise ValueError(f"no HTTP/1.1 status line: {lines[0][:40]!r}")
    headers = _fields(lines[1:])
    tokens = [token.strip().lower() for token in headers.get("connection", "").split(",")]
    reason = (status_line[3] or b"").decode("latin-1")
    return _Head(int(status_line[2]), reason, headers, status_line[1] == b"1" and "close" not in tokens)


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
