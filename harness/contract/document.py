"""Reads an OpenAPI 3.0 or 3.1 document and brings its schemas into JSON Schema 2020-12."""

import copy
import hashlib
import os.path
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from streamgauge import catalog
from streamgauge.errors import DocumentError
from streamgauge.yamlfile import Located, load_yaml

__all__ = ["Document", "load_document"]

INT64_MAXIMUM = 2**63 - 1
INT64_MINIMUM = -(2**63)


class Document:
    """
    One OpenAPI document.

    Attributes:
        name: what the user calls it: a bundled name, or the file's stem.
        sha256: of the bytes as read.
        raw: the document as written.
        normal: the same with `nullable` folded into the types and bounds clamped to int64.
    """

    def __init__(self, name: str, text: bytes, located: Located) -> None:
        self.name = name
        self.sha256 = hashlib.sha256(text).hexdigest()
        self.raw: dict[str, Any] = located.data
        self.normal: dict[str, Any] = _normalise(copy.deepcopy(located.data))

    @property
    def components(self) -> dict[str, Any]:
        """The normalised components, for `$ref` to point into."""
        components: dict[str, Any] = self.normal.get("components") or {}
        return components

    def followed(self, node: Any) -> Any:
        """
        The node itself, or what its `$ref` points to in the end.

        Raises:
            DocumentError: the references run in a circle.
        """
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            if ref in seen:
                raise DocumentError(f"refers to itself: {ref}", where=self.name, hint="Give what it stands for.")
            seen.add(ref)
            node = _pointed_at(self.normal, ref)
        return node


def load_document(spec: str) -> Document:
    """
    Load a document by bundled name or by path.

    Raises:
        DocumentError: there is no such document, or it is not OpenAPI 3.0 or 3.1, or it refers to other files.
    """
    if spec in catalog.DOCUMENTS:
        text, name, where = catalog.document_text(spec), spec, f"bundled document {spec}"
    else:
        path = Path(spec)
        if not os.path.lexists(spec):
            raise DocumentError(
                "no such document",
                where=spec,
                hint=f"Give the path of an OpenAPI file, or one of: {', '.join(catalog.DOCUMENTS)}.",
            )
        try:
            text = path.read_bytes()
        except OSError as problem:
            hint = "Give the path of an OpenAPI file."
            raise DocumentError(f"cannot be read: {problem.strerror or problem}", where=spec, hint=hint) from None
        name, where = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "document", spec
    located = load_yaml(text, name=where, error=DocumentError)
    located.data = _with_text_keys(located.data)
    _require_openapi(located)
    return Document(name, text, located)


def _with_text_keys(node: Any) -> Any:
    """The same with every key as JSON would write it: many a document says `200:` without quotes."""
    if isinstance(node, list):
        return [_with_text_keys(item) for item in node]
    if not isinstance(node, dict):
        return node
    words = {True: "true", False: "false", None: "null"}
    return {
        words[key] if key is None or isinstance(key, bool) else str(key): _with_text_keys(item)
        for key, item in node.items()
    }


def _require_openapi(located: Located) -> None:
    data = located.data
    if not isinstance(data, dict) or "openapi" not in data:
        hint = (
            "Swagger 2.0 has to be converted to OpenAPI 3 first."
            if isinstance(data, dict) and "swagger" in data
            else ""
        )
        raise DocumentError(
            "not an OpenAPI document: it has no `openapi` version",
            where=located.name,
            hint=hint or "An OpenAPI document begins with `openapi: 3.1.0` or the like.",
        )
    version = str(data["openapi"])
    if not re.match(r"3\.[01](\.|$)", version):
        raise DocumentError(
            f"OpenAPI {version} is not supported",
            where=located.where(["openapi"]),
            hint="Supported: 3.0 and 3.1.",
        )
    if not isinstance(data.get("paths"), dict) or not data["paths"]:
        hint = "It has to describe the operations under `paths`."
        raise DocumentError("the document has no paths", where=located.where(["paths"]), hint=hint)
    for path, ref in _references(data):
        if not ref.startswith("#/"):
            raise DocumentError(f"refers to another file: {ref}", where=located.where(path), hint="Bundle it first.")
        if not _resolves(data, ref):
            hint = "Every $ref has to point into the document."
            raise DocumentError(f"refers to something that is not there: {ref}", where=located.where(path), hint=hint)


def _references(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = []
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                found.append(((*path, key), value))
            else:
                found += _references(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found += _references(value, (*path, index))
    return found


def _resolves(data: Any, ref: str) -> bool:
    try:
        _pointed_at(data, ref)
    except (KeyError, IndexError, TypeError, ValueError):
        return False
    return True


def _pointed_at(data: Any, ref: str) -> Any:
    for token in ref[2:].split("/"):
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) and key.isdecimal() else data[key]
    return data


def _normalise(node: Any) -> Any:
    """
    Fold `nullable: true` into the schema and clamp integer bounds to int64.

    `nullable` is no keyword of OpenAPI 3.1, yet documents of that version use it and mean it. A bound such as
    9223372036854776000 is 2^63-1 as JavaScript prints it: the servers behind such documents parse 64-bit integers.
    """
    if isinstance(node, list):
        return [_normalise(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _normalise(value) for key, value in node.items()}
    for keyword, limit, reach in (("maximum", INT64_MAXIMUM, max), ("minimum", INT64_MINIMUM, min)):
        bound = node.get(keyword)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and reach(bound, limit) == bound:
            node[keyword] = limit
    if node.get("nullable") is True and isinstance(node.get("type"), str | list):
        del node["nullable"]
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        node["type"] = types if "null" in types else [*types, "null"]
        if isinstance(node.get("enum"), list) and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]
    return node
