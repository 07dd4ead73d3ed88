"""`lengths.*`: limits of prompt and answer, and what may end an answer before its limit."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.bare import answered_bare, steady_exchange
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import BESIDE, counting_for, given, ignored, law
from streamgauge.conformance.posting import judged_by_body, shown
from streamgauge.conformance.predicates import count_of_choices, ended_answer, valid_request
from streamgauge.conformance.repeating import Detection, detection_of
from streamgauge.conformance.stopping import stop_strings
from streamgauge.conformance.tokens import counts, limit_of
from streamgauge.conformance.told_ids import ids_of, prompt_ids_of
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence, Exchange

__all__: list[str] = []

_PROPERTIES = "/requestBody/content/application~1json/schema/properties"


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _generated(case: Case) -> int | None:
    return next(iter(counts(case.exchange, "completion_tokens") or ()), None)


def _filtered(case: Case) -> bool:
    """Whether a filter of contents ended a choice: that may happen at any place."""
    return any("content_filter" in each.reasons for each in answer_in(case.exchange).choices.values())


def _least_without(case: Case, *names: str) -> int | None:
    """The fewest tokens that were generated for the same question without these properties."""
    told = [counts(each, "completion_tokens") for each in answered_bare(case, *names)]
    return min((found[0] for found in told if found), default=None)


def _limits_by_successor(case: Case) -> bool:
    """A complete answer with usage to a request that is limited by `max_completion_tokens` alone."""
    if not (ended_answer(case) and valid_request(case)) or {"max_tokens", "best_of"} & given(case).keys():
        return False
    counted = _generated(case) is not None and count_of_choices(case) is not None
    return counted and _is_count(given(case).get("max_completion_tokens"))


@counting_for("max_completion_tokens")
@check(
    "lengths.max-completion-tokens",
    Level.MUST,
    "No more tokens are generated than `max_completion_tokens` allows, reasoning included",
    requirement="max_completion_tokens: The most tokens to generate, reasoning included.",
    source=f"{_PROPERTIES}/max_completion_tokens",
    applies=_limits_by_successor,
    concerns=lambda operation, contract: "max_completion_tokens" in operation.properties,
    absent="no request limited its answer by it alone and got an answer with usage",
    needs=(Evidence.REQUEST,),
)
def max_completion_tokens(case: Case) -> Iterator[Departure]:
    """Where `max_tokens` is given as well, `usage.limit` judges."""
    limit, wanted, spent = given(case)["max_completion_tokens"], count_of_choices(case) or 1, _generated(case) or 0
    if spent > limit * wanted:
        yield ignored(f"at most {limit} x {wanted} = {limit * wanted} completion tokens", str(spent))


def _default_limit(operation: Operation) -> int | None:
    default = operation.schemas.resolved(operation.properties.get("max_tokens")).get("default")
    return default if _is_count(default) else None


def _unlimited(case: Case) -> bool:
    """A complete answer with usage to a request that leaves the limit to the document's default; null may mean no limit."""
    if (
        not (ended_answer(case) and valid_request(case))
        or {"max_tokens", "max_completion_tokens", "best_of"} & case.exchange.sent.keys()
    ):
        return False
    return _generated(case) is not None and count_of_choices(case) is not None


@check(
    "lengths.default-limit",
    Level.MUST,
    "Without a limit no more tokens are generated than the document's default",
    requirement="max_tokens: default",
    source=f"{_PROPERTIES}/max_tokens/default",
    applies=_unlimited,
    concerns=lambda operation, contract: _default_limit(operation) is not None,
    absent="no request without a limit was answered with usage",
    needs=(Evidence.REQUEST,),
)
def default_limit(case: Case) -> Iterator[Departure]:
    """Whoever relies on a small default pays for the whole context."""
    limit, wanted, spent = _default_limit(case.operation) or 0, count_of_choices(case) or 1, _generated(case) or 0
    if spent > limit * wanted:
        yield Departure(f"at most {limit} x {wanted} = {limit * wanted} completion tokens", str(spent))


def _least(case: Case) -> int:
    """
    Tokens that are counted of all choices together, if each has as many as `min_tokens` demands.

    Some servers do not count those of the stop string that they leave out; it has no more of them than bytes.
    """
    asked = given(case)
    untold = max([1 if asked.get("stop_token_ids") else 0, *(len(stop.encode()) for stop in stop_strings(asked))])
    least: int = (asked["min_tokens"] - untold) * (count_of_choices(case) or 0)
    return least


def _has_room(case: Case) -> bool:
    """Whether the answer may have so many tokens as `min_tokens` demands."""
    limits = [given(case).get(name) for name in ("max_tokens", "max_completion_tokens")]
    known = [limit for limit in limits if limit is not None] or [_default_limit(case.operation)]
    least = given(case)["min_tokens"]
    return all(limit is None or (_is_count(limit) and limit >= least) for limit in known)


