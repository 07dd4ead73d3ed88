"""What the parts of a request or an answer say about tokens."""

from collections.abc import Container
from typing import Any

__all__ = ["carries_text", "limit_of"]

_DELTA_FIELDS = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call", "refusal")


def carries_text(choice: dict[str, Any]) -> bool:
    """Whether a streamed choice carries a part of the answer: text, reasoning or a tool call that is not empty."""
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(delta.get(name) for name in _DELTA_FIELDS)
    return bool(choice.get("text"))


def limit_of(body: dict[str, Any], documented: Container[str]) -> int | None:
    """
    The most tokens that one choice may have by the request; None when it names no limit of its own.

    `max_completion_tokens` is the successor of `max_tokens`: where both are given, the smaller one binds under any reading
    that the documents allow only if they agree, so different ones count as no limit. A property that is not among the
    `documented` ones limits nothing: whoever ignores it is right.
    """
    limits = {
        value
        for name in ("max_tokens", "max_completion_tokens")
        if name in documented
        and isinstance(value := body.get(name), (int, float))
        and not isinstance(value, bool)
        and value >= 0
    }
    return int(limits.pop()) if len(limits) == 1 else None
