"""
Reads an answer's body as it arrives and notes what a record needs: when tokens came, what was finished, what is wrong.

Sans-I/O. Nothing here decides; :mod:`streamgauge.load.judge` does.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from streamgauge.contract.contract import CHAT, JSON, Operation
from streamgauge.load.facts import EXCERPT, Facts, Piece, note_violation, read_json, tokens_of
from streamgauge.load.stream import StreamReading
from streamgauge.metrics.record import Judged, Outcome
from streamgauge.wire.json import objects_in

__all__ = ["Reading", "reading_for"]


class Reading(Protocol):
    """Takes a body piece by piece."""

    facts: Facts

    def feed(self, pieces: Sequence[Piece]) -> None:
        """Take what came next, read by read."""

    def close(self, *, complete: bool) -> None:
        """Say that the body is over, and whether it ended as its framing announced."""


def reading_for(
    operation: Operation, *, stream: bool, status: int, media_type: str, judged: Judged = Judged.ALL
) -> Reading:
    """How to read the body of an answer with this status and media type; `judged` says how closely, for a stream."""
    if not 200 <= status < 300:
        return _Refusal()
    if not stream or media_type == JSON:
        return _Whole(operation, stream_wanted=stream)
    return StreamReading(operation, judged)


class _Refusal:
    def __init__(self) -> None:
        self.facts = Facts()

    def feed(self, pieces: Sequence[Piece]) -> None:
        for data, _, _ in pieces:
            self.facts.excerpt = (self.facts.excerpt + data)[:EXCERPT]

    def close(self, *, complete: bool) -> None:
        pass


class _Whole:
    """A body of one JSON value."""

    def __init__(self, operation: Operation, *, stream_wanted: bool) -> None:
        self.facts = Facts()
        self._stream_wanted = stream_wanted
        self._validator = operation.response(200, JSON)
        self._part = "message" if operation.family == CHAT else ""
        self._pieces: list[bytes] = []

    def feed(self, pieces: Sequence[Piece]) -> None:
        for data, _, lag in pieces:
            self.facts.lag_us = lag  # the last read's: the answer is there with it
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
        payload = read_json(text, "the body", facts)
        if isinstance(payload, dict) and payload.get("error") is not None:
            facts.defects[Outcome.IN_BAND_ERROR] = text[:EXCERPT]
        elif self._stream_wanted:
            facts.defects[Outcome.MALFORMED_SSE] = f"answered with {JSON} where a stream was asked for"
        elif payload is not None:
            if not self._validator.accepts(payload):
                note_violation(self._validator, payload, "the body", facts)
            self._take(payload)

    def _take(self, payload: Any) -> None:
        facts = self.facts
        if not isinstance(payload, dict):
            return
        facts.usage(payload.get("usage"))
        choices = objects_in(payload.get("choices"))
        for choice in choices:
            facts.tokens |= tokens_of(choice.get(self._part) if self._part else choice)[1]
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                facts.finish_reason = reason
            else:
                facts.defects.setdefault(Outcome.TRUNCATED, f"no finish reason for choice {choice.get('index', 0)}")
        if not choices:
            facts.defects.setdefault(Outcome.TRUNCATED, "the body holds no choice")
        elif not facts.tokens:
            facts.defects.setdefault(Outcome.EMPTY, "the answer is complete, but holds no token")
