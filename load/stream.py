"""Reads an answer's stream of server-sent events as it arrives. Sans-I/O; decides nothing."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import orjson

from streamgauge.contract.contract import CHAT, SSE, Operation
from streamgauge.contract.indifference import is_indifferent
from streamgauge.contract.validator import Validator
from streamgauge.load.facts import EXCERPT, Facts, Piece, note_violation, read_json, tokens_of
from streamgauge.load.likeness import TEXTS, Likeness
from streamgauge.metrics.record import Judged, Outcome
from streamgauge.wire.json import objects_in
from streamgauge.wire.sse import DONE, LONGEST_LINE, Event, SseReader

__all__ = ["StreamReading"]

_DONE = DONE.encode()

_MANY = 64
"""So many reads are tried to be read at once: where they cannot, it costs each of them little."""


class StreamReading:
    """
    A body of server-sent events, read by the lean twin of :class:`streamgauge.wire.sse.SseReader`.

    Nearly every event of a completion is `data: `, a payload, LF, LF. As long as a stream is made of these, its payloads are cut
    out as bytes. With the first byte that is not so the strict reader takes over, so that both judge alike (a property test
    holds them equal).
    """

    def __init__(self, operation: Operation, judged: Judged) -> None:
        self.facts = Facts(judged=judged)
        self._validator = operation.response(200, SSE)
        self._part = "delta" if operation.family == CHAT else ""
        # Where the schema does not ask what a text says, events that are alike but for it need no look of their own.
        self._likeness = Likeness() if judged is Judged.ENDS or _is_indifferent(self._validator) else None
        self._strict: SseReader | None = None
        self._rest = b""
        self._number = 0
        self._open: set[int] = set()  # choices without a finish reason
        self._finished: set[int] = set()

    def feed(self, pieces: Sequence[Piece]) -> None:
        """Take what came next, read by read."""
        for start in range(0, len(pieces), _MANY):
            many = pieces[start : start + _MANY]
            for data, time, lag in many[self._read_alike(many) :]:
                self._feed(data, time, lag)

    def _read_alike(self, pieces: Sequence[Piece]) -> int:
        """Read events that are alike at once where each came alone, as most do; returns how many pieces these were."""
        if self._likeness is None or self._rest or len(pieces) < 2:
            return 0
        bodies, times, lags = zip(*pieces, strict=True)
        alike, size = self._likeness.run(b"".join(bodies))
        bodies = bodies[:alike]
        is_one_each = len(bodies) == alike and sum(map(len, bodies)) == size
        if not alike or not is_one_each or not all(map(bytes.endswith, bodies, repeat(b"\n\n"))):
            return 0
        facts = self.facts
        self._number += alike
        facts.token_times += times[:alike]
        facts.lag_us = max(facts.lag_us, *lags[:alike])
        return alike

    def _feed(self, data: bytes, time: int, lag: int) -> None:
        if self._strict is not None:
            self._read_strictly(self._strict.feed(data, time), time, lag)
            return
        text = self._rest + data if self._rest else data
        end = text.rfind(b"\n\n") + 2
        if len(text) > LONGEST_LINE:
            self._turn_strict(text, time, lag)
        elif end < 2:
            self._rest = text
        else:
            self._rest = text[end:]
            read = self._read_block(text[:end], time, lag)
            if read < end:
                self._turn_strict(text[read:], time, lag)

    def _read_block(self, block: bytes, time: int, lag: int) -> int:
        """Read whole events from the beginning on, as long as they are plain; returns how many bytes they are."""
        if self.facts.first_event is None and block.startswith(b"data: "):
            self.facts.first_event = time
        read = 0
        while read < len(block):
            if self._likeness is None:
                return read + self._read_plain(block[read:], time, lag)
            alike, size = self._likeness.run(block[read:] if read else block)
            if alike:
                self._number += alike
                self._token(time, lag, alike)
            else:
                end = block.find(b"\n\n", read)
                size = self._read_event(block[read:end], time, lag) if end > 0 else 0
                if not size:
                    break
            read += size
        return read

    def _read_plain(self, block: bytes, time: int, lag: int) -> int:
        payloads = block[6:-2].split(b"\n\ndata: ")
        if block[:6] != b"data: " or block.count(b"\n") != 2 * len(payloads) or b"\r" in block:
            return self._read_event_by_event(block, time, lag)
        tokens, first = 0, self._number
        loads, accepts, is_chat, going_on = orjson.loads, self._validator.accepts, bool(self._part), self._going_on()
        for number, data in enumerate(payloads):
            try:
                # What nearly every event is, told at once: visible text of a choice that was begun and goes on, and nothing else.
                payload = loads(data)
                (choice,) = payload["choices"]
                text = choice["delta"]["content"] if is_chat else choice["text"]
                if (
                    choice["finish_reason"] is None
                    and choice["index"] in going_on
                    and text.__class__ is str
                    and text != ""
                    and payload.get("usage") is None
                    and payload.get("error") is None
                    and accepts(payload)
                ):
                    tokens += 1
                    continue
            except (KeyError, TypeError, ValueError, AttributeError):
                pass
            self._number = first + number
            if not self._read_event(b"data: " + data, time, lag):
                read = sum(map(len, payloads[:number])) + 8 * number
                break
            going_on = self._going_on()
        else:
            self._number = first + len(payloads)
            read = len(block)
        if tokens:
            self._token(time, lag, tokens)
        return read

    def _read_event_by_event(self, block: bytes, time: int, lag: int) -> int:
        read = 0
        for event in block[:-2].split(b"\n\n"):
            size = self._read_event(event, time, lag)
            if not size:
                break
            read += size
        return read

    def _going_on(self) -> set[int]:
        """The choices that have begun to say something and go on."""
        return self._open if self.facts.first_visible is not None else set()

    def _read_event(self, event: bytes, time: int, lag: int) -> int:
        """Read one event, given without its blank line; returns its bytes with it, 0 when it is not plain."""
        if not event.startswith(b"data: ") or b"\n" in event or b"\r" in event:
            return 0
        data, is_token = event[6:], False
        if data == _DONE:
            self._done(time)
        else:
            try:
                payload = orjson.loads(data)
            except orjson.JSONDecodeError:
                payload = None
            if payload is None:  # orjson is stricter than JSON here and there
                try:
                    self._take_text(data.decode(), time, lag)
                except UnicodeDecodeError:
                    return 0
            else:
                is_token = self._take_payload(payload, data, time, lag)
        self._learn(event if is_token else None)
        self._number += 1
        return len(event) + 2

    def _learn(self, event: bytes | None) -> None:
        """From an event that others may be like; None is one that none may be like."""
        if self._likeness is None:
            return
        if event is None:
            self._likeness.forget()
        elif not self._likeness.learn(event):
            self._likeness = None

    def close(self, *, complete: bool) -> None:
        """Say that the body is over, and whether it ended as its framing announced."""
        if self._rest:
            self._turn_strict(self._rest, 0, 0)
        if self._strict is not None:
            self._strict.close()
        defects = self.facts.defects
        if not complete:
            return
        if self._strict is not None and self._strict.excess is not None:
            defects.setdefault(Outcome.CLIENT_OVERLOAD, str(self._strict.excess))
        if self._strict is not None and any(line.field for line in self._strict.unfinished):
            # A comment belongs to no event.
            defects.setdefault(Outcome.MALFORMED_SSE, "the last event has no blank line behind it")
        if not (self._open or self._finished):
            defects.setdefault(Outcome.TRUNCATED, "the stream ended without any choice")
        elif self._open:
            defects.setdefault(Outcome.TRUNCATED, f"no finish reason for choice {min(self._open)}")
        if self.facts.done is None:
            defects.setdefault(Outcome.TRUNCATED, "the stream ended without [DONE]")
        if not self.facts.tokens:
            defects.setdefault(Outcome.EMPTY, "the stream is complete, but holds no token")

    def _turn_strict(self, text: bytes, time: int, lag: int) -> None:
        """From here on the strict reader reads; `text` begins where an event does."""
        self._rest, self._likeness = b"", None
        self._strict = SseReader()
        if self._number:
            self._strict.feed(b":\n\n")  # a byte order mark counts at the very beginning only
        self._read_strictly(self._strict.feed(text, time), time, lag)

    def _read_strictly(self, events: list[Event], time: int, lag: int) -> None:
        for event in events:
            if event.dispatched:
                self._take_event(event, time, lag)
                self._number += 1

    def _take_event(self, event: Event, time: int, lag: int) -> None:
        facts = self.facts
        if facts.first_event is None:
            facts.first_event = time
        if event.data == DONE:
            self._done(time)
            return
        if event.excess is not None:
            facts.defects.setdefault(Outcome.CLIENT_OVERLOAD, f"event {self._number}: {event.excess}")
            return
        if event.not_utf8 is not None:
            facts.defects.setdefault(Outcome.MALFORMED_SSE, f"event {self._number} is not UTF-8")
        self._take_text(event.data, time, lag, is_error=event.type == "error")

    def _done(self, time: int) -> None:
        self.facts.done = time if self.facts.done is None else self.facts.done

    def _take_text(self, text: str, time: int, lag: int, *, is_error: bool = False) -> None:
        payload = read_json(text, f"event {self._number}", self.facts)
        if is_error and payload is not None:
            payload = {"error": payload}
        if payload is not None:
            self._take_payload(payload, text, time, lag)

    def _take_payload(self, payload: Any, text: str | bytes, time: int, lag: int) -> bool:
        """Take an event's value; whether it is a right one that bears a token of one choice, and nothing else worth knowing."""
        facts = self.facts
        if not isinstance(payload, dict):
            if not self._validator.accepts(payload):
                self._violation(payload)
            return False
        if payload.get("error") is not None:
            said = text if isinstance(text, str) else text.decode("utf-8", "replace")
            facts.defects.setdefault(Outcome.IN_BAND_ERROR, f"event {self._number}: {said[:EXCERPT]}")
            return False
        is_right = self._validator.accepts(payload)
        if not is_right:
            self._violation(payload)
        usage = payload.get("usage")
        if usage is not None:
            facts.usage(usage)
        return self._take_choices(payload.get("choices"), time, lag) and usage is None and is_right

    def _violation(self, payload: Any) -> None:
        note_violation(self._validator, payload, f"event {self._number}", self.facts)

    def _take_choices(self, choices: Any, time: int, lag: int) -> bool:
        bearing = finished = False
        for choice in objects_in(choices):
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            visible, generated = tokens_of(choice.get(self._part) if self._part else choice)
            bearing = bearing or generated
            if visible and self.facts.first_visible is None:
                self.facts.first_visible = time
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                finished = True
                self.facts.finish, self.facts.finish_reason = time, reason
                self._finished.add(index)
                self._open.discard(index)
            elif generated or index not in self._finished:
                # A delta behind the finish reason that carries nothing opens nothing: some servers add usage there.
                self._open.add(index)
        if bearing:
            self._token(time, lag, 1)
        return bearing and not finished and len(choices) == 1

    def _token(self, time: int, lag: int, events: int) -> None:
        facts = self.facts
        if not facts.tokens:
            facts.tokens = True
            facts.first_lag_us = lag
        if lag > facts.lag_us:
            facts.lag_us = lag
        if events == 1:
            facts.token_times.append(time)
        else:
            facts.token_times += [time] * events


@lru_cache(maxsize=64)
def _is_indifferent(validator: Validator) -> bool:
    return is_indifferent(validator.root, TEXTS)
