"""The schema of what was seen: for answers that the document leaves open."""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["inferred_schema"]

MOST_NAMES = 64
"""An object with more names than this is a mapping (of tokens to numbers, say): its names say nothing."""

FEW_NAMES = 4
"""So is one with more than this, none of which is always there, if all their values are alike."""

DEEPEST = 40
"""Below this depth anything goes."""


def inferred_schema(instances: Iterable[Any]) -> dict[str, Any]:
    """
    A JSON Schema 2020-12 that every one of these JSON values keeps, as narrow as types, items and required names make it.

    The same values give the same schema, in whatever order they come. Without any value it is the schema that refuses
    nothing.
    """
    return _schema(list(instances), DEEPEST)


def _schema(values: Sequence[Any], deeper: int) -> dict[str, Any]:
    kinds = {_kind(value) for value in values}
    if "number" in kinds:
        kinds.discard("integer")  # each integer is a number (JSON Schema Validation, 6.1.1)
    if not kinds or not deeper:
        return {}
    made: dict[str, Any] = {}
    if items := [item for value in values if isinstance(value, list) for item in value]:
        made["items"] = _schema(items, deeper - 1)
    made |= _members([value for value in values if isinstance(value, dict)], deeper - 1)
    made["type"] = sorted(kinds) if len(kinds) > 1 else kinds.pop()
    return dict(sorted(made.items()))


def _members(objects: Sequence[dict[str, Any]], deeper: int) -> dict[str, Any]:
    names = sorted({name for value in objects for name in value})
    if not names:
        return {}
    required = [name for name in names if all(name in value for value in objects)]
    values = [item for value in objects for item in value.values()]
    alike = len({_kind(value) for value in values}) == 1 and not required
    if len(names) > MOST_NAMES or (len(names) > FEW_NAMES and alike):
        return {"additionalProperties": _schema(values, deeper)}
    properties = {name: _schema([value[name] for value in objects if name in value], deeper) for name in names}
    return {"properties": properties, **({"required": required} if required else {})}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"
