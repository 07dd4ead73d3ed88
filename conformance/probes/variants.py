"""The plain request said otherwise: with less, with nulls, with what nobody has to know. A right server answers each."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.plain import plain_request
from streamgauge.contract.profile import Profile

__all__ = ["variants"]

_EXTRA: dict[str, Any] = {"x_streamgauge": "text"}

_HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "What time is it in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call1", "type": "function", "function": {"name": "time", "arguments": '{"city": "Os'}}],
    },
    {"role": "tool", "tool_call_id": "call1", "content": "no such city"},
]
"""A conversation in which the model had been cut off within a call: its client sends back what it got."""


def variants(operation: Operation, model: str, profile: Profile) -> Iterator[Probe]:
    """The plainest request comes last of all: then it also shows that the server has outlived the others."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    yield Probe(
        "form.plainest",
        {name: value for name, value in plain.items() if name != "temperature"},
        headers=tuple((name, None) for name in profile.headers if name.lower() in _optional_fields(operation)),
        late=True,
    )
    nulls = [
        name for name in operation.properties if name not in plain and operation.request.accepts({**plain, name: None})
    ]
    if nulls:
        yield Probe("form.nulls", {**plain, **dict.fromkeys(nulls)})
    if operation.streams:
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        yield Probe("form.unknown-nested-stream", {**plain, **_with_extras(operation, plain, usage)})
    if operation.family == CHAT:
        yield Probe("form.broken-tool-arguments", {**plain, "messages": _HISTORY, "max_tokens": 1})


def _with_extras(operation: Operation, plain: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    """The stream that `form.basic-stream` asks for, with a further member in its options and in its messages."""
    changed = {**usage, "stream_options": {**usage["stream_options"], **_EXTRA}}
    if operation.family == CHAT:
        changed["messages"] = [{**message, **_EXTRA} for message in plain["messages"]]
    return changed


def _optional_fields(operation: Operation) -> set[str]:
    """The header fields that the document lists and does not require, in lower case."""
    return {
        str(given.get("name", "")).lower()
        for given in operation.definition.get("parameters", ())
        if given.get("in") == "header" and not given.get("required")
    }
