"""The bytes of the evidence as text in which nothing is invisible, the offending range marked."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Excerpt", "Piece", "excerpt_of", "visible"]

CONTEXT = 200
"""Bytes shown on each side of the span; without a span, twice as many from the start."""

LONGEST_SPAN = 1200
"""A longer span is shown by its two ends."""

_SHORT = {"\\": "\\\\", "\r": "\\r", "\n": "\\n", "\t": "\\t"}
_CHARACTER = re.compile(rb"[\x00-\x7f]|[\xc2-\xdf].|[\xe0-\xef]..|[\xf0-\xf4]...", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of visible text that is marked, or is not."""

    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """
    A part of some bytes.

    Attributes:
        part: which bytes: `body` (decoded) or `head`.
        start, end: which of them are shown.
        size: how many there are.
        span: the offending range; None when the finding names none.
        pieces: the text.
    """

    part: str
    start: int
    end: int
    size: int
    span: tuple[int, int] | None
    pieces: tuple[Piece, ...]


def excerpt_of(data: bytes, span: tuple[int, int] | None, part: str) -> Excerpt:
    """The bytes around `span`; an empty span is marked by a caret, one beyond the end is moved to the end."""
    if span is None:
        start, end = 0, _whole_character(data, min(2 * CONTEXT, len(data)))
        pieces = [Piece(text, marked=False) for _, _, text in _characters(data, start, end)]
    else:
        first = min(max(span[0], 0), len(data))
        span = first, min(max(span[1], first), len(data))
        start = _whole_character(data, max(span[0] - CONTEXT, 0))
        end = _whole_character(data, min(span[1] + CONTEXT, len(data)))
        pieces = list(_marked(data, start, end, span))
    joined = tuple(
        Piece("".join(piece.text for piece in run), marked)
        for marked, run in groupby(pieces, key=lambda piece: piece.marked)
    )
    return Excerpt(part, start, end, len(data), span, joined)


def visible(data: bytes) -> str:
    r"""
    All of `data` as text: printable ASCII as it is, the rest escaped, a line break after each line feed.

    A backslash is doubled, control characters are `\r`, `\n`, `\t` or `\xNN`, other characters
    `\uNNNN` or `\UNNNNNNNN`, and bytes that are not UTF-8 `\xNN`.
    """
    return "".join(text for _, _, text in _characters(data, 0, len(data)))


def _marked(data: bytes, start: int, end: int, span: tuple[int, int]) -> Iterator[Piece]:
    if span[1] - span[0] > LONGEST_SPAN:
        middle = [_whole_character(data, place) for place in (span[0] + LONGEST_SPAN // 2, span[1] - LONGEST_SPAN // 2)]
        yield from _marked_part(data, start, middle[0], span)
        yield Piece(f"\n… {middle[1] - middle[0]} more bytes of the marked range …\n", marked=False)
        yield from _marked_part(data, middle[1], end, span)
    else:
        yield from _marked_part(data, start, end, span)


def _marked_part(data: bytes, start: int, end: int, span: tuple[int, int]) -> Iterator[Piece]:
    caret_due = span[0] == span[1]
    for first, behind, text in _characters(data, start, end):
        if caret_due and first >= span[0]:
            yield Piece("‸", marked=True)
            caret_due = False
        yield Piece(text, marked=first < span[1] and behind > span[0])
    if caret_due:
        yield Piece("‸", marked=True)


def _characters(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Start, end and visible form of each character; of each byte where there is none."""
    position = start
    while position < end:
        match = _CHARACTER.match(data, position, end)
        try:
            character = match.group().decode("utf-8") if match else ""
        except UnicodeDecodeError:
            character = ""
        behind = position + (len(match.group()) if match and character else 1)
        yield position, behind, _escaped(character) if character else f"\\x{data[position]:02x}"
        position = behind


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character] + ("\n" if character == "\n" else "")
    if 0x20 <= code < 0x7F:
        return character
    if code <= 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _whole_character(data: bytes, position: int) -> int:
    """`position`, moved forward out of the middle of a character: a cut must not look like a defect."""
    for step in range(4):
        if position + step >= len(data) or data[position + step] & 0xC0 != 0x80:
            return position + step
    return position
