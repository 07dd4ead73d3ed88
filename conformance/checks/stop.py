"""`stop.*`: does an answer end where the request says?"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.bare import answered_bare, steady_exchange
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import BESIDE, given, ignored, law, refuses
from streamgauge.conformance.posting import judged_by_body, said, shown
from streamgauge.conformance.predicates import ended_answer, valid_request
from streamgauge.conformance.stopping import Stopped, generated, most_stop_strings, stop_strings, stopped
from streamgauge.conformance.tokens import counts, limit_of
from streamgauge.conformance.told_ids import ids_of
from streamgauge.contract.contract import JSON, Contract, Operation
from streamgauge.contract.fields import properties_of
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence

__all__: list[str] = []

_STOP = "/requestBody/content/application~1json/schema/properties/stop"
_ENDS = "A sequence ... at which the generation ends; the text does not contain it."
_NO_TEXT = "no question whose text is known to be the same each time was asked with a stop string as well"


def _excludes(asked: Mapping[str, Any]) -> bool:
    return bool(stop_strings(asked)) and not asked.get("include_stop_str_in_output")


@law(
    "stop.honoured",
    Level.MUST,
    "No text goes on past a stop string",
    properties="stop",
    requirement="The returned text will not contain the stop sequence.",
    source="OpenAI, create completion: stop",
    asks=_excludes,
)
def honoured(case: Case) -> Iterator[Departure]:
    """A text that holds one proves it, whatever else the model might have said; one that it ends was not ignored."""
    strings = stop_strings(given(case))
    for choice in answer_in(case.exchange).choices.values():
        text = generated(case, choice) or ""
        for stop in strings:
            if stop in text:
                expected, ended = f"a text that ends before {stop!r}", text.find(stop) + len(stop) == len(text)
                wrong = ended and choice.finish == "stop"
                yield Departure(expected, repr(text)) if wrong else ignored(expected, repr(text))
                return


def _answer(case: Case) -> bool:
    """A complete answer to a valid request with stop strings and nothing that keeps them from ending a text."""
    if not (valid_request(case) and _excludes(given(case))) or given(case).get("min_tokens"):
        return False
    return ended_answer(case)


def _cut(case: Case) -> list[Stopped]:
    """
    The choices that a stop string has to end, and that hold none: where one does, `stop.honoured` tells it.

    A text that is another from the start says nothing: the model has said something else this time.
    """
    found = [each for each in stopped(case) if each.cuts and not each.holds_one]
    return [each for each in found if each.hit or each.leaked or each.goes_on or _too_short(case, each)]


def _too_short(case: Case, each: Stopped) -> bool:
    """
    Whether the text stopped before its stop string.

    Where no text is there, thoughts that nobody sees may have held the stop string, if tokens were generated; so may white
    space before the text, which servers trim.
    """
    unseen = next(iter(counts(case.exchange, "completion_tokens") or (2,))) > 1
    hidden = not each.said.strip() and (unseen or any(stop[0].isspace() for stop in each.strings))
    return each.lacking and each.choice.finish == "stop" and not hidden


@check(
    "stop.exact",
    Level.MUST,
    "A text ends right before the stop string, and not earlier",
    requirement=_ENDS,
    source=_STOP,
    applies=lambda case: _answer(case) and bool(_cut(case)),
    absent=_NO_TEXT,
    needs=(Evidence.REQUEST,),
)
def exact(case: Case) -> Iterator[Departure]:
    """Held against the same question without it."""
    for each in _cut(case):
        if not each.hit and not each.leaked:
            behind = ", without the stop string and with what follows it" if each.goes_on else ""
            yield Departure(f"{each.full[: each.cuts[0].at]!r}, up to {each.cuts[0].stop!r}", f"{each.said!r}{behind}")
            return


@check(
    "stop.no-prefix-leak",
    Level.SHOULD,
    "No beginning of a stop string is left at the end of a text",
    requirement=_ENDS,
    source=_STOP,
    applies=lambda case: _answer(case) and bool(_cut(case)),
    absent=_NO_TEXT,
    needs=(Evidence.REQUEST,),
)
def no_prefix_leak(case: Case) -> Iterator[Departure]:
    """A server has to hold back what may become a stop string: in a stream nothing can be taken back."""
    for each in _cut(case):
        if each.leaked:
            yield Departure(f"{each.full[: each.cuts[0].at]!r}", f"{each.said!r}, which ends with {each.leaked!r}")
            return


def _untouched(case: Case) -> list[Stopped]:
    """The choices that no stop string may end, as far as the model says the same as without one."""
    found = [each for each in stopped(case) if not each.cuts]
    return [each for each in found if each.said.rstrip() == each.full.rstrip() or (each.lacking and each.said.strip())]


@check(
    "stop.flush",
    Level.MUST,
    "A stop string that never comes up takes nothing away from the text",
    requirement=_ENDS,
    source=_STOP,
    applies=lambda case: _answer(case) and bool(_untouched(case)),
    absent=_NO_TEXT.replace("a stop string", "a stop string that does not come up"),
    needs=(Evidence.REQUEST,),
)
def flush(case: Case) -> Iterator[Departure]:
    """What was held back, since it may have become a stop string, belongs to the text when that ends without one."""
    for each in _untouched(case):
        if each.said.rstrip() != each.full.rstrip():
            yield Departure(repr(each.full), repr(each.said))
            return


def _cut_within_limit(case: Case) -> list[Choice]:
    """The choices that a stop string ended, of an answer that its limit did not end as well."""
    spent = counts(case.exchange, "completion_tokens")
    limit = limit_of(given(case), case.operation.properties)
    if spent is None or limit is None or spent[0] >= limit:
        return []
    return [each.choice for each in _cut(case) if each.hit]


@check(
    "stop.finish",
    Level.MUST,
    "A choice that a stop string ended has the finish reason stop",
    requirement="finish_reason: stop: the choice ended at its own end or at a stop sequence.",
    source="/responses/200/content/application~1json/schema (finish_reason of a choice)",
    applies=lambda case: _answer(case) and bool(_cut_within_limit(case)),
    absent=_NO_TEXT,
    needs=(Evidence.REQUEST,),
)
def finish(case: Case) -> Iterator[Departure]:
    """Whoever is told `length` asks for the rest. Other reasons are judged by `finish.*`."""
    for choice in _cut_within_limit(case):
        if choice.finish == "length":
            chunk = choice.ends[0][1]
            yield Departure("stop", "length, below the limit", event=chunk.event if chunk else None)
            return


def _choice_schema(operation: Operation, media_type: str) -> Mapping[str, Any]:
    choices = operation.response_properties(200, media_type).get("choices")
    items = operation.schemas.resolved(choices).get("items") if choices else None
    return properties_of(operation.schemas, items, any_branch=True) if items else {}


def _documents_reason(operation: Operation, contract: Contract) -> bool:
    return "stop_reason" in _choice_schema(operation, JSON)


def _ended_by(case: Case) -> dict[int, list[Any]]:
    """
    Which stop strings, or which token, may have ended each choice of which it is known that one did; none, that none did.

    Where the limit came at the same place, it is as good a reason.
    """
    choices = {index: each for index, each in answer_in(case.exchange).choices.items() if each.finish != "length"}
    found: dict[int, list[Any]] = {}
    if _excludes(given(case)):
        hits = {id(each.choice): [cut.stop for cut in each.hit] for each in _cut(case) if each.hit}
        found = {index: hits[id(choice)] for index, choice in choices.items() if id(choice) in hits}
    elif given(case).get("stop_token_ids"):
        found = {index: [token] for index in choices if (token := _met(case, index)) is not None}
    elif not stop_strings(given(case)):
        found = {index: [] for index in answer_in(case.exchange).choices if index not in choices}
    return found


def _reasoned(case: Case) -> bool:
    """A complete answer that tells, or has to tell, what stopped it."""
    if not valid_request(case) or given(case).get("min_tokens") is not None:
        return False
    return ended_answer(case) and bool(_ended_by(case))


@check(
    "stop.reason-told",
    Level.MUST,
    "`stop_reason` is the stop string or the token that ended the choice",
    requirement=(
        "stop_reason: The stop string or token id that caused the completion to stop, null if the completion finished for "
        "some other reason including encountering the EOS token"
    ),
    source="/responses/200/content/application~1json/schema/properties/choices/items/properties/stop_reason",
    applies=_reasoned,
    concerns=_documents_reason,
    absent=_NO_TEXT,
    needs=(Evidence.REQUEST,),
)
def reason_told(case: Case) -> Iterator[Departure]:
    """With several stop strings nothing else tells where the caller's parser has to go on."""
    for index, allowed in _ended_by(case).items():
        parts = answer_in(case.exchange).choices[index].parts
        told = [part["stop_reason"] for part in parts if part.get("stop_reason") is not None]
        if (allowed and not told) or any(reason not in allowed for reason in told):
            wanted = " or ".join(map(repr, allowed)) or "null, since the limit ended it"
            yield Departure(wanted, ", ".join(map(repr, told)) or "null")
            return


