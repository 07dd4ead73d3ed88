"""A reply on its way through the responder, from the request to the bytes: what a fault can bend."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamgauge.contract.contract import CHAT, JSON, Contract, Operation
from streamgauge.reference.answers import Answer, Payload
from streamgauge.reference.errors import Refusal
from streamgauge.reference.messages import End, Request, Write
from streamgauge.reference.room import Room
from streamgauge.wire.json import read_json

__all__ = ["Draft", "Event", "Headers"]

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Event:
    """A piece of a stream's text, usually one server-sent event, and when it is due; see :class:`Payload`."""

    due_ms: float
    data: bytes
    tokens: int = 0


@dataclass
class Draft:
    """
    What is known of a reply so far; each step of the responder fills in more.

    Attributes:
        request: as it will be answered.
        contract, operation: whose path it is; None at other paths (models, health, metrics, nowhere).
        key: the right one.
        models: names of those that exist.
        room: where an answer has to find a place, if anywhere.
        refusal: why the request is refused, where it is.
        answer: what the pseudo-model says, where it says something.
        status, headers: of the reply.
        body: the JSON of a reply in one piece.
        due_ms: when that one is due.
        chunks: the JSON of a streamed reply, chunk by chunk; a reply has either this or `body`.
        media_type: of the body.
        text: the body's bytes.
        events: a streamed reply's bytes, event by event.
        writes: all bytes, head and framing included.
        end: what follows them.
        goes_on: whether the answer is generated to its end although the client has left.
        memory: kept from one request to the next, for faults that remember.
    """

    request: Request
    contract: Contract | None
    operation: Operation | None
    key: str
    models: tuple[str, ...] = ()
    room: Room | None = None
    refusal: Refusal | None = None
    answer: Answer | None = None
    status: int = 200
    headers: Headers = field(default_factory=list)
    body: dict[str, Any] | None = None
    due_ms: float = 0.0
    chunks: Iterable[Payload] | None = None
    media_type: str = JSON
    text: bytes = b""
    events: Iterable[Event] = ()
    writes: Iterable[Write] = ()
    end: End = End.FRAMED
    goes_on: bool = False
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, Any]:
        """The request's JSON object; empty when it is none."""
        value = read_json(self.request.body).value
        return value if isinstance(value, dict) else {}

    @property
    def streamed(self) -> bool:
        """Whether the reply is a stream."""
        return self.chunks is not None

    @cached_property
    def chat(self) -> bool:
        """Whether the path is that of a chat operation."""
        return self.operation is not None and self.operation.family == CHAT

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """The JSON of a stream's chunks, `[DONE]` left out."""
        return [chunk.body for chunk in self.chunks or () if chunk.body is not None]

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Every choice of the answer: of the whole one, or of all chunks in their order."""
        bodies = self.payloads if self.streamed else [self.body or {}]
        return [choice for body in bodies for choice in body.get("choices", [])]
