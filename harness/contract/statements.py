"""
What the document says of an operation, one statement at a time: the sentences, the schemas, and what is listed.

A place of the document is named once, by the first way that leads to it from the operation; references are followed on
the way and take no step of the pointer.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.normal import LISTS, MAPS, ONE
from streamgauge.contract.operation import Operation
from streamgauge.contract.references import Tokens
from streamgauge.contract.security import security_of
from streamgauge.contract.validator import pointer_of

__all__ = ["Statement", "sentences", "statements_of"]


@dataclass(frozen=True, slots=True)
class Statement:
    """
    One thing that the document says.

    Attributes:
        at: JSON pointer from the operation; of a sentence that of its text, with `#` and its number, from 1. Below
            `/security` the name of a scheme stands for the scheme.
        kind: `sentence`, `schema`, `default` (what the absence of a property means, if it is not null), `response`,
            `media type`, `header`, `parameter`, `body` (whether one is required) or `security`.
        text: the sentence; of all else what stands there, in short.
    """

    at: str
    kind: str
    text: str


def statements_of(operation: Operation) -> list[Statement]:
    """Every statement of the operation, in the order of the document."""
    return list(_Reader(operation).operation())


_SILENT = frozenset(
    {"$ref", "description", "discriminator", "example", "examples", "externalDocs", "title", "xml", *MAPS}
)
"""Keywords of a schema that promise nothing, or whose parts are statements of their own."""


class _Reader:
    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._document = operation.document
        self._seen: set[Tokens] = set()

    def operation(self) -> Iterator[Statement]:
        part = self._operation.part
        yield from _texts((), part.value)
        yield from self._security()
        for index, _ in enumerate(part.value.get("parameters", ())):
            yield from self._parameter(("parameters", index), part.item("parameters", index).tokens)
        body = part.child("requestBody")
        if body.value is not None:
            yield Statement("/requestBody", "body", f"required: {_json(body.mapping().get('required', False))}")
            yield from _texts(("requestBody",), body.value)
            yield from self._content(("requestBody",), body.tokens)
        for key in self._operation.status_keys:
            yield from self._response(("responses", key), part.child("responses", key).tokens)

    def _security(self) -> Iterator[Statement]:
        given = security_of(self._operation)
        if given:
            yield Statement("/security", "security", " or ".join(" and ".join(each) or "no key" for each in given))
        schemes = self._operation.document.root.child("components", "securitySchemes")
        for name in dict.fromkeys(name for alternative in given for name in alternative):
            scheme = schemes.child(name).mapping()
            said = ", ".join(str(scheme[key]) for key in ("type", "scheme", "in", "name") if key in scheme)
            yield Statement(pointer_of(("security", name)), "security", said)
            yield from _texts(("security", name), scheme)

    def _parameter(self, at: Tokens, tokens: Tokens) -> Iterator[Statement]:
        said = self._document.at(tokens)
        need = "required" if said.get("required") else "optional"
        kind = "header" if said.get("in") == "header" else "parameter"
        yield Statement(pointer_of(at), kind, f"{said.get('in')} {said.get('name')}, {need}")
        yield from _texts(at, said)
        yield from self._schema((*at, "schema"), (*tokens, "schema"))

    def _response(self, at: Tokens, tokens: Tokens) -> Iterator[Statement]:
        said = self._document.at(tokens)
        yield Statement(pointer_of(at), "response", f"status {at[-1]}")
        yield from _texts(at, said)
        for name in said.get("headers", ()):
            below: Tokens = (*tokens, "headers", name)
            header = self._document.at(self._document.followed(below))
            yield Statement(pointer_of((*at, "headers", name)), "header", name)
            yield from _texts((*at, "headers", name), header)
            yield from self._schema((*at, "headers", name, "schema"), (*below, "schema"))
        yield from self._content(at, tokens)

    def _content(self, at: Tokens, tokens: Tokens) -> Iterator[Statement]:
        for media_type in self._document.at(tokens).get("content", ()):
            steps: Tokens = ("content", media_type)
            yield Statement(pointer_of((*at, *steps)), "media type", media_type)
            yield from self._schema((*at, *steps, "schema"), (*tokens, *steps, "schema"))

    def _schema(self, at: Tokens, tokens: Tokens) -> Iterator[Statement]:
        if self._document.at(tokens) is None:
            return
        if "$ref" in (said := self._object(tokens)):
            if beside := {key: value for key, value in said.items() if key != "$ref"}:
                yield from self._own(at, beside)
            tokens = self._document.followed(tokens)
        if tokens in self._seen:
            return
        self._seen.add(tokens)
        said = self._object(tokens)
        yield from self._own(at, said)
        for step in _below(said):
            if step[0] in MAPS or not _plain(self._document.at((*tokens, *step))):
                yield from self._schema((*at, *step), (*tokens, *step))

    def _own(self, at: Tokens, said: dict[str, Any]) -> Iterator[Statement]:
        """What a schema says itself; what it says of its parts are statements of their own."""
        if short := self._short(said) or ("" if said else "anything"):
            yield Statement(pointer_of(at), "schema", short)
        yield from _texts(at, said)
        if said.get("default") is not None:
            yield Statement(pointer_of((*at, "default")), "default", f"default: {_json(said['default'])}")

    def _object(self, tokens: Tokens) -> dict[str, Any]:
        """A schema as an object: `true` and `false` allow all and nothing."""
        said = self._document.at(tokens)
        return said if isinstance(said, dict) else {} if said is True else {"not": {}}

    def _short(self, said: Any) -> str:
        """A schema in one line; of a part that has statements of its own, its name only."""
        if not isinstance(said, dict):
            return _json(said)
        told = [
            self._keyword(key, value)
            for key, value in sorted(said.items(), key=lambda item: item[0] != "type")
            if key not in _SILENT
            and not key.startswith("x-")
            and not (key == "type" and "const" in said)
            and not (key == "default" and value is not None)
        ]
        return "; ".join(told)

    def _keyword(self, key: str, value: Any) -> str:
        if key == "type":
            return " or ".join(value) if isinstance(value, list) else str(value)
        if key in LISTS and isinstance(value, list):
            return f"{key}: {' | '.join(self._branch(each) for each in value)}"
        if key in ONE:
            return f"{key}: {self._branch(value)}"
        if key in ("required", "enum") and isinstance(value, list):
            return f"{key}: {', '.join(each if isinstance(each, str) else _json(each) for each in value)}"
        return f"{key}: {_json(value)}"

    def _branch(self, said: Any) -> str:
        if not isinstance(said, dict):
            return _json(said)
        if isinstance(ref := said.get("$ref"), str):
            return ref.rpartition("/")[2]
        if not _plain(said):
            return str(said.get("title") or f"{said.get('type', 'schema')} below")
        short = self._short(said) or "anything"
        return f"({short})" if "; " in short else short


def _below(said: dict[str, Any]) -> Iterator[Tokens]:
    """The steps to each schema inside a schema."""
    for key, value in said.items():
        if key in MAPS and isinstance(value, dict):
            yield from ((key, name) for name in value)
        elif key in LISTS and isinstance(value, list):
            yield from ((key, index) for index in range(len(value)))
        elif key in ONE:
            yield (key,)


def _plain(said: Any) -> bool:
    """Whether a schema below another one is said within the line of that one: it has no parts to speak of."""
    if not isinstance(said, dict):
        return True
    inside = [value for key, value in said.items() if key in ONE]
    for key in LISTS & said.keys():
        inside += said[key]
    return not {"$ref", "description", "properties"} & said.keys() and all(map(_plain, inside))


def _texts(at: Tokens, said: Any) -> Iterator[Statement]:
    for key in ("summary", "description"):
        if isinstance(text := said.get(key), str):
            for number, sentence in enumerate(sentences(text), 1):
                yield Statement(f"{pointer_of((*at, key))}#{number}", "sentence", sentence)


_QUOTED = re.compile(r"`+[^`]*`+|\([^()]*\)")
"""Code and what stands in brackets: no sentence ends inside."""

_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"'*\[])")
_SHORTENED = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|fig|eq)\.$", re.IGNORECASE)
_ITEM = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")
"""Paragraphs end at a blank line; each item of a list is one."""


def sentences(text: str) -> list[str]:
    """The sentences of a description in Markdown; an item of a list is a sentence, however it ends."""
    found: list[str] = []
    for lines in _ITEM.split(text):
        block = " ".join(lines.split())
        inside = [match.span() for match in _QUOTED.finditer(block)]
        start = 0
        for match in _END.finditer(block):
            if any(low < match.start() < high for low, high in inside):
                continue
            if not _SHORTENED.search(block[start : match.start()]):
                found.append(block[start : match.start()])
                start = match.end()
        found.append(block[start:])
    return [each for each in found if each]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
