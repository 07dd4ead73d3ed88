"""
Brings the schemas of OpenAPI 3.0 and 3.1 into JSON Schema 2020-12.

Only what is a schema is touched, by the structure that the keywords give; never an example, a default, or a property that
happens to be called `nullable`. References become `#/components/schemas/<key>`, whatever they pointed to.
"""

from collections.abc import Callable, Sequence
from typing import Any

from streamgauge.contract.document import Document
from streamgauge.contract.references import Tokens, pointed_at, ref_to, tokens_of
from streamgauge.contract.validator import Validator, pointer_of

__all__ = ["LISTS", "MAPS", "ONE", "Schemas", "let_null_in", "number_bounds"]

INT64_MAXIMUM = 2**63 - 1
INT64_MINIMUM = -(2**63)

ONE = frozenset(
    {
        *("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords whose value is a schema (JSON Schema 2020-12, sections 10 and 11; Validation, section 8)."""

LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})

_IDENTITIES = frozenset({"$anchor", "$id", "$schema", "$vocabulary"})
"""Needless once every reference is a pointer, and harmful: a pointer is relative to the nearest `$id`."""

_ELSEWHERE = ("$ref", "allOf", "anyOf", "const", "if", "not", "oneOf")
"""Beside these, another type in the list would not let null in."""

_OPEN = frozenset(
    {
        *("$comment", "default", "deprecated", "description", "discriminator", "example", "examples", "externalDocs"),
        *("format", "nullable", "readOnly", "title", "writeOnly", "xml"),
    }
)
"""Keywords that refuse nothing."""

_NULL = {"type": "null"}


class Schemas:
    """
    The schemas of one document, normalised when they are asked for.

    Attributes:
        definitions: those that others refer to, by key.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self.definitions: dict[str, Any] = {}
        self._keys: dict[Tokens, str] = {}
        self._refers: dict[str, set[str]] = {}

    def normal(self, tokens: Tokens) -> Any:
        """
        The schema at the end of these steps; `{}` where there is none.

        Raises:
            DocumentError: it is no schema, or refers to what is none.
        """
        return self._with_references(tokens)[0]

    def validator(self, tokens: Tokens, change: Callable[[Any], Any] = lambda schema: schema) -> Validator:
        """
        Its validator, which accepts everything where there is none.

        Args:
            tokens: where it stands.
            change: what is made of it, and of each schema that it leads to; the places of their parts have to stay.

        Raises:
            DocumentError: it is no schema.
        """
        schema, refers = self._with_references(tokens)
        reached = self._closure(refers)

        def locate(path: Sequence[str | int]) -> tuple[str, str]:
            match tuple(path):
                case ("allOf", 0, *rest):
                    start = tokens
                case ("components", "schemas", str(key), *rest):
                    start = self._reverse(key)
                case _:
                    start, rest = tokens, []
            found = (*start, *self._existing(start, rest))
            return pointer_of(found), self._document.where(found)

        return Validator(change(schema), {"schemas": {key: change(self.definitions[key]) for key in reached}}, locate)

    def resolved(self, schema: Any) -> dict[str, Any]:
        """A normalised schema, or what its `$ref` stands for in the end; `{}` for a boolean one."""
        while isinstance(schema, dict) and isinstance(ref := schema.get("$ref"), str):
            schema = self.referred(ref)
        return schema if isinstance(schema, dict) else {}

    def referred(self, ref: str) -> Any:
        """What a reference in a normalised schema leads to: that schema, normalised."""
        return self.definitions[str(tokens_of(ref[1:])[-1])]

    def is_open(self, tokens: Tokens) -> bool:
        """Whether there is no schema, or one that refuses nothing."""
        schema = self.normal(tokens)
        if schema is False:
            return False
        return all(key in _OPEN or key.startswith("x-") for key in self.resolved(schema))

    def _reverse(self, key: str) -> Tokens:
        return next(tokens for tokens, known in self._keys.items() if known == key)

    def _existing(self, start: Tokens, rest: Sequence[str | int]) -> list[str | int]:
        """As much of a path inside a normalised schema as there is in the document as it was read."""
        steps = list(rest)
        while steps:
            try:
                pointed_at(self._document.raw, (*start, *steps))
            except LookupError:
                steps.pop()
            else:
                break
        return steps

    def _with_references(self, tokens: Tokens) -> tuple[Any, set[str]]:
        if not self._exists(tokens):
            return {}, set()
        refers: set[str] = set()
        schema = self._schema(tokens, refers)
        while waiting := [(at, key) for at, key in self._keys.items() if key not in self.definitions]:
            for at, key in waiting:
                self._document.followed(at)  # refuses a circle of nothing but references
                own: set[str] = set()
                self.definitions[key] = self._schema(at, own)
                self._refers[key] = own
        return schema, refers

    def _exists(self, tokens: Tokens) -> bool:
        try:
            pointed_at(self._document.raw, tokens)
        except LookupError:
            return False
        return True

    def _closure(self, refers: set[str]) -> list[str]:
        reached, pending = dict.fromkeys(sorted(refers)), sorted(refers)
        while pending:
            for key in sorted(self._refers[pending.pop()]):
                if key not in reached:
                    reached[key] = None
                    pending.append(key)
        return list(reached)

    def _reference(self, ref: str, at: Tokens, refers: set[str]) -> str:
        target = self._document.target(ref, at)
        if target not in self._keys:
            plain = target[:2] == ("components", "schemas") and len(target) == 3
            key = str(target[2]) if plain else ".".join(map(str, target))
            while key in self._keys.values():
                key += "_"
            self._keys[target] = key
        refers.add(self._keys[target])
        return _ref(self._keys[target])

    def _schema(self, at: Tokens, refers: set[str]) -> Any:
        node = self._document.at(at)
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise self._document.complaint(at, "has to be a schema: an object or a boolean")
        ref = node.get("$ref")
        if isinstance(ref, str) and self._document.version == "3.0":
            # Beside a $ref nothing counts (OpenAPI 3.0.3, 4.7.23.1); these are meant all the same.
            node = {key: node[key] for key in ("$ref", "nullable", "readOnly", "writeOnly") if key in node}
        made = {key: self._member(key, value, at, refers) for key, value in node.items() if key not in _IDENTITIES}
        if isinstance(made.get("items"), list):  # as before 2020-12
            made["prefixItems"] = made.pop("items")
        if self._document.version == "3.0":
            number_bounds(made)
        _clamp(made)
        return self._with_null(made, at) if made.pop("nullable", False) is True else made

    def _member(self, key: str, value: Any, at: Tokens, refers: set[str]) -> Any:
        below = (*at, key)
        if key in ("$ref", "$dynamicRef") and isinstance(value, str) and (key == "$ref" or value.startswith("#/")):
            return self._reference(value, at, refers)
        if (key in LISTS or key == "items") and isinstance(value, list):
            return [self._schema((*below, index), refers) for index in range(len(value))]
        if key in ONE:
            return self._schema(below, refers)
        if key in MAPS and isinstance(value, dict):
            return {name: self._schema((*below, name), refers) for name in value}
        return value

    def _with_null(self, schema: dict[str, Any], at: Tokens) -> dict[str, Any]:
        """
        The schema with null let in.

        OpenAPI 3.0.3 gives `nullable` a meaning beside `type` only, and 3.1 none at all; documents use it beside
        anything, and mean it.
        """
        if any(keyword in schema for keyword in _ELSEWHERE):
            self._note(at)
            said = {key: schema.pop(key) for key in list(schema) if key in ("default", "description", "title")}
            return {"anyOf": [schema, dict(_NULL)], **said}
        if not isinstance(schema.get("type"), str | list) and "enum" in schema:
            self._note(at)
        let_null_in(schema)
        return schema

    def _note(self, at: Tokens) -> None:
        where = self._document.where((*at, "nullable"))
        self._document.note_of("`nullable` without a `type` beside it is read as: null is allowed", where)


def _ref(key: str) -> str:
    return ref_to(("components", "schemas", key))


def let_null_in(schema: dict[str, Any]) -> None:
    """Add null to what `type` and `enum` of a schema list, where it has them."""
    if isinstance(kinds := schema.get("type"), str | list):
        kinds = kinds if isinstance(kinds, list) else [kinds]
        schema["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if isinstance(values := schema.get("enum"), list) and None not in values:
        schema["enum"] = [*values, None]


def number_bounds(schema: dict[str, Any]) -> None:
    """OpenAPI 3.0's `exclusiveMinimum: true` beside `minimum` as 2020-12's `exclusiveMinimum`."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool):
            strict = schema.pop(exclusive)
            if strict and bound in schema:
                schema[exclusive] = schema.pop(bound)


def _clamp(schema: dict[str, Any]) -> None:
    """
    Keep the bounds of an integer inside int64.

    A bound such as 9223372036854776000 is 2^63-1 as JavaScript prints it: the servers behind such documents parse 64-bit
    integers.
    """
    kinds = schema.get("type")
    if kinds != "integer" and not (isinstance(kinds, list) and "integer" in kinds and "number" not in kinds):
        return
    for keyword, limit, further in (("maximum", INT64_MAXIMUM, max), ("minimum", INT64_MINIMUM, min)):
        for written in (keyword, f"exclusive{keyword.capitalize()}"):
            bound = schema.get(written)
            if not isinstance(bound, int | float) or isinstance(bound, bool) or bound == limit:
                continue
            if further(bound, limit) == bound:
                del schema[written]
                schema[keyword] = limit
