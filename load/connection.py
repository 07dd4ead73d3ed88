"""
One connection to the target, whose reads the event loop delivers and stamps.

A read is taken in the loop itself, not in a greenlet that has to be woken for it: stamped straight behind `recv`, handed on,
and judged when nobody waits.
"""

import errno
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gevent
import gevent.socket
from gevent.monkey import get_original

from streamgauge.load.judge import End
from streamgauge.load.loopclock import READ, WRITE, loop_clock, now_us

__all__ = ["BrokenOffError", "Connection", "Origin", "Receiver", "connect"]

_READ_SIZE = 1 << 18
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
_AGAIN = (BlockingIOError, InterruptedError)

_Socket: type[socket.socket] = get_original("socket", "socket")
_getaddrinfo: Callable[..., Any] = get_original("socket", "getaddrinfo")

_buffer = bytearray(_READ_SIZE)
_view = memoryview(_buffer)
"""Where every read goes first; it is copied out before the next one."""


class BrokenOffError(Exception):
    """The transfer is over, and not as it should be."""

    def __init__(self, end: End, said: str) -> None:
        super().__init__(said)
        self.end = end
        self.said = said


class Receiver(Protocol):
    """What a connection delivers to."""

    def sent(self, now: int) -> None:
        """The last byte was handed to the system at this time (µs)."""

    def take(self, data: bytes, now: int, since: int) -> None:
        """Bytes that were read at `now` and came at `since` or later (µs)."""

    def over(self, problem: BrokenOffError | None) -> None:
        """Nothing more will come: the server has closed the connection, or it broke."""


@dataclass(frozen=True, slots=True)
class Origin:
    """
    Whom to connect to.

    Attributes:
        host, port: of the server.
        tls: TLS settings; None for plain HTTP.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None


class Connection:
    """
    An open connection; made by :func:`connect`.

    Attributes:
        open: whether it can carry a request. A kept one that the server closes turns False by itself.
    """

    def __init__(self, raw: socket.socket, tunnel: "_Tunnel | None") -> None:
        self.open = True
        self._raw = raw
        self._tunnel = tunnel
        self._receiver: Receiver | None = None
        self._outgoing = memoryview(b"")
        self._clock = loop_clock()
        loop = gevent.get_hub().loop
        self._readable = loop.io(raw.fileno(), READ)
        self._writable = loop.io(raw.fileno(), WRITE)
        self._recv_into = raw.recv_into
        self._readable.start(self._on_readable)

    def talk(self, message: bytes, receiver: Receiver) -> None:
        """Send a message; the receiver gets what comes back, until :meth:`release`."""
        self._receiver = receiver
        self._send(message if self._tunnel is None else self._tunnel.encrypt(message))

    def release(self) -> None:
        """The receiver wants no more; whatever comes now makes the connection useless."""
        self._receiver = None

    def close(self) -> None:
        """Hang up."""
        if self.open:
            self.open = False
            self._receiver = None
            for watcher in (self._readable, self._writable):
                watcher.stop()
                watcher.close()
            self._raw.close()

    def _send(self, data: bytes) -> None:
        try:
            count = self._raw.send(data)
        except _AGAIN:
            count = 0
        except OSError as problem:
            self._end(BrokenOffError(_end_of(problem, connecting=False), str(problem)))
            return
        if count < len(data):
            self._outgoing = memoryview(data)[count:]
            self._writable.start(self._on_writable)
        elif self._receiver is not None:
            self._receiver.sent(now_us())

    def _on_writable(self) -> None:
        self._writable.stop()
        self._send(bytes(self._outgoing))

    def _on_readable(self) -> None:
        try:
            count = self._recv_into(_buffer)
        except _AGAIN:
            return
        except OSError as problem:
            self._end(BrokenOffError(_end_of(problem, connecting=False), str(problem)))
            return
        now = time.monotonic_ns() // 1000
        if not count:
            self._end(None)
            return
        data, over = bytes(_view[:count]), False
        if self._tunnel is not None:
            try:
                data, over = self._tunnel.decrypt(data)
            except ssl.SSLError as problem:
                self._end(BrokenOffError(End.TLS, str(problem)))
                return
        if data and self._receiver is not None:
            self._receiver.take(data, now, self._clock.since)
        if over or (data and self._receiver is None):  # or nothing was asked
            self._end(None)

    def _end(self, problem: BrokenOffError | None) -> None:
        receiver = self._receiver
        self.close()
        if receiver is not None:
            receiver.over(problem)


def connect(origin: Origin, timeout: float) -> tuple[Connection, int]:
    """
    Open a connection; the greenlet waits meanwhile.

    Args:
        origin: whom to connect to.
        timeout: seconds, for name resolution, TCP and TLS together, and for each address that a name has.

    Returns:
        The connection, and how long it took, in microseconds.

    Raises:
        BrokenOffError: there is none.
    """
    start = now_us()
    try:
        opened = _open(origin, timeout)
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tunnel = None
            if origin.tls is not None:
                tunnel = _Tunnel(origin.tls, origin.host)
                tunnel.shake_hands(opened)
            raw = _Socket(fileno=opened.detach())
        except BaseException:
            opened.close()
            raise
    except TimeoutError:
        raise BrokenOffError(End.TIMEOUT_CONNECT, f"no connection within {timeout:g} s") from None
    except (OSError, UnicodeError) as problem:
        raise BrokenOffError(_end_of(problem, connecting=True), str(problem)) from None
    raw.setblocking(False)
    return Connection(raw, tunnel), now_us() - start


def _open(origin: Origin, timeout: float) -> Any:
    try:
        ipaddress.ip_address(origin.host)
    except ValueError:
        return gevent.socket.create_connection((origin.host, origin.port), timeout=timeout)
    # An address needs no resolver, whose threads would cost more than the connect.
    family, kind, protocol, _, address = _getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)[0]
    opened = gevent.socket.socket(family, kind, protocol)
    try:
        opened.settimeout(timeout)
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened


class _Tunnel:
    """TLS without a socket: what goes in and out passes through memory."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def shake_hands(self, opened: Any) -> None:
        while True:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            except ssl.SSLError:
                opened.sendall(self._outgoing.read())  # the alert that says why
                raise
            if self._outgoing.pending:
                opened.sendall(self._outgoing.read())
            if done:
                return
            data = opened.recv(_READ_SIZE)
            if not data:
                raise ConnectionResetError(errno.ECONNRESET, "the connection was closed during the TLS handshake")
            self._incoming.write(data)

    def encrypt(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> tuple[bytes, bool]:
        """The plain bytes, and whether the server has said that nothing follows."""
        self._incoming.write(data)
        pieces = []
        try:
            while piece := self._tls.read(_READ_SIZE):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            return b"".join(pieces), False
        except ssl.SSLZeroReturnError:
            pass
        return b"".join(pieces), True


def _end_of(problem: Exception, *, connecting: bool) -> End:
    if isinstance(problem, ssl.SSLError):
        return End.TLS
    if isinstance(problem, OSError) and problem.errno in _EXHAUSTED:
        return End.OVERLOAD
    if connecting and not isinstance(problem, ConnectionResetError):
        return End.REFUSED
    return End.RESET
