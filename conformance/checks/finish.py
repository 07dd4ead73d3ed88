"""`finish.*`: why and when a choice ended."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.predicates import choices_of, chunked, ended, index_of, object_answer
from streamgauge.conformance.tokens import carries_text
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk

REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")

_REASON = "finish_reason: anyOf: string, null"


def _finishes(case: Case) -> Iterator[tuple[Any, str, Chunk]]:
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            if choice.get("finish_reason") is not None:
                yield index_of(choice), choice["finish_reason"], chunk


@check(
    "finish.stream-once",
    Level.MUST,
    "Each streamed choice has exactly one finish reason",
    requirement=_REASON,
    source="/responses/200/content/text~1event-stream/schema (finish_reason of a choice)",
    applies=ended,
)
def stream_once(case: Case) -> Iterator[Departure]:
    """Without it a client cannot tell a whole answer from a cut one; twice, it ends the message twice."""
    found: dict[Any, list[Chunk]] = {}
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            found.setdefault(index_of(choice), [])
    for index, _, chunk in _finishes(case):
        found[index].append(chunk)
    for index, chunks in found.items():
        if len(chunks) != 1:
            last = chunks[-1] if chunks else case.exchange.stream.chunks[-1]
            yield Departure(f"one finish reason for choice {index}", str(len(chunks)), event=last.event)


@check(
    "finish.nothing-after",
    Level.MUST,
    "A choice says nothing after its finish reason",
    requirement=_REASON,
    source="/responses/200/content/text~1event-stream/schema (finish_reason of a choice)",
    applies=ended,
)
def nothing_after(case: Case) -> Iterator[Departure]:
    """Clients close the message at the finish reason; later text is lost."""
    ended: set[Any] = set()
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            if index_of(choice) in ended and carries_text(choice):
                yield Departure("no text", "text after the finish reason", event=chunk.event)
                return
            if choice.get("finish_reason") is not None:
                ended.add(index_of(choice))


@check(
    "finish.stream-reason",
    Level.SHOULD,
    "A streamed finish reason is one that clients know",
    requirement=f"finish_reason: {', '.join(REASONS)}",
    source=CLIENTS,
    applies=lambda case: chunked(case) and any(True for _ in _finishes(case)),
)
def stream_reason(case: Case) -> Iterator[Departure]:
    """Typed clients refuse a word that is not in their list."""
    for _, reason, chunk in _finishes(case):
        if reason not in REASONS:
            yield Departure(" or ".join(REASONS), repr(reason), event=chunk.event)
            return


@check(
    "finish.whole",
    Level.SHOULD,
    "Each choice of a whole answer has a finish reason that clients know",
    requirement=f"finish_reason: {', '.join(REASONS)}",
    source=CLIENTS,
    applies=object_answer,
)
def whole_reason(case: Case) -> Iterator[Departure]:
    """The schema allows its absence and any word; clients switch on it."""
    for choice in choices_of(case):
        if choice.get("finish_reason") not in REASONS:
            yield Departure(" or ".join(REASONS), repr(choice.get("finish_reason")))
            return
