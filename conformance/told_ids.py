"""Token ids, as an answer tells them: in members of their own, or as the names of tokens with log-probabilities."""

import itertools
import re
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.wire.exchange import Exchange

__all__ = ["ids_of", "prompt_ids_of"]

_NAMED = re.compile(r"token_id:([0-9]+)")


def ids_of(exchange: Exchange, index: int) -> tuple[int, ...] | None:
    """The ids of one choice's tokens; None where the answer does not tell them."""
    choice = answer_in(exchange).choices.get(index)
    told = [part["token_ids"] for part in choice.parts if _are_ids(part.get("token_ids"))] if choice else []
    if told:
        return tuple(itertools.chain.from_iterable(told))
    named = [_NAMED.fullmatch(token.text) for token in (choice.tokens or ())] if choice else []
    return tuple(int(match[1]) for match in named if match) if named and all(named) else None


def prompt_ids_of(exchange: Exchange) -> tuple[int, ...] | None:
    """The ids of the prompt's tokens, beside the choices (chat) or in the first one; None where they are not told."""
    bodies = [chunk.object for chunk in exchange.stream.payloads] if exchange.wants_stream else [exchange.json.value]
    first = answer_in(exchange).choices.get(0)
    for holder in (*bodies, *(first.parts if first else ())):
        if isinstance(holder, dict) and _are_ids(holder.get("prompt_token_ids")):
            return tuple(holder["prompt_token_ids"])
    return None


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)
