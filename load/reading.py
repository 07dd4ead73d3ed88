"""
Reads an answer's body as it arrives and notes what a record needs: when tokens came, what was finished, what is wrong.

Sans-I/O. Nothing here decides; :mod:`streamgauge.load.judge` does.
"""

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from streamgauge.contract.contract import CHAT, JSON, SSE, Operation
from streamgauge.contract.validator import Validator
from streamgauge.metrics.record import Outcome
from streamgauge.wire.sse import DONE, Event, SseReader

__all__ = ["Facts", "Reading", "reading_for"]

EXCERPT = 4000
"""So many bytes of a refusal are kept for its detail."""


@dataclass(slots=True)
class Facts:
    """
    What a body showed.

    Attributes:
        defects: kind of failure → what was seen first of it.
        tokens: whether anything was generated at all.
        excerpt: the beginning of a refusal's body.

    The others are the fields of :class:`streamgauge.metrics.record.Record`.
    """

    first_event: int | None = None
    first_visible: int | None = None
    token_times: list[int] = field(default_factory=list)
    finish: int | None = None
    done: int | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tokens: bool = False
    defects: dict[Outcome, str] = field(default_factory=dict)
    excerpt: bytes = b""

    def usage(self, usage: Any) -> None:
        """Take the server's usage, where it has one."""
        if isinstance(usage, dict):
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.prompt_tokens = prompt if type(prompt) is int else self.prompt_tokens
            self.completion_tokens = completion if type(completion) is int else self.completion_tokens


class Reading(Protocol):
    """Takes a body piece by piece."""

    facts: Facts

    def feed(self, data: bytes, time: int) -> None:
        """Take bytes that arrived at `time`, in microseconds."""

    def close(self, *, complete: bool) -> None:
        """Say that the body is over, and whether it ended as its framing announced."""


def reading_for(operation: Operation, *, stream: bool, status: int, media_type: str) -> Reading:
    """How to read the body of an answer with this status and media type."""
    if not 200 <= status < 300:
        return _Refusal()
    if not stream or media_type == JSON:
        return _Whole(operation, stream_wanted=stream)
    return _Stream(operation)


class _Refusal:
    def __init__(self) -> None:
        self.facts = Facts()

    def feed(self, data: bytes, time: int) -> None:
        self.facts.excerpt = (self.facts.excerpt + data)[:EXCERPT]

    def close(self, *, complete: bool) -> None:
        pass


class _Stream:
    """A body of server-sent events."""

    def __init__(self, operation: Operation) -> None:
        self.facts = Facts()
        self._sse = SseReader()
        self._validator = operation.response(200, SSE)
        self._part = "delta" if operation.family == CHAT else ""
        self._open: set[int] = set()  # choices without a finish reason
        self._finished: set[int] = set()

    def feed(self, data: bytes, time: int) -> None:
        for event in self._sse.feed(data, time):
            if event.dispatched:
                self._event(event, time)

    def close(self, *, complete: bool) -> None:
        self._sse.close()
        defects = self.facts.defects
        if not complete:
            return
        if self._sse.excess is not None:
            defects.setdefault(Outcome.CLIENT_OVERLOAD, str(self._sse.excess))
        if any(line.field for line in self._sse.unfinished):  # a comment belongs to no event
            defects.setdefault(Outcome.MALFORMED_SSE, "the last event has no blank line behind it")
        if not (self._open or self._finished):
            defects.setdefault(Outcome.TRUNCATED, "the stream ended without any choice")
        elif self._open:
            defects.setdefault(Outcome.TRUNCATED, f"no finish reason for choice {min(self._open)}")
        if self.facts.done is None:
            defects.setdefault(Outcome.TRUNCATED, "the stream ended without [DONE]")
        if not self.facts.tokens:
            defects.setdefault(Outcome.EMPTY, "the stream is complete, but holds no token")

    def _event(self, event: Event, time: int) -> None:
        facts = self.facts
        if facts.first_event is None:
            facts.first_event = time
        if event.data == DONE:
            facts.done = time if facts.done is None else facts.done
            return
        if event.excess is not None:
            facts.defects.setdefault(Outcome.CLIENT_OVERLOAD, f"event {event.number}: {event.excess}")
            return
        if event.not_utf8 is not None:
            facts.defects.setdefault(Outcome.MALFORMED_SSE, f"event {event.number} is not UTF-8")
        payload = _json(event.data, f"event {event.number}", facts)
        if payload is None:
            return
        if event.type == "error" or (isinstance(payload, dict) and payload.get("error") is not None):
            facts.defects.setdefault(Outcome.IN_BAND_ERROR, f"event {event.number}: {event.data[:EXCERPT]}")
            return
        _check_schema(self._validator, payload, f"event {event.number}", facts)
        if isinstance(payload, dict):
            facts.usage(payload.get("usage"))
            self._take_choices(payload.get("choices"), time)

    def _take_choices(self, choices: Any, time: int) -> None:
        facts = self.facts
        bearing = False
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            part = choice.get(self._part) if self._part else choice
            visible, generated = _tokens_of(part)
            bearing = bearing or generated
            if visible and facts.first_visible is None:
                facts.first_visible = time
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                facts.finish, facts.finish_reason = time, reason
                self._finished.add(index)
                self._open.discard(index)
            elif generated or index not in self._finished:
                # A delta behind the finish reason that carries nothing opens nothing: some servers add usage there.
                self._open.add(index)
        if bearing:
            facts.tokens = True
            facts.token_times.append(time)


