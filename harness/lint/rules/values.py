"""Rules about the values in a document, and about what its schemas let through."""

from collections.abc import Iterator
from typing import Any

from streamgauge.lint.grammar import Path
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject, types_of

__all__: list[str] = []


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


@rule(
    "default-invalid",
    LintLevel.ERROR,
    "a default that its own schema refuses",
    why="Generators and clients send the default, and the server refuses it; or the server applies what it would refuse.",
    mend="Mend the default, or let the schema accept it.",
    source="OAS 3.0.3, Schema Object (default MUST conform to the type); JSON Schema 2020-12 validation, section 9.2",
)
def _default(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        if "default" in node.value and (defect := subject.defect(node.path, node.value["default"])):
            yield Place((*node.path, "default"), f"default {_shown(node.value['default'])}: {defect}")


def _examples(subject: Subject) -> Iterator[tuple[Path, Path, Any]]:
    """Each example: its place, its schema's place, its value."""
    for node in subject.nodes("schema"):
        if "example" in node.value:
            yield (*node.path, "example"), node.path, node.value["example"]
        listed = node.value.get("examples")
        for index, value in enumerate(listed if isinstance(listed, list) else ()):
            yield (*node.path, "examples", index), node.path, value
    for node in subject.nodes("media type", "parameter", "header"):
        schema = (*node.path, "schema")
        if "schema" not in node.value or (node.kind == "media type" and "json" not in str(node.path[-1])):
            continue
        if "example" in node.value:
            yield (*node.path, "example"), schema, node.value["example"]
        named: Any = node.value.get("examples")
        for name in named if isinstance(named, dict) else ():
            example = subject.followed((*node.path, "examples", name), "example")
            if "value" in example.value:
                yield (*example.path, "value"), schema, example.value["value"]


@rule(
    "example-invalid",
    LintLevel.WARNING,
    "an example that its schema refuses",
    why="People copy examples, and tools send them as first requests; one of the two, example or schema, is wrong.",
    mend="Mend the example or the schema.",
    source="OAS 3.1, sections 4.8.12, 4.8.14 and 4.8.24 (an example SHOULD match the schema)",
)
def _example(subject: Subject) -> Iterator[Place]:
    for path, schema, value in _examples(subject):
        if defect := subject.defect(schema, value):
            yield Place(path, f"the example does not fit: {defect}")


@rule(
    "enum-invalid",
    LintLevel.WARNING,
    "an enum value that the rest of its schema refuses, or that stands there twice",
    why="The value can never be sent, though the list offers it.",
    mend="Mend the value or the `type`; null in an enum needs a type that allows null.",
    source="JSON Schema 2020-12 validation, section 6.1.2 (elements SHOULD be unique)",
)
def _enum(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        listed: Any = node.value.get("enum")
        for index, value in enumerate(listed if isinstance(listed, list) else ()):
            path = (*node.path, "enum", index)
            if any(type(other) is type(value) and other == value for other in listed[:index]):
                yield Place(path, f"{_shown(value)} stands there twice")
            elif defect := subject.defect(node.path, value):
                yield Place(path, f"{_shown(value)} can never be sent: {defect}")


@rule(
    "required-unknown",
    LintLevel.WARNING,
    "a required property that is not described",
    why="Usually the name is misspelt: then the one that is meant is optional, and a value without a description is demanded.",
    mend="Use the property's name as it stands in `properties`, or describe it there.",
    source="JSON Schema 2020-12 validation, section 6.5.3",
)
def _required_unknown(subject: Subject) -> Iterator[Place]:
    unions = {"allOf", "anyOf", "oneOf", "$ref", "patternProperties", "if", "not"}
    for node in subject.nodes("schema"):
        properties, names = node.value.get("properties"), node.value.get("required")
        composed = unions & node.value.keys() or {"allOf", "anyOf", "oneOf", "then", "else", "not", "if"} & set(
            node.path
        )
        if isinstance(properties, dict) and isinstance(names, list) and not composed:
            for index, name in enumerate(names):
                if str(name) not in properties:
                    yield Place((*node.path, "required", index), f"`{name}` is required, but not described")


@rule(
    "required-impossible",
    LintLevel.ERROR,
    "a required property that the schema itself forbids",
    why="With `additionalProperties: false` no value satisfies the schema.",
    mend="Describe the property, or strike it from `required`.",
    source="JSON Schema 2020-12 core, section 10.3.2.3",
)
def _required_impossible(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        properties, names = node.value.get("properties", {}), node.value.get("required")
        closed = node.value.get("additionalProperties") is False and "patternProperties" not in node.value
        if closed and isinstance(properties, dict) and isinstance(names, list):
            for index, name in enumerate(names):
                if str(name) not in properties:
                    yield Place((*node.path, "required", index), f"`{name}` is required and forbidden at once")


@rule(
    "const-optional",
    LintLevel.INFO,
    "a constant that may be left out",
    why="Without the property any other object passes, too, so the constant tells nothing apart.",
    mend="Name the property in `required`.",
    source="JSON Schema 2020-12 validation, sections 6.1.3 and 6.5.3; fault catalogue Q7",
)
def _const_optional(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        if {"if", "not"} & set(node.path):  # a condition, and no object
            continue
        properties, names = node.value.get("properties"), node.value.get("required")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            if isinstance(schema, dict) and "const" in schema and not (isinstance(names, list) and name in names):
                constant = _shown(schema["const"])
                yield Place((*node.path, "properties", name), f"`{name}` is always `{constant}`, but not required")


@rule(
    "schema-anything",
    LintLevel.INFO,
    "a request property that accepts anything",
    why="Nothing says what to send, and no tool can tell a right value from a wrong one.",
    mend="Give a `type`; where anything is meant, say so in a description.",
    source="JSON Schema 2020-12 core, section 4.3.1 (an empty schema accepts everything)",
)
def _anything(subject: Subject) -> Iterator[Place]:
    words = {"title", "description", "default", "example", "examples", "deprecated", "$comment", "nullable"}
    for node in subject.requested:
        if node.path[-2:-1] == ("properties",) and node.value.keys() <= words:
            yield Place(node.path, f"`{node.path[-1]}` accepts any value")


_BOUNDING = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const", "format"}


@rule(
    "integer-unbounded",
    LintLevel.INFO,
    "integers in requests without any bound",
    why="10^30 is valid by the schema. Generators send such numbers; a server with 64-bit integers has to refuse them, and "
    "some have died of them (vllm-project/vllm#4529).",
    mend="Give `minimum` and `maximum`, or `format: int64`.",
    source="RFC 8259, section 6; fault catalogue Q10, L8, L12",
)
def _unbounded(subject: Subject) -> Iterator[Place]:
    for node in subject.requested:
        if "integer" in types_of(node.value) and not _BOUNDING & node.value.keys():
            yield Place(node.path, "an integer without bounds or format")


@rule(
    "additional-properties",
    LintLevel.INFO,
    "objects that say they take any other property",
    why="A misspelt parameter and a renamed field of an answer pass; whoever tests by negation finds little to negate.",
    mend="Nothing, where extensions are wanted. Else `additionalProperties: false` on requests.",
    source="JSON Schema 2020-12 core, section 10.3.2.3; fault catalogue Q9",
)
def _additional(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        if node.value.get("additionalProperties") is True and "properties" in node.value:
            yield Place((*node.path, "additionalProperties"), "other properties are allowed")


@rule(
    "deprecated-unexplained",
    LintLevel.INFO,
    "a deprecated request property that names no replacement",
    why="A client learns that it should stop, but not what to send instead, nor what happens when both are given.",
    mend="Name the replacement in the description.",
    source="OAS 3.1, section 4.8.24 (deprecated)",
)
def _deprecated(subject: Subject) -> Iterator[Place]:
    for node in subject.requested:
        if node.value.get("deprecated") is True and not node.value.get("description"):
            yield Place((*node.path, "deprecated"), f"`{node.path[-1]}` is deprecated in favour of nothing")
