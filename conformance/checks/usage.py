"""`usage.*`: what the answer says it cost."""

import statistics
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import counting_for
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.predicates import chunked, count_of_choices, ended_answer, object_answer, valid_request
from streamgauge.conformance.questions import answer_of
from streamgauge.conformance.timing import insane
from streamgauge.conformance.tokens import counts, detail, final_usage, limit_of
from streamgauge.contract.contract import JSON, Contract, Operation
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence

_USAGE = "UsageInfo: prompt_tokens, total_tokens, completion_tokens"
_SOURCE = "/responses/200/content/application~1json/schema/properties/usage"


def _answer(case: Case) -> bool:
    return object_answer(case) or (chunked(case) and case.exchange.stream.error is None)


def _event(case: Case) -> Any:
    found = final_usage(case.exchange)
    return found[1].event if found and found[1] else None


@check(
    "usage.sum",
    Level.MUST,
    "The total is prompt plus completion",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case) and counts(case.exchange, "prompt_tokens", "completion_tokens", "total_tokens") is not None
    ),
)
def total_of_both(case: Case) -> Iterator[Departure]:
    """Bills are made from it."""
    prompt, completion, total = counts(case.exchange, "prompt_tokens", "completion_tokens", "total_tokens") or (0, 0, 0)
    if prompt + completion != total:
        yield Departure(f"{prompt} + {completion} = {prompt + completion}", str(total), event=_event(case))


def _generated(case: Case) -> int | None:
    return next(iter(counts(case.exchange, "completion_tokens") or ()), None)


def _limit(case: Case) -> int | None:
    """The most tokens of one choice, by a property that the document knows."""
    return limit_of(case.exchange.sent, case.operation.properties)


def _candidates(case: Case) -> int | None:
    """How many texts are generated: of `best_of` for a prompt `n` are returned, and all are counted."""
    wanted, best, n = count_of_choices(case), case.exchange.sent.get("best_of"), case.exchange.sent.get("n") or 1
    return wanted // n * max(n, best) if wanted is not None and type(best) is int else wanted


@counting_for("max_tokens")
@check(
    "usage.limit",
    Level.MUST,
    "No more tokens are generated than the limit allows",
    requirement="max_tokens: the most tokens to generate.",
    source="/requestBody/content/application~1json/schema/properties/max_tokens",
    applies=lambda case: (
        _answer(case)
        and valid_request(case)
        and case.exchange.sent.get("max_tokens") is not None
        and _limit(case) is not None
        and _generated(case) is not None
    ),
    needs=(Evidence.REQUEST,),
)
def limit(case: Case) -> Iterator[Departure]:
    """The limit is the caller's protection against cost. `lengths.max-completion-tokens` judges its successor."""
    allowed, wanted, generated = _limit(case), _candidates(case), _generated(case)
    if allowed is not None and wanted is not None and generated is not None and generated > allowed * wanted:
        yield Departure(f"at most {allowed} x {wanted} = {allowed * wanted}", str(generated), event=_event(case))


def _all_cut(case: Case) -> bool:
    """Whether the limit cut every choice that was asked for."""
    reasons = [reason for each in answer_in(case.exchange).choices.values() for reason in each.reasons]
    return len(reasons) == count_of_choices(case) and all(reason == "length" for reason in reasons)


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
        and _generated(case) is not None
        and _all_cut(case)
    ),
    absent="no answer with several choices that were all cut by the limit",
    needs=(Evidence.REQUEST,),
)
def all_choices(case: Case) -> Iterator[Departure]:
    """Where the limit cut every choice, the sum is known: limit times choices; one limit means that one was counted."""
    allowed, wanted, generated = _limit(case), count_of_choices(case), _generated(case)
    if allowed and wanted and generated == allowed:
        yield Departure(f"{allowed} x {wanted} = {allowed * wanted}", str(generated), event=_event(case))


_SMALL = 64
"""A limit that no cap of a server and no context undercuts."""


