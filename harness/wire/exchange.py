"""
The exchange: one request and everything that came back, secrets already removed.

Raw bytes and read times are the only facts kept; status, headers, body, events and JSON are computed from them, so a
stored exchange is judged exactly as a fresh one.
"""

import enum
import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamgauge.wire.http import HttpResponse, Read, decode_response
from streamgauge.wire.json import JsonText, read_json
from streamgauge.wire.sse import DONE, MOST_EVENTS, Event, Excess, SseReader
from streamgauge.wire.unframed import decode_unframed

__all__ = ["Chunk", "Credential", "Ending", "Evidence", "Exchange", "SentRequest", "Stream", "reports_error"]


class Ending(enum.StrEnum):
    """How the transfer ended, as the client saw it."""

    COMPLETE = "complete"
    """The message ended as its framing announced."""

    CLOSED = "closed"
    """The server closed the connection before the message's end."""

    RESET = "reset"
    REFUSED = "refused"
    DNS = "dns"
    TLS = "tls"
    PROXY = "proxy"
    """The proxy opened no way to the target."""

    MALFORMED_HTTP = "malformed-http"
    TIMEOUT_CONNECT = "timeout-connect"
    TIMEOUT_IDLE = "timeout-idle"
    """No byte arrived for the idle limit."""

    TIMEOUT_TOTAL = "timeout-total"
    TOO_LARGE = "too-large"
    """The answer outgrew the recorder's limit, and reading stopped: how it would have ended is not known."""

    LEFT = "left"
    """The client left on purpose, as the request said beforehand; such an exchange does not hold `Evidence.ENDING`."""


class Credential(enum.StrEnum):
    """The form in which the key was sent."""

    VALID = "valid"
    """As the profile says."""

    UNCONFIGURED = "unconfigured"
    """The target has no key, so none was sent."""

    UNKNOWN = "unknown"
    """Sent by somebody else, who did not note it."""

    NONE = "none"
    EMPTY = "empty"
    """The profile's header field without a value."""

    WRONG = "wrong"
    """A made-up key in the profile's form."""

    ALTERED = "altered"
    """The right key but for its last character, in the profile's form."""

    LONGER = "longer"
    """The right key with one more character, in the profile's form."""

    RAW = "raw"
    """The right key alone in Authorization."""

    BEARER = "bearer"
    """The right key behind `Bearer` in Authorization."""

    SCHEME_LOWER = "scheme-lower"
    """The profile's form, but the word before the key in lower case."""

    SCHEME_UPPER = "scheme-upper"
    SPACED = "spaced"
    """The profile's form, but more than one space before the key."""

    X_API_KEY = "x-api-key"
    API_KEY = "api-key"
    XI_API_KEY = "xi-api-key"
    """The right key alone, in a header field of this name."""

    QUERY = "query"
    """The right key in the URL, as `api_key`."""

    TWO_HEADERS = "two-headers"
    """The profile's header field twice, first with the right key, then with a made-up one."""

    @property
    def usual(self) -> bool:
        """Whether nothing about the key was tried out."""
        return self in (Credential.VALID, Credential.UNCONFIGURED, Credential.UNKNOWN)

    @property
    def keyless(self) -> bool:
        """Whether the right key was left out, though the target has one."""
        return self in (
            Credential.NONE,
            Credential.EMPTY,
            Credential.WRONG,
            Credential.ALTERED,
            Credential.LONGER,
        )


class Evidence(enum.StrEnum):
    """What an exchange may hold beside the answer itself: everything when we sent it, less when somebody else stored it."""

    TIMES = "times"
    """When each read came."""

    FRAMING = "framing"
    """The body with its transfer coding, and what came behind it."""

    BYTES = "bytes"
    """The body's bytes as sent: not decoded to text and encoded again on the way."""

    ENDING = "ending"
    """How the transfer ended, and so whether the body is all there."""

    REQUEST = "request"
    """The body that was sent."""

    CREDENTIAL = "credential"
    """In which form the key was sent."""

    CLOCK = "clock"
    """The wall-clock time of the exchange."""


_PIECE = 2**16

FIRST_BYTES = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How a stream begins, whatever its media type says."""


@dataclass(frozen=True)
class SentRequest:
    """What was sent, with the secrets replaced by filler."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    credential: Credential

    @property
    def is_json(self) -> bool:
        """Whether a strict server would read the body as JSON (RFC 8259, 8.1: only UTF-8 counts)."""
        text = read_json(self.body)
        return text.valid and not any(defect.kind == "encoding" for defect in text.defects)

    @cached_property
    def json(self) -> Any:
        """The body's JSON value; None when it is no JSON."""
        return read_json(self.body).value if self.is_json else None

    @cached_property
    def memory(self) -> dict[Hashable, Any]:
        """What has been reckoned from it, for whoever reckons it again."""
        return {}


def reports_error(value: Any) -> bool:
    """Whether a body or payload says that something went wrong, whatever the status was."""
    return isinstance(value, dict) and (value.get("error") is not None or value.get("object") == "error")


@dataclass(frozen=True)
class Chunk:
    """One dispatched event of a stream together with its payload's JSON."""

    event: Event
    json: JsonText

    @cached_property
    def object(self) -> dict[str, Any]:
        """The payload; an empty mapping when it is no JSON object."""
        return self.json.value if isinstance(self.json.value, dict) else {}

    @property
    def is_error(self) -> bool:
        """Whether the payload reports an error in the middle of the stream."""
        return reports_error(self.object)

    @cached_property
    def choices(self) -> list[dict[str, Any]]:
        """The payload's choices that are objects."""
        choices = self.object.get("choices")
        return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


