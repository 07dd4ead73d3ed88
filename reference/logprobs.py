"""Log-probabilities of the pseudo-model's tokens, in each family's documented shape."""

from collections.abc import Sequence
from typing import Any

from streamgauge.reference.model import Piece
from streamgauge.reference.words import VOCABULARY, word

__all__ = ["chat_logprobs", "completion_logprobs", "prompt_logprobs"]

_PROMPT_TOKEN = 0
"""Stands for the id of a prompt's token, which has none in our vocabulary."""


def chat_logprobs(pieces: Sequence[Piece], alternatives: int) -> dict[str, Any]:
    """
    The `content[]` shape of chat.

    Args:
        pieces: the tokens.
        alternatives: entries of each `top_logprobs`, the sampled token being the first.
    """
    content = []
    for piece in pieces:
        ranked = _ranked(piece.text, piece.token, alternatives)
        content.append({**_entry(*ranked[0]), "top_logprobs": [_entry(*pair) for pair in ranked[:alternatives]]})
    return {"content": content}


def completion_logprobs(pieces: Sequence[Piece], alternatives: int, offset: int) -> dict[str, Any]:
    """
    The four-array shape of text completions.

    Args:
        pieces: the tokens.
        alternatives: entries of each `top_logprobs`; the sampled token is there even when 0.
        offset: characters of the choice's text before the first of the tokens.
    """
    ranked = [_ranked(piece.text, piece.token, alternatives) for piece in pieces]
    return _arrays(ranked, offset)


def prompt_logprobs(tokens: Sequence[str], alternatives: int) -> dict[str, Any]:
    """The four arrays of an echoed prompt, whose first token follows nothing and has no probability."""
    arrays = _arrays([_ranked(text, _PROMPT_TOKEN, alternatives) for text in tokens], 0)
    for name in ("token_logprobs", "top_logprobs"):
        arrays[name][:1] = [None] * len(arrays[name][:1])
    return arrays


def _arrays(ranked: list[list[tuple[str, float]]], offset: int) -> dict[str, list[Any]]:
    offsets = []
    for pairs in ranked:
        offsets.append(offset)
        offset += len(pairs[0][0])
    return {
        "text_offset": offsets,
        "token_logprobs": [pairs[0][1] for pairs in ranked],
        "tokens": [pairs[0][0] for pairs in ranked],
        "top_logprobs": [dict(pairs) for pairs in ranked],
    }


def _ranked(text: str, token: int, count: int) -> list[tuple[str, float]]:
    """
    The token and, behind it, others in falling order: at least one pair, else `count`.

    The probabilities add up to less than 1: 0.96 at most for the token, 0.03 for all others together.
    """
    ranked = [(text, -(5 + token % 10) / 100)]
    other = token
    while len(ranked) < count:
        other = (other + 1) % len(VOCABULARY)
        if word(other) != text:
            ranked.append((word(other), -3.0 - len(ranked)))
    return ranked


def _entry(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8"))}
