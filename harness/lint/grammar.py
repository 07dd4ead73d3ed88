"""
Which objects an OpenAPI document is made of, as a table, and a walk that finds them all.

The walk follows the specification's structure, so that a key called `properties` in an example is data and no schema.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.families import METHODS

__all__ = ["Node", "Path", "Walk", "kind_of", "walk"]

Path = tuple[str | int, ...]

ONE, MAP, LIST = "one", "map", "list"

GRAMMAR: dict[str, dict[str, tuple[str, str]]] = {
    "document": {
        "info": (ONE, "info"),
        "servers": (LIST, "server"),
        "paths": (MAP, "path item"),
        "webhooks": (MAP, "path item"),
        "components": (ONE, "components"),
    },
    "components": {
        "schemas": (MAP, "schema"),
        "responses": (MAP, "response"),
        "parameters": (MAP, "parameter"),
        "examples": (MAP, "example"),
        "requestBodies": (MAP, "request body"),
        "headers": (MAP, "header"),
        "securitySchemes": (MAP, "security scheme"),
        "links": (MAP, "link"),
        "callbacks": (MAP, "callback"),
        "pathItems": (MAP, "path item"),
    },
    "path item": {
        "servers": (LIST, "server"),
        "parameters": (LIST, "parameter"),
        **dict.fromkeys(METHODS, (ONE, "operation")),
    },
    "callback": {"*": (ONE, "path item")},
    "operation": {
        "servers": (LIST, "server"),
        "parameters": (LIST, "parameter"),
        "requestBody": (ONE, "request body"),
        "responses": (MAP, "response"),
        "callbacks": (MAP, "callback"),
    },
    "request body": {"content": (MAP, "media type")},
    "response": {"content": (MAP, "media type"), "headers": (MAP, "header"), "links": (MAP, "link")},
    "parameter": {"schema": (ONE, "schema"), "content": (MAP, "media type"), "examples": (MAP, "example")},
    "header": {"schema": (ONE, "schema"), "content": (MAP, "media type"), "examples": (MAP, "example")},
    "media type": {"schema": (ONE, "schema"), "itemSchema": (ONE, "schema"), "examples": (MAP, "example")},
    "schema": {
        **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs"), (MAP, "schema")),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), (LIST, "schema")),
        **dict.fromkeys(
            (
                *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
                *("unevaluatedItems", "unevaluatedProperties"),
            ),
            (ONE, "schema"),
        ),
    },
    "info": {},
    "server": {},
    "example": {},
    "link": {},
    "security scheme": {},
}
"""Kind of object → its members: how many, and of which kind. `*` stands for each member. Source: OAS 3.1, section 4.8."""

_EXTENSIBLE = ("paths", "responses")
"""Maps that may hold `x-` members beside the real ones."""


@dataclass(frozen=True, slots=True)
class Node:
    """An object of the document: its kind in :data:`GRAMMAR`, its place, and what stands there."""

    kind: str
    path: Path
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found: the objects by kind, and the places where something else than an object stands."""

    nodes: dict[str, list[Node]]
    malformed: list[tuple[Path, str, Any]]


def walk(data: dict[str, Any], kind: str = "document", path: Path = ()) -> Walk:
    """Find every object in document order; references are not followed."""
    found = Walk({name: [] for name in GRAMMAR}, [])
    pending: list[tuple[str, Path, Any]] = [(kind, path, data)]
    while pending:
        kind, path, value = pending.pop()
        if isinstance(value, dict):
            found.nodes[kind].append(Node(kind, path, value))
            pending += reversed(list(_members(kind, path, value, found)))
        elif not (kind == "schema" and isinstance(value, bool)):  # `true` and `false` are schemas
            found.malformed.append((path, kind, value))
    return found


def _members(kind: str, path: Path, value: dict[str, Any], found: Walk) -> Iterator[tuple[str, Path, Any]]:
    members = GRAMMAR[kind]
    for key, child in value.items():
        many, wanted = members.get(key) or members.get("*") or ("", "")
        if not many or (many == ONE and "*" in members and str(key).startswith("x-")):
            continue
        here = (*path, key)
        if many == ONE:
            yield wanted, here, child
        elif many == MAP and isinstance(child, dict):
            for name, each in child.items():
                if not (key in _EXTENSIBLE and str(name).startswith("x-")):
                    yield wanted, (*here, name), each
        elif many == LIST and isinstance(child, list):
            for index, each in enumerate(child):
                yield wanted, (*here, index), each
        else:
            found.malformed.append((here, f"{'map' if many == MAP else 'list'} of {wanted} objects", child))


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")
