"""`steering.*`: are tokens banned, forced and allowed as the request says?"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.bare import answered_bare, steady, steady_exchange
from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import BESIDE, given, ignored, law
from streamgauge.conformance.told_ids import ids_of
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.json import is_number

__all__: list[str] = []

_FORCES = 100
"""A bias from which on a token is the only one (OpenAI: "100 should result in ... exclusive selection")."""

_DIGITS = 20
"""No id has so many; Python refuses to read numbers of thousands."""

_LONG = 8
"""Characters: a text that is shorter may be one token."""

_BESIDE = BESIDE - {"echo"}
"""The prompt may have any token."""


def _unclear(expected: str, actual: str) -> Departure:
    return Departure(expected, actual, outcome=Outcome.INCONCLUSIVE)


def _said(case: Case) -> str:
    """What the first choice says."""
    choices = answer_in(case.exchange).choices
    return choices[0].generated.strip() if 0 in choices else ""


def _without(case: Case, *names: str) -> str:
    """What it says for sure without these properties; empty where that is not known."""
    choices = steady(case, *names)
    return choices[0].generated.strip() if 0 in choices else ""


def _is_repetition(text: str) -> bool:
    """Whether a text is one piece again and again, as far as white space lets that be seen."""
    packed = "".join(text.split())
    return packed in (packed + packed)[1:-1] or len(set(packed)) < 2


def _judge_forced(case: Case, name: str, only: frozenset[int]) -> Iterator[Departure]:
    """
    Of an answer that may have these tokens only.

    Where it does not tell its ids: a text that is no repetition has more than one token, and if it is the text that comes
    for sure without the property, that had no part in it. What ends an answer may be another token.
    """
    expected = f"tokens {', '.join(map(str, sorted(only)))} only"
    for index, choice in answer_in(case.exchange).choices.items():
        ids = ids_of(case.exchange, index)
        if ids is not None:
            ids = ids[:-1] if choice.finish == "stop" else ids
            strange = [each for each in ids if each not in only]
            if strange:
                yield ignored(expected, f"token {strange[0]} in {list(ids)}")
                return
            continue
        text = choice.generated.strip()
        plain = _without(case, name)
        if len(only) == 1 and len(text) >= _LONG and text == plain and not _is_repetition(text):
            yield ignored(expected, f"{text!r}, as without {name}")
            return
        if not (len(only) == 1 and _is_repetition(text)):
            yield _unclear(expected, f"{text!r}, and no token ids")
            return


def _biases(asked: Mapping[str, Any]) -> dict[int, float]:
    bias = asked.get("logit_bias")
    pairs = bias.items() if isinstance(bias, dict) else ()
    return {
        int(token): value for token, value in pairs if token.isdecimal() and len(token) < _DIGITS and is_number(value)
    }


def _forced(asked: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(token for token, value in _biases(asked).items() if value >= _FORCES)


def _banned(asked: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(token for token, value in _biases(asked).items() if value <= -_FORCES)


def _allowed(asked: Mapping[str, Any]) -> frozenset[int]:
    listed = asked.get("allowed_token_ids")
    return frozenset(each for each in listed if type(each) is int) if isinstance(listed, list) else frozenset()


def _bad_words(asked: Mapping[str, Any]) -> list[str]:
    listed = asked.get("bad_words")
    return [each for each in listed if isinstance(each, str) and each.strip()] if isinstance(listed, list) else []


@law(
    "steering.bias-forces",
    Level.MUST,
    "A token with a bias of 100 is the only one",
    properties="logit_bias",
    requirement="values like -100 or 100 should result in a ban or exclusive selection of the relevant token",
    source="OpenAI, create chat completion: logit_bias",
    asks=lambda asked: bool(_forced(asked)),
    beside=_BESIDE,
    absent="no request had a bias of 100",
)
def bias_forces(case: Case) -> Iterator[Departure]:
    """100 nats are more than any model has between two tokens."""
    yield from _judge_forced(case, "logit_bias", _forced(given(case)))


def _banned_that_came(case: Case) -> frozenset[int]:
    """The banned tokens that come in this answer, or for sure without the ban."""
    plain = steady_exchange(case, "logit_bias")
    told = [ids_of(each, 0) or () for each in (case.exchange, plain) if each is not None]
    return _banned(given(case)) & {token for ids in told for token in ids} if all(told) else frozenset()


@law(
    "steering.bias-bans",
    Level.MUST,
    "A token with a bias of -100 does not come",
    properties="logit_bias",
    requirement="values like -100 or 100 should result in a ban or exclusive selection of the relevant token",
    source="OpenAI, create chat completion: logit_bias",
    asks=lambda asked: bool(_banned(asked)) and bool(asked.get("return_token_ids")),
    applies=lambda case: bool(_banned_that_came(case)),
    beside=_BESIDE,
    concerns=lambda operation, contract: "return_token_ids" in operation.properties,
    absent="no answer told its token ids beside a bias of -100",
)
def bias_bans(case: Case) -> Iterator[Departure]:
    """The ids are such as come without the bias."""
    banned = _banned_that_came(case)
    came = [each for each in ids_of(case.exchange, 0) or () if each in banned]
    if came:
        yield ignored(f"no token {', '.join(map(str, sorted(banned)))}", f"token {came[0]}, {len(came)} times")


@law(
    "steering.allowed-token-ids",
    Level.MUST,
    "No token comes but those that are allowed",
    properties="allowed_token_ids",
    requirement="Allowed Token Ids",
    source="Seekr, create chat completion: allowed_token_ids",
    asks=lambda asked: bool(_allowed(asked)),
    beside=_BESIDE | {"bad_words"},
)
def allowed(case: Case) -> Iterator[Departure]:
    """Whatever is banned beside: where nothing is left, a refusal or an end is right, a token from outside is not."""
    yield from _judge_forced(case, "allowed_token_ids", _allowed(given(case)))


def _has_word(word: str, text: str) -> bool:
    """Whether a text has a word with a space before it or nothing: with a mark it may be another token."""
    return re.search(rf"(?<!\S){re.escape(word.strip())}(?!\w)", text) is not None


def _words_that_came(case: Case, text: str) -> list[str]:
    return [word for word in _bad_words(given(case)) if _has_word(word, text)]


@law(
    "steering.bad-words",
    Level.MUST,
    "Words that must not come do not come",
    properties="bad_words",
    requirement="Bad Words",
    source="Seekr, create chat completion: bad_words",
    asks=lambda asked: bool(_bad_words(asked)),
    applies=lambda case: bool(_words_that_came(case, _said(case) + "\n" + _without(case, "bad_words"))),
    beside=_BESIDE,
    absent="no word was banned that comes for sure without that",
)
def bad_words(case: Case) -> Iterator[Departure]:
    """
    The same text as without the ban proves that there was none.

    In another text a word may have come about by other tokens than those that the server bans: that is reported only.
    """
    text, plain = _said(case), _without(case, "bad_words")
    came = _words_that_came(case, text)
    if not came:
        return
    expected = f"a text without {came[0]!r}"
    if text == plain:
        yield ignored(expected, f"{text!r}, as without bad_words")
    else:
        yield Departure(expected, f"{text!r}", outcome=Outcome.WARN)


def _has_special_only(case: Case) -> bool:
    """
    Whether an answer consists of one special token again and again.

    It tells the ids, and the same answer has no text where special tokens are skipped. What ended it may be hidden.
    """
    ids, only = ids_of(case.exchange, 0) or (), _allowed(given(case))
    if len(only) != 1 or set(ids) != only or len(ids) < 2:
        return False
    skipped = [answer_in(each).choices for each in answered_bare(case, "skip_special_tokens")]
    texts = [choices[0].text for choices in skipped if 0 in choices]
    return bool(texts) and not any(texts)


@law(
    "steering.special-tokens-shown",
    Level.MUST,
    "Special tokens are shown where they are not skipped",
    properties="skip_special_tokens",
    requirement="Skip Special Tokens",
    source="Seekr, create chat completion: skip_special_tokens",
    asks=lambda asked: asked.get("skip_special_tokens") is False and bool(_allowed(asked)),
    applies=_has_special_only,
    beside=_BESIDE | {"allowed_token_ids", "ignore_eos"},
    absent="no answer of special tokens only, told by their ids",
)
def special_shown(case: Case) -> Iterator[Departure]:
    """The answer was forced to consist of what ended another one, or begins the prompt."""
    if not _said(case):
        yield ignored("the special token's text", "no text, as where special tokens are skipped")
