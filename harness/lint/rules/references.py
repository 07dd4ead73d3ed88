"""Rules about `$ref`, and about what nothing refers to."""

from collections.abc import Iterator
from typing import Any

from streamgauge.lint.grammar import Path
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject

__all__: list[str] = []


def _references(subject: Subject) -> Iterator[tuple[Path, str]]:
    for node in subject.every():
        if isinstance(ref := node.value.get("$ref"), str):
            yield (*node.path, "$ref"), ref


@rule(
    "ref-dangling",
    LintLevel.ERROR,
    "a reference leads nowhere",
    why="What is meant cannot be found out; readers refuse the document or take anything for valid.",
    mend="Add what it points to, or mend the pointer.",
    source="OAS 3.1, section 4.8.23; RFC 6901, section 4",
)
def _dangling(subject: Subject) -> Iterator[Place]:
    for path, ref in _references(subject):
        anchored = not subject.old and not ref.startswith("#/")  # `$anchor` and `$id` are names, not pointers
        if ref.startswith("#") and subject.target(ref) is None and not anchored:
            yield Place(path, f"`{ref}` leads nowhere")


@rule(
    "ref-remote",
    LintLevel.WARNING,
    "a reference leads to another document",
    why="The document does not stand alone: what it means depends on files that a reader may not have or may not fetch. "
    "streamgauge fetches nothing unless it is asked to.",
    mend="Bundle everything into one document.",
    source="OAS 3.1, section 4.6 (relative references)",
)
def _remote(subject: Subject) -> Iterator[Place]:
    for path, ref in _references(subject):
        if not ref.startswith("#"):
            yield Place(path, f"`{ref}` is in another document")


@rule(
    "ref-circular",
    LintLevel.ERROR,
    "a reference stands for itself",
    why="There is no schema at the end of it, so nothing is said; some readers never return.",
    mend="Replace one of the references by what it stands for.",
    source="JSON Schema 2020-12 core, section 9.4.1 (infinite recursion)",
)
def _circular(subject: Subject) -> Iterator[Place]:
    for path, ref in _references(subject):
        seen: list[str] = []
        step: str | None = ref
        while step is not None and step not in seen:
            seen.append(step)
            target = subject.target(step)
            value = subject.at(target) if target is not None else None
            following = value.get("$ref") if isinstance(value, dict) else None
            step = following if isinstance(following, str) else None
        if step == ref:
            yield Place(path, f"`{ref}` comes back to itself")


@rule(
    "ref-siblings",
    LintLevel.WARNING,
    "OpenAPI 3.0 ignores what stands beside a `$ref`",
    why="The constraint that stands there is never applied, though it looks as if it were.",
    mend="Put the reference into an `allOf`, and the rest beside that; or use OpenAPI 3.1.",
    source="OAS 3.0.3, Reference Object (additional properties SHALL be ignored)",
)
def _siblings(subject: Subject) -> Iterator[Place]:
    harmless = {"$ref", "description", "summary", "title"}
    for node in subject.nodes("schema") if subject.old else ():
        extra = sorted(key for key in node.value if key not in harmless and not key.startswith("x-"))
        if isinstance(node.value.get("$ref"), str) and extra:
            yield Place(node.path, f"{', '.join(extra)} beside `$ref` is ignored")


@rule(
    "component-unused",
    LintLevel.INFO,
    "nothing refers to a component",
    why="It is either left over, or something that should refer to it does not.",
    mend="Remove it, or use it.",
    source="OAS 3.1, section 4.8.7 (no effect unless referenced)",
)
def _unused(subject: Subject) -> Iterator[Place]:
    components = subject.data.get("components")
    if not isinstance(components, dict) or not subject.data.get("paths"):
        return
    used = {tuple(path[:3]) for path in _pointers(subject)}
    for room, entries in components.items():
        if room in ("securitySchemes",) or room.startswith("x-") or not isinstance(entries, dict):
            continue
        for name in entries:
            if ("components", room, name) not in used:
                yield Place(("components", room, name), f"nothing refers to `{name}`")


def _pointers(subject: Subject) -> Iterator[Path]:
    """Where the document's references and discriminators point, those from a component into itself left out."""
    pending: list[tuple[Path, Any]] = [((), subject.data)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, list):
            pending += [((*path, index), item) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            continue
        pending += [((*path, key), item) for key, item in value.items()]
        discriminator = value.get("discriminator")
        mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
        for ref in [value.get("$ref"), *(mapping.values() if isinstance(mapping, dict) else ())]:
            if not isinstance(ref, str):
                continue
            target = subject.target(ref) or ("components", "schemas", ref)
            if target[:3] != path[:3]:
                yield target


@rule(
    "recursion-endless",
    LintLevel.ERROR,
    "a schema that no finite value satisfies",
    why="It requires itself inside of itself, so a generator never ends and no value is valid.",
    mend="Make the inner one optional or nullable, or let a list be empty.",
    source="JSON Schema 2020-12 core, section 9.4.1",
)
def _endless(subject: Subject) -> Iterator[Place]:
    schemas = subject.below_components("schemas")
    finite: set[Path] = set()
    while grown := {path for path in schemas if path not in finite and _finite(subject, subject.at(path), finite, 0)}:
        finite |= grown
    for path in schemas:
        if path not in finite:
            yield Place(path, "requires itself without end")


def _finite(subject: Subject, schema: Any, finite: set[Path], depth: int) -> bool:
    """Whether some value ends, given the components of which that is known."""
    if not isinstance(schema, dict) or depth > 50:
        return schema is not False
    if isinstance(ref := schema.get("$ref"), str):
        target = subject.target(ref)
        if target is not None and target[:2] == ("components", "schemas") and len(target) == 3:
            return target in finite
        return True
    types = schema.get("type")
    if schema.get("nullable") is True or (isinstance(types, list) and len(types) > 1) or "enum" in schema:
        return True

    def ends(key: str, enough: Any) -> bool:
        members = schema.get(key)
        return (
            not isinstance(members, list)
            or not members
            or enough(_finite(subject, member, finite, depth + 1) for member in members)
        )

    if not (ends("allOf", all) and ends("anyOf", any) and ends("oneOf", any)):
        return False
    properties, required = schema.get("properties"), schema.get("required")
    if types in (None, "object") and isinstance(properties, dict) and isinstance(required, list):
        # Without `type` a value that is no object would do; nobody who requires properties means that.
        inner = [properties[name] for name in required if isinstance(name, str) and name in properties]
        if not all(_finite(subject, member, finite, depth + 1) for member in inner):
            return False
    least = schema.get("minItems")
    if types == "array" and isinstance(least, int) and least > 0 and "prefixItems" not in schema:
        return _finite(subject, schema.get("items", True), finite, depth + 1)
    return True
