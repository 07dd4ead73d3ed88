"""
Sends requests and keeps every byte that comes back, with the time of each read.

The only module that sends probes. httpcore's network backend tees the bytes below its HTTP parser: what a client library hides
(1xx responses, chunk framing, bytes that are no HTTP) is kept, and our own decoder judges the same bytes that a stored bundle
holds. Of httpx only the reading of URLs is used.
"""

import asyncio
import contextlib
import functools
import itertools
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import httpcore
import httpx

from streamgauge.proxy import Proxy
from streamgauge.redaction import Redactor
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential, Ending, Evidence, Exchange, SentRequest
from streamgauge.wire.http import decode_response, retry_after_s
from streamgauge.wire.tee import TAP, OutgrownError, Tap, TeeBackend

__all__ = ["Limits", "Outgoing", "Recorder"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Patience, in seconds unless said otherwise, and how many requests run at once."""

    concurrency: int = 8
    connect: float = 10.0
    idle: float = 30.0
    """Longest time without a byte."""

    total: float = 120.0
    """Longest time for one exchange."""

    size: int = 64 << 20
    """Most bytes of one answer, head and framing included; what is larger is cut there."""

    rate_limit_attempts: int = 3
    """How often a rate-limited request is sent in all."""

    rate_limit_wait: float = 60.0
    """Longest wait that a Retry-After is granted."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """
    A request to send: already built, not yet signed.

    Attributes:
        headers: what stands in place of the target's usual header fields; None leaves one out.
        leave_after: close the connection after so many events of a stream; 0 for reading to the end.
    """

    url: str
    body: bytes
    credential: Credential
    method: str = "POST"
    operation: str = ""
    probe: str = ""
    headers: tuple[tuple[str, str | None], ...] = ()
    leave_after: int = 0


@dataclass(frozen=True, slots=True)
class _Head:
    """What goes out before a body, and how it is stored: without secrets."""

    address: httpcore.URL
    origin: str
    fields: tuple[tuple[bytes, bytes], ...]
    shown_url: str
    shown_fields: tuple[tuple[str, str], ...]


class _Connections:
    """
    Connections of httpcore's, used again while both sides keep them.

    Whoever takes one has it to himself, so none of what a pool does for those that wait is needed.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: Proxy | None) -> None:
        backend = TeeBackend()
        self._factory = (
            httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=backend)
            if proxy is None
            else httpcore.AsyncHTTPProxy(
                proxy.url, proxy_headers=list(proxy.headers.items()), ssl_context=tls, network_backend=backend
            )
        )
        self._idle: dict[str, list[httpcore.AsyncConnectionInterface]] = {}

    async def take(self, head: _Head) -> httpcore.AsyncConnectionInterface:
        """The one that was used last, unless the server has ended it; else a new one, which connects when it is used."""
        idle = self._idle.get(head.origin, [])
        while idle:
            connection = idle.pop()
            if not connection.has_expired():
                return connection
            await _close(connection)
        return self._factory.create_connection(head.address.origin)

    async def give_back(self, connection: httpcore.AsyncConnectionInterface, head: _Head, *, clean: bool) -> None:
        """Keep it for the next request, where nothing is left on it (`clean`) and httpcore deems it fit; else close it."""
        if clean and connection.is_available():
            self._idle.setdefault(head.origin, []).append(connection)
        else:
            await _close(connection)

    async def aclose(self) -> None:
        """Close those that nobody uses."""
        for idle in self._idle.values():
            while idle:
                await _close(idle.pop())


async def _close(connection: httpcore.AsyncConnectionInterface) -> None:
    with contextlib.suppress(httpcore.NetworkError):
        await connection.aclose()


