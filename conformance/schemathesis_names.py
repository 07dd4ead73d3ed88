"""Schemathesis' own checks, each with those of ours that judge the same: whoever knows its names finds ours by this table."""

from dataclasses import dataclass

__all__ = ["SCHEMATHESIS_CHECKS", "Counterpart"]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """
    What stands in the place of one check of Schemathesis.

    Attributes:
        checks: ids of ours; each has a level of its own.
        note: where ours differ, or why there are none.
    """

    checks: tuple[str, ...]
    note: str


SCHEMATHESIS_CHECKS: dict[str, Counterpart] = {
    "not_a_server_error": Counterpart(
        ("error.no-5xx", "error.not-in-stream"),
        "A 502 or 503 that the document lists passes; an error within a stream of status 200 is seen as well.",
    ),
    "status_code_conformance": Counterpart(
        ("error.status-documented",),
        "Statuses about the transport pass (404, 405, 413, ...), and those that the profile lets pass.",
    ),
    "content_type_conformance": Counterpart(
        ("http.whole-media-type", "http.stream-media-type", "error.media-type"),
        "Ours ask for the form that the request wanted: a stream for `stream: true`, JSON otherwise.",
    ),
    "response_headers_conformance": Counterpart(
        ("error.retry-after-form",),
        "Retry-After is all that a bundled document describes, as a string; ours asks for the form of RFC 9110.",
    ),
    "response_schema_conformance": Counterpart(
        (
            *("response.schema", "chunk.schema", "error.envelope"),
            *("response.reference-shape", "chunk.reference-shape", "error.envelope-undocumented"),
        ),
        "The schema of a stream holds for the payload of each event, not for `{data, event, id}`; what the document leaves open "
        "is judged by the shape that clients rely on.",
    ),
    "negative_data_rejection": Counterpart(
        ("request.invalid", "request.required", "request.malformed", "request.malformed-status"),
        "A 5xx does not count as a refusal, and whether a body is valid is computed, never taken over.",
    ),
    "positive_data_acceptance": Counterpart(
        (
            *("request.plain-accepted", "request.valid", "request.feature-supported"),
            *("request.extra-property", "request.extra-nested", "request.null-accepted"),
        ),
        "A documented refusal of an optional feature is `refused`, which is no failure; a 5xx is no acceptance.",
    ),
    "missing_required_header": Counterpart(
        ("auth.missing",),
        "The key is the only header field that a bundled document requires.",
    ),
    "unsupported_method": Counterpart(
        ("request.method", "request.allow"),
        "GET is asked; PUT, PATCH and DELETE might change something at a server that knows them.",
    ),
    "allow_header_conformance": Counterpart(
        ("request.allow-methods",),
        "Of 405 and of OPTIONS; methods beyond the document are the server's own affair.",
    ),
    "ignored_auth": Counterpart(
        ("auth.missing", "auth.wrong", "auth.cached-prompt", "auth.other-place", "auth.other-scheme", "auth.query"),
        "By probes of their own, not by repeating every accepted request.",
    ),
    "max_response_time": Counterpart(
        (),
        "How long an answer takes is measured by `streamgauge load`; one that never comes fails `http.answered`.",
    ),
    "use_after_free": Counterpart((), "These operations make nothing that could be deleted."),
    "ensure_resource_availability": Counterpart((), "These operations make nothing that could be asked for later."),
    "object_level_authorization": Counterpart((), "These operations make nothing that belongs to somebody."),
}
"""Name in Schemathesis → ours, in its order."""
