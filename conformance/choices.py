"""The choices of an answer, each put together from all of its parts, whole or streamed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.predicates import index_of
from streamgauge.conformance.tokens import carries_text
from streamgauge.wire.exchange import Chunk, Exchange

__all__ = ["Piece", "Told", "told"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that is not empty, and the chunk that brought it; a whole answer has none."""

    text: str
    chunk: Chunk | None


@dataclass(slots=True)
class Told:
    """
    What an answer tells of one choice.

    Attributes:
        pieces: its text (`content` of a chat, else `text`) in the order of the stream; reasoning is not among them.
        speaks: whether it says anything: text, reasoning, a refusal, a call.
        calls: whether it calls a tool, or a function by the older name.
        ends: its finish reasons that are not null, each with its chunk.
    """

    pieces: list[Piece] = field(default_factory=list)
    speaks: bool = False
    calls: bool = False
    ends: list[tuple[Any, Chunk | None]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All pieces together."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def reasons(self) -> list[Any]:
        """Why it ended, each time that it did."""
        return [reason for reason, _ in self.ends]


def told(exchange: Exchange) -> dict[Any, Told]:
    """Index → what is told of that choice; chunks that report an error are left out."""
    found: dict[Any, Told] = {}
    for choice, chunk in _parts(exchange):
        each = found.setdefault(index_of(choice), Told())
        part = choice.get("delta", choice.get("message"))
        content = part.get("content") if isinstance(part, dict) else choice.get("text")
        if isinstance(content, str) and content:
            each.pieces.append(Piece(content, chunk))
        each.speaks |= carries_text(choice)
        each.calls |= isinstance(part, dict) and bool(part.get("tool_calls") or part.get("function_call"))
        if choice.get("finish_reason") is not None:
            each.ends.append((choice["finish_reason"], chunk))
    return found


def _parts(exchange: Exchange) -> Iterator[tuple[dict[str, Any], Chunk | None]]:
    if exchange.wants_stream:
        for chunk in exchange.stream.chunks:
            for choice in () if chunk.is_error else chunk.choices:
                yield choice, chunk
        return
    body = exchange.json.value
    choices = body.get("choices") if isinstance(body, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield choice, None