def _included(case: Case) -> list[tuple[Stopped, list[str]]]:
    """
    The choices that a stop string has to end, as far as the model said the same, with how they may end.

    Where the text goes on as if there were no stop string, that one is ignored: `stop.honoured` tells it.
    """
    found = []
    for each in (each for each in stopped(case) if each.cuts):
        wanted = [each.full[: cut.at + len(cut.stop)].rstrip() for cut in each.cuts]
        ignores = each.said == each.full and each.full.rstrip() not in wanted
        if not ignores and (each.hit or any(each.said.startswith(text) for text in wanted)):
            found.append((each, wanted))
    return found


@law(
    "stop.included",
    Level.MUST,
    "A stop string that is to be included ends the text",
    properties="include_stop_str_in_output",
    requirement="include_stop_str_in_output: boolean, default false",
    source="/requestBody/content/application~1json/schema/properties/include_stop_str_in_output",
    asks=lambda asked: asked.get("include_stop_str_in_output") is True and bool(stop_strings(asked)),
    applies=lambda case: bool(_included(case)),
    needs_also=("stop",),
    absent=_NO_TEXT.replace("a stop string", "a stop string to be included"),
)
def included(case: Case) -> Iterator[Departure]:
    """Held against the same question without stop strings, so that it is known where one ends the text."""
    for each, wanted in _included(case):
        if each.said.rstrip() in wanted:
            continue
        if each.hit:
            yield ignored(repr(wanted[0]), f"{each.said!r}, without the stop string")
        else:
            yield Departure(f"{wanted[0]!r} and nothing behind it", repr(each.said))


