"""
Reads JSON strictly (RFC 8259) and keeps the evidence that a lenient reader throws away.

The value is what Python's reader gives; beside it stand the defects, each with its kind, and the numbers that are not
read alike everywhere, as they were written (`1.0` and `1` are the same integer to JSON Schema, and not the same to many
clients).

Nearly every text has nothing to report, so there are two readings. The quick one is Python's own, with hooks that give up
as soon as they meet what needs evidence; only then the thorough one collects it.
"""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeGuard

__all__ = [
    "MOST_BYTES",
    "MOST_DEPTH",
    "MOST_DIGITS",
    "Defect",
    "JsonText",
    "is_number",
    "is_shallow",
    "objects_in",
    "read_json",
]

MOST_BYTES = 64 * 2**20
"""A longer text is not read (RFC 8259, section 9, lets a reader set limits). A `str` is measured in characters."""

MOST_DEPTH = 200
"""A text whose arrays and objects nest deeper is not read: Python and jsonschema-rs (255) bear little more."""

MOST_DIGITS = 4300
"""A text with a longer integer is not read: Python's own limit."""

_WHITE_SPACE = " \t\n\r"
_SAFE_INTEGER = 2**53 - 1
"""Beyond it integers are not the same everywhere (RFC 8259, section 6)."""

_SAFE_DIGITS = 15
"""Any integer of so many characters is a safe one."""

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# The closing quote is optional, lest each quote in an unfinished string be tried as the beginning of one.
_BRACKET_OR_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(slots=True, frozen=True)
class Defect:
    """
    One departure from strict JSON.

    Attributes:
        kind: `syntax`, `trailing` (something stands behind the value), `duplicate-key`, `not-a-number`, `encoding`,
            `bom` or `surrogate`; or `limit`: the text goes beyond a limit of this reader, which says nothing about its
            being right.
        detail: what stands there.
        offset: of the byte it is about, where known; else -1.
        pointer: JSON pointer to the value it is about, where known; the whole text's is empty too.
    """

    kind: str
    detail: str
    offset: int = -1
    pointer: str = ""


@dataclass(slots=True)
class JsonText:
    """What a text holds."""

    value: Any = None
    """The value; meaningless unless `valid`."""

    valid: bool = False
    """Whether there is a value at all (a lenient reader would accept the text)."""

    defects: list[Defect] = field(default_factory=list)
    """What a strict reader objects to; a text can be valid and have defects."""

    floats: dict[str, str] = field(default_factory=dict)
    """Integral numbers that were written with a fraction or an exponent: JSON pointer → as written."""

    large: dict[str, str] = field(default_factory=dict)
    """Integers beyond ±(2⁵³-1), which are not the same everywhere: JSON pointer → as written."""

    infinite: dict[str, str] = field(default_factory=dict)
    """Numbers beyond the range of a double, such as 1e400: JSON pointer → as written."""

    @property
    def uneven(self) -> list[Defect]:
        """The `large` and `infinite` numbers as defects of the kind `number`: JSON, and read differently here and there."""
        numbers = {**self.large, **self.infinite}
        return [Defect("number", f"{lexeme[:40]} at {at or '/'}", pointer=at) for at, lexeme in numbers.items()]

    @property
    def beyond_limit(self) -> str:
        """Which limit of this reader the text goes beyond; empty when it was judged."""
        return next((defect.detail for defect in self.defects if defect.kind == "limit"), "")


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects of a list: whatever else is in it, and whatever else it is."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a number; Python counts true and false among them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_json(text: bytes | str) -> JsonText:
    """Read one JSON value; never raises."""
    result = JsonText()
    if len(text) > MOST_BYTES:
        result.defects.append(Defect("limit", f"more than MOST_BYTES ({MOST_BYTES})"))
        return result
    if isinstance(text, bytes):
        text = _decoded(text, result)
    if text.startswith("\ufeff"):
        result.defects.append(Defect("bom", "a byte order mark stands before the value (RFC 8259, 8.1)", 0))
    if not is_shallow(text):
        result.defects.append(Defect("limit", f"deeper than MOST_DEPTH ({MOST_DEPTH})"))
        return result
    if not result.defects and _is_free_of_surrogates(text):
        try:
            value, end = _QUICK.raw_decode(text, len(text) - len(text.lstrip(_WHITE_SPACE)))
            if not text[end:].strip(_WHITE_SPACE):
                result.value, result.valid = value, True
                return result
        except (ValueError, RecursionError):
            pass  # `_NeedsEvidenceError`, or no JSON: the thorough reading finds out which
    _read_thoroughly(text, result)
    return result


def _decoded(raw: bytes, result: JsonText) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        result.defects.append(Defect("encoding", f"byte 0x{raw[problem.start]:02x} is not UTF-8", problem.start))
        return raw.decode("utf-8", "replace")


