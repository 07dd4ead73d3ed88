"""Schemas of OpenAPI 3.0 as JSON Schema 2020-12, as far as judging an example or a default needs it."""

from typing import Any

from streamgauge.contract.normal import let_null_in, number_bounds

__all__ = ["as_2020"]


def as_2020(schema: dict[str, Any]) -> None:
    """
    Change one schema in place: `nullable` becomes a type, a boolean `exclusiveMinimum` a number, and what is only for
    reading or only for writing is no longer required, since an example may be of either direction.

    Source: OAS 3.0.3, Schema Object.
    """
    if schema.get("nullable") is True and isinstance(schema.get("type"), str | list):
        let_null_in(schema)
    number_bounds(schema)
    required, properties = schema.get("required"), schema.get("properties")
    if isinstance(required, list) and isinstance(properties, dict):
        schema["required"] = [name for name in required if not _one_way(properties.get(str(name)))]


def _one_way(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("readOnly") is True or schema.get("writeOnly") is True)
