"""One connection: reads requests with h11, writes replies when they are due (asyncio)."""

import asyncio
import contextlib
import socket
import struct

import h11

from streamgauge.reference.bell import Bell
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.messages import End, Reply, Request, Write
from streamgauge.reference.metrics import Metrics
from streamgauge.reference.responder import Responder
from streamgauge.reference.room import Job
from streamgauge.reference.turns import Turns

__all__ = ["MAX_BODY", "Connection"]

MAX_BODY = 8 * 2**20
"""Greatest request body in bytes."""

_READ_SIZE = 2**16
_READ_AHEAD = 4
_LINGER_SECONDS = 2.0
_WRITES_IN_A_ROW = 8
"""After so many that need no waiting, other connections have their turn."""


class Connection:
    """
    One client's connection: requests one after the other, each answered before the next is looked at.

    Args:
        responder: makes the replies.
        turns: whose answer has its place when.
        reader, writer: the two halves of the connection.
    """

    def __init__(
        self, responder: Responder, turns: Turns, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        self._responder = responder
        self._turns = turns
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue(_READ_AHEAD)
        self._left = False
        self._bell = Bell(loop)
        self._clock = loop.time

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
        self._left = True
        self._bell.ring()
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
            self._turns.catch_up()
            reply = self._responder.reply(request, room=self._turns.pace.room)
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
        """Write a reply, an answer as soon as there is a place for it; False when the client left early."""
        if reply.answer is None:
            return await self._send(reply, received)
        answer, parameters = reply.answer, reply.answer.parameters
        job = Job(parameters.prompt_tokens, answer.steps, parameters.reserved_tokens, self._bell.ring)
        # A client that leaves gives up its turn.
        try:
            self._turns.arrive(job, received)
            if job.admitted is None:
                self._responder.metrics.waits(answer, 1)
                try:
                    while job.admitted is None:
                        if self._left:
                            return False
                        await self._bell.wait()
                finally:
                    self._responder.metrics.waits(answer, -1)
            return await self._send(reply, received, job)
        finally:
            self._turns.leave(job)

    async def _send(self, reply: Reply, received: float, job: Job | None = None) -> bool:
        """Write a reply, each part when it is due by its job, or after `received`; False when the client left early."""
        count = _Count(self._responder.metrics, reply, received, job)
        at_once = 0
        try:
            for write in reply.writes:
                if self._is_due(write, received, job):
                    # What is due is written, also for a client that closed its sending half and waits for its reply.
                    at_once += 1
                    if at_once % _WRITES_IN_A_ROW == 0:
                        await asyncio.sleep(0)
                elif not await self._until_due(write, received, job, stays=reply.goes_on):
                    return False
                with contextlib.suppress(*((ConnectionError,) if reply.goes_on else ())):
                    self._writer.write(write.data)
                    await self._writer.drain()
                count.wrote(write.tokens, self._clock())
            count.complete = True
            return not self._left
        finally:
            count.end(self._clock())

    def _when(self, write: Write, received: float, job: Job | None) -> float | None:
        """The time at which a part is due; None while nobody can tell."""
        return self._turns.pace.due(job, write.due_ms) if job else received + write.due_ms / 1000

    def _is_due(self, write: Write, received: float, job: Job | None) -> bool:
        due = self._when(write, received, job)
        return due is not None and due <= self._clock()

    async def _until_due(self, write: Write, received: float, job: Job | None, *, stays: bool) -> bool:
        """Wait until a part is due; False as soon as the client has gone, unless it `stays`."""
        while not self._is_due(write, received, job):
            if self._left and not stays:
                return False
            await self._bell.wait(self._when(write, received, job))
        return True

    async def _ends(self, reply: Reply) -> bool:
        """Do what follows the last write; whether that ends the connection."""
        if reply.end is End.HANG:
            while not self._left:
                await self._bell.wait()
        elif reply.end is End.RESET:
            # A close with nothing to linger for is a reset (RFC 9293, 3.10.4).
            connection = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return reply.end is not End.FRAMED or not reply.keep_alive

    async def _linger(self) -> None:
        """
        Close the sending half and read on for a while (RFC 9112, 9.6).

        Closing with unread bytes makes TCP reset the connection, and the client may lose the reply.
        """
        with contextlib.suppress(OSError):  # the time is over (TimeoutError), or the client has gone
            async with asyncio.timeout(_LINGER_SECONDS):
                self._writer.write_eof()
                while await self._arrived.get():
                    pass


class _Count:
    """Counts one reply's tokens into the metrics; replies without an answer are not counted."""

    def __init__(self, metrics: Metrics, reply: Reply, received: float, job: Job | None) -> None:
        self.complete = False
        self._metrics = metrics
        self._answer = reply.answer
        self._received = self._last = received
        self._first = True
        if self._answer:
            queued = job.admitted - received if job and job.admitted is not None else 0.0
            metrics.started(self._answer, queued)

    def wrote(self, tokens: int, now: float) -> None:
        """A part was written."""
        if self._answer and tokens:
            self._metrics.wrote(self._answer, tokens, now - self._last, first=self._first)
            self._last, self._first = now, False

    def end(self, now: float) -> None:
        """Nothing more will be written."""
        if self._answer:
            self._metrics.ended(self._answer, complete=self.complete, seconds=now - self._received)


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