def _shows_least(case: Case) -> bool:
    """Whether the answer is shorter than it may be, by no limit's doing, or would have been without `min_tokens`."""
    spent = _generated(case)
    if spent is None or _filtered(case) or not _has_room(case):
        return False
    if spent < _least(case):
        return any(each.reasons != ["length"] for each in answer_in(case.exchange).choices.values())
    least_without = _least_without(case, "min_tokens")
    return least_without is not None and least_without < _least(case)


@law(
    "lengths.min-tokens",
    Level.MUST,
    "No fewer tokens are generated than `min_tokens` demands, whatever would end the text",
    properties="min_tokens",
    requirement="min_tokens: integer, default 0",
    source=f"{_PROPERTIES}/min_tokens",
    asks=lambda asked: _is_count(asked.get("min_tokens")),
    applies=_shows_least,
    beside=BESIDE | {"ignore_eos", "stop", "stop_token_ids"},
    absent="no answer with usage would have ended before so many tokens",
)
def min_tokens(case: Case) -> Iterator[Departure]:
    """Neither the end of the text nor a stop string comes before."""
    spent = _generated(case) or 0
    if spent < _least(case):
        yield ignored(f"{_least(case)} completion tokens or more", str(spent))


_MAY_BE_IGNORED = re.compile(r"ignored|no effect")
"""How DeepInfra's document says that only some models heed `ignore_eos`."""


def _ends_early(case: Case) -> bool:
    """Whether a choice ended by itself, with fewer tokens than the limit allows: that it had all is `finish.length`'s."""
    limit, spent = limit_of(given(case), case.operation.properties), _generated(case)
    if limit is None or spent is None or spent >= limit * (count_of_choices(case) or 1):
        return False
    return any("stop" in each.reasons for each in answer_in(case.exchange).choices.values())


def _shows_end(case: Case) -> bool:
    """Whether a choice ended by itself, or would have done so."""
    if _ends_early(case):
        described = case.operation.schemas.resolved(case.operation.properties["ignore_eos"]).get("description", "")
        return not _MAY_BE_IGNORED.search(described)
    limit, least_without = limit_of(given(case), case.operation.properties), _least_without(case, "ignore_eos")
    if limit is None or least_without is None or least_without >= limit * (count_of_choices(case) or 1):
        return False
    choices = answer_in(case.exchange).choices.values()
    return bool(choices) and all(each.reasons == ["length"] for each in choices)


@law(
    "lengths.ignore-eos",
    Level.MUST,
    "An answer that ignores the end of the text goes on to its limit",
    properties="ignore_eos",
    requirement="ignore_eos: Go on to max_tokens past the end-of-sequence token.",
    source=f"{_PROPERTIES}/ignore_eos",
    asks=lambda asked: asked.get("ignore_eos") is True,
    applies=_shows_end,
    beside=BESIDE | {"min_tokens"},
    absent="no answer would have ended before its limit, or the document lets models ignore it",
)
def ignore_eos(case: Case) -> Iterator[Departure]:
    """Load tests rely on it: answers that end early make a server look fast."""
    if _ends_early(case):
        yield ignored("length as the finish reason, at the limit", f"stop, after {_generated(case)} tokens")


def _prompt_tokens(exchange: Exchange) -> int | None:
    return next(iter(counts(exchange, "prompt_tokens") or ()), None)


_TRUNCATION = ("truncate_prompt_tokens", "truncation_side")


def _has_one_prompt(case: Case) -> bool:
    return count_of_choices(case) == (case.exchange.sent.get("n") or 1)


def _untruncated(case: Case) -> list[int]:
    """The tokens of the same prompt without truncation, as each answer tells them."""
    return [count for each in answered_bare(case, *_TRUNCATION) if (count := _prompt_tokens(each)) is not None]


def _shows_truncation(case: Case) -> bool:
    """Whether the prompt is longer than it may be, or is so without truncation."""
    spent, most = _prompt_tokens(case.exchange), given(case)["truncate_prompt_tokens"]
    if spent is None or not _has_one_prompt(case):
        return False
    return spent > most or any(count > most for count in _untruncated(case))


@law(
    "lengths.truncate-prompt",
    Level.MUST,
    "No more tokens of the prompt are read than `truncate_prompt_tokens` lets stand",
    properties="truncate_prompt_tokens",
    requirement="Which side to truncate from when truncate_prompt_tokens is active.",
    source=f"{_PROPERTIES}/truncation_side/description",
    asks=lambda asked: _is_count(asked.get("truncate_prompt_tokens")),
    applies=_shows_truncation,
    beside=BESIDE | {"truncation_side"},
    absent="no answer with usage to a prompt that is longer",
)
def truncate_prompt(case: Case) -> Iterator[Departure]:
    """The usage tells what was read; a prompt that is shorter than without it was truncated, if not as it should be."""
    most, spent, whole = given(case)["truncate_prompt_tokens"], _prompt_tokens(case.exchange) or 0, _untruncated(case)
    if spent > most:
        expected, shorter = f"{most} prompt tokens or fewer", bool(whole) and spent < min(whole)
        yield Departure(expected, str(spent)) if shorter else ignored(expected, str(spent))


