"""Log-probabilities of the pseudo-model's tokens, in each family's documented shape."""

from collections.abc import Sequence
from typing import Any

from streamgauge.reference.model import Piece
from streamgauge.reference.odds import Odds, expected
from streamgauge.reference.parameters import Parameters
from streamgauge.reference.tokens import SPECIAL, text_of

__all__ = ["chat_logprobs", "completion_logprobs", "echoed_logprobs", "prompt_logprobs"]

Ranked = list[tuple[int, float]]


def chat_logprobs(pieces: Sequence[Piece], wanted: Parameters) -> dict[str, Any]:
    """The `content[]` shape of chat; each `top_logprobs` has as many entries as asked for, the sampled token among them."""
    most = wanted.logprobs or 0
    content = []
    for piece in pieces:
        ranked = _ranked(piece.token, piece.odds, most, wanted.logprob_ids, beside=False)
        others = [_entry(token, text_of(token), logprob, wanted) for token, logprob in ranked]
        entry = _entry(piece.token, piece.text, piece.odds.of(piece.token), wanted)
        content.append({**entry, "top_logprobs": others})
    return {"content": content}


def completion_logprobs(pieces: Sequence[Piece], wanted: Parameters, offset: int) -> dict[str, Any]:
    """
    The four-array shape of text completions; the sampled token is in every `top_logprobs`, even beside the asked number.

    Args:
        pieces: the tokens.
        wanted: what is to be reported.
        offset: characters of the choice's text before the first of the tokens.
    """
    return _arrays([(piece.token, piece.text, piece.odds) for piece in pieces], wanted, offset)


def echoed_logprobs(tokens: Sequence[int], wanted: Parameters) -> dict[str, Any]:
    """The four arrays of an echoed prompt, whose first token follows nothing and has no probability."""
    arrays = _arrays([(token, text_of(token), expected(token)) for token in tokens], wanted, 0)
    for name in ("token_logprobs", "top_logprobs"):
        arrays[name][:1] = [None] * len(arrays[name][:1])
    return arrays


def prompt_logprobs(tokens: Sequence[int], most: int) -> list[dict[str, Any] | None]:
    """
    VLLM's report on a prompt: an object for each token, null for the first.

    Returns:
        Token id → `logprob`, `rank` from 1 and `decoded_token`; the prompt's own token is always there.
    """
    told: list[dict[str, Any] | None] = [
        {
            str(other): {"logprob": logprob, "rank": rank, "decoded_token": _shown(other)}
            for rank, (other, logprob) in enumerate(expected(token).ranked, start=1)
            if rank <= most or other == token
        }
        for token in tokens
    ]
    return [None, *told[1:]]


def _ranked(token: int, odds: Odds, most: int, ids: Sequence[int], *, beside: bool) -> Ranked:
    """
    The likeliest tokens, likeliest first.

    Args:
        token: the sampled one.
        odds: at its place.
        most: how many.
        ids: tokens that are reported as well.
        beside: whether the sampled token is reported beside them; else it takes the place of the last one.
    """
    top = list(odds.ranked[:most])
    known = {other for other, _ in top}
    if token not in known and (top or beside):
        top = [*(top if beside else top[:-1]), (token, odds.of(token))]
    known = {other for other, _ in top}
    top += [(other, odds.of(other)) for other in ids if other not in known]
    return sorted(top, key=lambda pair: -pair[1])


def _arrays(told: Sequence[tuple[int, str, Odds]], wanted: Parameters, offset: int) -> dict[str, list[Any]]:
    arrays: dict[str, list[Any]] = {"text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": []}
    for token, text, odds in told:
        ranked = _ranked(token, odds, wanted.logprobs or 0, wanted.logprob_ids, beside=True)
        own = _name(token, text, wanted)
        arrays["text_offset"].append(offset)
        arrays["token_logprobs"].append(odds.of(token))
        arrays["tokens"].append(own)
        arrays["top_logprobs"].append(
            {own if other == token else _name(other, _shown(other), wanted): logprob for other, logprob in ranked}
        )
        offset += len(text)
    return arrays


def _entry(token: int, text: str, logprob: float, wanted: Parameters) -> dict[str, Any]:
    return {"token": _name(token, text, wanted), "logprob": logprob, "bytes": list(text.encode("utf-8"))}


def _name(token: int, text: str, wanted: Parameters) -> str:
    return f"token_id:{token}" if wanted.ids_as_tokens else text


def _shown(token: int) -> str:
    return SPECIAL.get(token) or text_of(token)
