"""
Properties that only one side sends.

A `readOnly` property is not required of a request, a `writeOnly` one not of an answer: "If the property is marked as readOnly
being true and is in the required list, the required will take effect on the response only" (OpenAPI 3.0.3, 4.7.24.2; likewise
`writeOnly` and the request). OpenAPI 3.1 leaves both to JSON Schema (Validation, 9.4), which has no directions; documents mean
the same by it.
"""

from typing import Any

from streamgauge.contract.fields import is_marked, properties_of
from streamgauge.contract.normal import LISTS, MAPS, ONE, Schemas

__all__ = ["ANSWER", "REQUEST", "one_way"]

REQUEST = "readOnly"
ANSWER = "writeOnly"
"""The mark of the properties that are not required of a request, or of an answer."""

_SAME_OBJECT = ("allOf", "anyOf", "else", "oneOf", "then")
"""Keywords whose schemas are about the same object as the one that they stand in."""

_REVERSED = ("if", "not")
"""There, fewer requirements would refuse more."""


def one_way(schemas: Schemas, mark: str, schema: Any, known: dict[str, Any] | None = None) -> Any:
    """
    The schema without the requirement of marked properties.

    Args:
        schemas: what references lead to.
        mark: :data:`REQUEST` or :data:`ANSWER`.
        schema: normalised; references in it are not followed.
        known: properties that others say of the same object.
    """
    if not isinstance(schema, dict):
        return schema
    known = {**(known or {}), **properties_of(schemas, schema)}
    made = dict(schema)
    for key, value in schema.items():
        same = known if key in _SAME_OBJECT else None
        if key in _REVERSED:
            continue
        if key in LISTS and isinstance(value, list):
            made[key] = [one_way(schemas, mark, each, same) for each in value]
        elif key in MAPS and isinstance(value, dict):
            made[key] = {name: one_way(schemas, mark, each) for name, each in value.items()}
        elif key in ONE:
            made[key] = one_way(schemas, mark, value, same)
    required = schema.get("required")
    if isinstance(required, list):
        made["required"] = [
            name for name in required if not (isinstance(name, str) and is_marked(schemas, known.get(name), mark))
        ]
    return made
