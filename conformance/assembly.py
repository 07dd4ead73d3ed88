"""What an answer says, put together from its pieces: the same for the whole and the streamed form. Survives any shape."""

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamgauge.conformance.reasoning import REASONING_FIELDS
from streamgauge.conformance.tokens import carries_text
from streamgauge.wire.exchange import Chunk, Exchange
from streamgauge.wire.json import is_number, objects_in

__all__ = ["Answer", "Call", "Choice", "Piece", "Token", "answer_in", "assemble"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: the function's name, and its arguments as the text that they were sent as."""

    name: str
    arguments: str

    @property
    def plain(self) -> tuple[str, str]:
        """Name and arguments; arguments that are JSON without regard to order and white space."""
        try:
            return self.name, json.dumps(json.loads(self.arguments), sort_keys=True)
        except (ValueError, RecursionError):
            return self.name, self.arguments


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token and its log-probability; None where there is no number."""

    text: str
    logprob: float | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A text that is not empty, and the chunk that brought it; a whole answer has none."""

    text: str
    chunk: Chunk | None


@dataclass(frozen=True)
class Choice:
    """
    One choice of an answer.

    Attributes:
        pieces: its text (`content` of a chat, else `text`) in the order of the stream; reasoning is not among them.
        reasoning: what it tells of its thoughts, under whichever name.
        calls: the tool calls, in the order of their indexes; before them a function call by the older name.
        ends: its finish reasons that are not null, each with its chunk.
        tokens: the log-probabilities; None where it has none.
        speaks: whether it says anything: text, reasoning, a refusal, a call.
        parts: its objects as they were sent: one of a whole answer, one of each chunk that has any.
    """

    pieces: tuple[Piece, ...]
    reasoning: str
    calls: tuple[Call, ...]
    ends: tuple[tuple[Any, Chunk | None], ...]
    tokens: tuple[Token, ...] | None
    speaks: bool
    parts: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def text(self) -> str:
        """All pieces together."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def reasons(self) -> list[Any]:
        """Why it ended, each time that it did."""
        return [reason for reason, _ in self.ends]

    @property
    def finish(self) -> str:
        """Why it ended: the first word, as streams are read by clients; empty where none is told."""
        return str(self.ends[0][0]) if self.ends else ""

    @property
    def generated(self) -> str:
        """All that the model wrote."""
        return "\n".join([self.reasoning, self.text, *(call.arguments for call in self.calls)])


@dataclass(frozen=True, slots=True)
class Answer:
    """
    One answer.

    Attributes:
        choices: by their indexes.
        completion_tokens: what the last usage says; None where none says it.
    """

    choices: Mapping[int, Choice]
    completion_tokens: int | None


def answer_in(exchange: Exchange) -> Answer:
    """What an exchange's answer says, whether it came to its end or not; chunks that report an error are left out."""
    memory = exchange.memory
    if answer_in not in memory:  # put together once: many checks look at it
        memory[answer_in] = assemble(_payloads(exchange))
    answer: Answer = memory[answer_in]
    return answer


def _payloads(exchange: Exchange) -> list[tuple[dict[str, Any], Chunk | None]]:
    if exchange.wants_stream:
        return [(chunk.object, chunk) for chunk in exchange.stream.payloads]
    body = exchange.json.value
    return [(body, None)] if isinstance(body, dict) else []


_Part = tuple[dict[str, Any], Chunk | None]
"""A choice as one payload has it."""


def assemble(payloads: Iterable[tuple[Mapping[str, Any], Chunk | None]]) -> Answer:
    """The answer in one whole body, or in a stream's payloads: parts with the same indexes belong together."""
    found: dict[int, list[_Part]] = {}
    tokens = None
    for payload, chunk in payloads:
        for position, choice in enumerate(objects_in(payload.get("choices"))):
            found.setdefault(_index(choice, position), []).append((choice, chunk))
        usage = payload.get("usage")
        if isinstance(usage, dict) and type(usage.get("completion_tokens")) is int:
            tokens = usage["completion_tokens"]
    return Answer({index: _choice(found[index]) for index in sorted(found)}, tokens)


def _choice(parts: list[_Part]) -> Choice:
    members = [_members(choice) for choice, _ in parts]
    tokens = [found for choice, _ in parts if (found := _tokens(choice.get("logprobs"))) is not None]
    return Choice(
        pieces=tuple(Piece(text, chunk) for choice, chunk in parts if (text := _content(choice))),
        reasoning="".join(map(_reasoning, members)),
        calls=_calls(members),
        ends=tuple(
            (choice["finish_reason"], chunk) for choice, chunk in parts if choice.get("finish_reason") is not None
        ),
        tokens=tuple(itertools.chain.from_iterable(tokens)) if tokens else None,
        speaks=any(carries_text(choice) for choice, _ in parts),
        parts=tuple(choice for choice, _ in parts),
    )


def _members(choice: dict[str, Any]) -> dict[str, Any]:
    """The delta or the message; empty where there is none."""
    part = choice.get("delta", choice.get("message"))
    return part if isinstance(part, dict) else {}


def _content(choice: dict[str, Any]) -> str:
    part = choice.get("delta", choice.get("message"))
    return _text(part.get("content") if isinstance(part, dict) else choice.get("text"))


def _reasoning(members: dict[str, Any]) -> str:
    return next((text for name in REASONING_FIELDS if (text := _text(members.get(name)))), "")


_OLDER = -1
"""Where a function call by the older name stands among the calls."""


def _calls(messages: list[dict[str, Any]]) -> tuple[Call, ...]:
    made: dict[int, list[Any]] = {}
    for members in messages:
        called = [
            (_index(call, at), call.get("function")) for at, call in enumerate(objects_in(members.get("tool_calls")))
        ]
        if members.get("function_call"):
            called.insert(0, (_OLDER, members["function_call"]))
        for index, function in called:
            made.setdefault(index, []).append(function if isinstance(function, dict) else {})
    return tuple(
        Call(
            "".join(_text(function.get("name")) for function in made[index]),
            "".join(_arguments(function.get("arguments")) for function in made[index]),
        )
        for index in sorted(made)
    )


def _index(item: dict[str, Any], position: int) -> int:
    """Its own index, or where it stands."""
    index = item.get("index")
    return index if type(index) is int else position


def _text(value: Any) -> str:
    """A text, or the texts of content parts."""
    if isinstance(value, str):
        return value
    return "".join(item["text"] for item in objects_in(value) if isinstance(item.get("text"), str))


def _arguments(value: Any) -> str:
    """The text of a call's arguments; of servers that send an object in its place, its JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, default=str)


def _tokens(logprobs: Any) -> list[Token] | None:
    """The tokens in chat's shape or in that of text completions; None when it is neither."""
    if not isinstance(logprobs, dict):
        return None
    if isinstance(logprobs.get("content"), list):
        return [
            Token(_text(item.get("token")), _number(item.get("logprob"))) for item in objects_in(logprobs["content"])
        ]
    texts, numbers = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(texts, list):
        return None
    values = numbers if isinstance(numbers, list) else []
    padded = [*values, *[None] * (len(texts) - len(values))]
    return [Token(_text(text), _number(value)) for text, value in zip(texts, padded, strict=False)]


def _number(value: Any) -> float | None:
    if not is_number(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
