"""What an answer says, put together from its pieces: the same for the whole and the streamed form. Survives any shape."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.reasoning import REASONING_FIELDS

__all__ = ["Answer", "Call", "Choice", "Token", "assemble_chunks", "assemble_whole"]


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
class Choice:
    """
    One choice of an answer.

    Attributes:
        text: its content.
        reasoning: what it tells of its thoughts, under whichever name.
        calls: the tool calls, in the order of their indexes.
        finish: why it ended: the first word, as streams are read by clients; empty where none is told.
        tokens: the log-probabilities; None where it has none.
    """

    text: str
    reasoning: str
    calls: tuple[Call, ...]
    finish: str
    tokens: tuple[Token, ...] | None

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


def assemble_whole(body: Any) -> Answer:
    """The answer in one JSON value: messages or texts."""
    members = body if isinstance(body, dict) else {}
    made: dict[int, _Maker] = {}
    for position, choice in enumerate(_objects(members.get("choices"))):
        _made(made, choice, position).add(choice, choice.get("message"))
    return Answer({index: made[index].choice() for index in sorted(made)}, _completion_tokens([members]))


def assemble_chunks(chunks: Iterable[Mapping[str, Any]]) -> Answer:
    """The answer in a stream's payloads, `[DONE]` left out: pieces with the same indexes belong together."""
    payloads = list(chunks)
    made: dict[int, _Maker] = {}
    for payload in payloads:
        for position, choice in enumerate(_objects(payload.get("choices"))):
            _made(made, choice, position).add(choice, choice.get("delta"))
    return Answer({index: made[index].choice() for index in sorted(made)}, _completion_tokens(payloads))


@dataclass(slots=True)
class _CallMaker:
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Maker:
    """A choice on its way: what comes is put behind what was there."""

    text: str = ""
    reasoning: str = ""
    calls: dict[int, _CallMaker] = field(default_factory=dict)
    finish: str = ""
    tokens: list[Token] | None = None

    def add(self, choice: dict[str, Any], part: Any) -> None:
        members = part if isinstance(part, dict) else {}
        self.text += _text(choice.get("text")) + _text(members.get("content"))
        self.reasoning += next((text for name in REASONING_FIELDS if (text := _text(members.get(name)))), "")
        for position, call in enumerate(_objects(members.get("tool_calls"))):
            maker = self.calls.setdefault(_index(call, position), _CallMaker())
            function = call.get("function")
            if isinstance(function, dict):
                maker.name += _text(function.get("name"))
                maker.arguments += _arguments(function.get("arguments"))
        if not self.finish and choice.get("finish_reason") is not None:
            self.finish = str(choice["finish_reason"])
        tokens = _tokens(choice.get("logprobs"))
        if tokens is not None:
            self.tokens = [*(self.tokens or ()), *tokens]

    def choice(self) -> Choice:
        calls = tuple(Call(call.name, call.arguments) for _, call in sorted(self.calls.items()))
        tokens = None if self.tokens is None else tuple(self.tokens)
        return Choice(self.text, self.reasoning, calls, self.finish, tokens)


def _made(made: dict[int, _Maker], choice: dict[str, Any], position: int) -> _Maker:
    return made.setdefault(_index(choice, position), _Maker())


def _index(item: dict[str, Any], position: int) -> int:
    """Its own index, or where it stands."""
    index = item.get("index")
    return index if type(index) is int else position


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text, or the texts of content parts."""
    if isinstance(value, str):
        return value
    return "".join(item["text"] for item in _objects(value) if isinstance(item.get("text"), str))


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
        return [Token(_text(item.get("token")), _number(item.get("logprob"))) for item in _objects(logprobs["content"])]
    texts, numbers = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(texts, list):
        return None
    values = numbers if isinstance(numbers, list) else []
    padded = [*values, *[None] * (len(texts) - len(values))]
    return [Token(_text(text), _number(value)) for text, value in zip(texts, padded, strict=False)]


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _completion_tokens(payloads: Iterable[Mapping[str, Any]]) -> int | None:
    counts = [count for payload in payloads for count in _counts(payload.get("usage"))]
    return counts[-1] if counts else None


def _counts(usage: Any) -> Iterator[int]:
    if isinstance(usage, dict) and type(usage.get("completion_tokens")) is int:
        yield usage["completion_tokens"]
