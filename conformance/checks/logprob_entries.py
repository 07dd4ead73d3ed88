"""`logprobs.*`: log-probabilities that were told, whoever asked for them: their form, their numbers, and do they fit the text?"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import BESIDE, given
from streamgauge.conformance.logprobs import Entry, entries_of, is_partial, reports_of
from streamgauge.conformance.posting import not_plain
from streamgauge.conformance.predicates import documented, ended_answer, is_chat, valid_request
from streamgauge.conformance.prompt_reports import prompt_logprobs_in
from streamgauge.conformance.tokens import counts
from streamgauge.contract.contract import CHAT, COMPLETIONS, Contract, Operation
from streamgauge.outcomes import Level
from streamgauge.text import one_line
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import is_number

__all__: list[str] = []

_CHOICE = "/responses/200/content/application~1json/schema (logprobs of a choice)"
_NONE = "no answer with log-probabilities"

_ARRAYS = {CHAT: ("content",), COMPLETIONS: ("text_offset", "token_logprobs", "tokens", "top_logprobs")}
"""The arrays of each family's logprobs; the completions' are parallel."""


def _choices(case: Case) -> list[Choice]:
    return [choice for choice in answer_in(case.exchange).choices.values() if reports_of(choice)]


def _tells(case: Case) -> bool:
    """An answer that tells log-probabilities, in whichever form."""
    return ended_answer(case) and bool(_choices(case))


def _has_entries(case: Case) -> bool:
    return ended_answer(case) and any(map(entries_of, _choices(case)))


def _in_completions(operation: Operation, contract: Contract) -> bool:
    return operation.family == COMPLETIONS


@check(
    "logprobs.shape",
    Level.MUST,
    "Log-probabilities have the form of the operation's own family",
    requirement=(
        "ChatCompletionLogProbs: content (chat); CompletionLogProbs: text_offset, token_logprobs, tokens, top_logprobs "
        "(completions)"
    ),
    source=_CHOICE,
    applies=_tells,
    concerns=documented,
    absent=_NONE,
    needs=(Evidence.REQUEST,),
)
def shape(case: Case) -> Iterator[Departure]:
    """The schemas require none of the arrays, so that the other family's form passes them unseen."""
    names = _ARRAYS[case.operation.family]
    for report in itertools.chain.from_iterable(map(reports_of, _choices(case))):
        held = report if isinstance(report, dict) else {}
        missing = [name for name in names if not isinstance(held.get(name), list)]
        if missing == ["top_logprobs"] and held.get("top_logprobs") is None and given(case).get("logprobs") == 0:
            continue  # none of the likeliest were asked for
        if missing == ["content"] and isinstance(held.get("refusal"), list):
            continue  # the model refused: its tokens are those of the refusal
        if missing:
            told = ", ".join(report) if isinstance(report, dict) else repr(report)
            yield Departure(f"arrays {', '.join(names)}", one_line(told, 120))
            return


@check(
    "logprobs.lengths",
    Level.MUST,
    "The arrays of a text completion's log-probabilities are of one length",
    requirement="CompletionLogProbs: text_offset, token_logprobs, tokens, top_logprobs",
    source=_CHOICE,
    applies=_has_entries,
    concerns=_in_completions,
    absent=_NONE,
)
def lengths(case: Case) -> Iterator[Departure]:
    """They are read side by side; that none of the likeliest tokens are told is `logprobs.count-asked`'s."""
    for report in itertools.chain.from_iterable(map(reports_of, _choices(case))):
        held = report if isinstance(report, dict) else {}
        sizes = {name: len(array) for name in _ARRAYS[COMPLETIONS] if isinstance(array := held.get(name), list)}
        if not sizes.get("top_logprobs"):
            sizes.pop("top_logprobs", None)
        if len(set(sizes.values())) > 1:
            yield Departure("arrays of one length", ", ".join(f"{name} {size}" for name, size in sizes.items()))
            return


_LEAST = -9999.5
"""For a token that was taken nonetheless, -9999 is the usual word for "very unlikely"; below are number types' limits."""

_ABOVE = 0.01
"""What rounding may add to the logarithm of 1."""


