"""JSON values that a schema accepts: tried first, judged afterwards."""

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from streamgauge.reference.patterns import CannotMakeError, matching
from streamgauge.reference.words import VOCABULARY

__all__ = ["instance", "to_text"]

_SILENT = ("$schema", "$comment", "$defs", "$ref", "$id")
"""Keywords with a `$` that are known here; `$ref` only to places of the same schema: nothing is fetched."""

_TRIES = 12
_DEEPEST = 12
_MOST_ITEMS = 200
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KINDS = {
    "object": ("properties", "required", "minProperties", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern"),
    "number": _NUMBERS,
}


def to_text(value: Any) -> str:
    """JSON as the pseudo-model writes it: without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def instance(schema: Any, draws: random.Random) -> Any:
    """
    A value that a schema accepts.

    Args:
        schema: JSON Schema; references are followed inside of it only.
        draws: what the choice among several values is taken from.

    Raises:
        CannotMakeError: it is no schema, refers to elsewhere, or nothing that it accepts was found.
    """
    if any(name.startswith("$") and name not in _SILENT for name in _names(schema)) or not _refers_to_itself(schema):
        raise CannotMakeError("refers to another schema")
    try:
        validator = jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_nowhere)
    except (ValueError, RecursionError):
        raise CannotMakeError("is no JSON Schema") from None
    for number in range(_TRIES):
        try:
            value = _Maker(schema, draws, generous=number % 2 == 0).value(schema)
            to_text(value)
        except (_DeadEnd, CannotMakeError, RecursionError, TypeError, ValueError, OverflowError):
            continue
        if validator.is_valid(value):
            return value
    raise CannotMakeError("asks for values that the reference endpoint cannot make")


class _DeadEnd(Exception):  # noqa: N818 - one try has failed, and there are more
    """One way leads to no value."""


class _Maker:
    """
    One try.

    Args:
        root: what references start from.
        draws: chance.
        generous: whether objects get members that they need not have.
    """

    def __init__(self, root: Any, draws: random.Random, *, generous: bool) -> None:
        self._root = root
        self._draws = draws
        self._generous = generous

    def value(self, schema: Any, depth: int = 0) -> Any:
        """What the schema asks for, as far as this try sees it."""
        if depth > _DEEPEST or schema is False:
            raise _DeadEnd
        if not isinstance(schema, dict):
            return self._word()
        schema = self._merged(schema, depth)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._draws.choice(schema["enum"])
        match self._kind(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer":
                return self._number(schema, whole=True)
            case "number":
                return self._number(schema, whole=False)
            case "boolean":
                return self._draws.random() < 0.5
            case "null":
                return None
            case _:
                return self._string(schema)

    def _merged(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """The schema with what it refers to, all of `allOf` and one branch of `anyOf` and `oneOf`."""
        parts: list[Any] = [self._at(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
        parts += schema["allOf"] if isinstance(schema.get("allOf"), list) else []
        for name in ("anyOf", "oneOf"):
            branches = schema.get(name)
            if isinstance(branches, list) and branches:
                shallow = [each for each in branches if "$ref" not in to_text(each)] if depth > 3 else []
                parts.append(self._draws.choice(shallow or branches))
        merged = {name: item for name, item in schema.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
        if depth > _DEEPEST:
            raise _DeadEnd
        for part in parts:
            if part is False:
                raise _DeadEnd
            if isinstance(part, dict):
                merged = _joined(merged, self._merged(part, depth + 1))
        return merged

    def _at(self, reference: str) -> Any:
        place = self._root
        for name in filter(None, reference.removeprefix("#").split("/")):
            key = name.replace("~1", "/").replace("~0", "~")
            place = place[int(key)] if isinstance(place, list) else place[key] if key in place else _raise()
        return place

    def _kind(self, schema: dict[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            return str(self._draws.choice(kind))
        if isinstance(kind, str):
            return kind
        return next((each for each, names in _KINDS.items() if any(name in schema for name in names)), "string")

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        members = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        required = schema["required"] if isinstance(schema.get("required"), list) else []
        names = list(dict.fromkeys([*(members if self._generous and depth < 4 else ()), *required]))
        further = schema.get("additionalProperties", True)
        made = {name: self.value(members.get(name, further), depth + 1) for name in names if isinstance(name, str)}
        least = schema.get("minProperties", 0)
        patterns = schema.get("patternProperties")
        while len(made) < min(least, _MOST_ITEMS):
            if isinstance(patterns, dict) and patterns:
                pattern, inner = self._draws.choice(list(patterns.items()))
                made[matching(pattern.removeprefix("^").removesuffix("$"), self._draws)] = self.value(inner, depth + 1)
            else:
                made[f"{self._word()}{len(made)}"] = self.value(further, depth + 1)
        return made

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        first = schema["prefixItems"] if isinstance(schema.get("prefixItems"), list) else []
        made = [self.value(each, depth + 1) for each in first]
        least = max(schema.get("minItems", 0), 1 if self._generous and schema.get("maxItems", 1) > 0 else 0)
        if "contains" in schema:
            made.append(self.value(schema["contains"], depth + 1))
        # Items that may not be equal may need several draws.
        for _ in range(4 * _MOST_ITEMS):
            if len(made) >= min(least, _MOST_ITEMS) or depth > 6:
                break
            item = self.value(schema.get("items", True), depth + 1)
            if not schema.get("uniqueItems") or item not in made:
                made.append(item)
        return made

    def _number(self, schema: dict[str, Any], *, whole: bool) -> Any:
        low, high = schema.get("minimum"), schema.get("maximum")
        step = schema.get("multipleOf", 1 if whole else None)
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        gap = step or 0.5
        low = max(
            (each for each in (low, above + gap / 2 if above is not None else None) if each is not None), default=None
        )
        high = min(
            (each for each in (high, below - gap / 2 if below is not None else None) if each is not None), default=None
        )
        if low is None:
            low = 0 if high is None or high >= 0 else high - 100 * gap
        if high is None:
            high = low + 100 * gap
        if step:
            least, most = math.ceil(low / step), math.floor(high / step)
            value = self._draws.randint(least, max(least, min(most, least + 100))) * step
            return int(value) if whole else value
        return low if low == high else self._draws.choice([low + (high - low) * share / 8 for share in range(1, 8)])

    def _string(self, schema: dict[str, Any]) -> str:
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            return matching(pattern, self._draws)
        least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        text = self._word()
        while len(text) < least:
            text += " " + self._word()
        return text[: max(int(most), 0)]

    def _word(self) -> str:
        return self._draws.choice(VOCABULARY).strip()


def _nowhere(address: str) -> Any:
    raise ValueError(f"{address} is not fetched")


def _raise() -> Any:
    raise _DeadEnd


def _joined(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both schemas as one, the narrower bound of each where the difference is plain."""
    joined = {**one, **other}
    for name in one.keys() & other.keys():
        mine, theirs = one[name], other[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            joined[name] = {**mine, **theirs}
        elif name == "required" and isinstance(mine, list) and isinstance(theirs, list):
            joined[name] = [*mine, *theirs]
        elif name == "enum" and isinstance(mine, list) and isinstance(theirs, list):
            joined[name] = [each for each in mine if each in theirs]
        elif name.startswith("min"):
            joined[name] = max(mine, theirs)
        elif name.startswith("max"):
            joined[name] = min(mine, theirs)
    return joined


def _refers_to_itself(node: Any) -> bool:
    if isinstance(node, dict):
        reference = node.get("$ref")
        return (not isinstance(reference, str) or reference.startswith("#")) and all(
            map(_refers_to_itself, node.values())
        )
    return not isinstance(node, list) or all(map(_refers_to_itself, node))


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _names(each)
