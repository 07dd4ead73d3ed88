"""
The streaming client: requests out, every arrival stamped, each answer judged once its stream is over.

Made of gevent's event loop and greenlets, with or without Locust's monkey patch. It never raises for what a server or the network
does: that is an outcome.
"""

import contextlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import gevent
from gevent.pool import Pool

from streamgauge.errors import ConfigError
from streamgauge.load.attempt import Attempt, RawRead, Timeouts
from streamgauge.load.connection import BrokenOffError, Connection, Origin, connect
from streamgauge.load.judge import End
from streamgauge.load.loopclock import now_us
from streamgauge.load.request import LoadRequest
from streamgauge.load.turns import Turns
from streamgauge.metrics.record import Judged, Record
from streamgauge.wire.http import retry_after_s

__all__ = ["Sent", "StreamClient", "Timeouts"]

_OPENED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Sent:
    """
    What came of one request.

    Attributes:
        record: its record.
        retry_after: seconds that the answer asked to wait; None when it did not ask.
        reads: every read of the answer, oldest first; None when it was too long to be kept.
    """

    record: Record
    retry_after: float | None
    reads: Sequence[RawRead] | None


class StreamClient:
    """
    Sends requests to one origin, any number at once, over connections that are kept.

    Args:
        url: any URL of the origin, http or https.
        headers: further header fields of every request.
        tls: TLS settings; verified against the system's certificates by default.
        timeouts: the limits.

    Raises:
        ConfigError: URL or header fields cannot be put into a request, or a request's URL is not of this origin.

    Attributes:
        running: how many requests are in flight.
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
        self._netloc = parts.netloc
        self._origin = Origin(
            parts.hostname or "",
            parts.port or (443 if secure else 80),
            (tls or ssl.create_default_context()) if secure else None,
        )
        self._timeouts = timeouts or Timeouts()
        self._fields = _fields({"host": parts.netloc, **headers})
        self._heads: dict[str, bytes] = {}
        self._head(url)
        self._idle: list[Connection] = []
        self._turns = Turns()
        self.running = 0

    def open(self, count: int) -> int:
        """
        Open connections until `count` are idle, so that no request has to wait for one; returns how many are.

        A server that refuses them, or does not answer within the limit of one, shows that again when a request needs one: here it
        is no failure.
        """
        self._idle = [connection for connection in self._idle if connection.open]
        pool = Pool(_OPENED_AT_ONCE)
        with gevent.Timeout(self._timeouts.connect, False):
            for _ in range(count - len(self._idle)):
                pool.spawn(self._open_one)
            pool.join()
        pool.kill()
        return len(self._idle)

    def send(
        self,
        request: LoadRequest,
        *,
        scheduled: int | None = None,
        judged: Judged = Judged.ALL,
        warm_up: bool = False,
        on_record: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """
        Send one request and wait for the end of its answer.

        A kept connection that turns out to be closed before any byte of the answer is replaced once, and the record says so:
        the server may have ended it just then, as it may (RFC 9112, 9.3.1), or have dropped the request.

        Args:
            request: what to send.
            scheduled: when it was to be sent (microseconds, monotonic); now by default.
            judged: how closely to look at the answer.
            warm_up: whether the record counts.
            on_record: receives the record, exactly once. When the calling greenlet is told to stop (GreenletExit,
                KeyboardInterrupt), the record says `unfinished_at_stop` and the exception goes on after it.
        """
        attempt = Attempt(
            request, self._timeouts, now_us() if scheduled is None else scheduled, judged, warm_up=warm_up
        )
        self.running += 1
        try:
            self._exchange(attempt)
        except (gevent.GreenletExit, KeyboardInterrupt, SystemExit):
            if on_record is not None:
                on_record(self._sent(attempt, End.STOPPED, ""))
            raise
        finally:
            self.running -= 1
        sent = self._sent(attempt, attempt.end, attempt.said)
        if on_record is not None:
            on_record(sent)
        return sent

    def close(self) -> None:
        """Hang up."""
        for connection in self._idle:
            connection.close()
        self._idle = []

    def _exchange(self, attempt: Attempt) -> None:
        body = attempt.request.body
        message = b"%scontent-length: %d\r\n\r\n%s" % (self._head(attempt.request.url), len(body), body)
        connection = self._kept()
        if connection is not None:
            self._talk(connection, message, attempt)
            if attempt.end is not End.RESET or attempt.answered:
                return
            attempt.replaced = True
        try:
            connection, attempt.connect_us = connect(self._origin, self._timeouts.connect)
        except BrokenOffError as problem:
            attempt.give_up(problem)
            return
        self._talk(connection, message, attempt)

    def _talk(self, connection: Connection, message: bytes, attempt: Attempt) -> None:
        try:
            attempt.begin()
            connection.talk(message, attempt)
            attempt.wait(self._turns)
        except BaseException:
            connection.close()
            raise
        connection.release()
        if attempt.reusable and connection.open:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        return None

    def _open_one(self) -> None:
        with contextlib.suppress(BrokenOffError):
            self._idle.append(connect(self._origin, self._timeouts.connect)[0])

    def _sent(self, attempt: Attempt, end: End, said: str) -> Sent:
        record = attempt.record(end, said)
        asked = attempt.reader.headers.get("retry-after")
        return Sent(record, retry_after_s(asked, datetime.now(UTC)) if asked else None, attempt.reads())

    def _head(self, url: str) -> bytes:
        if url not in self._heads:
            parts = urlsplit(url)
            if parts.netloc != self._netloc:
                raise ConfigError(f"this client speaks to {self._netloc} only, not to {parts.netloc}")
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            self._heads[url] = _encoded(f"POST {path} HTTP/1.1\r\n") + self._fields
        return self._heads[url]


def _fields(headers: Mapping[str, str]) -> bytes:
    if any("\r" in part or "\n" in part for pair in headers.items() for part in pair):
        raise ConfigError("a header field holds a line break")
    return _encoded("".join(f"{name}: {value}\r\n" for name, value in headers.items()))


def _encoded(head: str) -> bytes:
    with contextlib.suppress(UnicodeEncodeError):
        return head.encode("latin-1")
    raise ConfigError("a header field or the URL holds characters that HTTP cannot carry")
