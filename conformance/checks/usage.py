"""`usage.*`: what the answer says it cost."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.predicates import (
    choices_of,
    chunked,
    count_of_choices,
    ended,
    object_answer,
    valid_request,
)
from streamgauge.conformance.tokens import limit_of
from streamgauge.contract.profile import ANY
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk, Evidence, Exchange

_USAGE = "UsageInfo: prompt_tokens, total_tokens, completion_tokens"
_SOURCE = "/responses/200/content/application~1json/schema/properties/usage"
_OPTIONS = "/requestBody/content/application~1json/schema/properties/stream_options"


def _usage_chunks(exchange: Exchange) -> list[Chunk]:
    return [chunk for chunk in exchange.stream.chunks if isinstance(chunk.object.get("usage"), dict)]


def _usage(exchange: Exchange) -> tuple[dict[str, Any], Chunk | None] | None:
    """The final usage of an answer, and the chunk that holds it."""
    if exchange.wants_stream:
        chunks = _usage_chunks(exchange)
        return (chunks[-1].object["usage"], chunks[-1]) if chunks else None
    body = exchange.json.value
    usage = body.get("usage") if isinstance(body, dict) else None
    return (usage, None) if isinstance(usage, dict) else None


def _counts(case: Case, *names: str) -> list[int] | None:
    """These members of the usage; None unless every one is there as an integer."""
    found = _usage(case.exchange)
    counts = [found[0].get(name) for name in names] if found else [None]
    return [count for count in counts if type(count) is int] if all(type(count) is int for count in counts) else None


def _answer(case: Case) -> bool:
    return object_answer(case) or (chunked(case) and case.exchange.stream.error is None)


def _event(case: Case) -> Any:
    found = _usage(case.exchange)
    return found[1].event if found and found[1] else None


@check(
    "usage.sum",
    Level.MUST,
    "The total is prompt plus completion",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case) and _counts(case, "prompt_tokens", "completion_tokens", "total_tokens") is not None
    ),
)
def total(case: Case) -> Iterator[Departure]:
    """Bills are made from it."""
    counts = _counts(case, "prompt_tokens", "completion_tokens", "total_tokens")
    if counts and counts[0] + counts[1] != counts[2]:
        yield Departure(f"{counts[0]} + {counts[1]} = {counts[0] + counts[1]}", str(counts[2]), event=_event(case))


def _limit(case: Case) -> int | None:
    """The most tokens of one choice, by a property that the document knows."""
    return limit_of(case.exchange.sent, case.operation.properties)


def _candidates(case: Case) -> int | None:
    """How many texts are generated: of `best_of` for a prompt `n` are returned, and all are counted."""
    wanted, best, n = count_of_choices(case), case.exchange.sent.get("best_of"), case.exchange.sent.get("n") or 1
    return wanted // n * max(n, best) if wanted is not None and type(best) is int else wanted


@check(
    "usage.limit",
    Level.MUST,
    "No more tokens are generated than the limit allows",
    requirement="max_tokens: the most tokens to generate.",
    source="/requestBody/content/application~1json/schema/properties/max_tokens",
    applies=lambda case: (
        _answer(case)
        and valid_request(case)
        and _limit(case) is not None
        and _counts(case, "completion_tokens") is not None
    ),
    needs=(Evidence.REQUEST,),
)
def limit(case: Case) -> Iterator[Departure]:
    """The limit is the caller's protection against cost."""
    allowed, wanted, counts = (
        _limit(case),
        _candidates(case),
        _counts(case, "completion_tokens"),
    )
    if allowed is not None and wanted is not None and counts and counts[0] > allowed * wanted:
        yield Departure(f"at most {allowed} x {wanted} = {allowed * wanted}", str(counts[0]), event=_event(case))


def _finish_reasons(case: Case) -> list[Any]:
    if case.exchange.wants_stream:
        choices = [choice for chunk in case.exchange.stream.chunks for choice in chunk.choices]
        return [choice["finish_reason"] for choice in choices if choice.get("finish_reason") is not None]
    return [choice.get("finish_reason") for choice in choices_of(case)]


def _all_cut(case: Case) -> bool:
    reasons = _finish_reasons(case)
    return len(reasons) == count_of_choices(case) and set(map(str, reasons)) == {"length"}


