"""
A plain streaming client: one connection, one request at a time, every arrival stamped straight after its read.

Sockets of the standard library only, so that the same code runs in a thread and, under Locust's monkey patch, in a
greenlet. It never raises for what a server or the network does: that is an outcome.
"""

import contextlib
import errno
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from streamgauge.errors import ConfigError
from streamgauge.load.judge import End, judge
from streamgauge.load.reading import Facts, Reading, reading_for
from streamgauge.load.response import ResponseReader
from streamgauge.load.workload import LoadRequest
from streamgauge.metrics.record import Record
from streamgauge.wire.http import retry_after_s

__all__ = ["StreamClient", "Timeouts"]

_READ_SIZE = 65536
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """
    Limits in seconds; each has an outcome of its own.

    Attributes:
        connect: for name resolution, TCP and TLS together, and for each address that a name has.
        first_token: of a stream, from dispatch until its first token.
        idle: without any byte, once tokens (or a whole answer's body) have begun.
        total: for the whole exchange.
    """

    connect: float = 10.0
    first_token: float = 60.0
    idle: float = 30.0
    total: float = 600.0


class _BrokenOffError(Exception):
    """The transfer is over, and not as it should be."""

    def __init__(self, end: End, said: str) -> None:
        super().__init__(said)
        self.end = end
        self.said = said


