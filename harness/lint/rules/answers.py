"""Rules about answers: which statuses are documented, and what their bodies are."""

import json
from collections.abc import Iterator
from typing import Any

from streamgauge.contract.media import JSON, SSE
from streamgauge.lint.grammar import Node
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Endpoint, Subject, types_of

__all__: list[str] = []


_NO_BODY = ("204", "205", "304")


def _failed(status: str) -> bool:
    return status[:1] in ("4", "5")


@rule(
    "no-success",
    LintLevel.WARNING,
    "an operation that documents no success",
    why="There is nothing to hold a good answer against.",
    mend="Describe the 2xx answer.",
    source="OAS 3.1, section 4.8.16 (SHOULD be the response for a successful call)",
)
def _no_success(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        statuses = [status for status, _ in subject.answers(endpoint)]
        if not any(status[:1] in ("1", "2", "3", "d") for status in statuses):
            yield Place((*endpoint.node.path, "responses"), "no answer is a success")


@rule(
    "success-unknown",
    LintLevel.WARNING,
    "a successful answer whose body is unknown",
    why="Any body conforms, so a conformance test of it tests nothing. streamgauge judges such an answer by a reference "
    "shape, as a SHOULD.",
    mend="Give the schema of the body; 204 where there is none.",
    source="OAS 3.1, sections 4.8.14 and 4.8.17; fault catalogue Q17",
)
def _success_unknown(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        for status, answer in subject.answers(endpoint):
            if status[:1] != "2" or status in _NO_BODY or endpoint.method == "head":
                continue
            content = list(subject.media(answer))
            if not content and "$ref" not in answer.value and answer.value:
                yield Place(answer.path, f"nothing is said about the body of {status}")
            for name, media in content:
                if name in (JSON, SSE) and not media.value.get("schema") and "itemSchema" not in media.value:
                    yield Place(media.path, f"the {name} body of {status} may be anything")


@rule(
    "stream-no-item-schema",
    LintLevel.INFO,
    "a stream whose schema describes one chunk",
    why="A media type's schema describes the whole body, and OpenAPI before 3.2 has no way to describe a stream's items. "
    "General tools hold the schema against the envelope {data, event, id} or the whole text, so each right stream fails. "
    "streamgauge holds it against each payload.",
    mend="`itemSchema` of OpenAPI 3.2 as soon as the tools know it; until then say in the description what is described.",
    source="OAS 3.2, Media Type Object (itemSchema); fault catalogue Q12",
)
def _item_schema(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("media type"):
        if node.path[-1] == SSE and node.value.get("schema") and "itemSchema" not in node.value:
            schema = subject.followed((*node.path, "schema"))
            if schema.value.get("type") not in ("string", "array"):
                yield Place((*node.path, "schema"), "the schema is that of one chunk, not of the body")


@rule(
    "stream-in-prose",
    LintLevel.WARNING,
    "a `stream` parameter without a streamed answer",
    why="The request may ask for a stream, but no answer of media type text/event-stream is documented: whoever checks "
    "content types calls each stream a fault, and nothing says what a chunk looks like.",
    mend="Add `text/event-stream` to the content of 200.",
    source="OAS 3.1, section 4.8.17 (content)",
)
def _stream_in_prose(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        stream = subject.properties(subject.body(endpoint)).get("stream")
        boolean = stream is not None and any("boolean" in types_of(form.value) for form in subject.members(stream))
        names = [name for _, answer in subject.answers(endpoint) for name, _ in subject.media(answer)]
        if (
            stream
            and boolean
            and not any("event-stream" in name or "ndjson" in name or "jsonl" in name for name in names)
        ):
            yield Place(stream.path, "`stream` is offered, but no answer is a stream")


@rule(
    "no-error-answer",
    LintLevel.WARNING,
    "an operation that documents no failure",
    why="Every operation can be called wrongly. A client has nothing to program against, and a tool calls each 4xx undocumented.",
    mend="Document the 4xx answers, or `default`, with their body.",
    source="OAS 3.1, section 4.8.16 (expected to cover known errors)",
)
def _no_error(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        statuses = [status for status, _ in subject.answers(endpoint)]
        if statuses and not any(status[:1] == "4" or status == "default" for status in statuses):
            yield Place((*endpoint.node.path, "responses"), "no 4xx answer is documented")


@rule(
    "error-no-body",
    LintLevel.WARNING,
    "a failure without a body",
    why="Nothing says how the reason is told; SDKs read `error.message` and show nothing without it.",
    mend="Give the error's schema, best one for all failures.",
    source="OAS 3.1, section 4.8.17 (content)",
)
def _error_no_body(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        for status, answer in subject.answers(endpoint):
            if _failed(status) and answer.value and not answer.value.get("content") and endpoint.method != "head":
                yield Place(answer.path, f"{status} has no body")


def _bodies(subject: Subject, endpoint: Endpoint) -> Iterator[tuple[str, Node]]:
    """The schema of each failure's JSON body, as written."""
    for status, answer in subject.answers(endpoint):
        if _failed(status):
            for name, media in subject.media(answer):
                if name == JSON and isinstance(schema := media.value.get("schema"), dict) and schema:
                    yield status, Node("schema", (*media.path, "schema"), schema)


def _shape(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


@rule(
    "errors-differ",
    LintLevel.WARNING,
    "failures of one operation with bodies of different shapes",
    why="A client needs one reader for each status; most have a single one and lose the message.",
    mend="One error schema for all failures.",
    source="streamgauge: err.envelope.consistent (fault catalogue J3, J4)",
)
def _errors_differ(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        shapes = {_shape(subject.followed(schema.path).value) for _, schema in _bodies(subject, endpoint)}
        if len(shapes) > 1:
            yield Place((*endpoint.node.path, "responses"), f"the failures have bodies of {len(shapes)} shapes")


@rule(
    "error-inline",
    LintLevel.INFO,
    "one error body written out again and again",
    why="The copies drift apart, generators make a class of each, and a mistake in one has to be mended in all.",
    mend="Make it a component and refer to it.",
    source="OAS 3.1, section 4.8.7 (reusable objects); fault catalogue Q4",
)
def _error_inline(subject: Subject) -> Iterator[Place]:
    written: dict[str, list[Node]] = {}
    for endpoint in subject.endpoints:
        for _, schema in _bodies(subject, endpoint):
            if "$ref" not in schema.value and schema.path[0] == "paths":
                written.setdefault(_shape(schema.value), []).append(schema)
    for nodes in written.values():
        distinct = list(dict.fromkeys(node.path for node in nodes))
        if len(distinct) > 1:
            yield Place(distinct[0], f"the same error body is written out {len(distinct)} times")


@rule(
    "error-union",
    LintLevel.INFO,
    "an error body that has one of several shapes",
    why="A client has to be ready for each shape, and a validator can only say that none of them fits. streamgauge says "
    "which one was nearest.",
    mend="Settle on one shape.",
    source="fault catalogue Q4, J31",
)
def _error_union(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        for _, schema in _bodies(subject, endpoint):
            forms = list(subject.members(schema))
            if len(forms) > 1:
                yield Place(schema.path, f"the error has one of {len(forms)} shapes")


@rule(
    "statuses-undocumented",
    LintLevel.INFO,
    "statuses that every HTTP server gives are not documented",
    why="Frameworks and gateways answer 404, 405, 413, 415 and 500 by themselves. A tool that takes the list of responses "
    "literally calls them faults. streamgauge's profiles list what is always allowed; 500 never is.",
    mend="Add them, or a `default` answer.",
    source="RFC 9110, sections 15.5.5, 15.5.6, 15.5.14, 15.5.16 and 15.6.1; fault catalogue Q13",
)
def _undocumented(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        listed = {status.upper() for status, _ in subject.answers(endpoint)}
        common = ["404", "405", "413", "415", "500"] if "requestBody" in endpoint.node.value else ["404", "405", "500"]
        missing = [status for status in common if status not in listed and f"{status[0]}XX" not in listed]
        if missing and "DEFAULT" not in listed:
            yield Place((*endpoint.node.path, "responses"), f"not documented: {', '.join(missing)}")