@check(
    "usage.all-choices",
    Level.MUST,
    "The completion tokens of all choices are counted",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case)
        and valid_request(case)
        and (count_of_choices(case) or 0) > 1
        and (_limit(case) or 0) > 0
        and _counts(case, "completion_tokens") is not None
        and _all_cut(case)
    ),
    absent="no answer with several choices that were all cut by the limit",
    needs=(Evidence.REQUEST,),
)
def all_choices(case: Case) -> Iterator[Departure]:
    """Where the limit cut every choice, the sum is known: limit times choices; one limit means that one was counted."""
    allowed, wanted, counts = (
        _limit(case),
        count_of_choices(case),
        _counts(case, "completion_tokens"),
    )
    if allowed and wanted and counts and counts[0] == allowed:
        yield Departure(f"{allowed} x {wanted} = {allowed * wanted}", str(counts[0]), event=_event(case))


_PLACES: dict[str, tuple[str, Callable[[Chunk], bool]]] = {
    "own-chunk": ("`choices: []`", lambda chunk: chunk.object.get("choices") == []),
    "last-choice": (
        "a finish reason",
        lambda chunk: any(choice.get("finish_reason") is not None for choice in chunk.choices),
    ),
}
"""Value of `dialect.usage_chunk` → the last chunk in words, and whether a chunk is like that."""


def _asks_usage(case: Case) -> bool:
    options = case.exchange.sent.get("stream_options") if "stream_options" in case.operation.properties else None
    return isinstance(options, dict) and options.get("include_usage") is True


@check(
    "usage.stream-requested",
    Level.MUST,
    "A stream carries usage when it was asked for",
    requirement="stream_options.include_usage: boolean",
    source=f"{_OPTIONS}/include_usage",
    applies=lambda case: ended(case) and _asks_usage(case),
    needs=(Evidence.REQUEST,),
)
def stream_requested(case: Case) -> Iterator[Departure]:
    """Accepted and not honoured: the caller cannot account for the stream."""
    if not _usage_chunks(case.exchange):
        yield Departure("a chunk with usage", "none", event=case.exchange.stream.done[0])


@check(
    "usage.stream-place",
    Level.SHOULD,
    "The usage of a stream comes last, where the profile says: by default in a chunk without choices",
    requirement="An additional chunk is streamed before [DONE]; its choices are an empty array.",
    source=f"{CLIENTS}; the profile's `dialect.usage_chunk`",
    applies=lambda case: ended(case) and _asks_usage(case) and bool(_usage_chunks(case.exchange)),
    concerns=lambda operation, contract: contract.profile.dialect.usage_chunk != ANY,
    needs=(Evidence.REQUEST,),
)
def stream_place(case: Case) -> Iterator[Departure]:
    """Clients look for the chunk whose `choices` is empty, or for usage beside the finish reason."""
    expected, holds = _PLACES[case.contract.profile.dialect.usage_chunk]
    last = case.exchange.stream.chunks[-1]
    if not isinstance(last.object.get("usage"), dict) or not holds(last):
        yield Departure(f"usage in a last chunk with {expected}", "usage elsewhere", event=_event(case))


@check(
    "usage.stream-unrequested",
    Level.SHOULD,
    "A stream carries no usage when none was asked for",
    requirement="include_usage: default: false",
    source=f"{_OPTIONS}/include_usage",
    applies=lambda case: ended(case) and case.exchange.sent.get("stream_options") is None,
    needs=(Evidence.REQUEST,),
)
def stream_unrequested(case: Case) -> Iterator[Departure]:
    """A chunk without choices surprises clients that did not ask for it."""
    chunks = _usage_chunks(case.exchange)
    if chunks:
        yield Departure("usage absent or null", "a chunk with usage", event=chunks[0].event)


@check(
    "usage.pair",
    Level.SHOULD,
    "The streamed and the whole form of a request cost the same prompt tokens",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case)
        and case.exchange.wants_stream
        and _counts(case, "prompt_tokens") is not None
        and any(not other.wants_stream and _usage(other) is not None for other in case.partners)
    ),
    absent="no pair of answers that both carry usage",
    needs=(Evidence.REQUEST,),
)
def pair(case: Case) -> Iterator[Departure]:
    """Two code paths, one prompt: a difference means that one of them renders another prompt."""
    counts = _counts(case, "prompt_tokens")
    for other in case.partners:
        found = None if other.wants_stream else _usage(other)
        if counts and found and found[0].get("prompt_tokens") != counts[0]:
            whole = found[0].get("prompt_tokens")
            yield Departure(f"{whole} prompt tokens, as the whole answer says", str(counts[0]), event=_event(case))
            return