def _sides(case: Case) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The prompt's tokens as they were read and as they are without truncation; None where they do not tell the side."""
    most = given(case)["truncate_prompt_tokens"]
    read = prompt_ids_of(case.exchange) or ()
    for twin in answered_bare(case, *_TRUNCATION):
        whole = prompt_ids_of(twin) or ()
        if len(read) == most < len(whole) and whole[:most] != whole[-most:]:
            return read, whole
    return None


@law(
    "lengths.truncation-side",
    Level.MUST,
    "A truncated prompt keeps the side that the request names",
    properties="truncation_side",
    requirement="'right' keeps the first N tokens. 'left' keeps the last N tokens.",
    source=f"{_PROPERTIES}/truncation_side/description",
    asks=lambda asked: (
        asked.get("truncation_side") in ("left", "right") and _is_count(asked.get("truncate_prompt_tokens"))
    ),
    applies=lambda case: _sides(case) is not None,
    needs_also=("truncate_prompt_tokens",),
    absent="no answer tells which tokens of a truncated prompt were read",
)
def truncation_side(case: Case) -> Iterator[Departure]:
    """A prompt that begins with what the caller wanted kept is answered without it."""
    read, whole = _sides(case) or ((), ())
    first, last = whole[: len(read)], whole[-len(read) :]
    # Tokenizers that truncate by themselves put the token that begins every text before what they keep.
    lasts = (last, (*whole[:1], *last[1:]))
    side = given(case)["truncation_side"]
    if read == first if side == "right" else read in lasts:
        return
    other = read in lasts if side == "right" else read == first
    told = f"the tokens {list(read)} of {list(whole)}"
    yield ignored(f"the {side} side's", told) if other else Departure(f"the {side} side's", told)


def _asks_detection(asked: Mapping[str, Any]) -> bool:
    detection = detection_of(asked)
    return detection is not None and not detection.broken


_SLACK = 4
"""
Tokens that an engine may generate before it notices: some look at each step while the next one is on its way, and a step
may bring several.
"""


def _due(case: Case, index: int, detection: Detection) -> int | None:
    tokens = ids_of(case.exchange, index) or ()
    return detection.due(tokens) if detection.largest else None


def _detected(case: Case) -> Iterator[Departure | None]:
    """For each choice that shows whether the repetition ended it: how it went wrong, or None where it did not."""
    detection = detection_of(given(case))
    if detection is None:
        return
    twin = steady_exchange(case, "repetition_detection")
    for index, choice in answer_in(case.exchange).choices.items():
        told = ids_of(case.exchange, index) or ()
        full = (ids_of(twin, index) if twin else None) or ()
        due = _due(case, index, detection)
        if due is not None:
            late = len(told) - due
            yield ignored(f"an end after {due} tokens", f"{len(told)} tokens") if late > _SLACK else None
        elif told and len(told) < len(full) and told == full[: len(told)] and choice.finish != "length":
            yield Departure(
                "no end before something repeats so often", f"an end after {len(told)} of {len(full)} tokens"
            )
        elif told and told == full and not detection.largest:
            yield None


@law(
    "lengths.repetition-detection",
    Level.MUST,
    "An answer that repeats itself ends when the repetition is as long as the request says, and not before",
    properties=(
        "repetition_detection",
        "repetition_detection.max_pattern_size",
        "repetition_detection.min_pattern_size",
        "repetition_detection.min_count",
    ),
    requirement="If such repetition is detected, generation ends early.",
    source=f"{_PROPERTIES}/repetition_detection/description",
    asks=_asks_detection,
    applies=lambda case: any(True for _ in _detected(case)),
    needs_also=("return_token_ids",),
    beside=BESIDE - {"echo"} | {"allowed_token_ids"},
    absent="no answer that tells its tokens repeated itself",
)
def repetition_detection(case: Case) -> Iterator[Departure]:
    """The tokens show where it has to be noticed, whatever made the model repeat itself."""
    yield from filter(None, _detected(case))


def _breaks_rule(case: Case) -> bool:
    detection = detection_of(given(case)) if judged_by_body(case) and valid_request(case) else None
    return detection is not None and bool(detection.broken)


def _documents_detection(operation: Operation, contract: Contract) -> bool:
    return "repetition_detection" in operation.properties


@check(
    "lengths.repetition-rules",
    Level.SHOULD,
    "Parameters of the repetition detection that contradict its rules are refused",
    requirement="Must be <= max_pattern_size. Must be >= 2. Must be used together with min_count.",
    source=f"{_PROPERTIES}/repetition_detection",
    applies=_breaks_rule,
    concerns=_documents_detection,
    absent="no request broke these rules",
    needs=(Evidence.REQUEST,),
)
def repetition_rules(case: Case) -> Iterator[Departure]:
    """Accepted, it hides the caller's mistake: nothing is detected, or everything."""
    detection = detection_of(given(case))
    if detection and 200 <= case.exchange.status < 300:
        yield Departure(f"4xx, since {detection.broken}", shown(case), outcome=Outcome.IGNORED)
