"""The ids of the tool calls in an answer, in whichever form it was sent."""

from typing import Any

from streamgauge.wire.exchange import Exchange
from streamgauge.wire.json import objects_in

__all__ = ["call_ids"]


def call_ids(exchange: Exchange) -> list[list[Any]]:
    """Of each choice that calls tools the ids of its calls; in a stream the first piece of each call tells its id."""
    if not exchange.wants_stream:
        body = exchange.json.value
        choices = body.get("choices") if isinstance(body, dict) else None
        found = [[call.get("id") for call in _calls(choice, "message")] for choice in objects_in(choices)]
        return [ids for ids in found if ids]
    streamed: dict[str, dict[str, Any]] = {}
    for choice in (choice for chunk in exchange.stream.chunks for choice in chunk.choices):
        for call in _calls(choice, "delta"):
            known = streamed.setdefault(repr(choice.get("index")), {})
            known.setdefault(repr(call.get("index")), call.get("id"))
    return [list(ids.values()) for ids in streamed.values()]


def _calls(choice: dict[str, Any], part: str) -> list[dict[str, Any]]:
    message = choice.get(part)
    return objects_in(message.get("tool_calls")) if isinstance(message, dict) else []