def _ids_without(case: Case, index: int) -> tuple[int, ...]:
    """The tokens of the same question without stop tokens, where it says the same each time and tells them."""
    twin = steady_exchange(case, "stop_token_ids")
    return (ids_of(twin, index) if twin else None) or ()


def _stop_ids(case: Case) -> list[int]:
    tokens = given(case).get("stop_token_ids")
    return [token for token in tokens if type(token) is int] if isinstance(tokens, list) else []


def _met(case: Case, index: int) -> int | None:
    """The stop token at which a choice ended just where the same question without it has that token."""
    full = _ids_without(case, index)
    at = _first(full, _stop_ids(case))
    told = ids_of(case.exchange, index) or ()
    return full[at] if at is not None and told in (full[:at], full[: at + 1]) else None


def _first(tokens: tuple[int, ...], wanted: list[int]) -> int | None:
    return next((at for at, token in enumerate(tokens) if token in wanted), None)


def _token_verdicts(case: Case) -> Iterator[Departure | None]:
    """For each choice that shows whether a stop token ended it: how it did not, or None where it did."""
    wanted = _stop_ids(case)
    for index in answer_in(case.exchange).choices:
        told, full = ids_of(case.exchange, index) or (), _ids_without(case, index)
        at, due = _first(told, wanted), _first(full, wanted)
        if at is not None:
            behind = len(told) - 1 - at
            yield ignored(f"the token {told[at]} as the last one", f"{behind} tokens behind it") if behind else None
        elif due is None:
            continue
        elif told and told == full[: len(told)]:
            short = len(told) < due
            yield Departure(f"{due} tokens before {full[due]}", f"{len(told)} tokens") if short else None
        elif not told and due < len(full) - 1 and _same_text(case, index):
            yield ignored(f"an end at the token {full[due]}", "the same text as without it")


