"""One request on its way, and everything noted about it: reads are stamped as they come and looked into afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from gevent.event import Event

from streamgauge.load.connection import BrokenOffError
from streamgauge.load.facts import Facts, Piece
from streamgauge.load.judge import End, judge
from streamgauge.load.loopclock import now_us
from streamgauge.load.reading import Reading, reading_for
from streamgauge.load.request import LoadRequest
from streamgauge.load.response import ResponseReader
from streamgauge.load.turns import Turns
from streamgauge.metrics.record import Judged, Record

__all__ = ["Attempt", "RawRead", "Timeouts"]

_CLOSED = BrokenOffError(End.RESET, "the connection was closed without an answer")

RawRead = tuple[int, int, bytes]
"""When a read returned, since when its bytes may have been there (both µs, monotonic), and the bytes."""

_MOST_HELD = 1 << 18
"""So many bytes wait to be looked into, in an answer that goes on."""

_MOST_KEPT = 1 << 20
"""Of an answer that is longer than this, the bytes are not kept."""

_LAST_CHUNK = b"\r\n\r\n"
"""The chunked coding ends in an empty line (RFC 9112, 7.1): a read that ends otherwise does not complete the message."""


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


class Attempt:
    """
    One request on its way; a :class:`streamgauge.load.connection.Receiver`.

    Attributes:
        connect_us: how long its connection took.
        replaced: whether it was sent again, since the server had closed a kept connection without an answer.
        end, said: how it ended, once :meth:`wait` has returned.
        answered: whether any byte came back.
    """

    def __init__(
        self, request: LoadRequest, timeouts: Timeouts, scheduled: int, judged: Judged, *, warm_up: bool
    ) -> None:
        self.request = request
        self.connect_us = 0
        self.replaced = False
        self.end, self.said = End.STOPPED, ""
        self.answered = False
        self.reader = ResponseReader()
        self._timeouts = timeouts
        self._scheduled = scheduled
        self._judged = judged
        self._warm_up = warm_up
        self._dispatched: int | None = None
        self._written: int | None = None
        self._headers: int | None = None
        self._first_byte: int | None = None
        self._last_read = 0
        self._body_bytes = 0
        self._reading: Reading | None = None
        self._reads: list[RawRead] = []
        self._decoded = 0
        self._bodies: list[Piece] = []
        self._held = self._kept = 0
        self._begun = self._deferring = False
        self._news = Event()
        self._closed: BrokenOffError | None = None
        self._closed_at = 0
        self._over = self._timer_struck = False
        self._over_at = 0
        self._timer: Any = None

    def begin(self) -> None:
        """The first byte is about to be sent."""
        self._written = self._closed = None
        self._over = False
        self._news.clear()
        self._dispatched = now_us()
        self._arm(self._limit()[1])

    def wait(self, turns: Turns) -> None:
        """Wait for the end, whatever it is; what has to be computed waits for its turn."""
        while not self._over:
            self._news.wait()
            self._news.clear()
            turns.wait()
            self._settle()

    def give_up(self, problem: BrokenOffError) -> None:
        """It never got a connection."""
        self.end, self.said = problem.end, problem.said

    def sent(self, now: int) -> None:
        """The last byte was handed to the system."""
        self._written = now

    def take(self, data: bytes, now: int, since: int) -> None:
        """Keep what one read returned; it is news only where the message may end with it."""
        self.answered = True
        self._last_read = now
        self._reads.append((now, since, data))
        self._held += len(data)
        if not self._deferring or self._held > _MOST_HELD or data.endswith(_LAST_CHUNK) or len(data) < len(_LAST_CHUNK):
            self._news.set()

    def over(self, problem: BrokenOffError | None) -> None:
        """The connection has ended."""
        self._closed = problem or _CLOSED
        self._closed_at = now_us()
        self._news.set()

    def _settle(self) -> None:
        """Look whether it is over."""
        self._decode()
        closed, reader = self._closed, self.reader
        if closed is _CLOSED:
            reader.close()
        if reader.complete:
            self._finish(End.COMPLETE, "", self._last_read)
        elif reader.error:
            self._finish(End.NOT_HTTP, reader.error, self._last_read)
        elif closed is _CLOSED and self.answered:
            self._finish(End.CUT, "the connection was closed inside the answer", self._closed_at)
        elif closed is not None:
            self._finish(closed.end, closed.said, self._closed_at)
        else:
            self._go_on()

    def _go_on(self) -> None:
        """It is not over: see to the limit that applies from now on."""
        self._judge()
        begun = self._facts.tokens if self.request.stream else self._first_byte is not None
        if not (begun and not self._begun) and not self._timer_struck:
            return
        # From the first token on, reads are no news by themselves: only the chunked coding's end, or the connection's.
        self._begun, self._timer_struck = begun, False
        self._deferring = begun and not self.reader.sized
        limit, until = self._limit()
        if until <= now_us():
            self._finish(limit, self._explain(limit), now_us())
        else:
            self._arm(until)

    @property
    def reusable(self) -> bool:
        """Whether its connection can carry another request."""
        return self.end is End.COMPLETE and self.reader.reusable

    def reads(self) -> Sequence[RawRead] | None:
        """Every read, oldest first; None when the answer was too long to be kept."""
        return None if self._kept > _MOST_KEPT else self._reads

    def record(self, end: End, said: str) -> Record:
        """What became of it; the exchange is over now."""
        closed = self._over_at if end is not End.STOPPED and self._over_at else now_us()
        self._stop_timer()
        self._decode()
        self._judge()
        if self._reading is not None:
            self._reading.close(complete=end is End.COMPLETE)
        facts, reader, request = self._facts, self.reader, self.request
        outcome, detail = judge(
            end,
            said,
            status=reader.status,
            reason=reader.reason,
            headers=reader.headers,
            facts=facts,
            max_tokens=request.max_tokens,
        )
        # A request that never got a connection was never dispatched; the moment of giving up stands for it.
        dispatched = closed if self._dispatched is None else self._dispatched
        return Record(
            id=request.id,
            target=request.target,
            operation=request.operation.name,
            stream=request.stream,
            dispatched=dispatched,
            scheduled=self._scheduled,
            closed=closed,
            outcome=outcome,
            connect_us=self.connect_us,
            written=self._written,
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
            warm_up=self._warm_up,
            judged=facts.judged,
            violations=facts.violations,
            first_lag_us=facts.first_lag_us,
            lag_us=facts.lag_us,
            replaced=self.replaced,
        )

    def _decode(self) -> None:
        """Take the HTTP framing off what has come since the last time."""
        for now, since, data in self._reads[self._decoded :]:
            body = self.reader.feed(data)
            if self._reading is None:
                if not self.reader.status:
                    continue
                self._headers = now
                self._reading = reading_for(
                    self.request.operation,
                    stream=self.request.stream,
                    status=self.reader.status,
                    media_type=self.reader.media_type,
                    judged=self._judged,
                )
            if body:
                self._first_byte = self._first_byte or now
                self._body_bytes += len(body)
                self._bodies.append((body, now, now - since))
        self._kept += self._held
        self._held = 0
        if self._kept > _MOST_KEPT:
            self._reads.clear()
            self._judge()
        self._decoded = len(self._reads)

    def _judge(self) -> None:
        """Look into the bodies that wait for it."""
        if self._reading is not None:
            self._reading.feed(self._bodies)
            self._bodies.clear()

    def _finish(self, end: End, said: str, at: int) -> None:
        self.end, self.said, self._over_at, self._over = end, said, at, True
        self._stop_timer()

    def _arm(self, until: int) -> None:
        self._stop_timer()
        self._timer = gevent.get_hub().loop.timer(max(until - now_us(), 0) / 1_000_000)
        self._timer.start(self._on_timer)

    def _on_timer(self) -> None:
        # Not set with each read: whether the time is over is looked up when it would be.
        self._timer_struck = True
        self._news.set()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def _limit(self) -> tuple[End, int]:
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

    def _explain(self, limit: End) -> str:
        return {
            End.TIMEOUT_FIRST_TOKEN: f"no token within {self._timeouts.first_token:g} s",
            End.TIMEOUT_IDLE: f"no byte for {self._timeouts.idle:g} s",
        }.get(limit, f"not over within {self._timeouts.total:g} s")

    @property
    def _facts(self) -> Facts:
        return Facts() if self._reading is None else self._reading.facts
