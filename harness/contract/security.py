"""Where a document wants the key: what its security schemes say, in a profile's terms."""

from typing import Any

from streamgauge.contract.operation import Operation
from streamgauge.contract.profile import Auth

__all__ = ["documented_auth", "named_places", "security_of"]

_BEARER = ("oauth2", "openIdConnect")


def security_of(operation: Operation) -> list[Any]:
    """The alternatives of which a request has to satisfy one: the operation's own, else the document's; maybe none."""
    given = operation.part.value.get("security", operation.document.root.value.get("security"))
    return given if isinstance(given, list) else []


def documented_auth(operation: Operation) -> Auth | None:
    """
    Header and form of the key for an operation (OpenAPI 3.1.1, 4.8.27 and 4.8.30); None where the document says nothing usable.

    The first alternative counts that one header satisfies.
    """
    given = security_of(operation)
    schemes = operation.document.root.child("components", "securitySchemes")
    for alternative in given:
        if not isinstance(alternative, dict) or len(alternative) != 1:
            continue
        (name,) = alternative
        found = _form(schemes.child(name).mapping())
        if found is not None:
            return Auth(*found, required={} not in given)
    return None


def named_places(operation: Operation) -> frozenset[tuple[str, str]]:
    """
    Where a key may be by the document, as `(in, name in lower case)`: every place of an `apiKey` scheme and every parameter.

    A scheme counts whether or not the operation demands it.
    """
    schemes = operation.document.root.child("components", "securitySchemes")
    given = [schemes.child(name).mapping() for name in schemes.mapping()]
    given += [each for each in operation.definition.get("parameters") or [] if isinstance(each, dict)]
    return frozenset((str(each["in"]), str(each["name"]).lower()) for each in given if {"in", "name"} <= each.keys())


def _form(scheme: dict[str, Any]) -> tuple[str, str] | None:
    kind, header = scheme.get("type"), scheme.get("name")
    if kind == "apiKey" and scheme.get("in") == "header" and isinstance(header, str):
        return header, "raw"
    if kind in _BEARER or (kind == "http" and str(scheme.get("scheme")).lower() == "bearer"):
        return "Authorization", "Bearer"
    return None
