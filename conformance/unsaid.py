"""Answers that count tokens and say nothing."""

from typing import Any, TypedDict

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure
from streamgauge.conformance.predicates import count_of_choices, valid_request
from streamgauge.conformance.tokens import detail, final_usage
from streamgauge.wire.exchange import Evidence

__all__ = ["NOTHING_SAID", "unsaid"]

_INVISIBLE = 3
"""Tokens of one choice that may show nothing in a right answer: those that end a turn, or the first bytes of a character."""


class _Declared(TypedDict):
    requirement: str
    source: str
    absent: str
    needs: tuple[Evidence, ...]


NOTHING_SAID: _Declared = {
    "requirement": "completion_tokens: tokens that were generated; reasoning_tokens: those of them that are reasoning.",
    "source": CLIENTS,
    "absent": f"no answer that counts more than {_INVISIBLE} tokens for each choice",
    "needs": (Evidence.REQUEST,),
}


def unsaid(case: Case) -> list[Departure] | None:
    """
    The departure of an answer none of whose choices says anything; empty where one does.

    None where nothing can be said: the tokens are few, counted as reasoning, or asked to be hidden; they were forced and may
    be special ones; a stop string or a filter took the text away; a choice is missing, which other checks judge.
    """
    found = final_usage(case.exchange)
    choices = count_of_choices(case) if found and valid_request(case) else None
    if found is None or choices is None or case.exchange.sent.get("include_reasoning") is False:
        return None
    if case.exchange.sent.get("allowed_token_ids") or case.exchange.sent.get("logit_bias"):
        return None
    usage, chunk = found
    generated = usage.get("completion_tokens")
    if type(generated) is not int:
        return None
    visible = generated - (detail(usage, "completion_tokens_details", "reasoning_tokens") or 0)
    if visible <= _INVISIBLE * choices:
        return None
    answer = list(answer_in(case.exchange).choices.values())
    if len(answer) != choices:
        return None
    if any(each.speaks for each in answer):
        return []
    reasons: set[Any] = {str(reason) for each in answer for reason in each.reasons}
    if "content_filter" in reasons or (case.exchange.sent.get("stop") and "stop" in reasons):
        return None
    said = f"{visible} tokens and no text, reasoning or call"
    return [Departure("text, reasoning or a call", said, event=chunk.event if chunk else None)]
