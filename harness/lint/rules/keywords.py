"""Rules about single keywords of a schema: is each one known, well-formed, and of this version of OpenAPI?"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

from streamgauge.lint.grammar import kind_of
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject, types_of
from streamgauge.wire.json import is_number

__all__: list[str] = []

TYPES = ("null", "boolean", "object", "array", "number", "string", "integer")


def _count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _types(value: Any) -> bool:
    return value in TYPES if isinstance(value, str) else _texts(value) and bool(value) and set(value) <= set(TYPES)


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


_BOOLEAN, _TEXT = (_is(bool), "a boolean"), (_is(str), "text")
_COUNT, _NUMBER = (_count, "a whole number of at least 0"), (is_number, "a number")
_BOUND = (lambda value: is_number(value) or isinstance(value, bool), "a number")

SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_types, f"one of {', '.join(TYPES)}, or a list of these"),
    "required": (_texts, "a list of property names"),
    "enum": (_is(list), "a list"),
    **dict.fromkeys(("title", "description", "format", "pattern", "$ref", "$comment", "contentEncoding"), _TEXT),
    **dict.fromkeys(("nullable", "deprecated", "readOnly", "writeOnly", "uniqueItems"), _BOOLEAN),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _BOUND),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNT),
}
"""Keyword → whether a value is well-formed, and what it has to be."""

ONLY_31 = frozenset(
    {
        *("const", "if", "then", "else", "contains", "minContains", "maxContains", "prefixItems", "patternProperties"),
        *("propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
        *("examples", "contentEncoding", "contentMediaType", "contentSchema"),
        *("$defs", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$schema", "$comment", "$vocabulary"),
    }
)
VOCABULARY = (
    ONLY_31
    | frozenset(SHAPES)
    | {
        *("properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not"),
        *("default", "example", "discriminator", "xml", "externalDocs"),
    }
)

_MISPLACED = {
    "optional": "leave the property out of `required`",
    "definitions": "that is `components/schemas` or `$defs`",
}


@rule(
    "keyword-invalid",
    LintLevel.ERROR,
    "a schema keyword has a value that it cannot have",
    why="The schema cannot be compiled; tools refuse the document or ignore the keyword.",
    mend="Give the keyword a value of the right kind.",
    source="JSON Schema 2020-12 validation, section 6; OAS 3.0.3, Schema Object",
)
def _invalid(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        for key, value in node.value.items():
            fits, wanted = SHAPES.get(key, (None, ""))
            if fits is not None and not fits(value):
                shown = f"`{value}`" if isinstance(value, str) else kind_of(value)
                yield Place((*node.path, key), f"`{key}` has to be {wanted}, not {shown}")


@rule(
    "keyword-unknown",
    LintLevel.WARNING,
    "a schema has a key that is no keyword",
    why="It has no effect. Usually it is misspelt, or stands one level too high or too low, and a constraint is lost.",
    mend="Spell or place it right; begin keys of your own with `x-`.",
    source="JSON Schema 2020-12 core, section 6.5 (unknown keywords are ignored); OAS 3.0.3, Schema Object",
)
def _unknown(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        for key in node.value:
            if key not in VOCABULARY and not key.startswith("x-"):
                advice = f": {_MISPLACED[key]}" if key in _MISPLACED else ""
                yield Place((*node.path, key), f"`{key}` is no keyword{advice}")


@rule(
    "keyword-version",
    LintLevel.WARNING,
    "a keyword of another version of OpenAPI",
    why="By its own version's rules the keyword is unknown or ill-formed: some tools honour it, others ignore it.",
    mend="Use the version's own means: `enum` for `const`, `nullable: true` for `type: 'null'`; or declare the other version.",
    source="OAS 3.0.3, Schema Object (supported keywords); OAS 3.1, section 4.8.24",
)
def _version(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        for key, value in node.value.items():
            here = (*node.path, key)
            if key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool) is not subject.old:
                if is_number(value) or isinstance(value, bool):
                    yield Place(here, f"`{key}` is a {'boolean in 3.0' if subject.old else 'number in 3.1'}")
            elif subject.old and key in ONLY_31:
                yield Place(here, f"`{key}` is no keyword of OpenAPI 3.0")
            elif subject.old and key == "type" and (isinstance(value, list) or value == "null"):
                yield Place(here, "a list of types and `null` are no types of OpenAPI 3.0")


@rule(
    "nullable-in-31",
    LintLevel.ERROR,
    "`nullable` in OpenAPI 3.1",
    why="`nullable` is no keyword there: strict validators refuse null, others (Schemathesis, for one) accept it, so two "
    "tools disagree on the same answer. streamgauge reads it as it is meant: null is allowed.",
    mend="Write `type: [string, 'null']`.",
    source="OAS 3.1, section 4.8.24 (JSON Schema 2020-12); fault catalogue Q2",
)
def _nullable_31(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema") if not subject.old else ():
        if "nullable" in node.value:
            yield Place((*node.path, "nullable"), "`nullable` is no keyword of OpenAPI 3.1")


@rule(
    "nullable-without-type",
    LintLevel.WARNING,
    "`nullable` without `type` in OpenAPI 3.0",
    why="`nullable` has an effect only where `type` stands in the same schema. Beside `allOf` or `enum` alone null stays "
    "refused by those who read exactly.",
    mend="Add the `type` beside `nullable`.",
    source="OAS 3.0.3, Schema Object (clarified in 3.0.3: nullable needs type in the same Schema Object)",
)
def _nullable_alone(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema") if subject.old else ():
        if node.value.get("nullable") is True and "type" not in node.value and "$ref" not in node.value:
            yield Place((*node.path, "nullable"), "`nullable` without `type` has no effect")


_INT64 = {"maximum": 2**63 - 1, "exclusiveMaximum": 2**63, "minimum": -(2**63), "exclusiveMinimum": -(2**63) - 1}


def _reaches(keyword: str, bound: Any) -> bool:
    """Whether a bound lets values through that are no 64-bit integers."""
    if not is_number(bound):
        return False
    return bool(bound > _INT64[keyword] if "ax" in keyword else bound < _INT64[keyword])


@rule(
    "int64-overflow",
    LintLevel.ERROR,
    "a bound beyond the 64-bit integers",
    why="9223372036854776000 is 2^63-1 as JavaScript prints it. Generators send values up to the bound as valid, which "
    "servers with 64-bit integers refuse, or die of (vllm-project/vllm#4529). streamgauge clamps to int64.",
    mend="Write -9223372036854775808 and 9223372036854775807 exactly, or leave the bound out and say `format: int64`.",
    source="RFC 8259, section 6 (interoperable integers); fault catalogue Q3, L8",
)
def _overflow(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        if "integer" not in types_of(node.value):
            continue
        for keyword in _INT64:
            bound: Any = node.value.get(keyword)
            if _reaches(keyword, bound):
                written = int(bound) if bound == bound // 1 else bound
                yield Place((*node.path, keyword), f"`{keyword}: {written}` is beyond int64")


_PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)


@rule(
    "bounds-contradict",
    LintLevel.ERROR,
    "a lower bound above the upper one",
    why="No value satisfies the schema.",
    mend="Exchange or mend the bounds.",
    source="JSON Schema 2020-12 validation, section 6",
)
def _contradict(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        for low, high in _PAIRS:
            least: Any = node.value.get(low)
            most: Any = node.value.get(high)
            if is_number(least) and is_number(most) and least > most:
                yield Place((*node.path, low), f"`{low}` {least} is above `{high}` {most}")


def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except (ValueError, TypeError):
        return False
    return True


_PYTHON_ONLY = re.compile(r"\\[AZ]|\(\?P[<=>]|\(\?[aiLmsux]+\)")


@rule(
    "pattern-invalid",
    LintLevel.ERROR,
    "a pattern that is no regular expression of ECMA 262",
    why="Validators refuse the schema or ignore the pattern.",
    mend="Mend the expression; write it in the common subset of the dialects.",
    source="JSON Schema 2020-12 core, section 6.4 (regular expressions: ECMA 262, unicode mode)",
)
def _pattern_invalid(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        pattern = node.value.get("pattern")
        if isinstance(pattern, str) and not _PYTHON_ONLY.search(pattern) and not _compiles(pattern):
            yield Place((*node.path, "pattern"), f"`{pattern}` is no regular expression")


@rule(
    "pattern-dialect",
    LintLevel.WARNING,
    "a pattern that not every dialect knows",
    why="Python's `re` and ECMA 262 each have forms that the other refuses: validators in the one language work and in "
    "the other fail.",
    mend="Keep to what both know: `^` and `$` for the ends, [A-Z] for \\p{Lu}, (?:...) and (...) for groups.",
    source="JSON Schema 2020-12 core, section 6.4 (interoperable subset)",
)
def _pattern_dialect(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        pattern = node.value.get("pattern")
        if not isinstance(pattern, str):
            continue
        if _PYTHON_ONLY.search(pattern):
            yield Place((*node.path, "pattern"), f"`{pattern}` has a form that only Python knows")
        elif _compiles(pattern) and not _python_knows(pattern):
            yield Place((*node.path, "pattern"), f"`{pattern}` has a form that Python does not know")


def _python_knows(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
