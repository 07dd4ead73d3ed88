"""The contract: one profile and one or more documents, compiled."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamgauge.contract.document import Document, load_document
from streamgauge.contract.profile import Profile, default_profile, load_profile
from streamgauge.contract.validator import Validator, pointer_of
from streamgauge.errors import DocumentError

__all__ = ["CHAT", "COMPLETIONS", "JSON", "SSE", "Contract", "Operation", "load_contracts"]

CHAT = "chat"
COMPLETIONS = "completions"
JSON = "application/json"
SSE = "text/event-stream"

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True)
class Operation:
    """
    One method and path of a document.

    Attributes:
        name: the document's name when it has one operation, else `document:METHOD /path`.
        family: `chat` or `completions`.
        streams: whether `stream: true` is answered with server-sent events.
    """

    name: str
    document: Document
    method: str
    path: str
    family: str
    streams: bool
    definition: dict[str, Any] = field(repr=False)

    @property
    def pointer(self) -> str:
        """JSON pointer of the operation in its document."""
        return pointer_of(["paths", self.path, self.method.lower()])

    @functools.cached_property
    def statuses(self) -> tuple[int, ...]:
        """The statuses that the document lists."""
        return tuple(int(status) for status in self.definition["responses"] if str(status).isdigit())

    @functools.cached_property
    def request_schema(self) -> dict[str, Any]:
        """The JSON request body's schema, with references left in."""
        content = self.definition.get("requestBody", {}).get("content", {})
        schema: dict[str, Any] = content.get(JSON, {}).get("schema", {})
        return schema

    @functools.cached_property
    def request(self) -> Validator:
        """Validator of the JSON request body."""
        return Validator(self.request_schema, self.document.components)

    @functools.cached_property
    def properties(self) -> dict[str, Any]:
        """The request's properties by name, with their schemas."""
        properties: dict[str, Any] = self.request_object.get("properties", {})
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        """The request properties that the schema requires."""
        return tuple(self.request_object.get("required", ()))

    @functools.cached_property
    def request_object(self) -> dict[str, Any]:
        """The request's own schema, with the reference to it followed."""
        return self._resolved(self.request_schema)

    def documents_body(self, status: int, media_type: str) -> bool:
        """Whether the document gives a schema, not an empty one, for this status and media type."""
        return bool(self._response_schema(status, media_type))

    @functools.cache  # noqa: B019 - operations live as long as the process
    def response(self, status: int, media_type: str) -> Validator:
        """
        Validator of a response's JSON body; of one event's payload for `text/event-stream`.

        Accepts everything where the document says nothing.
        """
        return Validator(self._response_schema(status, media_type), self.document.components)

    def media_types(self, status: int) -> tuple[str, ...]:
        """The media types that the document lists for this status."""
        return tuple(self.definition["responses"].get(str(status), {}).get("content", {}))

    def _response_schema(self, status: int, media_type: str) -> dict[str, Any]:
        content = self.definition["responses"].get(str(status), {}).get("content", {})
        schema: dict[str, Any] = content.get(media_type, {}).get("schema", {})
        return schema

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        found = self.document.followed(schema)
        return found if isinstance(found, dict) else {}

    def __hash__(self) -> int:
        return hash((self.name, self.document.sha256))


@dataclass(frozen=True)
class Contract:
    """A profile and the operations that are judged under it."""

    profile: Profile
    operations: tuple[Operation, ...]

    def operation(self, name: str) -> Operation | None:
        """The operation of that name."""
        return next((operation for operation in self.operations if operation.name == name), None)

    def allows_status(self, operation: Operation, status: int) -> bool:
        """Whether document or profile knows this status for the operation."""
        return status in operation.statuses or status in self.profile.allowed_statuses


def load_contracts(specs: Sequence[str], profile: str | None = None) -> list[Contract]:
    """
    Compile documents, grouped by the profile that each goes with.

    Args:
        specs: bundled names or paths.
        profile: one profile for all of them; by default each document's own.

    Raises:
        DocumentError: a document or profile cannot be used, or holds no operation of a family that we know.
    """
    groups: dict[str, list[Document]] = {}
    for spec in dict.fromkeys(specs):
        document = load_document(spec)
        groups.setdefault(profile or default_profile(document.name), []).append(document)
    contracts = []
    for name, documents in groups.items():
        loaded = load_profile(name)
        operations = [operation for document in documents for operation in _compiled(document, loaded)]
        names = [operation.name for operation in operations]
        for twice in {name for name in names if names.count(name) > 1}:
            hint = "Rename one of the files: an operation is called after its document."
            raise DocumentError(f"two documents give an operation called {twice}", hint=hint)
        contracts.append(Contract(loaded, tuple(operations)))
    return contracts


def _compiled(document: Document, profile: Profile) -> list[Operation]:
    """The operations, once every schema of theirs has proved usable: not in the middle of a run."""
    try:
        operations = _operations(document, profile)
        for operation in operations:
            _ = operation.request, operation.properties, operation.required
            for status in operation.statuses:
                for media_type in operation.media_types(status):
                    operation.response(status, media_type)
    except DocumentError as problem:
        raise DocumentError(problem.what, where=problem.where or document.name, hint=problem.hint) from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as problem:
        hint = "Check it with an OpenAPI validator."
        what = f"is not built as OpenAPI says: {type(problem).__name__}: {problem}"
        raise DocumentError(what, where=document.name, hint=hint) from None
    return operations


def _operations(document: Document, profile: Profile) -> list[Operation]:
    found = [
        (method.upper(), path, family, definition)
        for path, item in ((path, document.followed(item)) for path, item in document.normal["paths"].items())
        if isinstance(item, dict)
        for method, definition in item.items()
        if method in _METHODS and isinstance(definition, dict) and (family := _family(path))
    ]
    if not found:
        raise DocumentError(
            "holds no operation that streamgauge can judge",
            where=document.name,
            hint="Looked for paths that end in /completions or /chat/completions.",
        )
    operations = []
    for method, path, family, given in found:
        answers = {status: document.followed(answer) for status, answer in given.get("responses", {}).items()}
        body = document.followed(given.get("requestBody", {}))
        definition = {**given, "responses": answers, "requestBody": body}
        name = document.name if len(found) == 1 else f"{document.name}:{method} {path}"
        said = profile.operations.get(name, {})
        operations.append(
            Operation(
                name=name,
                document=document,
                method=method,
                path=path,
                family=said.get("family", family),
                streams=said.get("stream", SSE in _content_types(definition)),
                definition=definition,
            )
        )
    return operations


def _content_types(definition: dict[str, Any]) -> tuple[str, ...]:
    return tuple(definition.get("responses", {}).get("200", {}).get("content", {}))


def _family(path: str) -> str | None:
    if path.endswith("/chat/completions"):
        return CHAT
    return COMPLETIONS if path.endswith("/completions") else None
