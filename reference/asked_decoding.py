"""From a request's sampling parameters to the settings of a decoding."""

from typing import Any

from streamgauge.reference.decoding import Decoding
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.rules import Asked
from streamgauge.reference.tokens import END, is_token

__all__ = ["decoding_of", "require_tokens"]

_GREATEST = 1e9
"""Numbers beyond it mean the same as this one."""

_ID_LISTS = ("allowed_token_ids", "stop_token_ids", "logprob_token_ids")
_MOST_BIAS = 100.0


def require_tokens(asked: Asked) -> None:
    """
    Judge every token id of a request but those of its prompt.

    Raises:
        Refusal: one is outside of the vocabulary.
    """
    for param in _ID_LISTS:
        if not all(map(is_token, asked.get(param, []))):
            raise _unknown(param)
    if not all(name.isascii() and name.isdigit() and is_token(_whole(name)) for name in asked.get("logit_bias", {})):
        raise _unknown("logit_bias")


def decoding_of(asked: Asked) -> Decoding:
    """The settings of a request whose ids are right; without a temperature it is greedy."""
    bias = asked.get("logit_bias", {})
    allowed = asked.get("allowed_token_ids")
    return Decoding(
        temperature=_number(asked, "temperature", 0.0),
        top_k=max(0, int(_number(asked, "top_k", 0))),
        top_p=_number(asked, "top_p", 1.0),
        min_p=_number(asked, "min_p", 0.0),
        beams=bool(asked.get("use_beam_search")),
        bias=tuple((int(name), min(max(float(value), -_MOST_BIAS), _MOST_BIAS)) for name, value in bias.items()),
        allowed=None if allowed is None else tuple(dict.fromkeys(map(int, allowed))),
        bad=tuple(asked.get("bad_words", ())),
        presence=_number(asked, "presence_penalty", 0.0),
        frequency=_number(asked, "frequency_penalty", 0.0),
        repetition=_number(asked, "repetition_penalty", 1.0),
        held=frozenset({END, *map(int, asked.get("stop_token_ids", ()))}),
        held_until=int(asked.get("min_tokens", 0)),
        endless=bool(asked.get("ignore_eos")),
    )


def _number(asked: Asked, name: str, default: float) -> float:
    value: Any = asked.get(name, default)
    return float(min(max(value, -_GREATEST), _GREATEST))


def _whole(name: str) -> int:
    """Ids are short; Python refuses to read a number of thousands of digits."""
    return int(name[:20])


def _unknown(param: str) -> Refusal:
    return Refusal(Kind.UNPROCESSABLE, f"`{param}` holds what is no token id of the vocabulary.", param)
