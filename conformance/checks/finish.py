"""`finish.*`: why and when a choice ended."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.predicates import (
    choices_of,
    chunked,
    count_of_choices,
    ended,
    index_of,
    object_answer,
    payloads,
    valid_request,
)
from streamgauge.conformance.tokens import carries_text, counts, limit_of
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk, Evidence

REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")

_REASON = "finish_reason: anyOf: string, null"
_STREAM = "/responses/200/content/text~1event-stream/schema (finish_reason of a choice)"


def _ends(choice: dict[str, Any]) -> bool:
    """Whether a streamed choice ends here: an empty text is no reason, `finish.null-until-end` judges it."""
    return choice.get("finish_reason") not in (None, "")


def _finishes(case: Case) -> Iterator[tuple[Any, Any, Chunk]]:
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            if _ends(choice):
                yield index_of(choice), choice["finish_reason"], chunk


@check(
    "finish.stream-once",
    Level.MUST,
    "Each streamed choice has exactly one finish reason",
    requirement=_REASON,
    source=_STREAM,
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
    source=_STREAM,
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
            if _ends(choice):
                ended.add(index_of(choice))


@check(
    "finish.key-present",
    Level.SHOULD,
    "Each choice of each chunk has the key finish_reason",
    requirement="finish_reason: null until the choice ends.",
    source=f"{_STREAM}; {CLIENTS}",
    applies=lambda case: chunked(case) and any(chunk.choices for chunk in payloads(case)),
)
def key_present(case: Case) -> Iterator[Departure]:
    """OpenAI's schema requires it, and so do clients that are made from it."""
    for chunk in payloads(case):
        if any("finish_reason" not in choice for choice in chunk.choices):
            yield Departure("finish_reason: null, or a reason", "no finish_reason", event=chunk.event)
            return


@check(
    "finish.null-until-end",
    Level.SHOULD,
    "A choice that has not ended has the finish reason null, not an empty text",
    requirement="finish_reason: null until the choice ends.",
    source=f"{_STREAM}; {CLIENTS}",
    applies=lambda case: chunked(case) and any(chunk.choices for chunk in payloads(case)),
)
def null_until_end(case: Case) -> Iterator[Departure]:
    """Clients that ask whether there is a reason take the empty text for one, typed ones refuse it."""
    for chunk in payloads(case):
        if any(choice.get("finish_reason") == "" for choice in chunk.choices):
            yield Departure("null", "an empty text", event=chunk.event)
            return


def _may_end_otherwise(case: Case) -> bool:
    """Asked to end where it repeats itself: for that end no client has a word."""
    exchange = case.exchange
    if Evidence.REQUEST not in exchange.holds or not isinstance(exchange.sent, dict):
        return False
    return exchange.sent.get("repetition_detection") is not None


@check(
    "finish.stream-reason",
    Level.SHOULD,
    "A streamed finish reason is one that clients know",
    requirement=f"finish_reason: {', '.join(REASONS)}",
    source=CLIENTS,
    applies=lambda case: chunked(case) and any(True for _ in _finishes(case)) and not _may_end_otherwise(case),
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
    applies=lambda case: object_answer(case) and not _may_end_otherwise(case),
)
def whole_reason(case: Case) -> Iterator[Departure]:
    """The schema allows its absence and any word; clients switch on it."""
    for choice in choices_of(case):
        if choice.get("finish_reason") not in REASONS:
            yield Departure(" or ".join(REASONS), repr(choice.get("finish_reason")))
            return


def _answer(case: Case) -> bool:
    return object_answer(case) or ended(case)


def _where(chunk: Chunk | None) -> Any:
    return chunk.event if chunk else None


