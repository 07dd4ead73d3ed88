"""Rules about `oneOf` and `anyOf`: can the forms be told apart?"""

from collections.abc import Iterator
from typing import Any

from streamgauge.lint.grammar import Node
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject

__all__: list[str] = []

_PLAIN: tuple[Any, ...] = (None, True, 0, 1.5, "", "a", [], {})

_BY_TYPE: dict[str, Any] = {"null": None, "boolean": True, "integer": 0, "number": 0.5, "string": "a", "array": []}


@rule(
    "union-overlap",
    LintLevel.WARNING,
    "a value that fits two members of a `oneOf`",
    why="`oneOf` refuses what fits more than one member, so a value that is right by each of them is invalid.",
    mend="Use `anyOf`, or make the members exclude each other: a required constant in each.",
    source="JSON Schema 2020-12 core, section 10.2.1.3",
)
def _overlap(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        members = node.value.get("oneOf")
        if not isinstance(members, list) or not 2 <= len(members) <= 30:
            continue
        paths = [(*node.path, "oneOf", index) for index in range(len(members))]
        for value in [*_PLAIN, *(_least(subject, Node("schema", path, {}), 0) for path in paths)]:
            fitting = [index for index, path in enumerate(paths) if subject.accepts(path, value)]
            if len(fitting) > 1:
                shown = "null" if value is None else "{}" if value == {} else repr(value)
                yield Place((*node.path, "oneOf"), f"{shown[:80]} fits members {fitting[0]} and {fitting[1]}")
                break


def _least(subject: Subject, schema: Node, depth: int) -> Any:
    """A small value that probably fits the schema: what it requires and nothing else."""
    schema = subject.followed(schema.path)
    value = schema.value
    for key in ("const", "default", "example"):
        if key in value:
            return value[key]
    if isinstance(listed := value.get("enum"), list) and listed:
        return listed[0]
    kind = value.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    properties = subject.properties(schema)
    if kind == "object" or properties:
        if depth > 5:
            return {}
        names = sorted(subject.required(schema) & properties.keys())
        return {name: _least(subject, properties[name], depth + 1) for name in names}
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(value.get(key), list) and value[key] and depth <= 5:
            return _least(subject, Node("schema", (*schema.path, key, 0), {}), depth + 1)
    return _BY_TYPE.get(str(kind), {})


@rule(
    "discriminator-optional",
    LintLevel.WARNING,
    "members of a union that only an optional constant tells apart",
    why="An object without the constant is still valid, and may fit several members: the reader has to guess by the other "
    "fields, and an error message cannot say which form was meant.",
    mend="Name the constant in each member's `required`.",
    source="JSON Schema 2020-12 validation, section 6.5.3; OAS 3.1, section 4.8.25 (the discriminator SHOULD be required)",
)
def _discriminator(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        for key in ("anyOf", "oneOf"):
            members = node.value.get(key)
            forms = [
                Node("schema", (*node.path, key, index), {})
                for index in range(len(members) if isinstance(members, list) else 0)
            ]
            constants: dict[str, list[bool]] = {}
            for form in forms:
                required = subject.required(form)
                for name, schema in subject.properties(form).items():
                    listed = schema.value.get("enum")
                    if "const" in schema.value or (isinstance(listed, list) and len(listed) == 1):
                        constants.setdefault(name, []).append(name in required)
            for name, requirements in constants.items():
                if len(requirements) > 1 and not all(requirements):
                    missing = requirements.count(False)
                    yield Place(
                        (*node.path, key), f"`{name}` tells the forms apart, but {missing} of them do not require it"
                    )