class Recorder:
    """
    Sends requests to one target; an async context manager.

    Args:
        target: whom to ask.
        limits: patience and concurrency.
        on_exchange: called with every exchange, rate-limited attempts included, as soon as it is over.
        process: prefix of the exchanges' ids.
    """

    def __init__(
        self,
        target: Target,
        *,
        limits: Limits | None = None,
        on_exchange: Callable[[Exchange], None] = lambda exchange: None,
        process: str = "main",
    ) -> None:
        self._target = target
        self._limits = limits or Limits()
        self._on_exchange = on_exchange
        self._redactor: Redactor = target.redactor
        self._ids = (f"{process}-{target.name}-{number:05d}" for number in itertools.count(1))
        self._slots = asyncio.Semaphore(self._limits.concurrency)
        self._not_before = 0.0
        self._extensions = {
            "timeout": {
                "connect": self._limits.connect,
                "read": self._limits.idle,
                "write": self._limits.idle,
            }
        }
        self._connections = _Connections(target.tls(), target.proxy)
        self._head = functools.lru_cache(maxsize=256)(self._made_head)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.aclose()

    async def send(self, outgoing: Outgoing) -> Exchange:
        """
        Send one request, again where the target limits the rate, and return the last exchange.

        While a Retry-After runs, no other request of this recorder is sent either. What goes wrong on the network is an
        exchange with that ending, never an exception.
        """
        for attempt in range(1, self._limits.rate_limit_attempts + 1):
            async with self._slots:
                await self._wait_out_rate_limit()
                exchange = await self._exchange(outgoing)
            if not exchange.rate_limited:
                return exchange
            asked = retry_after_s(exchange.response.header("retry-after"), datetime.now(UTC))
            wait = 2.0 ** (attempt - 1) if asked is None else asked
            self._not_before = max(self._not_before, time.monotonic() + min(wait, self._limits.rate_limit_wait))
        return exchange

    async def _wait_out_rate_limit(self) -> None:
        while (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def _made_head(self, url: str, credential: Credential, changes: tuple[tuple[str, str | None], ...]) -> _Head:
        """What is the same in all requests to one URL with the same form of the key and the same changes."""
        signed, given = self._target.signed(url, credential, changes)
        parts = httpx.URL(signed)
        usual = [("Host", parts.netloc.decode("ascii")), ("Accept", "*/*"), ("Connection", "keep-alive")]
        named = {name.lower() for name, _ in given}
        fields = [*(field for field in usual if field[0].lower() not in named), *given]
        address = httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path)
        return _Head(
            address,
            str(address.origin),
            tuple((name.encode("ascii"), value.encode()) for name, value in fields),
            self._redactor.text(signed),
            tuple((name.lower(), self._redactor.text(value)) for name, value in fields),
        )

    async def _exchange(self, outgoing: Outgoing) -> Exchange:
        head = self._head(outgoing.url, outgoing.credential, outgoing.headers)
        length = _length(outgoing, head)
        request = httpcore.Request(
            method=outgoing.method,
            url=head.address,
            headers=[*head.fields, *length],
            content=outgoing.body,
            extensions=self._extensions,
        )
        started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for _ in range(2):
            connection = await self._connections.take(head)
            tap, ending, detail = await self._transfer(connection, request, outgoing.leave_after)
            if ending not in (Ending.CLOSED, Ending.RESET) or tap.wire or tap.fresh:
                break
            # A kept connection that the server had closed meanwhile (RFC 9112, 9.3.1): says nothing about the request.
        wire, redacted = self._redactor.wire(bytes(tap.wire))
        exchange = Exchange(
            id=next(self._ids),
            target=self._target.name,
            operation=outgoing.operation,
            probe=outgoing.probe,
            request=SentRequest(
                method=outgoing.method,
                url=head.shown_url,
                headers=(*head.shown_fields, *((name.decode().lower(), value.decode()) for name, value in length)),
                body=self._redactor.wire(outgoing.body)[0],
                credential=outgoing.credential,
            ),
            started=started,
            wire=wire,
            reads=tuple(tap.reads),
            ending=ending,
            detail=self._redactor.text(detail),
            redacted=tuple(redacted),
            holds=frozenset(Evidence) - {Evidence.ENDING} if ending is Ending.LEFT else frozenset(Evidence),
        )
        self._on_exchange(exchange)  # before anything is waited for
        # httpcore would take what is left over for the beginning of the next answer.
        clean = ending is Ending.COMPLETE and not exchange.response.surplus
        await self._connections.give_back(connection, head, clean=clean)
        return exchange

    async def _transfer(
        self, connection: httpcore.AsyncConnectionInterface, request: httpcore.Request, leave_after: int
    ) -> tuple[Tap, Ending, str]:
        tap, ending, detail = await self._talk(connection, request, leave_after)
        if self._target.proxy and request.url.scheme == b"https" and tap.fresh and not tap.secured:
            tap.forget()
            if ending in (Ending.CLOSED, Ending.RESET, Ending.MALFORMED_HTTP, Ending.TOO_LARGE):
                ending = Ending.PROXY
        return tap, ending, detail

    async def _talk(
        self, connection: httpcore.AsyncConnectionInterface, request: httpcore.Request, leave_after: int
    ) -> tuple[Tap, Ending, str]:
        tap = Tap(self._limits.size, dispatched=time.monotonic())
        TAP.set(tap)
        try:
            async with asyncio.timeout(self._limits.total):
                response = await connection.handle_async_request(request)
                try:
                    async for _ in response.aiter_stream():
                        if leave_after and tap.wire.count(_EVENT) >= leave_after:
                            return tap, Ending.LEFT, f"the client left after {leave_after} events, as planned"
                finally:
                    with contextlib.suppress(httpcore.NetworkError):
                        await response.aclose()
        except TimeoutError:
            return tap, Ending.TIMEOUT_TOTAL, f"not over after {self._limits.total:g} s"
        except OutgrownError as problem:
            return tap, Ending.TOO_LARGE, str(problem)
        except httpcore.ProxyError as problem:
            return tap, Ending.PROXY, f"the proxy answers CONNECT with {problem}"
        except ssl.SSLError as problem:  # after the handshake: in TLS 1.3 a client certificate is refused only then
            return tap, Ending.TLS, _detail(problem)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as problem:
            ending = _ending(problem, tap, request.method.decode())
            return tap, ending, _LONG_LINE if ending is Ending.TOO_LARGE else _detail(problem)
        return tap, Ending.COMPLETE, ""


