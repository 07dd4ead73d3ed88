"""What an answer tells of its prompt: the tokens and their log-probabilities, where each family has them."""

import dataclasses
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import Case
from streamgauge.conformance.once import once
from streamgauge.conformance.tokens import counts
from streamgauge.conformance.told_ids import ids_in
from streamgauge.contract.contract import CHAT
from streamgauge.wire.exchange import Chunk

__all__ = ["counts_prompts", "ids_of_prompts", "members_of", "prompt_logprobs_in", "text_by_ids"]


def members_of(case: Case, name: str) -> list[tuple[Any, Chunk | None]]:
    """The values of a top-level member that are not null, with the chunks that have them."""
    if case.exchange.wants_stream:
        found: list[tuple[Any, Chunk | None]] = [
            (chunk.object.get(name), chunk) for chunk in case.exchange.stream.payloads
        ]
    else:
        body = case.exchange.json.value
        found = [(body.get(name) if isinstance(body, dict) else None, None)]
    return [(value, chunk) for value, chunk in found if value is not None]


def prompt_logprobs_in(case: Case) -> list[list[Any]]:
    """The reports on the prompt: chat has one beside its choices, text completions one in each; what is no list is left out."""
    if case.operation.family == CHAT:
        found = [value for value, _ in members_of(case, "prompt_logprobs")]
    else:
        choices = answer_in(case.exchange).choices.values()
        found = [part.get("prompt_logprobs") for choice in choices for part in choice.parts]
    return [each for each in found if isinstance(each, list)]


def ids_of_prompts(case: Case) -> list[list[int]] | None:
    """The ids of each prompt's tokens; None unless every one is told."""
    if case.operation.family == CHAT:
        found = [ids_in([value]) for value, _ in members_of(case, "prompt_token_ids")[:1]]
    else:
        n = case.exchange.sent.get("n") or 1 if isinstance(case.exchange.sent, dict) else 1
        choices = answer_in(case.exchange).choices
        firsts = [choice for index, choice in choices.items() if type(n) is not int or index % n == 0]
        found = [
            ids_in([next((ids for part in choice.parts if (ids := part.get("prompt_token_ids")) is not None), None)])
            for choice in firsts
        ]
    known = [ids for ids in found if ids is not None]
    return known if known and len(known) == len(found) else None


@once
def counts_prompts(case: Case) -> bool:
    """Whether the prompt tokens that the answers count differ at all: a server that always says the same counts nothing."""
    told = (counts(exchange, "prompt_tokens") for exchange in case.others if exchange.status == 200)
    return len({found[0] for found in told if found}) > 1


@once
def _texts_of_prompts(case: Case) -> dict[tuple[int, ...], str]:
    """Ids that an answer told as those of a prompt → that prompt's text."""
    found = {}
    for exchange in case.others:
        sent = exchange.sent
        if exchange.status != 200 or not isinstance(sent, dict) or not isinstance(sent.get("prompt"), str):
            continue
        told = ids_of_prompts(dataclasses.replace(case, exchange=exchange))
        if told and len(told) == 1 and told[0]:
            found[tuple(told[0])] = sent["prompt"]
    return found


def text_by_ids(case: Case) -> str | None:
    """The text of a prompt that is given by the ids which an answer told of it; None of any other."""
    sent = case.exchange.sent
    ids = ids_in([sent.get("prompt")]) if isinstance(sent, dict) else None
    return _texts_of_prompts(case).get(tuple(ids)) if ids else None
