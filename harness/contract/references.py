"""
References between the parts of a document, and from it to others.

Everything that refers is brought into one form, a JSON pointer into one document (RFC 6901): `$anchor` and `$id` (JSON
Schema 2020-12, section 8.2) are looked up, and the documents that may be reached are put beside the document's own parts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from streamgauge.contract.validator import pointer_of

__all__ = ["REMOTE", "Tokens", "bundled", "pointed_at", "ref_to", "references", "refusal", "tokens_of"]

Tokens = tuple[str | int, ...]
"""The steps from a document's root to one of its parts."""

REMOTE = "x-streamgauge-remote"
"""Where bundled documents lie, by their URI."""

_OPAQUE = frozenset({"const", "default", "enum", "example", "examples"})
"""What stands under these is data, not description."""

_IDENTITIES = frozenset({"$anchor", "$id"})
"""Needless once every reference is a pointer, and harmful: a pointer is relative to the nearest `$id`."""

_NAMES = frozenset(
    {
        *("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"),
        *("callbacks", "content", "encoding", "headers", "links", "parameters", "pathItems", "paths", "requestBodies"),
        *("responses", "schemas", "securitySchemes", "variables", "webhooks"),
    }
)
"""The keys of a mapping under one of these are names, whatever they look like."""


def tokens_of(fragment: str) -> Tokens:
    """The steps of a JSON pointer in a URI fragment (RFC 6901, section 6)."""
    steps = unquote(fragment).split("/")[1:]
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def ref_to(tokens: Tokens) -> str:
    """The reference to a part of the same document."""
    return "#" + quote(pointer_of(tokens), safe="/~!$&'()*+,;=:@")


def pointed_at(data: Any, tokens: Tokens) -> Any:
    """
    The part of `data` at the end of the steps.

    Raises:
        LookupError: there is none.
    """
    for step in tokens:
        if isinstance(data, list) and str(step).isdecimal():
            data = data[int(step)]
        elif isinstance(data, Mapping):
            data = data[step]
        else:
            raise LookupError(step)
    return data


def references(node: Any, at: Tokens = (), *, names: bool = False) -> Iterator[tuple[Tokens, str]]:
    """Every `$ref` with the path of the object that it stands in; not those inside examples, defaults and extensions."""
    if isinstance(node, dict):
        if not names and isinstance(ref := node.get("$ref"), str):
            yield at, ref
        for key, value in node.items():
            if isinstance(value, dict | list) and (names or not _skipped(key)):
                yield from references(value, (*at, key), names=not names and key in _NAMES)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if isinstance(value, dict | list):
                yield from references(value, (*at, index))


def _skipped(key: str) -> bool:
    return key in _OPAQUE or (key.startswith("x-") and key != REMOTE)


def refusal(uri: str, ref: str, *, allowed: bool) -> str | None:
    """
    Why what lies at `uri` may not refer to `ref`; None when it may.

    Args:
        uri: the document's own; empty when it lies nowhere.
        ref: as it is written.
        allowed: whether the user has allowed references to other documents at all.
    """
    try:
        own, other = urlsplit(uri), urlsplit(urljoin(uri, ref))
        host = other.hostname or ""
    except ValueError:
        return "which is no URI"
    if other.scheme in ("http", "https") and host != own.hostname:
        return f"on another host ({host})"
    if not allowed:
        return "which is another document"
    if not uri:
        return "beside a document that lies nowhere"
    if other.scheme != own.scheme and (own.scheme, other.scheme) != ("http", "https"):
        return f"by {other.scheme or 'a path'} from a document by {own.scheme}"
    if other.scheme == "file" and not (unquote(other.path).startswith(unquote(own.path).rpartition("/")[0] + "/")):
        return "outside of the document's folder"
    return None


class _Bundler:
    """Follows references from one document to others, and makes one of them all."""

    def __init__(self, uri: str, data: Any, *, identified: bool, load: Callable[[str, str], Any] | None) -> None:
        self._uri = uri
        self._identified = identified
        self._load = load
        self._bases: dict[str, tuple[str, Tokens]] = {}
        self._anchors: dict[tuple[str, str], Tokens] = {}
        self._documents: dict[str, Any] = {}
        self._add(uri, data)

    def run(self) -> Any:
        done: dict[str, Any] = {}
        while pending := [uri for uri in self._documents if uri not in done]:
            for uri in pending:
                done[uri] = self._rewritten(self._documents[uri], uri, uri)
        main = done.pop(self._uri)
        return {**main, REMOTE: done} if done else main

    def _add(self, uri: str, data: Any) -> None:
        self._documents[uri] = data
        self._bases[uri] = (uri, ())
        if self._identified:
            self._index(data, uri, uri, ())

    def _index(self, node: Any, base: str, document: str, at: Tokens, *, names: bool = False) -> None:
        if isinstance(node, dict):
            if not names and isinstance(own := node.get("$id"), str):
                base = urldefrag(urljoin(base, own)).url
                self._bases.setdefault(base, (document, at))
            for keyword in ("$anchor", "$dynamicAnchor"):
                if not names and isinstance(anchor := node.get(keyword), str):
                    self._anchors.setdefault((base, anchor), at)
            for key, value in node.items():
                if names or not _skipped(key):
                    self._index(value, base, document, (*at, key), names=not names and key in _NAMES)
        elif isinstance(node, list):
            for index, value in enumerate(node):
                self._index(value, base, document, (*at, index))

    def _rewritten(self, node: Any, base: str, document: str, *, names: bool = False) -> Any:
        if isinstance(node, list):
            return [self._rewritten(value, base, document) for value in node]
        if not isinstance(node, dict):
            return node
        if self._identified and not names and isinstance(own := node.get("$id"), str):
            base = urldefrag(urljoin(base, own)).url
        made = {
            key: self._rewritten(value, base, document, names=not names and key in _NAMES)
            if names or not _skipped(key)
            else value
            for key, value in node.items()
            if names or not (self._identified and key in _IDENTITIES)
        }
        if not names and isinstance(ref := node.get("$ref"), str):
            made["$ref"] = self._pointer(ref, base, document)
        return made

    def _pointer(self, ref: str, base: str, document: str) -> str:
        """The reference as a pointer; as it was where nothing is known or allowed there."""
        try:
            target, fragment = urldefrag(urljoin(base, ref)) if not ref.startswith("#") else (base, ref[1:])
        except ValueError:
            return ref
        if target not in self._bases and self._load is not None and refusal(self._uri, target, allowed=True) is None:
            self._add(target, self._load(target, ref))
        if target not in self._bases:
            return ref
        home, prefix = self._bases[target]
        if not fragment or fragment.startswith("/"):
            tokens = (*prefix, *tokens_of(fragment))
        elif (target, fragment) in self._anchors:
            tokens = self._anchors[target, fragment]
        else:
            return ref
        return ref_to(tokens if home == self._uri else (REMOTE, home, *tokens))


def bundled(uri: str, data: Any, *, identified: bool, load: Callable[[str, str], Any] | None = None) -> Any:
    """
    The document with every reference as a pointer into it, as far as that is possible.

    Args:
        uri: where the document lies; empty when it lies nowhere.
        data: its content, which is left as it is.
        identified: whether `$id` and `$anchor` are keywords in it (OpenAPI 3.1).
        load: reads another document, given its URI and the reference to it; None when none may be read.
    """
    if all(ref.startswith("#/") for _, ref in references(data)) and not identified:
        return data
    return _Bundler(uri, data, identified=identified, load=load).run()
