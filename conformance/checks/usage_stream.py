"""`usage.stream-*`: where and when a stream says what it cost."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import counting_for, ignored
from streamgauge.conformance.predicates import ended, index_of, payloads
from streamgauge.conformance.tokens import counts, knows_continuous, usage_chunks
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.profile import ANY
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Chunk, Evidence

_OPTIONS = "/requestBody/content/application~1json/schema/properties/stream_options"


_PLACES: dict[str, tuple[str, Callable[[Chunk], bool]]] = {
    "own-chunk": ("`choices: []`", lambda chunk: chunk.object.get("choices") == []),
    "last-choice": (
        "a finish reason",
        lambda chunk: any(choice.get("finish_reason") is not None for choice in chunk.choices),
    ),
}
"""Value of `dialect.usage_chunk` → the last chunk in words, and whether a chunk is like that."""


def _asks(case: Case, option: str) -> bool:
    options = case.exchange.sent.get("stream_options") if "stream_options" in case.operation.properties else None
    return isinstance(options, dict) and options.get(option) is True


def _asks_usage(case: Case) -> bool:
    return _asks(case, "include_usage")


def _asks_continuous(case: Case) -> bool:
    return _asks(case, "continuous_usage_stats") and knows_continuous(case.operation)


@counting_for("stream_options.include_usage", "stream_options")
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
    if not usage_chunks(case.exchange):
        yield ignored("a chunk with usage", "none", event=case.exchange.stream.done[0])


@check(
    "usage.stream-place",
    Level.SHOULD,
    "The usage of a stream comes last, where the profile says: by default in a chunk without choices",
    requirement="An additional chunk is streamed before [DONE]; its choices are an empty array.",
    source=f"{CLIENTS}; the profile's `dialect.usage_chunk`",
    applies=lambda case: ended(case) and _asks_usage(case) and bool(usage_chunks(case.exchange)),
    concerns=lambda operation, contract: contract.profile.dialect.usage_chunk != ANY,
    needs=(Evidence.REQUEST,),
)
def stream_place(case: Case) -> Iterator[Departure]:
    """Clients look for the chunk whose `choices` is empty, or for usage beside the finish reason."""
    expected, holds = _PLACES[case.contract.profile.dialect.usage_chunk]
    last = case.exchange.stream.chunks[-1]
    if not isinstance(last.object.get("usage"), dict) or not holds(last):
        yield Departure(
            f"usage in a last chunk with {expected}", "usage elsewhere", event=usage_chunks(case.exchange)[-1].event
        )


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
    chunks = usage_chunks(case.exchange)
    if chunks:
        yield Departure("usage absent or null", "a chunk with usage", event=chunks[0].event)


@check(
    "usage.stream-once",
    Level.SHOULD,
    "A stream brings its usage once, at its end, unless it was asked for in every chunk",
    requirement="usage: in the last chunk; null or absent in all others.",
    source=CLIENTS,
    applies=lambda case: (
        ended(case)
        and _asks_usage(case)
        and not _asks(case, "continuous_usage_stats")
        and bool(usage_chunks(case.exchange))
    ),
    needs=(Evidence.REQUEST,),
)
def stream_once(case: Case) -> Iterator[Departure]:
    """Clients that add up what they are told bill the prompt once for each chunk."""
    chunks = usage_chunks(case.exchange)
    if len(chunks) > 1:
        yield Departure("usage in one chunk", f"in {len(chunks)}", event=chunks[0].event)


def _offers_continuous(operation: Operation, contract: Contract) -> bool:
    return operation.streams and knows_continuous(operation)


@counting_for("stream_options.continuous_usage_stats")
@check(
    "usage.stream-continuous",
    Level.MUST,
    "Usage that was asked for in every chunk is in every chunk that has a choice, and only grows",
    requirement="stream_options.continuous_usage_stats: boolean",
    source=f"{_OPTIONS}/continuous_usage_stats",
    applies=lambda case: ended(case) and _asks_continuous(case),
    concerns=_offers_continuous,
    absent="no stream that was asked for usage in every chunk",
    needs=(Evidence.REQUEST,),
)
def stream_continuous(case: Case) -> Iterator[Departure]:
    """Who asks for it wants to know the cost of a stream that breaks off."""
    with_choices = [chunk for chunk in payloads(case) if chunk.choices]
    without = [chunk for chunk in with_choices if not isinstance(chunk.object.get("usage"), dict)]
    if without:
        outcome = (
            None if any(isinstance(chunk.object.get("usage"), dict) for chunk in _interim(case)) else Outcome.IGNORED
        )
        yield Departure("usage in every chunk", "a chunk without", event=without[0].event, outcome=outcome)
        return
    yield from _falling(case)


def _interim(case: Case) -> Iterator[Chunk]:
    """The chunks that end no choice: some servers tell usage with the end of each, asked for or not."""
    for chunk in payloads(case):
        if chunk.choices and not any(choice.get("finish_reason") for choice in chunk.choices):
            yield chunk


def _falling(case: Case) -> Iterator[Departure]:
    """
    Counted by choice (vLLM) or over all of them: the count in the chunks of one choice never falls, nor that at the end.

    Of several prompts, each chunk may count its own, and the end all of them.
    """
    one_prompt = not isinstance(case.exchange.sent.get("prompt"), list)
    prompt = next(iter(counts(case.exchange, "prompt_tokens") or ()), None)
    reached: dict[tuple[Any, ...], int] = {}
    for chunk in usage_chunks(case.exchange):
        usage = chunk.object["usage"]
        if one_prompt and usage.get("prompt_tokens") != prompt:
            told = repr(usage.get("prompt_tokens"))
            yield Departure(f"{prompt} prompt tokens throughout", told, event=chunk.event)
            return
        generated = usage.get("completion_tokens")
        if type(generated) is not int:
            continue
        indexes = tuple(map(index_of, chunk.choices))
        known = [reached[indexes]] if indexes in reached else [] if indexes else list(reached.values())
        if generated < max(known, default=0):
            yield Departure(f"{max(known)} completion tokens or more", str(generated), event=chunk.event)
        elif not indexes and len(known) == 1 and generated != known[0]:
            yield Departure(f"{generated} completion tokens at the choice's end", str(known[0]), event=chunk.event)
        else:
            reached[indexes] = generated
            continue
        return
