"""The shapes that clients of the OpenAI API rely on, for documents that leave the answer open."""

from collections.abc import Iterator
from typing import Any

from streamgauge.contract.contract import CHAT, COMPLETIONS
from streamgauge.contract.validator import Validator

__all__ = ["OBJECT_OF_CHUNK", "OBJECT_OF_WHOLE", "reference_problems"]

OBJECT_OF_WHOLE = {CHAT: "chat.completion", COMPLETIONS: "text_completion"}
OBJECT_OF_CHUNK = {CHAT: "chat.completion.chunk", COMPLETIONS: "text_completion"}

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_USAGE = {
    "type": "object",
    "required": list(_COUNTS),
    "properties": {name: {"type": "integer", "minimum": 0} for name in _COUNTS},
}


def _answer(choice: dict[str, Any], *, streamed: bool) -> Validator:
    required = ["id", "object", "created", "model", "choices"]
    usage: dict[str, Any] = {"anyOf": [_USAGE, {"type": "null"}]} if streamed else _USAGE
    return Validator(
        {
            "type": "object",
            "required": required if streamed else [*required, "usage"],
            "properties": {
                "id": {"type": "string"},
                "object": {"type": "string"},
                "created": {"type": "integer"},
                "model": {"type": "string"},
                "choices": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["index", *choice["required"]],
                        "properties": {
                            "index": {"type": "integer", "minimum": 0},
                            "finish_reason": {"type": ["string", "null"]},
                            **choice["properties"],
                        },
                    },
                },
                "usage": usage,
            },
        }
    )


_TEXT = {"required": ["text"], "properties": {"text": {"type": "string"}}}
_DELTA = {"required": ["delta"], "properties": {"delta": {"type": "object"}}}
_MESSAGE = {"required": ["message"], "properties": {"message": {"type": "object", "required": ["role"]}}}

_VALIDATORS = {
    (CHAT, False): _answer(_MESSAGE, streamed=False),
    (CHAT, True): _answer(_DELTA, streamed=True),
    (COMPLETIONS, False): _answer(_TEXT, streamed=False),
    (COMPLETIONS, True): _answer(_TEXT, streamed=True),
}


def reference_problems(family: str, payload: Any, *, streamed: bool) -> Iterator[str]:
    """Where a payload departs from the usual shape of its family."""
    for problem in _VALIDATORS[family, streamed].problems(payload):
        yield str(problem)
