"""Whether a schema's verdict can depend on what a text says. Sans-I/O; when in doubt, it can."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamgauge.contract.references import pointed_at, tokens_of

__all__ = ["is_indifferent"]

_Parts = Iterable[tuple[Any, bool]]
"""Schemas that are applied, and whether to the text."""

_PARTS: dict[str, Callable[[Any, bool, frozenset[str]], _Parts]] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), lambda value, is_text, _: ((each, is_text) for each in value)),
    **dict.fromkeys(("not", "if", "then", "else"), lambda value, is_text, _: [(value, is_text)]),
    "dependentSchemas": lambda value, is_text, _: ((each, is_text) for each in value.values()),
    "properties": lambda value, _, names: ((each, name in names) for name, each in value.items()),
    "patternProperties": lambda value, _, __: ((each, True) for each in value.values()),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), lambda value, _, __: [(value, True)]),
    "prefixItems": lambda value, _, __: ((each, False) for each in value),
    **dict.fromkeys(("items", "contains", "unevaluatedItems"), lambda value, _, __: [(value, False)]),
}
"""Keyword → the schemas in its value, given whether the keyword is applied to the text, and the names of texts."""

_OF_TEXT = frozenset({"pattern", "minLength", "maxLength"})
"""What asks how a string looks (JSON Schema 2020-12 Validation, 6.3)."""

_HARMLESS = frozenset(
    {
        *("type", "required", "dependentRequired", "minProperties", "maxProperties", "minItems", "maxItems"),
        *("minContains", "maxContains", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("propertyNames", "format", "contentEncoding", "contentMediaType"),
        *("title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("discriminator", "externalDocs", "xml", "nullable", "components", "$defs", "definitions"),
    }
)
"""What looks at no string's content, or decides nothing. Formats are never demanded here."""

_KNOWN = _HARMLESS | _PARTS.keys() | {"$ref"}


def is_indifferent(root: Mapping[str, Any], names: frozenset[str]) -> bool:
    """
    Whether a value that the schema accepts stays accepted, and one that it refuses refused, whatever is said by the strings
    that are members with these names.

    Proved by structure: each part of the schema gives a verdict of its own, and one that combines parts changes only when one
    of them does. Only keywords whose meaning is known are trusted.

    Args:
        root: JSON Schema 2020-12, whose references are pointers into itself.
        names: of the members; they may be anywhere in the value, but not as elements of arrays.
    """
    seen: set[tuple[int, bool]] = set()
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        schema, is_text = waiting.pop()
        if isinstance(schema, bool) or (id(schema), is_text) in seen:
            continue
        seen.add((id(schema), is_text))
        if not isinstance(schema, Mapping) or not _is_trusted(schema, is_text=is_text):
            return False
        try:
            waiting += _parts(root, schema, names, is_text=is_text)
        except (AttributeError, LookupError, TypeError, ValueError):  # no schema at all, or one of another document
            return False
    return True


def _is_trusted(schema: Mapping[str, Any], *, is_text: bool) -> bool:
    """Whether what this part asks by itself is the same for each text."""
    for keyword, value in schema.items():
        if keyword in ("enum", "const"):
            allowed = value if keyword == "enum" else [value]
            if any(isinstance(each, list | dict) or (is_text and isinstance(each, str)) for each in allowed):
                return False
        elif keyword in _OF_TEXT:
            if is_text:
                return False
        elif keyword not in _KNOWN and not keyword.startswith("x-"):
            return False
    return True


def _parts(root: Mapping[str, Any], schema: Mapping[str, Any], names: frozenset[str], *, is_text: bool) -> _Parts:
    """The schemas that this one applies, and whether to the text."""
    for keyword, value in schema.items():
        if keyword in _PARTS:
            yield from _PARTS[keyword](value, is_text, names)
        elif keyword == "$ref":
            yield pointed_at(root, tokens_of(value)), is_text