def _sound(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value <= _ABOVE


def _echoes(case: Case) -> bool:
    """Whether the prompt's tokens are among those of the answer; unknown where the request is not held."""
    return bool(given(case).get("echo")) and case.operation.family == COMPLETIONS


@check(
    "logprobs.finite",
    Level.MUST,
    "Log-probabilities are numbers of 0 or less, and that of a taken token no number type's limit",
    requirement="logprob: number; token_logprobs: numbers",
    source=_CHOICE,
    applies=_has_entries,
    absent=_NONE,
    needs=(Evidence.REQUEST,),
)
def finite(case: Case) -> Iterator[Departure]:
    """Above 0 they are no logarithms of probabilities. A token that was taken had one; none has an echoed prompt's first."""
    for choice in _choices(case):
        for at, entry in enumerate(entries_of(choice)):
            values = [entry.logprob, *(value for _, value in entry.top)]
            unknown = at == 0 and entry.logprob is None and _echoes(case)
            wrong = [value for value in values[unknown:] if not _sound(value)]
            if not wrong and _sound(entry.logprob) and entry.logprob < _LEAST:
                wrong = [entry.logprob]
            if wrong:
                yield Departure("a number from -9999 to 0", f"{wrong[0]!r} at {entry.text!r}")
                return


def _numbers(entry: Entry) -> list[tuple[str, float]]:
    return [(token, value) for token, value in entry.top if _sound(value)]


def _falls(entry: Entry) -> bool:
    """Whether the likeliest come first; the token that was taken may stand before the others, as vLLM has it."""
    numbers = _numbers(entry)
    values = [value for _, value in (numbers[1:] if numbers and numbers[0][0] == entry.text else numbers)]
    return values == sorted(values, reverse=True)


@check(
    "logprobs.top-order",
    Level.SHOULD,
    "The likeliest tokens stand in falling order",
    requirement="top_logprobs: the most likely tokens and their log-probabilities.",
    source=CLIENTS,
    applies=lambda case: (
        ended_answer(case)
        and not given(case).get("logprob_token_ids")
        and any(len(entry.top) > 1 for choice in _choices(case) for entry in entries_of(choice))
    ),
    concerns=is_chat,
    absent="no answer with several likeliest tokens",
    needs=(Evidence.REQUEST,),
)
def top_order(case: Case) -> Iterator[Departure]:
    """Clients take the first ones; objects by text have no order."""
    for choice in _choices(case):
        for entry in entries_of(choice):
            if not _falls(entry):
                shown = ", ".join(f"{token!r} {value}" for token, value in entry.top)
                yield Departure("falling log-probabilities", one_line(shown, 160))
                return


_NEAR = 0.05
"""What one number may differ by where it is told twice."""


def _unfit(entry: Entry, *, listed: bool) -> str:
    """
    How a token contradicts the likeliest tokens at its place; empty where it does not.

    Some servers tell the token as it stands in the text, with the space before it, and the likeliest ones without.
    """
    own, top = entry.number, _numbers(entry)
    if own is None or not top or not entry.text or len(top) < len(entry.top):
        return ""
    if any(is_partial(token) or not token for token in (entry.text, *(token for token, _ in top))):
        return ""
    same = [value for token, value in top if token.strip() == entry.text.strip()]
    least = min(value for _, value in top)
    if not same and own > least + _NEAR:
        return f"{entry.text!r} with {own} is not among them, though {least} is"
    if same and listed and not any(abs(value - own) <= _NEAR for value in same) and own > least + _NEAR:
        return f"{entry.text!r} has {own}, and {same[0]} among them"
    return ""


@check(
    "logprobs.top-sampled",
    Level.MUST,
    "The likeliest tokens at a place are those of that place: a token that is as likely is among them",
    requirement="top_logprobs: List of the most likely tokens and their log probability, at this token position.",
    source=_CHOICE,
    applies=lambda case: (
        ended_answer(case)
        and not given(case).get("logprob_token_ids")
        and any(entry.top for choice in _choices(case) for entry in entries_of(choice))
    ),
    absent="no answer with likeliest tokens",
    needs=(Evidence.REQUEST,),
)
def top_sampled(case: Case) -> Iterator[Departure]:
    """The list of another place has other tokens; an object by text may hold another token of the same text."""
    listed = case.operation.family == CHAT
    for choice in _choices(case):
        for entry in entries_of(choice):
            if said := _unfit(entry, listed=listed):
                yield Departure("the likeliest tokens of this place", said)
                return


_MANY = 8
_FEW = 4


@check(
    "logprobs.varied",
    Level.SHOULD,
    "Log-probabilities differ from token to token",
    requirement="logprob: the log-probability of this token.",
    source=CLIENTS,
    applies=lambda case: valid_request(case) and ended_answer(case) and any(_rows(case)),
    absent="no answer with log-probabilities of sampled tokens, or of a prompt's",
    needs=(Evidence.REQUEST,),
)
def varied(case: Case) -> Iterator[Departure]:
    """One number for all is none; a model may be sure of each greedy token, but neither of sampled ones nor of a prompt."""
    for rows in _rows(case):
        if len(set(rows)) == 1:
            yield Departure("a number for each token", f"{rows[0]} at each of {len(rows)}")
            return


def _rows(case: Case) -> list[list[Any]]:
    """Numbers that cannot all be equal, of many different tokens."""
    sent = given(case)
    hot = type(sent.get("temperature", 1)) in (int, float) and sent.get("temperature", 1) >= 0.9
    samples = hot and not_plain(case) <= BESIDE  # where one token is left, it is sure
    found: list[list[Any]] = []
    for choice in _choices(case):
        entries = _of_prompt(entries_of(choice), sent["prompt"]) if _echoes(case) else entries_of(choice)
        known = [entry for entry in entries if _sound(entry.logprob) and entry.logprob >= _LEAST]
        enough = _FEW if _echoes(case) else _MANY if samples else math.inf
        if len(known) >= enough and len({entry.text for entry in known}) > enough / 2:
            found.append([entry.number for entry in known])
    for report in prompt_logprobs_in(case):
        places = [str(sorted(_values(place))) for place in report if isinstance(place, dict) and place]
        if len(places) >= _FEW:
            found.append(places)
    return found


def _of_prompt(entries: tuple[Entry, ...], prompt: Any) -> list[Entry]:
    """The first tokens, as far as they make the prompt."""
    found, text = [], ""
    for entry in entries if isinstance(prompt, str) else ():
        if not prompt.startswith(text + entry.text):
            break
        found.append(entry)
        text += entry.text
    return found


def _values(place: dict[str, Any]) -> list[float]:
    told = [each.get("logprob") if isinstance(each, dict) else each for each in place.values()]
    return [float(value) for value in told if is_number(value)]


@check(
    "logprobs.prompt-first",
    Level.SHOULD,
    "The first token of a prompt has no log-probability",
    requirement="prompt_logprobs, token_logprobs of an echoed prompt: null for the first token.",
    source=CLIENTS,
    applies=lambda case: ended_answer(case) and bool(_firsts(case)),
    absent="no answer with log-probabilities of a prompt",
    needs=(Evidence.REQUEST,),
)
def prompt_first(case: Case) -> Iterator[Departure]:
    """It follows nothing, so that any number is made up; scores that add it up are wrong."""
    for first in _firsts(case):
        if first is not None:
            yield Departure("null for the first token", one_line(repr(first), 120))
            return


def _firsts(case: Case) -> list[Any]:
    found = [report[0] for report in prompt_logprobs_in(case) if report]
    if _echoes(case):
        covered = [entries_of(choice) for choice in _choices(case)]
        found += [each[0].logprob for each in covered if each and _stands_first(case, each)]
    return found


def _stands_first(case: Case, entries: tuple[Entry, ...]) -> bool:
    """Whether an echo's first token can be the prompt's: of a list of prompts nobody knows, and a mark may be hidden."""
    prompt = given(case).get("prompt")
    if not (isinstance(prompt, str) and entries[0].text and prompt.lstrip().startswith(entries[0].text.lstrip())):
        return False
    read = counts(case.exchange, "prompt_tokens")
    return read is None or read[0] <= len(_of_prompt(entries, prompt))
