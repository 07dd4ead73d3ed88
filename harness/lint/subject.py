"""What a rule sees: the document as written, its objects by kind, what references lead to, and which values a schema takes."""

import copy
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from streamgauge.contract.families import METHODS, family_by_path
from streamgauge.contract.references import pointed_at, tokens_of
from streamgauge.contract.validator import pointer_of
from streamgauge.lint.dialect import as_2020
from streamgauge.lint.grammar import Node, Path, Walk, walk

__all__ = ["Endpoint", "Subject", "types_of"]

_ROOT = "urn:streamgauge:document"

_DEEPEST = 40
"""References that are followed one after the other; a circle ends here, too."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One operation.

    Attributes:
        template: its path, as written.
        family: `chat`, `completions`, or empty for any other.
    """

    method: str
    template: str
    node: Node
    family: str

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method.upper()} {self.template}"


class Subject:
    """
    One document under the rules.

    Attributes:
        data: the document as written, all keys text.
        old: whether it is OpenAPI 3.0, whose schemas are a dialect of their own.

    Args:
        families: upper-case method and path → family, where more than the path tells it.
    """

    def __init__(self, data: dict[str, Any], families: Mapping[tuple[str, str], str]) -> None:
        self.data = data
        self._families = families
        self.old = str(data.get("openapi", "")).startswith("3.0")
        self._walk: Walk = walk(data)
        self.malformed = self._walk.malformed

    def nodes(self, *kinds: str) -> Iterator[Node]:
        """The objects of these kinds, in document order of each."""
        for kind in kinds:
            yield from self._walk.nodes[kind]

    def every(self) -> Iterator[Node]:
        """All objects."""
        for nodes in self._walk.nodes.values():
            yield from nodes

    def at(self, path: Path) -> Any:
        """What stands there; None where nothing does."""
        try:
            return pointed_at(self.data, path)
        except (LookupError, ValueError):
            return None

    def below_components(self, room: str) -> list[Path]:
        """The places of the components of one kind."""
        components = self.data.get("components")
        entries = components.get(room) if isinstance(components, dict) else None
        return [("components", room, name) for name in entries] if isinstance(entries, dict) else []

    def target(self, ref: str) -> Path | None:
        """Where a reference within the document leads; None when nowhere, or elsewhere."""
        if not (ref == "#" or ref.startswith("#/")):
            return None
        try:
            path = tokens_of(ref[1:])
            pointed_at(self.data, path)
        except (LookupError, ValueError):
            return None
        return path

    def followed(self, path: Path, kind: str = "schema") -> Node:
        """The object there, or what its reference stands for in the end; an empty one where nothing usable stands."""
        value = self.at(path)
        for _ in range(_DEEPEST):
            if not (isinstance(value, dict) and isinstance(ref := value.get("$ref"), str)):
                break
            target = self.target(ref)
            if target is None:
                return Node(kind, path, {})
            path, value = target, self.at(target)
        return Node(kind, path, value if isinstance(value, dict) and "$ref" not in value else {})

    @functools.cached_property
    def endpoints(self) -> list[Endpoint]:
        """The operations under `paths`."""
        paths = self.data.get("paths")
        found = []
        for template in paths if isinstance(paths, dict) else ():
            item = self.followed(("paths", template), "path item")
            for method in METHODS:
                if isinstance(value := item.value.get(method), dict):
                    node = Node("operation", (*item.path, method), value)
                    signature = (method.upper(), template)
                    family = family_by_path(*signature) or self._families.get(signature, "")
                    found.append(Endpoint(method, template, node, family))
        return found

    def below(self, node: Node, *steps: str | int, kind: str = "schema") -> Node:
        """What stands some steps below, each step's reference followed; an empty object where nothing does."""
        for step in steps:
            node = self.followed((*node.path, step), kind)
        return node

    def body(self, endpoint: Endpoint) -> Node:
        """The schema of the operation's JSON request body."""
        return self.below(endpoint.node, "requestBody", "content", "application/json", "schema")

    def answers(self, endpoint: Endpoint) -> Iterator[tuple[str, Node]]:
        """Each status (`200`, `4XX`, `default`) with its answer."""
        responses = endpoint.node.value.get("responses")
        for status in responses if isinstance(responses, dict) else ():
            if not status.startswith("x-"):
                yield status, self.followed((*endpoint.node.path, "responses", status), "response")

    def media(self, answer: Node) -> Iterator[tuple[str, Node]]:
        """Each media type of an answer or of a request body, with its object."""
        content = answer.value.get("content")
        for name in content if isinstance(content, dict) else ():
            yield name, self.followed((*answer.path, "content", name), "media type")

    def parts(self, schema: Node, depth: int = 0) -> Iterator[Node]:
        """The schema itself and everything that it takes in by `$ref` and `allOf`."""
        schema = self.followed(schema.path)
        yield schema
        members = schema.value.get("allOf")
        for index in range(len(members) if isinstance(members, list) and depth < _DEEPEST else 0):
            yield from self.parts(Node("schema", (*schema.path, "allOf", index), {}), depth + 1)

    def properties(self, schema: Node) -> dict[str, Node]:
        """An object schema's properties as written: not followed, so that their own place is known."""
        return {
            name: Node("schema", (*part.path, "properties", name), value)
            for part in self.parts(schema)
            if isinstance(properties := part.value.get("properties"), dict)
            for name, value in properties.items()
            if isinstance(value, dict)
        }

    def required(self, schema: Node) -> set[str]:
        """The properties that an object schema requires."""
        return {
            name
            for part in self.parts(schema)
            if isinstance(names := part.value.get("required"), list)
            for name in names
            if isinstance(name, str)
        }

    def members(self, schema: Node, depth: int = 0) -> Iterator[Node]:
        """The forms that a value may take, unions unfolded, without null."""
        schema = self.followed(schema.path)
        unions = [key for key in ("anyOf", "oneOf") if isinstance(schema.value.get(key), list)]
        if not unions or depth >= _DEEPEST:
            if schema.value.get("type") not in ("null", ["null"]):
                yield schema
            return
        for key in unions:
            for index in range(len(schema.value[key])):
                yield from self.members(Node("schema", (*schema.path, key, index), {}), depth + 1)

    @functools.cached_property
    def requested(self) -> list[Node]:
        """Every schema of a request's JSON body, each once."""
        seen: set[Path] = set()
        pending = [
            Node("schema", (*media.path, "schema"), {})
            for endpoint in self.endpoints
            for _, media in self.media(self.below(endpoint.node, "requestBody", kind="request body"))
            if "schema" in media.value
        ]
        found = []
        while pending:
            start = self.followed(pending.pop().path)
            if start.path in seen:
                continue
            for node in walk(start.value, "schema", start.path).nodes["schema"]:
                if node.path not in seen:
                    seen.add(node.path)
                    found.append(node)
                if "$ref" in node.value:
                    pending.append(node)
        order = {node.path: number for number, node in enumerate(self._walk.nodes["schema"])}
        return sorted(found, key=lambda node: order.get(node.path, len(order)))

    def defect(self, schema: Path, instance: Any) -> str | None:
        """Why the schema there refuses a value; None when it takes it, or when the schema cannot be used."""
        try:
            validator = self._validator(schema)
            error = next(iter(validator.iter_errors(instance)), None) if validator else None
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None
        message = str(error.message) if error is not None else None
        return message if message is None or len(message) <= 140 else message[:50] + " ... " + message[-85:]

    def accepts(self, schema: Path, instance: Any) -> bool | None:
        """Whether the schema there takes a value; None when the schema cannot be used."""
        try:
            validator = self._validator(schema)
            return None if validator is None else bool(validator.is_valid(instance))
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None

    @functools.cached_property
    def _registry(self) -> Any:
        normal = copy.deepcopy(self.data)
        for node in walk(normal).nodes["schema"]:
            as_2020(node.value)
        return jsonschema_rs.Registry([(_ROOT, normal)], draft=jsonschema_rs.Draft202012)

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - a subject lives as long as the cache
    def _validator(self, path: Path) -> Any:
        ref = _ROOT + "#" + quote(pointer_of(path), safe="/~")
        try:
            return jsonschema_rs.Draft202012Validator({"$ref": ref}, registry=self._registry, validate_formats=False)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError):
            return None


def types_of(schema: dict[str, Any]) -> set[str]:
    """The types that a schema names; none where it names none."""
    types = schema.get("type")
    return {kind for kind in (types if isinstance(types, list) else [types]) if isinstance(kind, str)}
