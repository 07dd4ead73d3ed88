"""The socket shell: reads requests with h11, writes replies when they are due (asyncio)."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

import h11

from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.messages import End, Reply, Request
from streamgauge.reference.metrics import Metrics
from streamgauge.reference.responder import Responder

__all__ = ["MAX_BODY", "serve"]

MAX_BODY = 8 * 2**20
"""Greatest request body in bytes."""

_READ_SIZE = 2**16
_READ_AHEAD = 4
_LINGER_SECONDS = 2.0


async def serve(
    responder: Responder, host: str, port: int, *, ready: Callable[[int], None], stop: asyncio.Event
) -> None:
    """
    Serve until `stop` is set.

    Args:
        responder: makes the replies.
        host: address to listen on.
        port: 0 for a free one.
        ready: called with the port once connections are accepted.
        stop: ends the server; replies in progress are cut off.

    Raises:
        OSError: the address cannot be listened on.
    """
    tasks: set[asyncio.Task[None]] = set()
    slots = asyncio.Semaphore(responder.slots) if responder.slots else None

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(_Connection(responder, reader, writer, slots).run())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # asyncio sets TCP_NODELAY on every TCP connection by itself.
    server = await asyncio.start_server(connected, host, port, backlog=1024)
    try:
        ready(server.sockets[0].getsockname()[1])
        await stop.wait()
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Connection:
    """One client's connection: requests one after the other, each answered before the next is looked at."""

    def __init__(
        self,
        responder: Responder,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        slots: asyncio.Semaphore | None,
    ) -> None:
        self._responder = responder
        self._slots = slots
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_READ_AHEAD)
        self._left = asyncio.Event()
        self._clock = asyncio.get_running_loop().time

    async def run(self) -> None:
        """Serve the connection to its end."""
        pump = asyncio.get_running_loop().create_task(self._pump())
        try:
            with contextlib.suppress(ConnectionError):
                await self._converse()
        finally:
            pump.cancel()
            self._writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await pump

    async def _pump(self) -> None:
        """Read all the time, so that the client's leaving is noticed while a reply is being written."""
        with contextlib.suppress(ConnectionError):
            while data := await self._reader.read(_READ_SIZE):
                await self._arrived.put(data)
        self._left.set()
        await self._arrived.put(b"")

    async def _converse(self) -> None:
        while True:
            try:
                request = await self._next_request()
            except Refusal as refusal:
                await self._send(self._responder.reply_to_broken(refusal), self._clock())
                await self._linger()
                return
            if request is None:
                return
            received = self._clock()
            reply = self._responder.reply(request, busy=self._slots is not None and self._slots.locked())
            if not await self._send_in_turn(reply, received) or await self._ends(reply):
                return
            self._start_next_cycle()

    async def _next_request(self) -> Request | None:
        """
        Read one request; None when the client has no more.

        Raises:
            Refusal: what arrives is no HTTP/1.1 request, or is too large.
        """
        start: h11.Request | None = None
        body = bytearray()
        while True:
            match self._next_event():
                case h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                        self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
                    self._http.receive_data(await self._arrived.get())
                case h11.Request() as start:
                    _require_size(_declared_length(start))
                case h11.Data(data=data):
                    body += data
                    _require_size(len(body))
                case h11.EndOfMessage() if start is not None:
                    return _request(start, bytes(body))
                case _:
                    return None

    def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as problem:
            # h11's own words may quote a header; its hint can be 501, which no document allows.
            kind = Kind.HEADERS_TOO_LARGE if problem.error_status_hint == 431 else Kind.PROTOCOL
            raise Refusal(kind, "This is not a request by HTTP/1.1 (RFC 9112).") from None

    def _start_next_cycle(self) -> None:
        """Tell h11 that the reply is out: it did not see it, since replies are written by hand."""
        self._http.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        self._http.send(h11.EndOfMessage())
        self._http.start_next_cycle()

    async def _send_in_turn(self, reply: Reply, received: float) -> bool:
        """Write a reply, an answer as soon as there is a slot for it; False when the client left early."""
        if self._slots is None or reply.answer is None:
            return await self._send(reply, received)
        # A client that leaves gives up its turn.
        turn = asyncio.ensure_future(self._slots.acquire())
        gone = asyncio.ensure_future(self._left.wait())
        self._responder.metrics.waits(reply.answer, 1)
        try:
            await asyncio.wait((turn, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._responder.metrics.waits(reply.answer, -1)
            gone.cancel()
            if not turn.done():
                turn.cancel()
        if not turn.done() or turn.cancelled():
            return False
        try:
            return await self._send(reply, self._clock())
        finally:
            self._slots.release()

    async def _send(self, reply: Reply, received: float) -> bool:
        """Write a reply, each part when it is due after `received`; False when the client left early."""
        count = _Count(self._responder.metrics, reply, received)
        try:
            for write in reply.writes:
                due = received + write.due_ms / 1000
                if await self._is_there_at(due):
                    with contextlib.suppress(*((ConnectionError,) if reply.goes_on else ())):
                        self._writer.write(write.data)
                        await self._writer.drain()
                elif reply.goes_on:
                    await asyncio.sleep(due - self._clock())
                else:
                    return False
                count.wrote(write.tokens, self._clock())
            count.complete = True
            return not self._left.is_set()
        finally:
            count.end()

    async def _ends(self, reply: Reply) -> bool:
        """Do what follows the last write; whether that ends the connection."""
        if reply.end is End.HANG:
            await self._left.wait()
        elif reply.end is End.RESET:
            # A close with nothing to linger for is a reset (RFC 9293, 3.10.4).
            connection = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return reply.end is not End.FRAMED or not reply.keep_alive

    async def _is_there_at(self, deadline: float) -> bool:
        """Wait until the deadline; False as soon as the client has gone."""
        if deadline <= self._clock():
            # No need to wait, so a client that closed its sending half gets its reply all the same.
            await asyncio.sleep(0)
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._left.wait()
        return not self._left.is_set()

    async def _linger(self) -> None:
        """
        Close the sending half and read on for a while (RFC 9112, 9.6).

        Closing with unread bytes makes TCP reset the connection, and the client may lose the reply.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                self._writer.write_eof()
                while await self._arrived.get():
                    pass


class _Count:
    """Counts one reply's tokens into the metrics; replies without an answer are not counted."""

    def __init__(self, metrics: Metrics, reply: Reply, received: float) -> None:
        self.complete = False
        self._metrics = metrics
        self._answer = reply.answer
        self._last = received
        self._first = True
        if self._answer:
            metrics.started(self._answer)

    def wrote(self, tokens: int, now: float) -> None:
        """A part was written."""
        if self._answer and tokens:
            self._metrics.wrote(self._answer, tokens, now - self._last, first=self._first)
            self._last, self._first = now, False

    def end(self) -> None:
        """Nothing more will be written."""
        if self._answer:
            self._metrics.ended(self._answer, complete=self.complete)


def _declared_length(request: h11.Request) -> int:
    return next((int(value) for name, value in request.headers if name == b"content-length"), 0)


def _require_size(size: int) -> None:
    if size > MAX_BODY:
        raise Refusal(Kind.TOO_LARGE, f"A body can have {MAX_BODY} bytes at most.")


def _request(start: h11.Request, body: bytes) -> Request:
    return Request(
        method=start.method.decode("latin-1"),
        target=start.target.decode("latin-1"),
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in start.headers),
        body=body,
        http_version=start.http_version.decode("latin-1"),
    )
