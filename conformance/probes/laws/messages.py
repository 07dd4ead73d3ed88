"""Conversations: each text in them short and long, which shows in the prompt's tokens; parts; what `echo` prepends."""

import copy
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.features import PIXEL, SILENCE
from streamgauge.contract.plain import plain_request

__all__ = ["messages"]

_LONG = " quiet green river".ljust(18) * 12
"""So many words that they cannot be overlooked in the prompt's count."""

_LONG_NAME = "look_up_the_weather_of_" * 9

_TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "ada", "content": [{"type": "text", "text": "How warm is it in Oslo?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call00001", "content": "21 degrees"},
]

_LONGER: dict[str, tuple[int, tuple[str | int, ...], Any]] = {
    "content": (0, ("content",), f"Be brief.{_LONG}"),
    "part": (1, ("content", 0, "text"), f"How warm is it in Oslo?{_LONG}"),
    "name": (1, ("name",), "ada" * 60),
    "arguments": (2, ("tool_calls", 0, "function", "arguments"), f'{{"city": "Oslo{_LONG}"}}'),
    "function": (2, ("tool_calls", 0, "function", "name"), _LONG_NAME),
    "result": (3, ("content",), f"21 degrees{_LONG}"),
}
"""Name → the message, the way into it, and what stands there in the longer conversation."""

_PARTS: dict[str, dict[str, Any]] = {
    "image": {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
    "audio": {"type": "input_audio", "input_audio": {"data": SILENCE, "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAAGGZ0eXBpc29t"}},
    "file": {"type": "file", "file": {"filename": "note.txt", "file_data": "data:text/plain;base64,bm90ZQ=="}},
}
"""A part of each kind that is no text: whoever cannot read it refuses it. All of them hold their data themselves."""

_ROLES: dict[str, list[dict[str, Any]]] = {
    "developer": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    "no-content": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "Hello again"},
    ],
}
"""Conversations that clients send and some servers refuse."""


def messages(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Nothing for an operation that takes no messages."""
    if operation.family != CHAT:
        return
    plain = plain_request(operation, model, max_tokens=1)
    yield from _talks(plain)
    text = plain["messages"][0]["content"]
    yield Probe("law.messages.one-part", {**plain, "messages": [_said([{"type": "text", "text": text}])]})
    for name, part in _PARTS.items():
        body = {**plain, "messages": [_said([{"type": "text", "text": "What is this?"}, part])]}
        if operation.request.accepts(body):
            yield Probe(f"law.messages.{name}", body)
    for name, conversation in _ROLES.items():
        if operation.request.accepts(body := {**plain, "messages": conversation}):
            yield Probe(f"law.messages.{name}", body)
    if "echo" in operation.properties:
        prefilled = [*plain["messages"], {"role": "assistant", "content": "Well: one, two,"}]
        body = {**plain, "messages": prefilled, "echo": True, "max_tokens": 4}
        yield Probe("law.messages.echo", body)
        if operation.streams:
            yield Probe("law.messages.echo-stream", {**body, "stream": True})


def _talks(plain: dict[str, Any]) -> Iterator[Probe]:
    """The conversation as it is, and once more for each text in it that is made longer."""
    yield Probe("law.messages.talk", {**plain, "messages": _TALK})
    for name, (at, way, text) in _LONGER.items():
        talk = copy.deepcopy(_TALK)
        node: Any = talk[at]
        for step in way[:-1]:
            node = node[step]
        node[way[-1]] = text
        yield Probe(f"law.messages.long-{name}", {**plain, "messages": talk})


def _said(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content}
