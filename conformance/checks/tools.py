"""`tools.*`: how a stream tells its tool calls, as far as the pieces put together do not show it."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.predicates import ended, index_of, is_chat
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk

_ABSENT = "no stream that calls a tool"


def _deltas(case: Case) -> Iterator[tuple[tuple[Any, Any], dict[str, Any], Chunk]]:
    """The pieces of calls: indexes of choice and call, the piece, and the chunk that brought it."""
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            delta = choice.get("delta")
            calls = delta.get("tool_calls") if isinstance(delta, dict) else None
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict):
                    yield (index_of(choice), index_of(call)), call, chunk


def _calls(case: Case) -> bool:
    return ended(case) and any(True for _ in _deltas(case))


@check(
    "tools.stream-first-delta",
    Level.MUST,
    "The first piece of a streamed call names it, its type and its function",
    requirement="id: identifier of the call, in its first piece. type: in the first piece. name: in the first piece.",
    source=f"/responses/200/content/text~1event-stream/schema (tool_calls of a delta); {CLIENTS}",
    applies=_calls,
    concerns=is_chat,
    absent=_ABSENT,
)
def first_delta(case: Case) -> Iterator[Departure]:
    """Clients open the call when they see its first piece."""
    seen = set()
    for key, call, chunk in _deltas(case):
        if key in seen:
            continue
        seen.add(key)
        function = call.get("function")
        told = {
            "id": call.get("id"),
            "type": call.get("type"),
            "function.name": function.get("name") if isinstance(function, dict) else None,
        }
        lacking = [name for name, value in told.items() if not value]
        if lacking:
            yield Departure("id, type and function.name", f"no {' and no '.join(lacking)}", event=chunk.event)
            return


@check(
    "tools.stream-index",
    Level.MUST,
    "Each streamed call has an index of its own, counted from 0",
    requirement="index: which of the calls this continues, counted from 0.",
    source=f"/responses/200/content/text~1event-stream/schema (tool_calls of a delta); {CLIENTS}",
    applies=_calls,
    concerns=is_chat,
    absent=_ABSENT,
)
def stream_index(case: Case) -> Iterator[Departure]:
    """Clients put the pieces of one index together, two calls there become one; and they append the next call to a list."""
    known: dict[tuple[Any, Any], Any] = {}
    indexes: dict[Any, dict[Any, Chunk]] = {}
    for key, call, chunk in _deltas(case):
        indexes.setdefault(key[0], {}).setdefault(key[1], chunk)
        id_ = call.get("id")
        if id_ and known.setdefault(key, id_) != id_:
            yield Departure(f"call {known[key]} at index {key[1]}", f"also call {id_}", event=chunk.event)
            return
    for seen in indexes.values():
        for index, chunk in seen.items():  # in whatever order; one that is no number is the schema's
            if type(index) is int and not 0 <= index < len(seen):
                yield Departure(f"indexes 0 to {len(seen) - 1}", f"a call at index {index}", event=chunk.event)
                return
