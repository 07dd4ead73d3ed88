"""`messages.*`: are conversations in all their forms understood?"""

import itertools
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import given, ignored, law, refuses
from streamgauge.conformance.offered import is_json
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import judged_by_body, not_plain, said, shown
from streamgauge.conformance.predicates import is_chat, valid_request
from streamgauge.conformance.prompt_reports import counts_prompts
from streamgauge.conformance.tokens import counts
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import objects_in

__all__: list[str] = []

_MUCH = 160
"""By how many characters the longer of two texts has to be longer: no tokenizer takes so many for nothing."""

_MOST = 4000
"""Characters of a conversation that no model's context is too small for."""


def _told_tokens(case: Case) -> int | None:
    found = counts(case.exchange, "prompt_tokens")
    return found[0] if found else None


_Leaf = tuple[str, str]
"""The path of a text within the messages, and the text."""


def _leaves(node: Any, path: str = "messages") -> Iterator[_Leaf]:
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value, f"{path}.{name}")
    elif isinstance(node, list):
        for item in node:
            yield from _leaves(item, f"{path}[]")


def _without(node: Any, path: str, at: str = "messages") -> Any:
    """The messages with an empty text wherever the path leads."""
    if isinstance(node, str):
        return "" if at == path else node
    if isinstance(node, dict):
        return {name: _without(value, path, f"{at}.{name}") for name, value in node.items()}
    return [_without(item, path, f"{at}[]") for item in node] if isinstance(node, list) else node


def _texts(messages: Any, path: str) -> list[str]:
    return [text for at, text in _leaves(messages) if at == path]


_Question = tuple[str, int]
"""A request without the texts at a path, and how many of them it has."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """
    What requests cost that differ in some texts only.

    Attributes:
        most: the texts → the most prompt tokens that they were ever counted to have: some leave out what they had cached.
        least: characters, ascending, and the fewest tokens of all that have so many of them or fewer.
    """

    most: dict[tuple[str, ...], int]
    least: list[tuple[int, int]]


@once
def _costs(case: Case, path: str) -> dict[_Question, _Costs]:
    """What the requests cost that were answered, by what they have beside the texts at the path."""
    found: dict[_Question, list[tuple[int, int, tuple[str, ...]]]] = {}
    for exchange in case.others:
        sent = exchange.sent
        if exchange.status != 200 or not isinstance(sent, dict) or not isinstance(sent.get("messages"), list):
            continue
        told, texts = counts(exchange, "prompt_tokens"), _texts(sent["messages"], path)
        if told and texts:
            cost = (sum(map(len, texts)), told[0], tuple(texts))
            found.setdefault(_question(sent, path), []).append(cost)
    return {question: _folded(sorted(costs)) for question, costs in found.items()}


def _folded(costs: list[tuple[int, int, tuple[str, ...]]]) -> _Costs:
    most: dict[tuple[str, ...], int] = {}
    for _, tokens, texts in costs:
        most[texts] = max(tokens, most.get(texts, 0))
    fewest = itertools.accumulate((tokens for _, tokens, _ in costs), min)
    return _Costs(most, [(size, tokens) for (size, *_), tokens in zip(costs, fewest, strict=True)])


def _question(sent: Mapping[str, Any], path: str) -> _Question:
    return _prompt_of({**sent, "messages": _without(sent["messages"], path)}), len(_texts(sent["messages"], path))


def _least(case: Case, path: str) -> int | None:
    """The fewest prompt tokens of a request that differs in these texts only, and is much shorter in them."""
    sent = case.exchange.sent
    size = sum(map(len, _texts(sent["messages"], path)))
    found = _costs(case, path).get(_question(sent, path))
    least = found.least if found else []
    at = bisect_right(least, size - _MUCH, key=lambda each: each[0])
    return least[at - 1][1] if at else None


def _most(case: Case, path: str) -> int:
    sent = case.exchange.sent
    return _costs(case, path)[_question(sent, path)].most[tuple(_texts(sent["messages"], path))]


def _text_alone(asked: Mapping[str, Any]) -> bool:
    """Whether no part of a message is anything but text."""
    contents = [each.get("content") for each in objects_in(asked.get("messages"))]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return all(
        isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type", "text") == "text"
        for part in parts
    )


def _is_ordinary(asked: Mapping[str, Any]) -> bool:
    """Of text alone, and not too much of it for any model."""
    return _text_alone(asked) and sum(len(text) for _, text in _leaves(asked["messages"])) < _MOST


_ARGUMENTS = "messages[].tool_calls[].function.arguments"


def _calls_are_whole(asked: Mapping[str, Any]) -> bool:
    """Whether all arguments of calls are JSON: what a server makes of others says nothing of the texts beside them."""
    return all(map(is_json, _texts(asked["messages"], _ARGUMENTS)))


def _declare(name: str, level: Level, path: str, what: str) -> None:
    """A law about a text in the messages: a longer one makes a longer prompt."""

    @law(
        f"messages.{name}",
        level,
        f"{what} is read by the model",
        properties=path,
        requirement="A list of messages comprising the conversation so far.",
        source="OpenAI, create chat completion: messages",
        asks=lambda asked: (
            any(_texts(asked.get("messages"), path))
            and _is_ordinary(asked)
            and (path == _ARGUMENTS or _calls_are_whole(asked))
        ),
        applies=lambda case: _told_tokens(case) is not None and counts_prompts(case) and _least(case, path) is not None,
        needs_also=("messages", "tools"),
        concerns=is_chat,
    )
    def read(case: Case) -> Iterator[Departure]:
        """A prompt that does not grow with it by a single token does not hold it."""
        tokens, least = _most(case, path), _least(case, path)
        if least is not None and tokens <= least:
            yield ignored(
                f"a prompt of more than {least} tokens with {_MUCH} or more characters more", f"{tokens} tokens"
            )


_declare("content-read", Level.MUST, "messages[].content", "The text of a message")
_declare("part-read", Level.MUST, "messages[].content[].text", "The text of a message's part")
_declare("name-read", Level.MAY, "messages[].name", "The name of a message's author")
_declare("call-read", Level.SHOULD, _ARGUMENTS, "What a call in the conversation said")
_declare("call-name-read", Level.SHOULD, "messages[].tool_calls[].function.name", "Which function a call in it was for")


def _as_strings(sent: Mapping[str, Any]) -> str:
    """The request with each content of one text part as a string."""
    messages = [
        {**each, "content": each["content"][0]["text"]} if isinstance(each.get("content"), list) else each
        for each in objects_in(sent["messages"])
    ]
    return _prompt_of({**sent, "messages": messages})


_FORM = ("stream", "stream_options", "max_tokens")
"""What says nothing about a prompt. The number of choices does: some servers count it for each."""


def _prompt_of(sent: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in sent.items() if name not in _FORM}, sort_keys=True)


@once
def _prompt_tokens(case: Case) -> dict[str, set[int]]:
    """What each prompt of strings alone costs, whenever it was asked."""
    found: dict[str, set[int]] = {}
    for exchange in case.others:
        told = counts(exchange, "prompt_tokens")
        if exchange.status == 200 and told and isinstance(exchange.sent, dict) and "messages" in exchange.sent:
            found.setdefault(_prompt_of(exchange.sent), set()).add(told[0])
    return found


def _one_part_each(asked: Mapping[str, Any]) -> bool:
    messages = objects_in(asked.get("messages"))
    sizes = [len(each["content"]) for each in messages if isinstance(each.get("content"), list)]
    return bool(sizes) and set(sizes) == {1} and _text_alone(asked)


@law(
    "messages.part-as-string",
    Level.SHOULD,
    "A content of one text part costs what the string alone costs",
    properties=("messages[].content[].type", "messages[].content"),
    requirement="The contents of the message: a text, or an array of content parts.",
    source="OpenAI, create chat completion: messages",
    asks=_one_part_each,
    applies=lambda case: _told_tokens(case) is not None and _as_strings(given(case)) in _prompt_tokens(case),
    needs_also=("messages",),
    concerns=is_chat,
)
def part_as_string(case: Case) -> Iterator[Departure]:
    """Templates that get the list in place of its text print it into the prompt, brackets and all."""
    expected, tokens = _prompt_tokens(case)[_as_strings(given(case))], _told_tokens(case)
    if tokens not in expected:
        told = " or ".join(map(str, sorted(expected)))
        yield Departure(f"{told} prompt tokens, as with the string", f"{tokens} with the same text as a part")


def _last_said(asked: Mapping[str, Any]) -> str:
    """What the assistant said last, if nothing follows it."""
    last = (objects_in(asked.get("messages")) or [{}])[-1]
    content = last.get("content")
    return content if last.get("role") == "assistant" and isinstance(content, str) else ""


def _prepends(operation: Operation, contract: Contract) -> bool:
    """Whether the document says so: Together's `echo` tells the prompt beside the choices."""
    described = operation.schemas.resolved(operation.properties["echo"]).get("description", "")
    return is_chat(operation, contract) and "prepended" in described


