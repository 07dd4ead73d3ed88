"""Tools that have to be called, or must not be."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.offered import is_json
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.contract.contract import Operation
from streamgauge.contract.paths import request_paths
from streamgauge.contract.plain import plain_request, prompt_member
from streamgauge.wire.exchange import Exchange

__all__ = ["tool_calls"]

_TOKENS = 128
"""Enough for a call, for what some servers let the model write around it, and for white space."""

_FEW = 16
"""Enough to see that no call begins."""

_HUE = {
    "type": "object",
    "properties": {"hue": {"enum": ["zq7", "zq8"]}},
    "required": ["hue"],
    "additionalProperties": False,
}
"""No model paints in these by chance."""


def _tool(name: str, **members: Any) -> dict[str, Any]:
    function = {"name": name, "description": "Paint it.", "parameters": _HUE, **members}
    return {"type": "function", "function": function}


_STRICT = [_tool("paint", strict=True), _tool("dye", strict=True)]
_INVITING = "Please call paint, then call dye."


def tool_calls(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Each way to choose a tool; what cannot be met; and a call that is sent back with its result."""
    known = request_paths(operation)
    if not {"tools", "tool_choice"} <= known.keys():
        return
    # Sampled: at temperature 0 a model without training may write white space for ever.
    plain = {**plain_request(operation, model, max_tokens=_TOKENS), "temperature": 1}
    inviting = {**plain, **prompt_member(operation, _INVITING), "tools": _STRICT}
    named = {"type": "function", "function": {"name": "dye"}}
    yield Probe("law.calls.none", {**inviting, "tool_choice": "none", "max_tokens": _FEW})
    yield Probe("law.calls.default", inviting)
    yield Probe("law.calls.auto", {**inviting, "tool_choice": "auto"})
    yield Probe("law.calls.required", {**inviting, "tool_choice": "required"})
    yield Probe("law.calls.named", {**inviting, "tool_choice": named})
    if operation.streams:
        yield Probe("law.calls.named-stream", {**inviting, "tool_choice": named, "stream": True})
    yield Probe("law.calls.cut", {**inviting, "tool_choice": "required", "max_tokens": 3})
    if "parallel_tool_calls" in known:
        yield Probe("law.calls.one", {**inviting, "tool_choice": "required", "parallel_tool_calls": False})
    if "tools[].defer_loading" in known:
        tools = [{**_tool("paint", defer_loading=False), "defer_loading": False}]
        yield Probe("law.calls.loaded", {**plain, "tools": tools, "max_tokens": 1})
    absent = {"type": "function", "function": {"name": "varnish"}}
    yield Probe("law.calls.name-absent", {**inviting, "tool_choice": absent, "max_tokens": 1}, free=True)
    yield Probe("law.calls.without-tools", {**plain, "tool_choice": "required", "max_tokens": 1}, free=True)
    yield Probe("law.calls.choice-unknown", {**inviting, "tool_choice": "zq7", "max_tokens": 1}, free=True)
    yield from _sent_back({**inviting, "max_tokens": 1})


_CONTENTS: dict[str, dict[str, Any]] = {"null": {"content": None}, "absent": {}}
"""What clients send as the text of a message that has none."""


def _sent_back(asked: dict[str, Any]) -> Iterator[FollowUp]:
    for name, content in _CONTENTS.items():

        def make(answered: Answered, content: dict[str, Any] = content) -> dict[str, Any] | str:
            calls = _calls(answered.get("law.calls.required")) or _calls(answered.get("law.calls.one"))
            if not calls:
                return "no whole call to send back"
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
            message = {"role": "assistant", **content, "tool_calls": calls}
            return {**asked, "messages": [*asked["messages"], message, *results]}

        yield FollowUp(f"law.calls.sent-back-{name}", worst_case_tokens(asked) + _TOKENS, make)


def _calls(source: Exchange | None) -> list[dict[str, Any]]:
    """The calls of a whole answer, as clients keep them; none where any cannot be sent back."""
    if source is None:
        return []
    try:
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {name: call["function"][name] for name in ("name", "arguments")},
            }
            for call in source.json.value["choices"][0]["message"]["tool_calls"]
        ]
    except (TypeError, KeyError, IndexError):
        return []
    texts = [text for call in calls for text in (call["id"], *call["function"].values())]
    if not all(isinstance(text, str) and text for text in texts):
        return []
    return calls if all(is_json(call["function"]["arguments"]) for call in calls) else []
