"""Reads an OpenAPI 3.0 or 3.1 document, and finds what stands where in it."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from streamgauge.contract.references import REMOTE, Tokens, bundled, pointed_at, references, refusal, tokens_of
from streamgauge.contract.source import Reach, Source, read_source, read_uri
from streamgauge.contract.validator import pointer_of
from streamgauge.errors import DocumentError
from streamgauge.yamlfile import Located, load_yaml

__all__ = ["Document", "Part", "load_document", "load_located"]


class Document:
    """
    One OpenAPI document.

    Attributes:
        name: what the user calls it: a bundled name, or the file's stem.
        sha256: of the bytes as read.
        version: `3.0` or `3.1`.
        located: the document as written, with the place of each part.
        raw: the same, with the documents that it refers to beside it and every reference a pointer.
        notes: where it was read in a way that the user should know of.
    """

    def __init__(self, source: Source, located: Located, reach: Reach) -> None:
        self.name = source.name
        self.sha256 = hashlib.sha256(source.text).hexdigest()
        self.version = str(located.data["openapi"])[:3]
        self.located = located
        self.notes: list[str] = []
        self._uri = source.uri
        self._reach = reach
        self._remote: dict[str, Located] = {}
        names_parts = reach.remote_refs or b"$anchor" in source.text or b"$id" in source.text
        identified = names_parts and self.version != "3.0"
        load = self._load if reach.remote_refs else None
        self.raw: dict[str, Any] = bundled(source.uri, located.data, identified=identified, load=load)

    @property
    def root(self) -> "Part":
        """The whole."""
        return Part(self, ())

    def at(self, tokens: Tokens) -> Any:
        """What stands there; None where nothing does."""
        try:
            return pointed_at(self.raw, tokens)
        except LookupError:
            return None

    def followed(self, tokens: Tokens) -> Tokens:
        """
        The steps to what stands there, or to what its `$ref` stands for in the end.

        Raises:
            DocumentError: a reference leads nowhere, to another document, or in a circle.
        """
        seen = {tokens}
        node = self.at(tokens)
        while isinstance(node, dict) and isinstance(ref := node.get("$ref"), str):
            tokens = self.target(ref, tokens)
            if tokens in seen:
                hint = "Give what it stands for."
                raise DocumentError(f"refers to itself: {ref}", where=self.where((*tokens, "$ref")), hint=hint)
            seen.add(tokens)
            node = self.at(tokens)
        return tokens

    def target(self, ref: str, at: Tokens) -> Tokens:
        """
        The steps to what a reference points to.

        Raises:
            DocumentError: it leads nowhere, or to another document.
        """
        where = self.where((*at, "$ref"))
        if not ref.startswith("#"):
            reason = refusal(self._uri, ref, allowed=self._reach.remote_refs) or "which holds no such part"
            hint = "Bundle it first" + ("." if self._reach.remote_refs else ", or allow it by --remote-refs.")
            raise DocumentError(f"refers to {ref}, {reason}", where=where, hint=hint)
        tokens = tokens_of(ref[1:])
        try:
            if not ref.startswith("#/"):
                raise LookupError(ref)
            pointed_at(self.raw, tokens)
        except LookupError:
            hint = "Every $ref has to point into the document."
            raise DocumentError(f"refers to something that is not there: {ref}", where=where, hint=hint) from None
        return tokens

    def where(self, tokens: Sequence[str | int]) -> str:
        """File, line and column of what stands there."""
        tokens = list(tokens)
        located = self.located
        if tokens[:1] == [REMOTE] and str(tokens[1:2] and tokens[1]) in self._remote:
            located, tokens = self._remote[str(tokens[1])], tokens[2:]
        node = located.data
        steps: list[str | int] = []
        for step in tokens:
            if isinstance(node, list) and str(step).isdecimal() and int(step) < len(node):
                steps.append(int(step))  # from a pointer it comes as text
                node = node[int(step)]
            else:
                steps.append(step)
                node = node.get(step) if isinstance(node, dict) else None
        return located.where(steps)

    def complaint(self, tokens: Sequence[str | int], what: str, hint: str = "") -> DocumentError:
        """The error to raise about what stands there."""
        hint = hint or "The OpenAPI specification says how it is built."
        return DocumentError(f"{pointer_of(tokens) or 'the document'} {what}", where=self.where(tokens), hint=hint)

    def note_of(self, what: str, where: str) -> None:
        """Keep a note, with the first place that it is about."""
        if not any(note.startswith(what) for note in self.notes):
            self.notes.append(f"{what} (first at {where})")

    def _load(self, uri: str, ref: str) -> Any:
        at = next((tokens for tokens, found in references(self.located.data) if found == ref), ())
        try:
            located = load_yaml(read_uri(uri, ref, self._reach), name=ref.partition("#")[0], error=DocumentError)
        except DocumentError as problem:
            where = (
                problem.where if problem.where.startswith(ref.partition("#")[0] + ":") else self.where((*at, "$ref"))
            )
            raise DocumentError(f"{ref} {problem.what}", where=where, hint=problem.hint) from None
        self._remote[uri] = _with_text_keys(located)
        return located.data


class Part:
    """A part of a document: its value, and the steps that lead to it."""

    __slots__ = ("document", "tokens", "value")

    def __init__(self, document: Document, tokens: Tokens) -> None:
        self.document = document
        self.tokens = document.followed(tokens)
        self.value: Any = document.at(self.tokens)

    @property
    def pointer(self) -> str:
        """Its JSON pointer."""
        return pointer_of(self.tokens)

    def child(self, *steps: str | int) -> "Part":
        """
        What stands below, with references followed; a part of value None where nothing does.

        Raises:
            DocumentError: something on the way is no object.
        """
        part = self
        for step in steps:
            part = Part(self.document, (*part.tokens, step)) if part.mapping() else _nothing(self.document, part, step)
        return part

    def item(self, key: str, index: int) -> "Part":
        """One item of the list under `key`, with references followed."""
        return Part(self.document, (*self.tokens, key, index))

    def mapping(self) -> dict[str, Any]:
        """
        The value as an object; an empty one where nothing stands.

        Raises:
            DocumentError: it is something else.
        """
        if self.value is None and not self._written():
            return {}
        if not isinstance(self.value, dict):
            raise self.document.complaint(self.tokens, f"has to be an object, not {_kind(self.value)}")
        return self.value

    def _written(self) -> bool:
        if not self.tokens:
            return True
        above = self.document.at(self.tokens[:-1])
        return isinstance(above, dict) and self.tokens[-1] in above


def _nothing(document: Document, above: Part, step: str | int) -> Part:
    part = Part(document, ())
    part.tokens, part.value = (*above.tokens, step), None
    return part


def _kind(value: Any) -> str:
    kinds = {
        "NoneType": "null",
        "bool": "a boolean",
        "int": "a number",
        "float": "a number",
        "str": "text",
        "list": "a list",
    }
    return kinds.get(type(value).__name__, type(value).__name__)


def load_document(spec: str, reach: Reach | None = None) -> Document:
    """
    Load a document.

    Args:
        spec: a bundled name, a path, a URL, or `-` for standard input.
        reach: what else may be read for it; nothing by default.

    Raises:
        DocumentError: there is no such document, or it is not OpenAPI 3.0 or 3.1.
    """
    reach = reach or Reach()
    source = read_source(spec, reach)
    located = load_located(source)
    _require_openapi(located)
    try:
        return Document(source, located, reach)
    except RecursionError:
        raise DocumentError("is nested too deeply", where=source.where) from None


def load_located(source: Source) -> Located:
    """
    The data of any YAML or JSON text, an OpenAPI document or not, with every key as text.

    Raises:
        DocumentError: it cannot be read.
    """
    return _with_text_keys(load_yaml(source.text, name=source.where, error=DocumentError))


def _with_text_keys(located: Located) -> Located:
    """The same with every key as JSON would write it: many a document says `200:` without quotes."""
    located.data = _texts(located.data)
    return located


def _texts(node: Any) -> Any:
    if isinstance(node, list):
        return [_texts(item) for item in node]
    if not isinstance(node, dict):
        return node
    words = {True: "true", False: "false", None: "null"}
    return {
        key if isinstance(key, str) else words[key] if key is None or isinstance(key, bool) else str(key): _texts(item)
        for key, item in node.items()
    }


def _require_openapi(located: Located) -> None:
    data = located.data
    if not isinstance(data, dict) or "openapi" not in data:
        hint = "An OpenAPI document begins with `openapi: 3.1.0` or the like."
        if isinstance(data, dict) and "swagger" in data:
            where = located.where(["swagger"])
            hint = "Convert it to OpenAPI 3 first, for instance with swagger2openapi or converter.swagger.io."
            raise DocumentError(f"Swagger {data['swagger']} is not supported", where=where, hint=hint)
        raise DocumentError(
            "not an OpenAPI document: it has no `openapi` version",
            where=located.name,
            hint=hint,
        )
    version = str(data["openapi"])
    if not re.match(r"3\.[01](\.|$)", version):
        hint = "Supported: 3.0 and 3.1."
        if version.startswith("3.2"):
            hint += " Without `itemSchema` and the like of 3.2 it is good OpenAPI 3.1: say `openapi: 3.1.1`."
        raise DocumentError(f"OpenAPI {version[:40]} is not supported", where=located.where(["openapi"]), hint=hint)
    if not isinstance(data.get("paths"), dict) or not data["paths"]:
        hint = "It has to describe the operations under `paths`."
        raise DocumentError("the document has no paths", where=located.where(["paths"]), hint=hint)