def _same_text(case: Case, index: int) -> bool:
    twin = steady_exchange(case, "stop_token_ids")
    text = answer_in(case.exchange).choices[index].text
    return twin is not None and bool(text) and answer_in(twin).choices[index].text == text


@law(
    "stop.token-ids",
    Level.MUST,
    "No text goes on past a stop token",
    properties="stop_token_ids",
    requirement="stop_token_ids: Token IDs ... which end the generation, besides the model's own.",
    source="/requestBody/content/application~1json/schema/properties/stop_token_ids",
    asks=lambda asked: bool(asked.get("stop_token_ids")),
    applies=lambda case: any(True for _ in _token_verdicts(case)),
    beside=BESIDE - {"echo"} | {"return_tokens_as_token_ids"},
    absent="no question whose tokens are known was asked with one of them as a stop token as well",
)
def token_ids(case: Case) -> Iterator[Departure]:
    """A stop token with others behind it proves it; where the answer tells no tokens, a text that ends no earlier."""
    yield from filter(None, _token_verdicts(case))


def _answered_without_stop(case: Case) -> bool:
    """
    A request that is judged by its body and was answered without its stop strings: only they can be refused.

    So could the options of a stream that is not asked for.
    """
    sent = case.exchange.sent
    return (
        judged_by_body(case)
        and valid_request(case)
        and (case.exchange.status == 200 or refuses(case))
        and (case.exchange.wants_stream or sent.get("stream_options") is None)
        and bool(answered_bare(case, "stop"))
    )


@check(
    "stop.most-strings",
    Level.MUST,
    "As many stop strings as the document allows are accepted",
    requirement="stop: array, maxItems",
    source=_STOP,
    applies=lambda case: (
        _answered_without_stop(case) and len(stop_strings(given(case))) == most_stop_strings(case.operation)
    ),
    concerns=lambda operation, contract: most_stop_strings(operation) is not None,
    absent="no request with so many stop strings, answered without them",
    needs=(Evidence.REQUEST,),
)
def most_strings(case: Case) -> Iterator[Departure]:
    """A promise of sixteen is broken by a server that takes four."""
    if case.exchange.status != 200:
        yield Departure("200, as without stop strings", f"{shown(case)}: {said(case)}")


@check(
    "stop.empty-list",
    Level.MUST,
    "An empty list of stop strings is taken like none",
    requirement="stop: array of strings, without a least number of items",
    source=_STOP,
    applies=lambda case: (
        isinstance(case.exchange.sent, dict) and case.exchange.sent.get("stop") == [] and _answered_without_stop(case)
    ),
    concerns=lambda operation, contract: "stop" in operation.properties,
    absent="no request with an empty list, answered without it",
    needs=(Evidence.REQUEST,),
)
def empty_list(case: Case) -> Iterator[Departure]:
    """It is the default of some documents, and what clients send that were given no stop string."""
    if case.exchange.status != 200:
        yield Departure("200, as without it", f"{shown(case)}: {said(case)}")