@check(
    "usage.length",
    Level.SHOULD,
    "An answer that the limit cut counts as many tokens as the limit allows",
    requirement="finish_reason: length; max_tokens: the most tokens to generate.",
    source=_SOURCE,
    applies=lambda case: (
        _answer(case)
        and valid_request(case)
        and 0 < (_limit(case) or 0) <= _SMALL
        and not case.exchange.sent.get("stop")  # `stop.finish` judges whether the limit was the reason
        and _candidates(case) == count_of_choices(case)
        and _generated(case) is not None
        and _all_cut(case)
    ),
    absent="no answer all of whose choices were cut by a small limit",
    needs=(Evidence.REQUEST,),
)
def length(case: Case) -> Iterator[Departure]:
    """A token too few is a count that nobody can trust; too many are `usage.limit`'s, none at all `usage.counted`'s."""
    allowed, wanted, generated = _limit(case), count_of_choices(case), _generated(case)
    if not allowed or not wanted or generated is None or (wanted > 1 and generated == allowed):  # `usage.all-choices`
        return
    if 0 < generated < allowed * wanted:
        yield Departure(f"{allowed} x {wanted} = {allowed * wanted}", str(generated), event=_event(case))


def _prompts(case: Case) -> bool:
    """Whether the request holds something to read."""
    messages, prompt = case.exchange.sent.get("messages"), case.exchange.sent.get("prompt")
    given = messages if isinstance(messages, list) else ()
    return any(isinstance(each, dict) and _says(each.get("content")) for each in given) or _says(prompt)


def _filtered(case: Case) -> bool:
    """Whether a filter took an answer's place: then the model may have read and written nothing."""
    return any("content_filter" in each.reasons for each in answer_in(case.exchange).choices.values())


def _says(value: Any) -> bool:
    """A text or a token, alone, in a list or in a part of a message."""
    if isinstance(value, list):
        return any(map(_says, value))
    if isinstance(value, dict):
        return _says(value.get("text"))
    return isinstance(value, int) or (isinstance(value, str) and value != "")


@check(
    "usage.counted",
    Level.MUST,
    "A prompt has at least one token, and so has a text",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case)
        and valid_request(case)
        and _prompts(case)
        and not _filtered(case)
        and counts(case.exchange, "prompt_tokens", "completion_tokens") is not None
    ),
    needs=(Evidence.REQUEST,),
)
def counted(case: Case) -> Iterator[Departure]:
    """Zeros look like usage and bill nothing."""
    prompt, completion = counts(case.exchange, "prompt_tokens", "completion_tokens") or (1, 1)
    speaks = (
        any(each.speaks for each in answer_in(case.exchange).choices.values())
        and case.exchange.sent.get("echo") is not True
    )
    if prompt < 1:
        yield Departure("1 prompt token or more", str(prompt), event=_event(case))
    elif completion < 1 and speaks:
        yield Departure("1 completion token or more, since there is text", str(completion), event=_event(case))


def _part_of(part: str, name: str, whole: str, why: str) -> None:
    """Declare that a detail of the usage is no more than the count that it is a part of."""

    def shown(case: Case) -> bool:
        found = final_usage(case.exchange) if _answer(case) else None
        return found is not None and detail(found[0], part, name) is not None and type(found[0].get(whole)) is int

    def judge(case: Case) -> Iterator[Departure]:
        found = final_usage(case.exchange)
        count = detail(found[0], part, name) if found else None
        if found and count is not None and not 0 <= count <= found[0][whole]:
            yield Departure(f"0 to {found[0][whole]}, the {whole}", f"{name}: {count}", event=_event(case))

    judge.__doc__ = why
    check(
        f"usage.{name.partition('_')[0]}",
        Level.MUST,
        f"`{name}` are a part of the `{whole}`",
        requirement=f"{part}: {name}: integer",
        source=f"{_SOURCE}/properties/{part}",
        applies=shown,
        absent=f"no answer with {part}.{name}",
    )(judge)


_part_of("prompt_tokens_details", "cached_tokens", "prompt_tokens", "Cached tokens are billed at another rate.")
_part_of("completion_tokens_details", "reasoning_tokens", "completion_tokens", "Reasoning is generated, hence billed.")