def is_shallow(text: str, most: int = MOST_DEPTH) -> bool:
    """Whether brackets outside of strings, matching or not, nest at most so deep."""
    if text.count("[") + text.count("{") <= most:
        return True
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > most:
                return False
        elif first in "]}":
            depth -= 1
    return True


def _is_free_of_surrogates(text: str) -> bool:
    """Whether no string of it can hold a surrogate, lone or not, that was escaped, or a lone one as it is."""
    if not text.isascii() and _LONE_SURROGATE.search(text):
        return False
    return "\\u" not in text or not _SURROGATE_ESCAPE.search(text)


# --- the quick reading ------------------------------------------------------------------------------------------------


class _NeedsEvidenceError(ValueError):
    """The text holds something that has to be reported."""


def _unique_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) != len(items):
        raise _NeedsEvidenceError
    return found


def _usual_integer(lexeme: str) -> int:
    if len(lexeme) > _SAFE_DIGITS:
        raise _NeedsEvidenceError
    return int(lexeme)


def _usual_float(lexeme: str) -> float:
    number = float(lexeme)
    if number.is_integer() or math.isinf(number):
        raise _NeedsEvidenceError
    return number


def _no_constant(name: str) -> NoReturn:
    raise _NeedsEvidenceError


_QUICK = json.JSONDecoder(
    object_pairs_hook=_unique_object,
    parse_int=_usual_integer,
    parse_float=_usual_float,
    parse_constant=_no_constant,
)


# --- the thorough reading ---------------------------------------------------------------------------------------------


class _Written(float):
    """A number that remembers its lexeme while the tree is walked."""

    lexeme: str


class _Doubled(dict[str, Any]):
    """An object some of whose keys occurred more than once."""

    keys_twice: str


class _BeyondLimitError(ValueError):
    """A number that this reader does not take."""


def _read_thoroughly(text: str, result: JsonText) -> None:
    skipped = 0
    if text.startswith("\ufeff"):
        skipped, text = 3, text[1:]

    def byte_offset(position: int) -> int:
        if any(defect.kind == "encoding" for defect in result.defects):
            return -1  # our characters are not the bytes'
        return skipped + len(text[:position].encode("utf-8", "replace"))

    def constant(name: str) -> float:
        result.defects.append(Defect("not-a-number", f"{name} is not JSON (RFC 8259, section 6)"))
        return float(name.replace("Infinity", "inf"))

    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=constant
    )
    try:
        value, end = decoder.raw_decode(text, len(text) - len(text.lstrip(_WHITE_SPACE)))
        rest = text[end:].lstrip(_WHITE_SPACE)
        if rest:
            detail = f"{rest[0]!r} stands behind the value"
            result.defects.append(Defect("trailing", detail, byte_offset(len(text) - len(rest))))
            return
        value = _plain(value, "", result)
    except json.JSONDecodeError as problem:
        result.defects.append(Defect("syntax", problem.msg, byte_offset(problem.pos)))
    except _BeyondLimitError as problem:
        result.defects.append(Defect("limit", str(problem)))
    except RecursionError:
        result.defects.append(Defect("limit", "deeper than the stack has room for"))
    else:
        result.value, result.valid = value, True


def _object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) == len(items):
        return found
    doubled = _Doubled(found)
    doubled.keys_twice = ", ".join(sorted(key for key, count in Counter(key for key, _ in items).items() if count > 1))
    return doubled


def _integer(lexeme: str) -> int:
    if len(lexeme.lstrip("-")) > MOST_DIGITS:
        raise _BeyondLimitError(f"an integer of more than MOST_DIGITS ({MOST_DIGITS}) digits")
    return int(lexeme)


def _float(lexeme: str) -> _Written:
    number = _Written(lexeme)
    number.lexeme = lexeme
    return number


def _plain(value: Any, pointer: str, result: JsonText) -> Any:
    """The value with plain numbers and objects; notes on the way what is to be reported."""
    if isinstance(value, dict):
        if isinstance(value, _Doubled):
            result.defects.append(Defect("duplicate-key", value.keys_twice, pointer=pointer))
        if any(map(_LONE_SURROGATE.search, value)):
            detail = f"a lone surrogate in a key at {pointer or '/'} (RFC 8259, 8.2)"
            result.defects.append(Defect("surrogate", detail, pointer=pointer))
        return {key: _plain(item, f"{pointer}/{_escape(key)}", result) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{pointer}/{index}", result) for index, item in enumerate(value)]
    if isinstance(value, _Written):
        if value.is_integer():
            result.floats[pointer] = value.lexeme
        elif math.isinf(value):
            result.infinite[pointer] = value.lexeme
        return float(value)
    if type(value) is int and abs(value) > _SAFE_INTEGER:
        result.large[pointer] = str(value)
    if isinstance(value, str) and _LONE_SURROGATE.search(value):
        detail = f"a lone surrogate at {pointer or '/'} (RFC 8259, 8.2)"
        result.defects.append(Defect("surrogate", detail, pointer=pointer))
    return value


def _escape(key: str) -> str:
    """A reference token of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
