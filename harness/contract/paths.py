"""The properties of a request with those nested in them, each by one dotted path."""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streamgauge.contract.fields import properties_of
from streamgauge.contract.operation import Operation

__all__ = ["head_of", "request_paths"]


def head_of(path: str) -> str:
    """The top-level property that a path begins with."""
    return path.partition(".")[0].removesuffix("[]")


@functools.cache
def request_paths(operation: Operation) -> Mapping[str, Any]:
    """
    Every property that the document gives a request, with its schema, in the document's order.

    A path goes into objects by a dot and into arrays by `[]`: `stream_options.include_usage`, `messages[].role`. Of
    alternatives each branch counts; a schema that refers to itself is entered once.
    """
    found: dict[str, Any] = {}
    _walk(operation, operation.request_schema, "", found, ())
    return MappingProxyType(found)


def _walk(operation: Operation, schema: Any, path: str, found: dict[str, Any], seen: tuple[int, ...]) -> None:
    for name, inner in properties_of(operation.schemas, schema, any_branch=True).items():
        below = f"{path}.{name}" if path else name
        found.setdefault(below, inner)
        if id(inner) not in seen:
            _walk(operation, inner, below, found, (*seen, id(inner)))
    for items in _items_of(operation, schema):
        if id(items) not in seen:
            _walk(operation, items, f"{path}[]", found, (*seen, id(items)))


def _items_of(operation: Operation, schema: Any) -> list[Any]:
    """The schemas of an array's items, of whichever alternative."""
    pending, found, seen = [schema], [], set()
    while pending:
        part = pending.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part.get("$ref"), str):
            pending.append(operation.schemas.referred(part["$ref"]))
        for keyword in ("allOf", "anyOf", "oneOf"):
            pending += part.get(keyword) or []
        if isinstance(part.get("items"), dict):
            found.append(part["items"])
    return found
