"""
Decodes one HTTP/1.1 response from the bytes of its reads (RFC 9112). Sans-I/O: the same bytes give the same response.

h11 parses; what it cannot parse is kept as `protocol_error`, with everything that was understood before it. What h11 takes away
without a word is kept as well: chunks with their extensions, trailers, 1xx responses, bytes behind the message.
"""

import contextlib
import email.utils
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import h11

from streamgauge.wire.chunked import TransferChunk, read_chunks

__all__ = ["HttpResponse", "Interim", "Read", "Segment", "decode_response", "retry_after_s"]

_HEAD_END = re.compile(rb"\n\r?\n")
"""As h11 reads it: a bare LF is taken for CRLF (RFC 9112, section 2.2)."""

_CONTENT_LENGTH = re.compile(rb"^content-length:[ \t]*([^\r\n]*?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)

_LENGTH = re.compile(r"[0-9]{1,20}")
"""A Content-Length that can be a number of bytes: h11 takes no longer one."""

_NO_CONTENT = (204, 304)
"""Statuses whose answers end with the header section (RFC 9112, section 6.3)."""


class Read(NamedTuple):
    """One successful read from the socket."""

    time: float
    """Seconds since the request was dispatched."""

    size: int
    """Number of bytes it returned."""


class Segment(NamedTuple):
    """A piece of the decoded body that one read made available."""

    time: float
    start: int
    end: int


class Interim(NamedTuple):
    """An informational (1xx) response that came before the final one (RFC 9110, section 15.2)."""

    status: int
    reason: str
    headers: list[tuple[str, str]]


@dataclass(slots=True)
class HttpResponse:
    """A response as far as it arrived."""

    status: int = 0
    """Status code; 0 when no final status line arrived."""

    reason: str = ""
    http_version: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Names in lower case, in order, repeated ones kept; values as ISO-8859-1."""

    body: bytes = b""
    """The body with the transfer coding removed."""

    segments: list[Segment] = field(default_factory=list)
    interim: list[Interim] = field(default_factory=list)
    """The 1xx responses that came before."""

    chunks: list[TransferChunk] = field(default_factory=list)
    """How the chunked coding cut the body; empty without that coding."""

    trailers: list[tuple[str, str]] = field(default_factory=list)
    """Fields behind a chunked body, as `headers`."""

    content_lengths: list[str] = field(default_factory=list)
    """Every value of Content-Length as written, also where several make the message malformed."""

    surplus: bytes = b""
    """What came behind a complete message: no request asked for it."""

    complete: bool = False
    """Whether the message ended as its framing announced."""

    protocol_error: str = ""
    """What makes the bytes no HTTP/1.1 message; empty when nothing does."""

    head_size: int = 0
    """How many bytes of the wire the status line and header fields take, 1xx responses included."""

    @property
    def informational(self) -> list[int]:
        """The 1xx statuses that came before."""
        return [interim.status for interim in self.interim]

    @property
    def announced(self) -> int | None:
        """
        How many bytes of body Content-Length announces.

        None without one or with one that is no number, which only bytes without framing can have, and beside Transfer-Encoding,
        which overrides it (RFC 9112, section 6.3).
        """
        if self.status == 0 or self.header("transfer-encoding") is not None:
            return None
        length = self.header("content-length")
        return int(length) if length is not None and _LENGTH.fullmatch(length) else None

    def header(self, name: str) -> str | None:
        """The value of the header, several joined by a comma (RFC 9110, 5.3); None when absent."""
        values = [value for key, value in self.headers if key == name.lower()]
        return ", ".join(values) if values else None

    @property
    def media_type(self) -> str:
        """Type and subtype of Content-Type in lower case; empty when there is none."""
        return (self.header("content-type") or "").split(";")[0].strip().lower()


def decode_response(wire: bytes, reads: Iterable[Read], *, method: str = "POST", closed: bool = True) -> HttpResponse:
    """
    Decode the response that `wire` holds.

    Args:
        wire: every byte that came back, in order.
        reads: how the bytes were split over time; the sizes add up to `len(wire)`.
        method: of the request (a response to HEAD has no body).
        closed: whether the connection had ended after the last read, which is what ends a body without framing.
    """
    # How much may come is the recorder's business; what is here already is read whatever its size.
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=len(wire) + 1)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    response = HttpResponse(head_size=_head_size(wire))
    body = bytearray()
    position, now = 0, 0.0
    try:
        for read in reads:
            now = read.time
            connection.receive_data(wire[position : position + read.size])
            position += read.size
            _drain(connection, response, body, now)
    except h11.RemoteProtocolError as problem:
        response.protocol_error = str(problem)
    else:
        if closed and not response.complete:
            # An end of connection is the end of the body only where no framing was announced (RFC 9112, 6.3);
            # elsewhere h11 objects, and the response stays incomplete: that is not malformed, only cut off.
            with contextlib.suppress(h11.RemoteProtocolError):
                connection.receive_data(b"")
                _drain(connection, response, body, now)
    response.body = bytes(body)
    head = wire[: response.head_size]
    response.content_lengths = [value.decode("latin-1") for value in _CONTENT_LENGTH.findall(_final_head(head))]
    if response.complete:
        response.surplus = connection.trailing_data[0]
    bodiless = method == "HEAD" or response.status in _NO_CONTENT
    if response.header("transfer-encoding") is not None and not bodiless:
        response.chunks = read_chunks(wire, response.head_size)
    return response


def _drain(connection: h11.Connection, response: HttpResponse, body: bytearray, now: float) -> None:
    while not response.complete:
        event = connection.next_event()
        if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return
        if isinstance(event, h11.InformationalResponse):
            reason = bytes(event.reason).decode("latin-1")
            response.interim.append(Interim(event.status_code, reason, _fields(event.headers)))
        elif isinstance(event, h11.Response):
            response.status = event.status_code
            response.reason = bytes(event.reason).decode("latin-1")
            response.http_version = bytes(event.http_version).decode("ascii")
            response.headers = _fields(event.headers)
        elif isinstance(event, h11.Data):
            start = len(body)
            body += event.data
            response.segments.append(Segment(now, start, len(body)))
        elif isinstance(event, h11.EndOfMessage):
            response.trailers = _fields(event.headers)
            response.complete = True


def _fields(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1")) for name, value in fields]


def _final_head(head: bytes) -> bytes:
    """The final response's part of the header sections."""
    return re.split(_HEAD_END, head.rstrip(b"\r\n"))[-1]


def _head_size(wire: bytes) -> int:
    """Where the final response's header section ends (after any 1xx)."""
    position = 0
    while True:
        end = _HEAD_END.search(wire, position)
        if end is None:
            return len(wire)
        head, position = wire[position : end.start()], end.end()
        status = head[9:12]
        if not (status.startswith(b"1") and head.startswith(b"HTTP/")):
            return position


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """
    How many seconds a Retry-After field asks to wait (RFC 9110, 10.2.3); None when it is absent or unreadable.

    Args:
        value: the field's value: seconds, or a date.
        now: the moment that a date is compared with.
    """
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds(), 0.0)