class StreamClient:
    """
    Sends requests to one URL, one after the other, over a kept connection.

    Args:
        url: whole URL of the operation, http or https.
        headers: further header fields of every request.
        tls: TLS settings; verified against the system's certificates by default.
        timeouts: the limits.

    Raises:
        ConfigError: URL or header fields cannot be put into a request.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        tls: ssl.SSLContext | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if secure else 80)
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._timeouts = timeouts or Timeouts()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._head = _head(path, {"host": parts.netloc, **headers})
        self._socket: socket.socket | None = None
        self._retry_after: float | None = None

    @property
    def retry_after(self) -> float | None:
        """Seconds that the last answer asked to wait; None when it did not ask."""
        return self._retry_after

    def send(self, request: LoadRequest, on_record: Callable[[Record], None] | None = None) -> Record:
        """
        Send one request and read its answer to the end.

        A kept connection that turns out to be closed before any byte of the answer is replaced once, silently.

        Args:
            request: what to send.
            on_record: receives the record, exactly once. When the calling greenlet or thread is told to stop (GreenletExit,
                KeyboardInterrupt), the record says `unfinished_at_stop` and the exception goes on after it.
        """
        self._retry_after = None
        attempt = _Attempt(request, self._timeouts)
        try:
            end, said = self._exchange(attempt)
        except Exception:
            self.close()
            raise
        except BaseException:
            self.close()
            record = attempt.record(End.STOPPED, "")
            if on_record is not None:
                on_record(record)
            raise
        if end is not End.COMPLETE or not attempt.reader.reusable:
            self.close()
        self._retry_after = retry_after_s(attempt.reader.headers.get("retry-after"), datetime.now(UTC))
        record = attempt.record(end, said)
        if on_record is not None:
            on_record(record)
        return record

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, attempt: "_Attempt") -> tuple[End, str]:
        kept = self._socket is not None
        try:
            if kept:
                try:
                    return self._talk(attempt)
                except _BrokenOffError as problem:
                    self.close()
                    if problem.end is not End.RESET or attempt.answered:
                        raise
            attempt.connect_us = self._connect()
            return self._talk(attempt)
        except _BrokenOffError as problem:
            return problem.end, problem.said

    def _connect(self) -> int:
        """Open the connection; returns how long it took, in microseconds."""
        start = _now()
        try:
            connection = socket.create_connection((self._host, self._port), timeout=self._timeouts.connect)
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_hostname=self._host)
            except BaseException:
                connection.close()
                raise
        except TimeoutError:
            raise _BrokenOffError(End.TIMEOUT_CONNECT, f"no connection within {self._timeouts.connect:g} s") from None
        except (OSError, UnicodeError) as problem:
            raise _BrokenOffError(_end_of(problem, connecting=True), str(problem)) from None
        self._socket = connection
        return _now() - start

    def _talk(self, attempt: "_Attempt") -> tuple[End, str]:
        connection = self._socket
        assert connection is not None
        message = self._head + b"content-length: %d\r\n\r\n" % len(attempt.request.body) + attempt.request.body
        try:
            connection.settimeout(self._timeouts.total)
            attempt.begin(_now())
            connection.sendall(message)
            attempt.written = _now()
            while not attempt.reader.complete:
                limit, until = attempt.limit()
                now = _now()
                if until <= now:
                    raise _BrokenOffError(limit, attempt.explain(limit))
                connection.settimeout((until - now) / 1_000_000)
                try:
                    data = connection.recv(_READ_SIZE)
                except TimeoutError:
                    raise _BrokenOffError(limit, attempt.explain(limit)) from None
                now = _now()
                if not data:
                    return attempt.ended()
                attempt.feed(data, now)
                if attempt.reader.error:
                    return End.NOT_HTTP, attempt.reader.error
        except TimeoutError:
            raise _BrokenOffError(End.TIMEOUT_TOTAL, attempt.explain(End.TIMEOUT_TOTAL)) from None
        except OSError as problem:
            raise _BrokenOffError(_end_of(problem, connecting=False), str(problem)) from None
        return End.COMPLETE, ""


class _Attempt:
    """One request on its way, and everything noted about it."""

    def __init__(self, request: LoadRequest, timeouts: Timeouts) -> None:
        self.request = request
        self.connect_us = 0
        self.written: int | None = None
        self.reader = ResponseReader()
        self._timeouts = timeouts
        self._dispatched: int | None = None
        self._headers: int | None = None
        self._first_byte: int | None = None
        self._last_read = 0
        self._body_bytes = 0
        self._reading: Reading | None = None
        self.answered = False

    def begin(self, now: int) -> None:
        """The first byte is about to be sent."""
        self._dispatched = now
        self.written = None

    def feed(self, data: bytes, now: int) -> None:
        """Take what one read returned."""
        self.answered = True
        self._last_read = now
        body = self.reader.feed(data)
        if self._reading is None:
            if not self.reader.status:
                return
            self._headers = now
            self._reading = reading_for(
                self.request.operation,
                stream=self.request.stream,
                status=self.reader.status,
                media_type=self.reader.media_type,
            )
        if body:
            if self._first_byte is None:
                self._first_byte = now
            self._body_bytes += len(body)
            self._reading.feed(body, now)

    def ended(self) -> tuple[End, str]:
        """The server has closed the connection."""
        self.reader.close()
        if self.reader.complete:
            return End.COMPLETE, ""
        if not self.answered:
            raise _BrokenOffError(End.RESET, "the connection was closed without an answer")
        return End.CUT, "the connection was closed inside the answer"

    def limit(self) -> tuple[End, int]:
        """Which limit strikes next, and when."""
        started = self._dispatched or 0
        total = started + round(self._timeouts.total * 1_000_000)
        if self.request.stream and not self._facts.tokens:
            first = started + round(self._timeouts.first_token * 1_000_000)
            return (End.TIMEOUT_FIRST_TOKEN, first) if first < total else (End.TIMEOUT_TOTAL, total)
        if self._first_byte is not None:
            idle = self._last_read + round(self._timeouts.idle * 1_000_000)
            return (End.TIMEOUT_IDLE, idle) if idle < total else (End.TIMEOUT_TOTAL, total)
        # A whole answer may take as long as it takes to generate, and shows nothing before.
        return End.TIMEOUT_TOTAL, total

    def explain(self, limit: End) -> str:
        """The limit in words."""
        return {
            End.TIMEOUT_FIRST_TOKEN: f"no token within {self._timeouts.first_token:g} s",
            End.TIMEOUT_IDLE: f"no byte for {self._timeouts.idle:g} s",
        }.get(limit, f"not over within {self._timeouts.total:g} s")

    def record(self, end: End, said: str) -> Record:
        """What became of it; the exchange is over now."""
        closed = _now()
        if self._reading is not None:
            self._reading.close(complete=end is End.COMPLETE)
        facts, reader, request = self._facts, self.reader, self.request
        outcome, detail = judge(
            end, said, status=reader.status, reason=reader.reason, headers=reader.headers, facts=facts
        )
        # A request that never got a connection was never dispatched; the moment of giving up stands for it.
        dispatched = closed if self._dispatched is None else self._dispatched
        return Record(
            id=request.id,
            target=request.target,
            operation=request.operation.name,
            stream=request.stream,
            dispatched=dispatched,
            scheduled=dispatched,
            closed=closed,
            outcome=outcome,
            connect_us=self.connect_us,
            written=self.written,
            headers=self._headers,
            first_byte=self._first_byte,
            first_event=facts.first_event,
            first_visible=facts.first_visible,
            token_times=facts.token_times,
            finish=facts.finish,
            done=facts.done,
            status=reader.status,
            detail=detail,
            finish_reason=facts.finish_reason,
            prompt_tokens=facts.prompt_tokens,
            completion_tokens=facts.completion_tokens,
            max_tokens=request.max_tokens,
            body_bytes=self._body_bytes,
        )

    @property
    def _facts(self) -> Facts:
        return Facts() if self._reading is None else self._reading.facts


def _now() -> int:
    return time.monotonic_ns() // 1000


def _end_of(problem: Exception, *, connecting: bool) -> End:
    if isinstance(problem, ssl.SSLError):
        return End.TLS
    if isinstance(problem, OSError) and problem.errno in _EXHAUSTED:
        return End.OVERLOAD
    if connecting and not isinstance(problem, ConnectionResetError):
        return End.REFUSED
    return End.RESET


def _head(path: str, headers: Mapping[str, str]) -> bytes:
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if any("\r" in part or "\n" in part for pair in headers.items() for part in pair):
        raise ConfigError("a header field holds a line break")
    with contextlib.suppress(UnicodeEncodeError):
        return head.encode("latin-1")
    raise ConfigError("a header field or the URL holds characters that HTTP cannot carry")
