"""
Keeps secrets out of everything that leaves memory.

A secret is replaced by filler of the same length, so offsets and lengths in stored bytes stay true. In bytes off the
wire a secret may be interrupted by the framing of a chunked body (RFC 9112, section 7.1): then the pieces are replaced
and the framing stays.
"""

import re
from collections.abc import Iterable, Iterator
from typing import AnyStr

from streamgauge.errors import ConfigError

__all__ = ["FILLER", "MINIMUM_SECRET_LENGTH", "Redactor", "is_secret_name"]

FILLER = "*"
MINIMUM_SECRET_LENGTH = 8

_SECRET_PARTS = ("auth", "key", "token", "secret", "cookie", "session", "password")

_CHUNK_FRAMING = r"(?:\r\n[0-9A-Fa-f]+[^\r\n]*\r\n)?"
_FRAMING_WITHIN = re.compile(rb"(\r\n[0-9A-Fa-f]+[^\r\n]*\r\n)")

_SHORT_ESCAPES = '"\\/'
"""What JSON may escape by a backslash and itself, control characters aside (RFC 8259, section 7)."""


def is_secret_name(name: str) -> bool:
    """Whether a request's header field of this name carries a credential."""
    return any(part in name.lower() for part in _SECRET_PARTS)


class Redactor:
    r"""
    Replaces every known secret in text and bytes.

    What is promised: a secret is found in each of these spellings, and in any mixture of them from character to character:

    * as it is, in UTF-8;
    * escaped as JSON allows: `\"`, `\\`, `\/`, and `\uXXXX` for any character, in digits of either case, beyond the Basic
      Multilingual Plane as two of them (RFC 8259, section 7);
    * percent-encoded, any character and in digits of either case, a space also as `+` (RFC 3986, section 2.1);
    * as Python's `repr` writes text or bytes in the words of an exception: `\'`, `\xNN`;
    * where it holds characters beyond ASCII, also as a server writes it that took its UTF-8 for ISO-8859-1.

    In bytes, the framing of a chunked body may stand between any two bytes of it.

    What is not promised: a secret that is transformed as a whole (base64, a digest, compression, HTML entities, an escape within
    an escape), of which only a part is there, or that is cut in two by anything but chunk framing, such as the end of a
    server-sent event. What a target gets in base64 is a secret of its own, and given as one.

    Args:
        secrets: the values to hide, in any order.

    Raises:
        ConfigError: a secret is shorter than 8 characters: hiding it would blot out innocent text, and
            whoever reads the result could guess it.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        wanted: dict[str, None] = {}
        for secret in secrets:
            if len(secret) < MINIMUM_SECRET_LENGTH:
                raise ConfigError(
                    f"the key has {len(secret)} characters",
                    hint=f"Keys shorter than {MINIMUM_SECRET_LENGTH} characters are refused: they cannot be kept out of logs.",
                )
            wanted |= {secret: None, secret.encode().decode("latin-1"): None}
        self._text = [re.compile("".join(map(_in_text, secret))) for secret in wanted]
        self._wire = [re.compile(_CHUNK_FRAMING.join(map(_on_wire, secret)).encode("latin-1")) for secret in wanted]

    def text(self, value: str) -> str:
        """The text with every secret blotted out, at the same length."""
        pieces, position = [], 0
        for start, end in _spans(self._text, value):
            pieces += [value[position:start], FILLER * (end - start)]
            position = end
        return "".join(pieces) + value[position:]

    def wire(self, value: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """
        Bytes off the wire with every secret blotted out.

        Returns:
            The bytes, of the same length, and the `(start, end)` spans that were replaced.
        """
        spans = list(_spans(self._wire, value))
        blotted = bytearray(value)
        for start, end in spans:
            framing = _FRAMING_WITHIN.split(value[start:end])
            blotted[start:end] = b"".join(
                part if odd % 2 else FILLER.encode() * len(part) for odd, part in enumerate(framing)
            )
        return bytes(blotted), spans


def _spans(patterns: Iterable[re.Pattern[AnyStr]], value: AnyStr) -> Iterator[tuple[int, int]]:
    """Where any pattern matches, in order; matches that overlap are one span."""
    start = end = 0
    for first, last in sorted(match.span() for pattern in patterns for match in pattern.finditer(value)):
        if first >= end:
            if end:
                yield start, end
            start = first
        end = max(end, last)
    if end:
        yield start, end


def _spellings(character: str) -> Iterator[tuple[str, ...]]:
    """Each way to write the character, as regular expressions for its units: bytes as characters of ISO-8859-1."""
    raw = character.encode()
    if character in _SHORT_ESCAPES or character == "'":
        yield "\\\\", re.escape(character)
    units = character.encode("utf-16-be").hex()
    yield tuple(
        part for start in range(0, len(units), 4) for part in ("\\\\", "u", *map(_digit, units[start : start + 4]))
    )
    yield tuple(part for byte in raw for part in ("%", *map(_digit, f"{byte:02x}")))
    if character == " ":
        yield ("\\+",)
    if not character.isascii():
        yield tuple(part for byte in raw for part in ("\\\\", "x", *map(_digit, f"{byte:02x}")))


def _digit(digit: str) -> str:
    return digit if digit.isdigit() else f"[{digit}{digit.upper()}]"


def _in_text(character: str) -> str:
    # The spellings come first: the raw character may be how one of them begins (% and %25).
    written = [*("".join(spelling) for spelling in _spellings(character)), re.escape(character)]
    return f"(?:{'|'.join(written)})"


def _on_wire(character: str) -> str:
    raw = tuple(re.escape(byte) for byte in character.encode().decode("latin-1"))
    return f"(?:{'|'.join(map(_CHUNK_FRAMING.join, [*_spellings(character), raw]))})"
