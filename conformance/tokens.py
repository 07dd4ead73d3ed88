"""What the parts of a request or an answer say about tokens."""

from collections.abc import Container
from typing import Any

from streamgauge.contract.contract import Operation
from streamgauge.contract.fields import properties_of
from streamgauge.wire.exchange import Chunk, Exchange
from streamgauge.wire.json import is_number

__all__ = ["carries_text", "counts", "detail", "final_usage", "knows_continuous", "limit_of", "usage_chunks"]

_PART_FIELDS = (
    "content",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
)


def carries_text(choice: dict[str, Any]) -> bool:
    """Whether a choice, whole or streamed, carries a part of the answer: text, reasoning or a tool call, not empty."""
    part = choice.get("delta", choice.get("message"))
    if isinstance(part, dict):
        return any(part.get(name) for name in _PART_FIELDS)
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
        if name in documented and is_number(value := body.get(name)) and value >= 0
    }
    return int(limits.pop()) if len(limits) == 1 else None


def usage_chunks(exchange: Exchange) -> list[Chunk]:
    """The chunks of a stream that bring usage."""
    return [chunk for chunk in exchange.stream.chunks if isinstance(chunk.object.get("usage"), dict)]


def final_usage(exchange: Exchange) -> tuple[dict[str, Any], Chunk | None] | None:
    """The final usage of an answer, and the chunk that holds it; None where there is none."""
    if exchange.wants_stream:
        chunks = usage_chunks(exchange)
        return (chunks[-1].object["usage"], chunks[-1]) if chunks else None
    body = exchange.json.value
    usage = body.get("usage") if isinstance(body, dict) else None
    return (usage, None) if isinstance(usage, dict) else None


def counts(exchange: Exchange, *names: str) -> list[int] | None:
    """These members of the final usage; None unless every one is there as an integer."""
    found = final_usage(exchange)
    given = [found[0].get(name) for name in names] if found else [None]
    return [count for count in given if type(count) is int] if all(type(count) is int for count in given) else None


def detail(usage: dict[str, Any], part: str, name: str) -> int | None:
    """A count inside of `prompt_tokens_details` or `completion_tokens_details`; None unless it is there as an integer."""
    details = usage.get(part)
    count = details.get(name) if isinstance(details, dict) else None
    return count if type(count) is int else None


def knows_continuous(operation: Operation) -> bool:
    """Whether the document offers usage in every chunk."""
    options = operation.properties.get("stream_options")
    return "continuous_usage_stats" in properties_of(operation.schemas, options, any_branch=True)