@check(
    "finish.tool-calls",
    Level.MUST,
    "Where the finish reason says that tools are called, one is",
    requirement="finish_reason: tool_calls: the choice ended with tool calls.",
    source="/responses/200/content/application~1json/schema (finish_reason of a choice)",
    applies=lambda case: (
        _answer(case)
        and any({"tool_calls", "function_call"} & _words(each) for each in answer_in(case.exchange).choices.values())
    ),
    absent="no choice that ended with the reason tool_calls",
)
def tool_calls(case: Case) -> Iterator[Departure]:
    """An agent that waits for calls takes the first one of none."""
    for index, each in answer_in(case.exchange).choices.items():
        for reason, chunk in each.ends:
            if reason in ("tool_calls", "function_call") and not each.calls:
                yield Departure(f"a call in choice {index}", f"{reason} and no call", event=_where(chunk))
                return


def _words(each: Any) -> set[str]:
    return {reason for reason in each.reasons if isinstance(reason, str)}


def _names_tool(case: Case) -> bool:
    """Whether the request names the tool, or the function, to call: OpenAI, and vLLM after it, answer `stop` then."""
    return any(isinstance(case.exchange.sent.get(name), dict) for name in ("tool_choice", "function_call"))


@check(
    "finish.calls-told",
    Level.SHOULD,
    "A choice that calls tools of its own accord ends with the reason tool_calls",
    requirement="finish_reason: tool_calls: the choice ended with tool calls.",
    source=CLIENTS,
    applies=lambda case: (
        _answer(case)
        and not _names_tool(case)
        and any(each.calls for each in answer_in(case.exchange).choices.values())
    ),
    absent="no choice that calls a tool which the request did not name",
    needs=(Evidence.REQUEST,),
)
def calls_told(case: Case) -> Iterator[Departure]:
    """Agents that switch on the reason never make the call. Cut calls end with `length` or `content_filter`."""
    for each in answer_in(case.exchange).choices.values():
        if each.calls and each.reasons == ["stop"]:
            yield Departure("tool_calls", "stop, behind a tool call", event=_where(each.ends[0][1]))
            return


_ENDLESS = frozenset(
    {
        "ignore_eos",
        "include_reasoning",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "min_tokens",
        "model",
        "n",
        "prompt",
        "reasoning_effort",
        "request_id",
        "seed",
        "stream",
        "stream_options",
        "temperature",
        "top_logprobs",
        "top_p",
        "user",
    }
)
"""Request properties none of which can end an answer before its limit."""


def _surely_cut(case: Case) -> bool:
    """
    Whether only the limit can have ended every choice: all tokens that it allows were generated, and no text ends.

    An end of its own may fall on the last token that is allowed: `min_tokens` keeps the model from it; and a limit of one
    token that is seen in the answer leaves no room for the invisible one that ends it. (`ignore_eos` is not enough:
    DeepInfra's document lets most models ignore it.)
    """
    properties = case.operation.properties
    asked = {name: value for name, value in case.exchange.sent.items() if name in properties}
    limit, choices = limit_of(asked, properties), count_of_choices(case)
    generated = counts(case.exchange, "completion_tokens")
    if not limit or choices is None or generated != [limit * choices] or not asked.keys() <= _ENDLESS:
        return False
    least = asked.get("min_tokens")
    if type(least) is int and least >= limit:
        return True
    return limit == 1 and all(each.speaks for each in answer_in(case.exchange).choices.values())


@check(
    "finish.length",
    Level.MUST,
    "A choice that the limit cut says so",
    requirement="finish_reason: length: the choice ended at the token limit.",
    source="/responses/200/content/application~1json/schema (finish_reason of a choice); max_tokens",
    applies=lambda case: _answer(case) and valid_request(case) and _surely_cut(case),
    absent="no answer that only its limit can have ended",
    needs=(Evidence.REQUEST,),
)
def length(case: Case) -> Iterator[Departure]:
    """Whoever is told `stop` takes half an answer for a whole one."""
    for each in answer_in(case.exchange).choices.values():
        if each.reasons == ["stop"]:
            yield Departure("length", "stop", event=_where(each.ends[0][1]))
            return
