"""Where a document comes from: a bundled name, a path, standard input, or a URL that the user named."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from streamgauge import catalog
from streamgauge.errors import DocumentError

__all__ = ["STANDARD_INPUT", "Reach", "Source", "read_source", "read_uri"]

STANDARD_INPUT = "-"
_LARGEST = 32 * 1024 * 1024
_URL = re.compile(r"https?://", re.IGNORECASE)
_ALLOWED = (
    f"Give the path or the URL of an OpenAPI file, - for standard input, or one of: {', '.join(catalog.DOCUMENTS)}."
)


@dataclass(frozen=True, slots=True)
class Reach:
    """
    How far loading may reach.

    Attributes:
        remote_refs: whether a document may refer to files beside it and to URLs on its own host.
        ca_file: PEM file of certificates to trust instead of the system's, when a URL is fetched.
        insecure: whether TLS certificates go unverified then.
    """

    remote_refs: bool = False
    ca_file: str | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """
    A document's bytes.

    Attributes:
        name: what the user calls it: a bundled name, or the file's stem in lower case.
        where: what messages call it.
        uri: where it lies, for relative references; empty when it lies nowhere.
        text: the bytes.
    """

    name: str
    where: str
    uri: str
    text: bytes


def read_source(spec: str, reach: Reach) -> Source:
    """
    The bytes of the document that the user named.

    Raises:
        DocumentError: there is no such document, or it cannot be read.
    """
    if spec in catalog.DOCUMENTS:
        return Source(spec, f"bundled document {spec}", "", catalog.document_text(spec))
    if spec == STANDARD_INPUT:
        return Source("stdin", "standard input", "", _standard_input())
    if _URL.match(spec):
        from streamgauge.wire.fetch import shown_url

        text = read_uri(spec, shown_url(spec), reach)
        name = _stem(Path(unquote(urlsplit(spec).path)).stem)
        return Source(name, shown_url(spec), spec, text)
    path = Path(spec)
    if not os.path.lexists(spec):
        raise DocumentError("no such document", where=spec, hint=_ALLOWED)
    uri = path.resolve().as_uri()
    return Source(_stem(path.stem), spec, uri, read_uri(uri, spec, reach))


def read_uri(uri: str, where: str, reach: Reach) -> bytes:
    """
    The bytes at a `file:`, `http:` or `https:` URI.

    Raises:
        DocumentError: they cannot be read.
    """
    if _URL.match(uri):
        from streamgauge.wire.fetch import Trust, fetch

        return fetch(uri, Trust(reach.ca_file, reach.insecure))
    path = Path(os.fsdecode(unquote_to_bytes(urlsplit(uri).path)))
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as problem:
        hint = "Is the path right, and may you read it?"
        raise DocumentError(f"cannot be read: {problem.strerror or problem}", where=where, hint=hint) from None
    return _limited(text, where)


def _standard_input() -> bytes:
    try:
        text = sys.stdin.buffer.read(_LARGEST + 1)
    except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
        raise DocumentError("cannot be read", where="standard input", hint="Give a path instead of -.") from None
    if not text:
        raise DocumentError("is empty", where="standard input", hint="Pipe an OpenAPI document into it.")
    return _limited(text, "standard input")


def _limited(text: bytes, where: str) -> bytes:
    if len(text) > _LARGEST:
        raise DocumentError(f"is larger than {_LARGEST} bytes", where=where, hint="Give a smaller document.")
    return text


def _stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "document"
