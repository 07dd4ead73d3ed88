"""`logprobs.*`: are log-probabilities told as asked for?"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import given, ignored, law
from streamgauge.conformance.logprobs import AS_ID, entries_of, is_partial, reports_of
from streamgauge.conformance.prompt_reports import prompt_logprobs_in
from streamgauge.conformance.stopping import generated
from streamgauge.conformance.tokens import counts
from streamgauge.contract.contract import CHAT, COMPLETIONS, Contract, Operation
from streamgauge.outcomes import Level, Outcome

__all__: list[str] = []

_REQUEST = "/requestBody/content/application~1json/schema/properties"


def _in_completions(operation: Operation, contract: Contract) -> bool:
    return operation.family == COMPLETIONS


def _in_chat(operation: Operation, contract: Contract) -> bool:
    return operation.family == CHAT


def _count(asked: Mapping[str, Any], name: str) -> int:
    """A number that a request gives; -1 where it gives none, or one below 0."""
    value = asked.get(name)
    return value if type(value) is int and value >= 0 else -1


def _choices(case: Case) -> list[Choice]:
    return list(answer_in(case.exchange).choices.values())


def _has_entries(case: Case) -> bool:
    return any(map(entries_of, _choices(case)))


def _most(case: Case) -> int:
    """The longest list of likeliest tokens in the answer."""
    return max(len(entry.top) for choice in _choices(case) for entry in entries_of(choice))


def _texts(case: Case) -> list[Choice]:
    """The choices with text of the model's alone: whether calls and thoughts have log-probabilities is nobody's promise."""
    return [choice for choice in _choices(case) if generated(case, choice) and not choice.calls]


@law(
    "logprobs.given",
    Level.MUST,
    "Log-probabilities that were asked for are told",
    properties="logprobs",
    requirement="logprobs: whether, or how many, log-probabilities are told.",
    source=f"{_REQUEST}/logprobs",
    asks=lambda asked: asked.get("logprobs") is True or _count(asked, "logprobs") > 0,
    applies=lambda case: bool(_texts(case)),
)
def logprobs_given(case: Case) -> Iterator[Departure]:
    """In a stream any of its chunks may bring them."""
    for choice in _texts(case):
        if not reports_of(choice):
            yield ignored("log-probabilities of the text's tokens", "none")
            return


_PLACES = 3


def _may_merge(case: Case) -> bool:
    """
    Whether each place may have two tokens of the same text, which a list by texts has one entry for.

    Where tokens are parts of characters, or there are few places, that happens.
    """
    tops = [entry.top for choice in _choices(case) for entry in entries_of(choice)]
    parts = any(is_partial(token) or not token for top in tops for token, _ in top)
    return case.operation.family == COMPLETIONS and (len(tops) < _PLACES or parts)


def _judge_count(case: Case, wanted: int, beside: int) -> Iterator[Departure]:
    """Compare the longest list with what was asked for."""
    most = _most(case)
    if most == 0:
        yield ignored(f"the {wanted} likeliest tokens at each place", "none")
    elif most > wanted + beside or (most < wanted and not _may_merge(case)):
        yield Departure(f"the {wanted} likeliest tokens at each place", f"at most {most} at any")


@law(
    "logprobs.top-count",
    Level.MUST,
    "As many of the likeliest tokens are told as `top_logprobs` asks for",
    properties="top_logprobs",
    requirement="top_logprobs: how many of the likeliest tokens to report at each place.",
    source=f"{_REQUEST}/top_logprobs",
    asks=lambda asked: asked.get("logprobs") is True and _count(asked, "top_logprobs") > 0,
    needs_also=("logprobs",),
    applies=_has_entries,
    concerns=_in_chat,
)
def top_count(case: Case) -> Iterator[Departure]:
    """No more and no fewer; where one place has all, the others may have tokens that no JSON can hold."""
    return _judge_count(case, _count(given(case), "top_logprobs"), 0)


@law(
    "logprobs.count-asked",
    Level.MUST,
    "As many of the likeliest tokens are told as `logprobs` asks for",
    properties="logprobs",
    requirement="logprobs: how many of the likeliest tokens to report at each place, besides the one that was taken.",
    source=f"{_REQUEST}/logprobs",
    asks=lambda asked: _count(asked, "logprobs") > 0,
    applies=_has_entries,
    concerns=_in_completions,
)
def count_asked(case: Case) -> Iterator[Departure]:
    """The token that was taken may stand beside them."""
    return _judge_count(case, _count(given(case), "logprobs"), 1)


@law(
    "logprobs.no-top",
    Level.MUST,
    "Log-probabilities without likeliest tokens can be asked for, and then none are told",
    properties="logprobs",
    requirement="top_logprobs (chat), logprobs (completions): 0 of the likeliest tokens.",
    source=f"{_REQUEST}/logprobs",
    asks=lambda asked: (
        (asked.get("logprobs") is True and _count(asked, "top_logprobs") < 1) or _count(asked, "logprobs") == 0
    ),
    needs_also=("top_logprobs",),
    applies=_has_entries,
)
def no_top(case: Case) -> Iterator[Departure]:
    """Text completions may tell the token that was taken; chat has it outside of the list."""
    allowed = 0 if case.operation.family == CHAT else 1
    if (most := _most(case)) > allowed:
        yield Departure("no likeliest tokens", f"{most} at one place")


def _asked_ids(asked: Mapping[str, Any]) -> set[str]:
    ids = asked.get("logprob_token_ids")
    return {f"token_id:{each}" for each in ids} if isinstance(ids, list) else set()


@law(
    "logprobs.ids-requested",
    Level.MUST,
    "The tokens of `logprob_token_ids` have their log-probabilities at every place",
    properties="logprob_token_ids",
    requirement=(
        "Specific vocab token IDs to return logprobs for at each generated position, in addition to the sampled token."
    ),
    source=f"{_REQUEST}/logprob_token_ids",
    asks=lambda asked: (
        bool(_asked_ids(asked)) and bool(asked.get("logprobs")) and bool(asked.get("return_tokens_as_token_ids"))
    ),
    needs_also=("logprobs", "top_logprobs", "return_tokens_as_token_ids"),
    applies=_has_entries,
    absent="no request asked for them by ids, with tokens told as ids",
)
def ids_requested(case: Case) -> Iterator[Departure]:
    """Only tokens that are told by their ids can be found again."""
    wanted = _asked_ids(given(case))
    places = [
        {entry.text, *(token for token, _ in entry.top)} for choice in _choices(case) for entry in entries_of(choice)
    ]
    if not all(AS_ID.fullmatch(token) for place in places for token in place):
        yield Departure("tokens told by their ids", "texts", outcome=Outcome.INCONCLUSIVE)
        return
    missing = [wanted - place for place in places if not wanted <= place]
    if len(missing) == len(places) and all(lacks == wanted for lacks in missing):
        yield ignored(f"{', '.join(sorted(wanted))} at each place", "at none")
    elif missing:
        yield Departure(f"{', '.join(sorted(wanted))} at each place", f"{', '.join(sorted(missing[0]))} lacks at one")


@law(
    "logprobs.prompt",
    Level.MUST,
    "The prompt's log-probabilities are told for each of its tokens",
    properties="prompt_logprobs",
    requirement="prompt_logprobs: integer; in the answer an array of objects or nulls.",
    source=f"{_REQUEST}/prompt_logprobs",
    asks=lambda asked: (
        _count(asked, "prompt_logprobs") > 0
        and not asked.get("stream")
        and not isinstance(asked.get("prompt"), list)
        and not asked.get("echo")
    ),
)
def prompt_logprobs(case: Case) -> Iterator[Departure]:
    """One entry a token; the token that stands there may be told beside the likeliest ones."""
    wanted = _count(given(case), "prompt_logprobs")
    reports = prompt_logprobs_in(case)
    if not any(reports):
        yield ignored("prompt_logprobs", "none")
        return
    tokens = counts(case.exchange, "prompt_tokens")
    for report in reports:
        places = [len(place) for place in report[1:] if isinstance(place, dict)]
        if tokens and len(report) != tokens[0]:
            yield Departure(f"{tokens[0]} entries, one for each prompt token", str(len(report)))
        elif places and not wanted <= max(places) <= wanted + 1:
            yield Departure(f"the {wanted} likeliest tokens at each place", f"at most {max(places)} at any")
        else:
            continue
        return