@dataclass(frozen=True)
class Stream:
    """A body read as server-sent events."""

    events: list[Event]
    """All events, those that a browser would not dispatch included."""

    reader: SseReader

    @cached_property
    def dispatched(self) -> list[Event]:
        """The events that carry data."""
        return [event for event in self.events if event.dispatched]

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The events that carry data and are not `[DONE]`."""
        return [Chunk(event, read_json(event.data)) for event in self.dispatched if event.data != DONE]

    @cached_property
    def done(self) -> list[Event]:
        """The `[DONE]` events; one in a right stream."""
        return [event for event in self.dispatched if event.data == DONE]

    @cached_property
    def payloads(self) -> list[Chunk]:
        """The chunks that are JSON objects and report no error."""
        return [chunk for chunk in self.chunks if chunk.object and not chunk.is_error]

    @cached_property
    def error(self) -> Chunk | None:
        """The first chunk that reports an error, if any."""
        return next((chunk for chunk in self.chunks if chunk.is_error), None)

    @cached_property
    def unread(self) -> Chunk | None:
        """The first chunk that goes beyond a limit of our JSON reader, if any."""
        return next((chunk for chunk in self.chunks if chunk.json.beyond_limit), None)


@dataclass(frozen=True)
class Exchange:
    """
    One request and its answer.

    Attributes:
        id: unique in its bundle.
        target: name of the target.
        operation: name of the operation; empty for requests beside the contract (preflight, model list).
        probe: name of the probe that sent it; `generated/...` for cases from the document.
        started: wall-clock time in ISO 8601, UTC.
        wire: every byte that came back.
        reads: when they came.
        ending: how the transfer ended.
        detail: what the client's network stack said about a bad ending.
        redacted: spans of `wire` that hid a secret.
        holds: what is known of it. Where evidence is missing, the attributes that would tell it have some plain value.
    """

    id: str
    target: str
    operation: str
    probe: str
    request: SentRequest
    started: str
    wire: bytes
    reads: tuple[Read, ...]
    ending: Ending
    detail: str = ""
    redacted: tuple[tuple[int, int], ...] = field(default=())
    holds: frozenset[Evidence] = frozenset(Evidence)

    def __hash__(self) -> int:
        return hash(self.id)  # that of all fields takes as long as reading them

    @cached_property
    def response(self) -> HttpResponse:
        """The answer, decoded from the wire."""
        if Evidence.FRAMING not in self.holds:
            whole = self.ending is Ending.COMPLETE and Evidence.ENDING in self.holds
            return decode_unframed(self.wire, self.reads, complete=whole)
        # Only an orderly close ends a body without framing (RFC 9112, section 8).
        open_or_broken = (Ending.TIMEOUT_IDLE, Ending.TIMEOUT_TOTAL, Ending.TOO_LARGE, Ending.RESET)
        closed = self.ending not in open_or_broken
        return decode_response(self.wire, self.reads, method=self.request.method, closed=closed)

    @cached_property
    def memory(self) -> dict[Hashable, Any]:
        """What has been reckoned from it alone, for whoever reckons it again."""
        return {}

    @cached_property
    def status(self) -> int:
        """Status code of the answer; 0 when there is none."""
        return self.response.status

    @cached_property
    def json(self) -> JsonText:
        """The whole body as JSON."""
        return read_json(self.response.body)

    @cached_property
    def stream(self) -> Stream:
        """The body as server-sent events, whatever its media type says."""
        reader = SseReader()
        events: list[Event] = []
        for piece, time in self._pieces():
            events += reader.feed(piece, time)
            if len(events) > MOST_EVENTS:  # an event of one byte takes some hundred bytes here
                beyond = Excess("MOST_EVENTS", MOST_EVENTS, events[MOST_EVENTS].start)
                reader.excess = reader.excess or beyond
                return Stream(events[:MOST_EVENTS], reader)
        reader.close(self.reads[-1].time if self.reads else 0.0)
        return Stream(events, reader)

    def _pieces(self) -> Iterator[tuple[bytes, float]]:
        """The body in small pieces, each with its time: one read may hold millions of events."""
        for segment in self.response.segments:
            for start in range(segment.start, segment.end, _PIECE):
                yield self.response.body[start : min(start + _PIECE, segment.end)], segment.time

    @cached_property
    def sent(self) -> Any:
        """The JSON value of the request's body; None when it is no JSON."""
        return self.request.json

    @cached_property
    def question(self) -> str:
        """
        What was asked, however the answer was to come: the same for the streamed and the whole form of one request.

        Empty where the request's body is not held.
        """
        if Evidence.REQUEST not in self.holds:
            return ""
        sent = self.sent
        if isinstance(sent, dict):
            bare = {name: value for name, value in sent.items() if name not in ("stream", "stream_options")}
            text = json.dumps(bare, sort_keys=True)
        else:
            text = repr(self.request.body)
        return f"{self.operation} {self.request.method} {text}"

    @cached_property
    def wants_stream(self) -> bool:
        """Whether the request asked for a stream; where the request is not held, whether the answer is one."""
        if Evidence.REQUEST not in self.holds:
            return self.is_stream
        return isinstance(self.sent, dict) and self.sent.get("stream") is True

    @cached_property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream, by its media type or by its first bytes."""
        response = self.response
        return response.media_type == "text/event-stream" or response.body.lstrip().startswith(FIRST_BYTES)

    @cached_property
    def rate_limited(self) -> bool:
        """429, or 503 with Retry-After: the answer says nothing about the rest."""
        return self.status == 429 or (self.status == 503 and self.response.header("retry-after") is not None)