class _Whole:
    """A body of one JSON value."""

    def __init__(self, operation: Operation, *, stream_wanted: bool) -> None:
        self.facts = Facts()
        self._stream_wanted = stream_wanted
        self._validator = operation.response(200, JSON)
        self._part = "message" if operation.family == CHAT else ""
        self._pieces: list[bytes] = []

    def feed(self, data: bytes, time: int) -> None:
        self._pieces.append(data)

    def close(self, *, complete: bool) -> None:
        if not complete:
            return
        facts, body = self.facts, b"".join(self._pieces)
        if not body:
            facts.defects[Outcome.TRUNCATED] = "the body is empty"
            return
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as problem:
            facts.defects[Outcome.MALFORMED_JSON] = f"byte {problem.start} is not UTF-8"
            return
        payload = _json(text, "the body", facts)
        if isinstance(payload, dict) and payload.get("error") is not None:
            facts.defects[Outcome.IN_BAND_ERROR] = text[:EXCERPT]
        elif self._stream_wanted:
            facts.defects[Outcome.MALFORMED_SSE] = f"answered with {JSON} where a stream was asked for"
        elif payload is not None:
            _check_schema(self._validator, payload, "the body", facts)
            self._take(payload)

    def _take(self, payload: Any) -> None:
        facts = self.facts
        if not isinstance(payload, dict):
            return
        facts.usage(payload.get("usage"))
        choices = payload.get("choices")
        choices = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        for choice in choices:
            facts.tokens |= _tokens_of(choice.get(self._part) if self._part else choice)[1]
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                facts.finish_reason = reason
            else:
                facts.defects.setdefault(Outcome.TRUNCATED, f"no finish reason for choice {choice.get('index', 0)}")
        if not choices:
            facts.defects.setdefault(Outcome.TRUNCATED, "the body holds no choice")
        elif not facts.tokens:
            facts.defects.setdefault(Outcome.EMPTY, "the answer is complete, but holds no token")


def _tokens_of(part: Any) -> tuple[bool, bool]:
    """Whether a delta, message or text choice holds visible text, and whether it holds anything generated."""
    if not isinstance(part, dict):
        return False, False
    visible = any(isinstance(part.get(name), str) and part[name] for name in ("content", "text"))
    hidden = any(isinstance(part.get(name), str) and part[name] for name in ("reasoning", "reasoning_content"))
    calls = part.get("tool_calls")
    return visible, visible or hidden or (isinstance(calls, list) and bool(calls))


def _check_schema(validator: Validator, payload: Any, where: str, facts: Facts) -> None:
    # Only the first one is put into words: that takes a hundred times as long as the yes or no.
    if not validator.accepts(payload) and Outcome.SCHEMA_VIOLATION not in facts.defects:
        facts.defects[Outcome.SCHEMA_VIOLATION] = f"{where}: {validator.problems(payload)[0]}"


def _json(text: str, where: str, facts: Facts) -> Any:
    """The text's value; None, with the defect noted, where it has none."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as problem:
        facts.defects.setdefault(Outcome.MALFORMED_JSON, f"{where}: {problem}")
        return None
    if value is None:
        facts.defects.setdefault(Outcome.SCHEMA_VIOLATION, f"{where}: null")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON (RFC 8259, section 6)")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
