"""The properties of an object as its schema puts them together: from references, from all of several, from one of them."""

from collections.abc import Iterator
from typing import Any

from streamgauge.contract.normal import Schemas

__all__ = ["is_marked", "properties_of", "required_of"]


def properties_of(schemas: Schemas, schema: Any, *, any_branch: bool = False) -> dict[str, Any]:
    """
    The properties by name, with their schemas.

    Args:
        schemas: what references lead to.
        schema: normalised.
        any_branch: also those that only one of several alternatives has.
    """
    found: dict[str, Any] = {}
    for part in _parts(schemas, schema, any_branch=any_branch):
        given = part.get("properties")
        if isinstance(given, dict):
            found = {**given, **found}
    return found


def required_of(schemas: Schemas, schema: Any) -> tuple[str, ...]:
    """The names of the properties that have to be there."""
    found: dict[str, None] = {}
    for part in _parts(schemas, schema, any_branch=False):
        given = part.get("required")
        if isinstance(given, list):
            found |= dict.fromkeys(name for name in given if isinstance(name, str))
    return tuple(found)


def is_marked(schemas: Schemas, schema: Any, mark: str) -> bool:
    """Whether a property's schema says `readOnly: true`, or whatever the mark is, itself or by what holds beside it."""
    return any(part.get(mark) is True for part in _parts(schemas, schema, any_branch=False))


def _parts(schemas: Schemas, schema: Any, *, any_branch: bool) -> Iterator[dict[str, Any]]:
    """The schema itself and those that hold beside it: `$ref`, `allOf`, an alternative that has no other but null."""
    pending, seen = [schema], set()
    while pending:
        part = pending.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part.get("$ref"), str):
            pending.append(schemas.referred(part["$ref"]))
        if isinstance(part.get("allOf"), list):
            pending += part["allOf"]
        for keyword in ("anyOf", "oneOf"):
            branches = part.get(keyword)
            if isinstance(branches, list):
                real = [branch for branch in branches if branch != {"type": "null"}]
                pending += real if any_branch or len(real) == 1 else []
