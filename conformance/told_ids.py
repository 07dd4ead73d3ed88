"""Token ids, as an answer tells them: in members of their own, or as the names of tokens with log-probabilities."""

import re
from collections.abc import Iterable
from typing import Any

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.wire.exchange import Exchange

__all__ = ["ids_in", "ids_of", "ids_of_choice", "prompt_ids_of"]

_NAMED = re.compile(r"token_id:([0-9]+)")


def ids_of(exchange: Exchange, index: int) -> tuple[int, ...] | None:
    """The ids of one choice's tokens; None where the answer does not tell them."""
    choice = answer_in(exchange).choices.get(index)
    if told := ids_of_choice(choice) if choice else None:
        return tuple(told)
    named = [_NAMED.fullmatch(token.text) for token in (choice.tokens or ())] if choice else []
    return tuple(int(match[1]) for match in named if match) if named and all(named) else None


def prompt_ids_of(exchange: Exchange) -> tuple[int, ...] | None:
    """The ids of the prompt's tokens, beside the choices (chat) or in the first one; None where they are not told."""
    bodies = [chunk.object for chunk in exchange.stream.payloads] if exchange.wants_stream else [exchange.json.value]
    first = answer_in(exchange).choices.get(0)
    for holder in (*bodies, *(first.parts if first else ())):
        if isinstance(holder, dict) and (told := ids_in([holder.get("prompt_token_ids")])):
            return tuple(told)
    return None


def ids_of_choice(choice: Choice) -> list[int] | None:
    """The ids that members of their own tell of a choice's tokens, in the order of the stream; None where none do."""
    return ids_in(part.get("token_ids") for part in choice.parts)


def ids_in(values: Iterable[Any]) -> list[int] | None:
    """Lists of token ids as one; None where there is no list of integers."""
    lists = [value for value in values if isinstance(value, list) and all(type(each) is int for each in value)]
    return [each for value in lists for each in value] if lists else None