@law(
    "messages.echo",
    Level.MUST,
    "With echo, an answer begins with the last message if the assistant said that",
    properties="echo",
    requirement="If true, the new message will be prepended with the last message if they belong to the same role.",
    source="/requestBody/content/application~1json/schema/properties/echo/description",
    asks=lambda asked: asked.get("echo") is True and bool(_last_said(asked)) and "tools" not in asked,
    needs_also=("messages",),
    concerns=_prepends,
)
def echo(case: Case) -> Iterator[Departure]:
    """The same in each choice."""
    wanted = _last_said(given(case))
    for choice in answer_in(case.exchange).choices.values():
        if not choice.text.startswith(wanted):
            yield ignored(f"a text that begins with {wanted!r}", repr(choice.text[: len(wanted) + 20]))
            return


_SILENT = {"role": "assistant", "content": ""}


def _had_said_nothing(case: Case) -> bool:
    """Whether the assistant had once said nothing, in a conversation that is plain but for that."""
    messages = case.exchange.sent.get("messages")
    if not (isinstance(messages, list) and len(objects_in(messages)) == len(messages) and _SILENT in messages):
        return False
    others = [each for each in messages if each != _SILENT]
    return (
        not_plain(case) == {"messages"}
        and all(each.keys() == {"role", "content"} and isinstance(each["content"], str) for each in others)
        and all(each["role"] in ("system", "user", "assistant") for each in others)
        and sum(len(each["content"]) for each in others) < _MOST
    )


@check(
    "messages.empty-accepted",
    Level.SHOULD,
    "A conversation is accepted in which the assistant had once said nothing",
    requirement="messages: A list of messages comprising the conversation so far.",
    source=f"OpenAI, create chat completion: messages; {CLIENTS}",
    applies=lambda case: (
        valid_request(case)
        and judged_by_body(case)
        and (case.exchange.status == 200 or refuses(case))
        and _had_said_nothing(case)
    ),
    concerns=is_chat,
    absent="no request had an assistant's message without text in a conversation that was plain otherwise",
    needs=(Evidence.REQUEST,),
)
def empty_accepted(case: Case) -> Iterator[Departure]:
    """Models do say nothing, and clients send back what they got."""
    if case.exchange.status != 200:
        yield Departure("200", f"{shown(case)}: {said(case)}")
