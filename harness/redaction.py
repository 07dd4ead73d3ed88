"""
Keeps secrets out of everything that leaves memory.

A secret is replaced by filler of the same length, so offsets and lengths in stored bytes stay true. In bytes off the
wire a secret may be interrupted by the framing of a chunked body (RFC 9112, section 7.1): then the pieces are replaced
and the framing stays.
"""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from streamgauge.errors import ConfigError

__all__ = ["FILLER", "MINIMUM_SECRET_LENGTH", "Redactor"]

FILLER = "*"
MINIMUM_SECRET_LENGTH = 8

_ESCAPE = re.compile("%[0-9A-F]{2}")
_CHUNK_FRAMING = rb"(?:\r\n[0-9A-Fa-f]+[^\r\n]*\r\n)?"


class Redactor:
    """
    Replaces every known secret in text, bytes and nested data.

    Args:
        secrets: the values to hide, in any order.

    Raises:
        ConfigError: a secret is shorter than 8 characters: hiding it would blot out innocent text, and
            whoever reads the result could guess it.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) < MINIMUM_SECRET_LENGTH:
                raise ConfigError(
                    f"the key has {len(secret)} characters",
                    hint=f"Keys shorter than {MINIMUM_SECRET_LENGTH} characters are refused: they cannot be kept out of logs.",
                )
            percent = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
            escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
            forms |= {secret} | escaped | {form.replace("/", "\\/") for form in escaped}  # PHP escapes the slash
            forms |= percent | {_ESCAPE.sub(lambda match: match.group().lower(), form) for form in percent}
        ordered = sorted(forms, key=len, reverse=True)
        self._text = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._wire = (
            re.compile(
                b"|".join(_CHUNK_FRAMING.join(re.escape(bytes([byte])) for byte in form.encode()) for form in ordered)
            )
            if ordered
            else None
        )

    def text(self, value: str) -> str:
        """The text with every secret blotted out, at the same length."""
        if self._text is None:
            return value
        return self._text.sub(lambda match: FILLER * len(match.group()), value)

    def wire(self, value: bytes) -> tuple[bytes, list[tuple[int, int]]]:
        """
        Bytes off the wire with every secret blotted out.

        Returns:
            The bytes, of the same length, and the `(start, end)` spans that were replaced.
        """
        if self._wire is None:
            return value, []
        spans: list[tuple[int, int]] = []

        def blot(match: re.Match[bytes]) -> bytes:
            spans.append(match.span())
            framing = re.split(rb"(\r\n[0-9A-Fa-f]+[^\r\n]*\r\n)", match.group())
            return b"".join(part if odd % 2 else FILLER.encode() * len(part) for odd, part in enumerate(framing))

        return self._wire.sub(blot, value), spans