def _length(outgoing: Outgoing, head: _Head) -> list[tuple[bytes, bytes]]:
    """The field that frames the body, where there is one or its method wants one (RFC 9110, 8.6), and nobody has set it."""
    if not outgoing.body and outgoing.method not in ("POST", "PUT", "PATCH"):
        return []
    if any(name in ("content-length", "transfer-encoding") for name, _ in head.shown_fields):
        return []
    return [(b"Content-Length", b"%d" % len(outgoing.body))]


_EVENT = b"\ndata:"
"""How a line of an event begins on the wire: something ends before it, a header section or a chunk's size at least."""

_LONG_LINE = (
    f"a header section, or a line of the chunked coding, of more than {httpcore.AsyncHTTP11Connection.MAX_INCOMPLETE_EVENT_SIZE}"
    " bytes; reading stopped there"
)
"""httpcore's own limit; our decoder finds nothing wrong, and the server has not ended the connection."""


def _ending(problem: Exception, tap: Tap, method: str) -> Ending:
    if isinstance(problem, (httpcore.ConnectTimeout, httpcore.ConnectError)):
        if isinstance(problem, httpcore.ConnectTimeout):
            return Ending.TIMEOUT_CONNECT
        causes = list(_causes(problem))
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return Ending.TLS
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return Ending.DNS
        return Ending.REFUSED
    if isinstance(problem, httpcore.TimeoutException):
        return Ending.TIMEOUT_IDLE
    if isinstance(problem, httpcore.NetworkError):
        return Ending.RESET
    if decode_response(bytes(tap.wire), tap.reads, method=method).protocol_error:
        return Ending.MALFORMED_HTTP
    return Ending.CLOSED if tap.ended else Ending.TOO_LARGE


def _causes(problem: BaseException | None) -> Iterable[BaseException]:
    seen: set[int] = set()
    pending = [problem]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        pending += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions


def _detail(problem: Exception) -> str:
    """What the innermost cause says: the outer layers only repeat it."""
    said = [str(cause) for cause in _causes(problem) if isinstance(cause, OSError)]
    if said and isinstance(problem, httpcore.ConnectError):
        for cause in _causes(problem):
            if isinstance(cause, OSError) and cause.errno and not isinstance(cause, (ssl.SSLError, socket.gaierror)):
                return os.strerror(cause.errno)
    return next((text for text in [*said, str(problem)] if text), type(problem).__name__)
