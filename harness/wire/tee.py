"""
A network backend of httpcore's that keeps every byte read, below its HTTP parser, with the time of each read.

The bytes are the target's: in a tunnel through a proxy they begin behind the proxy's answer to CONNECT. Plain HTTP through
a proxy is answered by the proxy, so there they are the proxy's.
"""

import contextlib
import ssl
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpcore

from streamgauge.wire.http import Read

__all__ = ["TAP", "OutgrownError", "Tap", "TeeBackend"]


class OutgrownError(Exception):
    """The answer is larger than the recorder reads."""


@dataclass(slots=True)
class Tap:
    """Collects the bytes of the one exchange that runs in the current task."""

    limit: int
    """Most bytes to keep."""

    dispatched: float = 0.0
    """When the first byte of the request went out, on the monotonic clock."""

    wire: bytearray = field(default_factory=bytearray)
    reads: list[Read] = field(default_factory=list)
    writes: int = 0
    """How many pieces of the request have gone out."""

    fresh: bool = False
    """Whether a connection was opened for it."""

    ended: bool = False
    """Whether the server has ended the connection."""

    secured: bool = False
    """Whether TLS was begun for it."""

    def take(self, data: bytes) -> None:
        """Keep what one read returned, up to the limit."""
        self.ended = not data
        kept = data[: self.limit - len(self.wire)]
        if kept:
            self.wire += kept
            self.reads.append(Read(time.monotonic() - self.dispatched, len(kept)))
        if len(kept) < len(data):
            raise OutgrownError(f"larger than {self.limit} bytes; reading stopped there")

    def forget(self) -> None:
        """Begin anew: what came so far was about the connection, not from the target."""
        self.wire.clear()
        self.reads.clear()
        self.writes = 0


TAP: ContextVar[Tap] = ContextVar("streamgauge_tap")
"""Of the task that runs."""


class _TeeStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._unsent = bytearray()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # Who has closed early may have answered nevertheless, as httpcore knows where it writes itself.
        with contextlib.suppress(httpcore.WriteError):
            await self._flush(timeout)
        data = await self._inner.read(max_bytes, timeout)
        TAP.get().take(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Head and body go out together, when the answer is waited for: one system call for both, and mostly one segment.
        self._unsent += buffer

    async def _flush(self, timeout: float | None) -> None:
        if not self._unsent:
            return
        unsent, self._unsent = bytes(self._unsent), bytearray()
        tap = TAP.get()
        if not tap.writes:
            tap.dispatched = time.monotonic()
        tap.writes += 1
        await self._inner.write(unsent, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        # In a tunnel, a proxy has answered CONNECT before; that is not the target's answer.
        tap = TAP.get()
        tap.forget()
        tap.secured = True
        return _TeeStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class TeeBackend(httpcore.AsyncNetworkBackend):
    """TCP and TLS of httpcore's own, with what is read going into the tap as well."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection; see httpcore."""
        TAP.get().fresh = True
        return _TeeStream(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait; see httpcore."""
        await self._inner.sleep(seconds)
