"""One operation of a document: what it takes, what it answers."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamgauge.contract.document import Document, Part
from streamgauge.contract.fields import is_marked, properties_of, required_of
from streamgauge.contract.media import JSON, is_json, matching_media_type, matching_status
from streamgauge.contract.normal import Schemas
from streamgauge.contract.oneway import ANSWER, REQUEST, one_way
from streamgauge.contract.references import Tokens
from streamgauge.contract.validator import Validator

__all__ = ["CHAT", "COMPLETIONS", "Operation", "schema_at"]

CHAT = "chat"
COMPLETIONS = "completions"

_NOWHERE: Tokens = ("x-streamgauge-nowhere",)


@dataclass(frozen=True)
class Operation:
    """
    One method and path of a document.

    Attributes:
        name: the document's name when it has one operation, else `document:METHOD /path`.
        family: `chat` or `completions`.
        streams: whether `stream: true` is answered with server-sent events.
        part: where it stands in the document.
        schemas: the document's schemas.
    """

    name: str
    document: Document
    method: str
    path: str
    family: str
    streams: bool
    part: Part = field(repr=False)
    schemas: Schemas = field(repr=False)

    @property
    def pointer(self) -> str:
        """JSON pointer of the operation in its document."""
        return self.part.pointer

    @functools.cached_property
    def methods(self) -> frozenset[str]:
        """The methods that the document has on this path, its own among them; where there is GET, there is HEAD."""
        found = {name.upper() for name in Part(self.document, self.part.tokens[:-1]).mapping()}
        return frozenset(found | ({"HEAD"} if "GET" in found else set()))

    @functools.cached_property
    def definition(self) -> dict[str, Any]:
        """The operation as written, references to its parameters, its body and its answers followed."""
        made = dict(self.part.mapping())
        given = made.get("parameters")
        if isinstance(given, list):
            made["parameters"] = [self.part.item("parameters", index).value for index in range(len(given))]
        made["responses"] = {key: answer.value for key, answer in self._answers.items()}
        made["requestBody"] = self.part.child("requestBody").mapping()
        return made

    @functools.cached_property
    def statuses(self) -> tuple[int, ...]:
        """The statuses that the document lists one by one."""
        return tuple(int(status) for status in self._answers if status.isdecimal())

    @property
    def status_keys(self) -> tuple[str, ...]:
        """The statuses as the document writes them: codes, ranges such as `4XX`, `default`."""
        return tuple(key for key in self._answers if not key.startswith("x-"))

    def documents_status(self, status: int) -> bool:
        """
        Whether the document knows this status: by its code, by its range, or as the default.

        `default` says what an error looks like, not that the server may fail: a 5xx has to be named.
        """
        key = matching_status(self._answers, status)
        return key is not None and (key != "default" or status < 500)

    @functools.cached_property
    def _request_at(self) -> Tokens:
        return schema_at(self.part.child("requestBody"), JSON)

    @functools.cached_property
    def request_schema(self) -> Any:
        """The JSON request body's schema, normalised, with references left in."""
        return self.schemas.normal(self._request_at)

    @property
    def components(self) -> dict[str, Any]:
        """The normalised schemas of the document that its operations' schemas refer to, for `$ref` to point into."""
        return {"schemas": self.schemas.definitions}

    @functools.cached_property
    def request_examples(self) -> dict[str, Any]:
        """What the document gives as `example` and `examples` of the JSON request body, as written."""
        if self._request_at is _NOWHERE:
            return {}
        described = Part(self.document, self._request_at[:-1]).mapping()
        return {key: described[key] for key in ("example", "examples") if key in described}

    @functools.cached_property
    def request(self) -> Validator:
        """Validator of the JSON request body."""
        return self.schemas.validator(self._request_at, functools.partial(one_way, self.schemas, REQUEST))

    @functools.cached_property
    def properties(self) -> dict[str, Any]:
        """The request's properties by name, with their schemas: also those that its schema takes from others."""
        return properties_of(self.schemas, self.request_schema)

    @functools.cached_property
    def required(self) -> tuple[str, ...]:
        """The request properties that the schema requires; a `readOnly` one is the answer's."""
        names = required_of(self.schemas, self.request_schema)
        return tuple(name for name in names if not is_marked(self.schemas, self.properties.get(name), REQUEST))

    @functools.cache  # noqa: B019 - operations live as long as the process
    def documents_body(self, status: int, media_type: str) -> bool:
        """Whether the document gives a schema, not an open one, for this status and media type."""
        return not self.schemas.is_open(self._response_at(status, media_type))

    @functools.cache  # noqa: B019 - operations live as long as the process
    def response(self, status: int, media_type: str) -> Validator:
        """
        Validator of a response's JSON body; of one event's payload for `text/event-stream`.

        Accepts everything where the document says nothing.
        """
        at = self._response_at(status, media_type)
        return self.schemas.validator(at, functools.partial(one_way, self.schemas, ANSWER))

    def response_properties(self, status: int, media_type: str) -> dict[str, Any]:
        """The properties of that body by name, with their schemas: also those that only one of several alternatives has."""
        return properties_of(self.schemas, self.schemas.normal(self._response_at(status, media_type)), any_branch=True)

    def media_types(self, status: int) -> tuple[str, ...]:
        """The media types that the document lists for this status."""
        key = matching_status(self._answers, status)
        return tuple(self._answers[key].child("content").mapping()) if key is not None else ()

    def json_types(self, status: int) -> tuple[str, ...]:
        """The JSON media types that the document lists for this status, without parameters; else the usual one."""
        listed = (media_type.partition(";")[0].strip().lower() for media_type in self.media_types(status))
        return tuple(media_type for media_type in listed if is_json(media_type)) or (JSON,)

    def require_usable(self) -> None:
        """
        Compile every schema: better now than in the middle of a run.

        Raises:
            DocumentError: one of them is none.
        """
        _ = self.request, self.properties, self.required, self.definition
        for _, at in self.answers():
            self.schemas.validator(at)

    def answers(self) -> Iterator[tuple[str, Tokens]]:
        """The status and the place of the schema of every answer that the document describes."""
        for key in self.status_keys:
            for media_type in self._answers[key].child("content").mapping():
                yield key, schema_at(self._answers[key], media_type)

    @functools.cached_property
    def _answers(self) -> dict[str, Part]:
        responses = self.part.child("responses")
        found = {}
        for key in responses.mapping():
            found[key] = responses.child(key)
            if not key.startswith("x-"):
                found[key].mapping()
        return found

    @functools.cache  # noqa: B019 - as above
    def _response_at(self, status: int, media_type: str) -> Tokens:
        key = matching_status(self._answers, status)
        return schema_at(self._answers[key], media_type) if key is not None else _NOWHERE

    def __hash__(self) -> int:
        return hash((self.name, self.document.sha256))


def schema_at(part: Part, media_type: str) -> Tokens:
    """Where the schema of a request body or an answer stands; nowhere when it has none of this media type."""
    content = part.child("content")
    key = matching_media_type(content.mapping(), media_type)
    if key is None:
        return _NOWHERE
    described = content.child(key)
    described.mapping()
    return (*described.tokens, "schema")
