"""The pseudo-model's vocabulary: every text has token ids, and every token id has a text."""

import functools
import re
from collections.abc import Iterable

from streamgauge.reference.words import VOCABULARY

__all__ = ["BEGIN", "END", "SPECIAL", "count", "encode", "is_token", "text_of", "texts_of"]

END = len(VOCABULARY)
"""Id of the end-of-sequence token; the words have the ids below it."""

BEGIN = END + 1
"""Id of the beginning-of-sequence token."""

SPECIAL = {END: "<|end|>", BEGIN: "<|begin|>"}
"""Tokens that are no text, and how they are shown where somebody wants to see them."""

_PIECE = 4
_LETTERS = 128
_FIRST_PIECE = 64
_LAST_PIECE = _FIRST_PIECE + sum(_LETTERS**size for size in range(1, _PIECE + 1))
_FIRST_OTHER = 2**29
_LAST_OTHER = _FIRST_OTHER + 0x10FFFF
_SURROGATES = range(_FIRST_OTHER + 0xD800, _FIRST_OTHER + 0xE000)

_IDS = {text: token for token, text in enumerate(VOCABULARY)}
_REST = "|".join(re.escape(text[1:]) for text in VOCABULARY)
# A word, or up to four ASCII characters before the next word or number, or one other character: joined, the text again.
_TOKEN = re.compile(
    rf" (?:{_REST})|[\x00-\x7f](?:[\x00-\x1f!-\x7f]|\x20(?![0-9]|{_REST})){{0,{_PIECE - 1}}}|[^\x00-\x7f]",
    re.DOTALL,
)


def encode(text: str) -> tuple[int, ...]:
    """The ids of a text; their texts joined are the text again."""
    return tuple(map(_id, _TOKEN.findall(text)))


def count(text: str) -> int:
    """How many tokens a text has."""
    return len(_TOKEN.findall(text))


def is_token(token: float) -> bool:
    """Whether a number is in the vocabulary."""
    if not 0 <= token <= _LAST_OTHER or token != int(token):
        return False
    known = token <= BEGIN or _FIRST_PIECE < token <= _LAST_PIECE or token >= _FIRST_OTHER + _LETTERS
    return known and int(token) not in _SURROGATES


@functools.lru_cache(maxsize=2**16)
def text_of(token: int) -> str:
    """The text of a token that is in the vocabulary; that of the special tokens is empty."""
    if token < END:
        return VOCABULARY[token]
    if token in SPECIAL:
        return ""
    if token >= _FIRST_OTHER:
        return chr(token - _FIRST_OTHER)
    letters = []
    rest = token - _FIRST_PIECE
    while rest:
        rest, letter = divmod(rest - 1, _LETTERS)
        letters.append(chr(letter))
    return "".join(reversed(letters))


def texts_of(tokens: Iterable[int]) -> str:
    """The text of several tokens."""
    return "".join(map(text_of, tokens))


@functools.lru_cache(maxsize=2**16)
def _id(piece: str) -> int:
    """Pieces of ASCII are numbers with the digits 1 to 128; other characters go by their code points."""
    if piece in _IDS:
        return _IDS[piece]
    if not piece.isascii():
        return _FIRST_OTHER + ord(piece)
    rest = 0
    for letter in piece:
        rest = rest * _LETTERS + ord(letter) + 1
    return _FIRST_PIECE + rest
