"""Tokens that are banned, forced, allowed: their ids and words are taken out of what the model says without that."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.logprobs import entries_of
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.conformance.told_ids import ids_of, prompt_ids_of
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["steering"]

_TOKENS = 12
_TO_THE_END = 40
_WORDS = 6
_ANY_TOKEN = 20
"""An id that every vocabulary has."""

_LOGPROBS: dict[str, dict[str, Any]] = {CHAT: {"logprobs": True}, COMPLETIONS: {"logprobs": 1}}

_TEXT, _IDS, _ENDED = "law.steering.text", "law.steering.ids", "law.steering.ended"

Make = Callable[[Answered], dict[str, Any] | str]


def steering(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """As far as the document has it; where it lets ids be told, the biased tokens are the model's own."""
    known = operation.properties
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    if "logit_bias" in known or "bad_words" in known:
        yield from [Probe(_TEXT, plain)] * 2
    if "logit_bias" in known:
        yield Probe("law.steering.bias-forces", {**plain, "logit_bias": {str(_ANY_TOKEN): 100}})
    if "bad_words" in known:
        yield Probe("law.steering.words", {**plain, **_LOGPROBS[operation.family]})
        yield _follow_up("law.steering.bad-words", plain, lambda answered: _with_words(answered, plain))
    if {"return_token_ids", "allowed_token_ids", "logit_bias", "bad_words"} <= known.keys():
        yield from _by_ids(operation, {**plain, "return_token_ids": True})


def _by_ids(operation: Operation, plain: dict[str, Any]) -> Iterator[Probe | FollowUp]:
    yield from [Probe(_IDS, plain)] * 2

    def banned(answered: Answered) -> dict[str, Any] | str:
        return _with_ids(answered, lambda ids: {**plain, "logit_bias": {str(ids[0]): -100}})

    def allowed(answered: Answered) -> dict[str, Any] | str:
        return _with_ids(answered, lambda ids: {**plain, "allowed_token_ids": list(dict.fromkeys(ids))[:2]})

    def against(answered: Answered) -> dict[str, Any] | str:
        words = _words(answered)
        made = {"bad_words": words[:1]} if words else "no word to ban"
        return (
            made
            if isinstance(made, str)
            else _with_ids(answered, lambda ids: {**plain, **made, "allowed_token_ids": list(dict.fromkeys(ids))[:2]})
        )

    yield _follow_up("law.steering.bias-bans", plain, banned)
    yield _follow_up("law.steering.allowed", plain, allowed)
    yield _follow_up("law.steering.allowed-and-bad", plain, against)
    brief = prompt_member(operation, "Say yes, in one word.")
    yield Probe(_ENDED, {**plain, **brief, "max_tokens": _TO_THE_END})
    for skip in (True, False):
        name = "skipped" if skip else "shown"
        yield _follow_up(f"law.steering.special-{name}", plain, _special(plain, skip))


def _special(plain: dict[str, Any], skip: bool) -> Make:
    def make(answered: Answered) -> dict[str, Any] | str:
        special = _special_id(answered)
        if special is None:
            return "no answer told the id of a special token"
        settings = {"max_tokens": 3, "ignore_eos": True, "allowed_token_ids": [special]}
        return {**plain, **settings, **({} if skip else {"skip_special_tokens": False})}

    return make


def _special_id(answered: Answered) -> int | None:
    """What ended an answer; else what begins a prompt, which is a special token as a rule."""
    for name in (_ENDED, _IDS):
        source = answered.get(name)
        choices = answer_in(source).choices if source is not None else {}
        ids = ids_of(source, 0) if source is not None else None
        if 0 in choices and ids and choices[0].finish == "stop":
            return ids[-1]
    source = answered.get(_IDS)
    ids = prompt_ids_of(source) if source is not None else None
    return ids[0] if ids else None


def _follow_up(id_: str, plain: dict[str, Any], make: Make) -> FollowUp:
    return FollowUp(id_, worst_case_tokens(plain), make)


def _with_ids(answered: Answered, make: Callable[[tuple[int, ...]], dict[str, Any]]) -> dict[str, Any] | str:
    source = answered.get(_IDS)
    ids = ids_of(source, 0) if source is not None else None
    return make(ids) if ids else "no answer told the ids of its tokens"


def _with_words(answered: Answered, plain: dict[str, Any]) -> dict[str, Any] | str:
    words = _words(answered)
    return {**plain, "bad_words": words} if words else "no word to ban"


def _words(answered: Answered) -> list[str]:
    """Words of the text that are one token each, since tokens are what servers ban; where none are told, any words."""
    source = answered.get("law.steering.words") or answered.get(_TEXT)
    choices = answer_in(source).choices if source is not None else {}
    if 0 not in choices:
        return []
    pieces = [entry.text for entry in entries_of(choices[0])] or choices[0].text.split()
    words = [piece.strip() for piece in pieces]
    return [word for word in dict.fromkeys(words) if len(word) > 1 and word.isalpha()][:_WORDS]
