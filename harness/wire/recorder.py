"""
Sends requests and keeps every byte that comes back, with the time of each read.

The only module that sends probes. httpx runs over an httpcore pool whose network backend tees the bytes below the HTTP
parser: what a client library hides (1xx responses, chunk framing, bytes that are no HTTP) is kept, and our own decoder
judges the same bytes that a stored bundle holds.
"""

import asyncio
import contextlib
import itertools
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self, cast

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


_SIGNED = "streamgauge_signed_target"
"""The extension that carries a request's path and query as they are sent."""


class _Transport(httpx.AsyncBaseTransport):
    """httpx over our own pool; httpcore's exceptions pass through as they are."""

    def __init__(self, tls: ssl.SSLContext, connections: int, proxy: Proxy | None) -> None:
        self._pool = (
            httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=connections, network_backend=TeeBackend())
            if proxy is None
            else httpcore.AsyncHTTPProxy(
                proxy.url,
                proxy_headers=list(proxy.headers.items()),
                ssl_context=tls,
                max_connections=connections,
                network_backend=TeeBackend(),
            )
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.extensions[_SIGNED],
        )
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=url,
                headers=request.headers.raw,
                content=request.stream,
                # A `target` of httpcore's own would also be asked of a proxy, where the whole URL belongs.
                extensions={name: value for name, value in request.extensions.items() if name != _SIGNED},
            )
        )
        # The header fields stay in the tee: httpx would follow up on them (cookies, redirects, codings).
        return httpx.Response(answer.status, stream=_Body(answer), request=request)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


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
        timeout = httpx.Timeout(self._limits.idle, connect=self._limits.connect, pool=None)
        self._client = httpx.AsyncClient(
            transport=_Transport(target.tls(), self._limits.concurrency, target.proxy),
            timeout=timeout,
            trust_env=False,
            follow_redirects=False,
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

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
            self._on_exchange(exchange)
            if not exchange.rate_limited:
                return exchange
            asked = retry_after_s(exchange.response.header("retry-after"), datetime.now(UTC))
            wait = 2.0 ** (attempt - 1) if asked is None else asked
            self._not_before = max(self._not_before, time.monotonic() + min(wait, self._limits.rate_limit_wait))
        return exchange

    async def _wait_out_rate_limit(self) -> None:
        while (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    async def _exchange(self, outgoing: Outgoing) -> Exchange:
        url, fields = self._target.signed(outgoing.url, outgoing.credential, outgoing.headers)
        headers = [(name.encode("ascii"), value.encode()) for name, value in fields]
        # The key may stand in the signed URL, and httpx logs the URL that it is given: that one goes without.
        signed = {_SIGNED: httpx.URL(url).raw_path}
        request = self._client.build_request(
            outgoing.method, outgoing.url, headers=headers, content=outgoing.body, extensions=signed
        )
        started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        tap, ending, detail = await self._transfer(request, outgoing.leave_after)
        if ending in (Ending.CLOSED, Ending.RESET) and not tap.wire and not tap.fresh:
            # A kept connection that the server had closed meanwhile (RFC 9112, 9.3.1): says nothing about the request.
            tap, ending, detail = await self._transfer(request, outgoing.leave_after)
        wire, redacted = self._redactor.wire(bytes(tap.wire))
        return Exchange(
            id=next(self._ids),
            target=self._target.name,
            operation=outgoing.operation,
            probe=outgoing.probe,
            request=SentRequest(
                method=outgoing.method,
                url=self._redactor.text(url),
                headers=tuple((name, self._redactor.text(value)) for name, value in request.headers.multi_items()),
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

    async def _transfer(self, request: httpx.Request, leave_after: int) -> tuple[Tap, Ending, str]:
        tap, ending, detail = await self._talk(request, leave_after)
        if self._target.proxy and request.url.scheme == "https" and tap.fresh and not tap.secured:
            tap.forget()
            if ending in (Ending.CLOSED, Ending.RESET, Ending.MALFORMED_HTTP, Ending.TOO_LARGE):
                ending = Ending.PROXY
        return tap, ending, detail

    async def _talk(self, request: httpx.Request, leave_after: int) -> tuple[Tap, Ending, str]:
        tap = Tap(self._limits.size, dispatched=time.monotonic())
        TAP.set(tap)
        try:
            async with asyncio.timeout(self._limits.total):
                response = await self._client.send(request, stream=True)
                try:
                    # Not by httpx's own iterators, which hand the connection back as soon as the message has ended.
                    async for _ in cast("httpx.AsyncByteStream", response.stream):
                        if leave_after and tap.wire.count(_EVENT) >= leave_after:
                            return tap, Ending.LEFT, f"the client left after {leave_after} events, as planned"
                    if (
                        tap.stream is not None
                        and decode_response(bytes(tap.wire), tap.reads, method=request.method).surplus
                    ):
                        # httpcore would take what is left over for the beginning of the next answer.
                        await tap.stream.aclose()
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
            ending = _ending(problem, tap, request.method)
            return tap, ending, _LONG_LINE if ending is Ending.TOO_LARGE else _detail(problem)
        return tap, Ending.COMPLETE, ""


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