@once
def _whole_prompts(case: Case) -> dict[Asked, list[Any]]:
    """What the whole answers to each question say of the prompt, each thing once."""
    found: dict[Asked, list[Any]] = {}
    for key, group in case.others.groups.items():
        for used in (final_usage(each) for each in group if not each.wants_stream):
            if used is not None:
                said, prompt = found.setdefault(key, []), used[0].get("prompt_tokens")
                if prompt not in said:
                    said.append(prompt)
    return found


@check(
    "usage.pair",
    Level.SHOULD,
    "The streamed and the whole form of a request cost the same prompt tokens",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        _answer(case)
        and case.exchange.wants_stream
        and counts(case.exchange, "prompt_tokens") is not None
        and asked(case.exchange) in _whole_prompts(case)
    ),
    absent="no pair of answers that both carry usage",
    needs=(Evidence.REQUEST,),
)
def pair(case: Case) -> Iterator[Departure]:
    """Two code paths, one prompt: a difference means that one of them renders another prompt."""
    streamed = counts(case.exchange, "prompt_tokens")
    for whole in _whole_prompts(case)[asked(case.exchange)]:
        if streamed and whole != streamed[0]:
            yield Departure(f"{whole} prompt tokens, as the whole answer says", str(streamed[0]), event=_event(case))
            return


@once
def _same_prompts(case: Case) -> dict[tuple[Asked, bool], int]:
    """What most answers to each question, in each form, say of the prompt."""
    found: dict[tuple[Asked, bool], list[int]] = {}
    for key, group in case.others.groups.items():
        for exchange in group:
            told = counts(exchange, "prompt_tokens") if answer_of(case, exchange) else None
            if told:
                found.setdefault((key, exchange.wants_stream), []).append(told[0])
    return {key: statistics.mode(told) for key, told in found.items() if len(told) > 1}


@check(
    "usage.prompt-stable",
    Level.SHOULD,
    "The same prompt costs the same prompt tokens each time",
    requirement=_USAGE,
    source=_SOURCE,
    applies=lambda case: (
        ended_answer(case)
        and counts(case.exchange, "prompt_tokens") is not None
        and (asked(case.exchange), case.exchange.wants_stream) in _same_prompts(case)
    ),
    absent="no question was answered twice in one form, with usage",
    needs=(Evidence.REQUEST,),
)
def prompt_stable(case: Case) -> Iterator[Departure]:
    """A part of it that was cached is read all the same. The two forms are `usage.pair`'s."""
    told = counts(case.exchange, "prompt_tokens")
    usual = _same_prompts(case)[asked(case.exchange), case.exchange.wants_stream]
    if told and told[0] != usual:
        yield Departure(f"{usual} prompt tokens, as other answers say", str(told[0]), event=_event(case))


def _times(case: Case) -> dict[str, Any] | None:
    """The timing metrics of an answer: of a stream, those of the last chunk that has any."""
    if not case.exchange.wants_stream:
        found = case.exchange.json.value.get("metrics")
        return found if isinstance(found, dict) else None
    given = [chunk.object["metrics"] for chunk in case.exchange.stream.chunks if chunk.object.get("metrics")]
    return given[-1] if given and isinstance(given[-1], dict) else None


def _documents_metrics(operation: Operation, contract: Contract) -> bool:
    return "metrics" in operation.response_properties(200, JSON)


@check(
    "usage.metrics",
    Level.SHOULD,
    "The timing metrics of an answer can be true",
    requirement="PerRequestTimingMetrics: time_to_first_token_ms, generation_time_ms, queue_time_ms, mean_itl_ms",
    source="/responses/200/content/application~1json/schema/properties/metrics",
    applies=lambda case: _answer(case) and _times(case) is not None,
    concerns=_documents_metrics,
    absent="no answer with timing metrics",
    needs=(Evidence.TIMES,),
)
def metrics(case: Case) -> Iterator[Departure]:
    """Another unit than milliseconds, or the times of another request, mislead every dashboard."""
    reads = case.exchange.reads
    for expected, actual in insane(_times(case) or {}, took_ms=reads[-1].time * 1000 if reads else 0.0):
        yield Departure(expected, actual)
        return
