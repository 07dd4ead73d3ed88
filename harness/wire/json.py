"""
Reads JSON strictly (RFC 8259) and keeps the evidence that a lenient reader throws away.

The value is what Python's reader gives; beside it stand the defects, each with its kind, and the numbers as they were
written (`1.0` and `1` are the same integer to JSON Schema, and not the same to many clients).
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Defect", "JsonText", "read_json"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True, frozen=True)
class Defect:
    """
    One departure from strict JSON.

    Attributes:
        kind: `syntax`, `duplicate-key`, `not-a-number`, `encoding`, `bom`, `surrogate` or `depth`.
        detail: what stands there.
        offset: of the byte it is about, where known; else -1.
    """

    kind: str
    detail: str
    offset: int = -1


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


class _Written(float):
    """A float that remembers its lexeme while the tree is walked."""

    lexeme: str


def read_json(text: bytes | str) -> JsonText:
    """Read one JSON value; never raises."""
    result = JsonText()
    if isinstance(text, bytes):
        text = _decoded(text, result)
    skipped = 0
    if text.startswith("\ufeff"):
        skipped = 3
        result.defects.append(Defect("bom", "a byte order mark stands before the value (RFC 8259, 8.1)", 0))
        text = text[1:]

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(items)
        if len(seen) != len(items):
            twice = sorted(key for key, count in Counter(key for key, _ in items).items() if count > 1)
            result.defects.append(Defect("duplicate-key", ", ".join(twice)))
        return seen

    def constant(name: str) -> float:
        result.defects.append(Defect("not-a-number", f"{name} is not JSON (RFC 8259, section 6)"))
        return float(name.replace("Infinity", "inf"))

    def written(lexeme: str) -> float:
        number = _Written(lexeme)
        number.lexeme = lexeme
        return number

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=written)
    except json.JSONDecodeError as problem:
        broken = any(defect.kind == "encoding" for defect in result.defects)  # then our offsets are not the bytes'
        offset = -1 if broken else skipped + len(text[: problem.pos].encode("utf-8", "replace"))
        result.defects.append(Defect("syntax", problem.msg, offset))
        return result
    except (RecursionError, ValueError) as problem:
        result.defects.append(Defect("depth", f"too deep or too large to read: {type(problem).__name__}"))
        return result
    try:
        result.value = _plain(value, "", result)
    except RecursionError as problem:
        result.defects.append(Defect("depth", f"too deep or too large to read: {type(problem).__name__}"))
        return result
    result.valid = True
    return result


def _decoded(raw: bytes, result: JsonText) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        result.defects.append(Defect("encoding", f"byte 0x{raw[problem.start]:02x} is not UTF-8", problem.start))
        return raw.decode("utf-8", "replace")


def _plain(value: Any, pointer: str, result: JsonText) -> Any:
    """The value with plain floats; notes integral lexemes and lone surrogates on the way."""
    if isinstance(value, dict):
        if any(map(_LONE_SURROGATE.search, value)):
            result.defects.append(Defect("surrogate", f"a lone surrogate in a key at {pointer or '/'} (RFC 8259, 8.2)"))
        return {key: _plain(item, f"{pointer}/{_escape(key)}", result) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{pointer}/{index}", result) for index, item in enumerate(value)]
    if isinstance(value, _Written):
        if value.is_integer():
            result.floats[pointer] = value.lexeme
        return float(value)
    if isinstance(value, str) and _LONE_SURROGATE.search(value):
        result.defects.append(Defect("surrogate", f"a lone surrogate at {pointer or '/'} (RFC 8259, 8.2)"))
    return value


def _escape(key: str) -> str:
    """A reference token of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
