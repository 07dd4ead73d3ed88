"""`messages.*`: conversations that are misread or refused."""

import copy
from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare
from streamgauge.reference.faults.fault import Stage, requests

__all__: list[str] = []

_LONG = range(120, 4000)
"""Of how many characters a text is lost on its way to the model."""

Message = dict[str, Any]


def _talks(draft: Draft) -> bool:
    if not (requests(draft) and draft.chat and isinstance(draft.asked.get("messages"), list)):
        return False
    return draft.operation is not None and draft.operation.request.accepts(draft.asked)


def _lost(name: str, title: str, check: str, lose: Callable[[Message], None]) -> None:
    """A fault that loses a text of each message where it is long."""

    def bend(draft: Draft) -> None:
        messages = copy.deepcopy(draft.asked["messages"])
        for message in messages:
            lose(message)
        ask(draft, {**draft.asked, "messages": messages})

    declare(name, title, check, bend, concerns=_talks, stage=Stage.REQUEST)


def _lose_content(message: Message) -> None:
    if isinstance(message.get("content"), str) and len(message["content"]) in _LONG:
        message["content"] = message["content"][:4]


def _lose_part(message: Message) -> None:
    for part in message["content"] if isinstance(message.get("content"), list) else ():
        if isinstance(part.get("text"), str) and len(part["text"]) in _LONG:
            part["text"] = part["text"][:4]


def _lose_name(message: Message) -> None:
    message.pop("name", None)


def _functions(message: Message) -> list[dict[str, Any]]:
    return [call["function"] for call in message.get("tool_calls") or ()]


def _lose_arguments(message: Message) -> None:
    for function in _functions(message):
        function["arguments"] = "{}"


def _lose_function(message: Message) -> None:
    for function in _functions(message):
        function["name"] = "f"


def _print_parts(message: Message) -> None:
    if isinstance(message.get("content"), list):
        message["content"] = repr(message["content"])


_lost(
    "messages.long-content-lost",
    "A message that is long does not reach the model",
    "messages.content-read",
    _lose_content,
)
_lost("messages.long-part-lost", "A part that is long does not reach the model", "messages.part-read", _lose_part)
_lost("messages.name-lost", "The model does not learn who says something", "messages.name-read", _lose_name)
_lost("messages.call-lost", "The model does not see what it had called for", "messages.call-read", _lose_arguments)
_lost("messages.call-name-lost", "The model does not see what it had called", "messages.call-name-read", _lose_function)
_lost(
    "messages.parts-printed",
    "A list of parts is printed into the prompt, brackets and all",
    "messages.part-as-string",
    _print_parts,
)


def _echo_in_chat(draft: Draft) -> None:
    ask(draft, {name: value for name, value in draft.asked.items() if name != "echo"})


declare(
    "messages.echo-ignored",
    "The last message of the assistant's is not prepended",
    "messages.echo",
    _echo_in_chat,
    concerns=lambda draft: _talks(draft) and draft.asked.get("echo") is True,
    stage=Stage.REQUEST,
)


def _has_silence(draft: Draft) -> bool:
    """A conversation in which the assistant had said nothing, nor called anything."""
    return _talks(draft) and {"role": "assistant", "content": ""} in draft.asked["messages"]


declare(
    "messages.empty-refused",
    "A conversation is refused in which the assistant had said nothing",
    "messages.empty-accepted",
    lambda draft: ask(draft, {**draft.asked, "messages": []}),
    "vllm-project/vllm#21089",
    "continuedev/continue#750",
    "microsoft/autogen#1521",
    concerns=_has_silence,
    stage=Stage.REQUEST,
)
