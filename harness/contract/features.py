"""The features that a profile may call supported or unsupported, and how a request shows that it uses one."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FEATURES", "PIXEL", "SILENCE", "Feature", "features_used"]

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Feature:
    """
    One optional feature.

    Attributes:
        meaning: what a request asks for, in words.
        params: the request's properties that ask for it.
        used: whether a request asks for it in an ordinary way: an odd value may be refused for its oddity.
        samples: what it adds to a plain request, in each form that a document may have for it; empty for what the ordinary
            probes ask for anyway.
    """

    meaning: str
    params: tuple[str, ...]
    used: Callable[[Body], bool]
    samples: tuple[dict[str, Any], ...]


def _is_whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _option(body: Body, name: str, member: str) -> Any:
    value = body.get(name)
    return value.get(member) if isinstance(value, dict) else None


def _stops(body: Body) -> bool:
    stop = body.get("stop")
    given = [stop] if isinstance(stop, str) else stop
    return isinstance(given, list) and 1 <= len(given) <= 4 and all(isinstance(text, str) and text for text in given)


def _logprobs(body: Body) -> bool:
    return body.get("logprobs") is True or _is_whole(body.get("logprobs"), 1, 5)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is kind for item in value)


def _has_part(body: Body, kind: str) -> bool:
    messages = body.get("messages")
    return isinstance(messages, list) and any(
        isinstance(part, dict) and part.get("type") == kind
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _tools(body: Body) -> bool:
    return _is_list_of(body.get("tools"), dict) and body.get("tool_choice") in (None, "auto")


def _forced_tool(body: Body) -> bool:
    choice = body.get("tool_choice")
    return _is_list_of(body.get("tools"), dict) and (choice == "required" or isinstance(choice, dict))


def _message(part: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}]}


# A grey pixel as PNG; a WAV file of eight samples.
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
SILENCE = "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YRAAAAAAAAAAAAAAAAAAAAAAAAAA"
_TOOL = {"type": "function", "function": {"name": "note", "parameters": {"type": "object", "properties": {}}}}
_SCHEMA = {"name": "note", "schema": {"type": "object", "properties": {"text": {"type": "string"}}}}

FEATURES: dict[str, Feature] = {
    "stream": Feature(
        "an answer as server-sent events",
        ("stream",),
        lambda body: body.get("stream") is True,
        (),
    ),
    "stream_usage": Feature(
        "usage in a stream",
        ("stream", "stream_options"),
        lambda body: body.get("stream") is True and _option(body, "stream_options", "include_usage") is True,
        (),
    ),
    "n": Feature("several choices", ("n",), lambda body: _is_whole(body.get("n"), 2, 8), ({"n": 2},)),
    "stop": Feature("stop strings", ("stop",), _stops, ({"stop": ["\u241e"]},)),
    "seed": Feature("a seed", ("seed",), lambda body: _is_whole(body.get("seed"), 0, 2**31 - 1), ({"seed": 7},)),
    "logprobs": Feature(
        "log-probabilities",
        ("logprobs", "top_logprobs"),
        _logprobs,
        ({"logprobs": True, "top_logprobs": 2}, {"logprobs": 2}),
    ),
    "echo": Feature("the prompt in the answer", ("echo",), lambda body: body.get("echo") is True, ({"echo": True},)),
    "suffix": Feature(
        "text behind the completion",
        ("suffix",),
        lambda body: isinstance(body.get("suffix"), str) and bool(body["suffix"]),
        ({"suffix": "."},),
    ),
    "prompt_list": Feature(
        "several prompts",
        ("prompt",),
        lambda body: _is_list_of(body.get("prompt"), str) or _is_list_of(body.get("prompt"), list),
        ({"prompt": ["One", "Two"]},),
    ),
    "prompt_token_ids": Feature(
        "a prompt of token ids",
        ("prompt",),
        lambda body: _is_list_of(body.get("prompt"), int),
        ({"prompt": [1, 2, 3]},),
    ),
    "tools": Feature("tools that the model may call", ("tools", "tool_choice"), _tools, ({"tools": [_TOOL]},)),
    "forced_tool": Feature(
        "a tool that the model has to call",
        ("tools", "tool_choice"),
        _forced_tool,
        ({"tools": [_TOOL], "tool_choice": "required"},),
    ),
    "json_object": Feature(
        "an answer that is a JSON object",
        ("response_format",),
        lambda body: _option(body, "response_format", "type") == "json_object",
        ({"response_format": {"type": "json_object"}},),
    ),
    "json_schema": Feature(
        "an answer by a JSON Schema",
        ("response_format",),
        lambda body: _option(body, "response_format", "type") == "json_schema",
        ({"response_format": {"type": "json_schema", "json_schema": _SCHEMA}},),
    ),
    "regex": Feature(
        "an answer by a regular expression",
        ("response_format",),
        lambda body: _option(body, "response_format", "type") == "regex",
        ({"response_format": {"type": "regex", "regex": "[a-z]+"}},),
    ),
    "reasoning": Feature(
        "reasoning before the answer",
        ("reasoning_effort",),
        lambda body: body.get("reasoning_effort") not in (None, "none"),
        ({"reasoning_effort": "low"},),
    ),
    "ignore_eos": Feature(
        "going on past the end of the text",
        ("ignore_eos",),
        lambda body: body.get("ignore_eos") is True,
        ({"ignore_eos": True},),
    ),
    "min_tokens": Feature(
        "a least number of tokens",
        ("min_tokens",),
        lambda body: _is_whole(body.get("min_tokens"), 1, 8),
        ({"min_tokens": 2},),
    ),
    "images": Feature(
        "pictures in a message",
        ("messages",),
        lambda body: _has_part(body, "image_url"),
        (_message({"type": "image_url", "image_url": {"url": PIXEL}}),),
    ),
    "audio": Feature(
        "sound in a message",
        ("messages",),
        lambda body: _has_part(body, "input_audio"),
        (_message({"type": "input_audio", "input_audio": {"data": SILENCE, "format": "wav"}}),),
    ),
}
"""Name → feature, in the order of the documentation."""


def features_used(body: Body, documented: Collection[str]) -> frozenset[str]:
    """
    The features that a request asks for.

    Args:
        body: the request's JSON object.
        documented: the properties that its document knows; others are extra fields, which ask for nothing.
    """
    known = {name: value for name, value in body.items() if name in documented}
    return frozenset(name for name, feature in FEATURES.items() if feature.used(known))
