"""Refusals, and the statuses and bodies in which document and profile want them told."""

import enum
from typing import Any

from streamgauge.contract.contract import JSON, Operation
from streamgauge.contract.profile import Dialect

__all__ = ["Kind", "Refusal", "body_of", "status_of"]


class Kind(enum.StrEnum):
    """Why a request is refused; the value stands in the error body's `type`."""

    AUTHENTICATION = "authentication_error"
    MALFORMED = "invalid_request_error"
    UNPROCESSABLE = "unprocessable_entity_error"
    CONTEXT = "context_length_exceeded"
    UNKNOWN_MODEL = "not_found_error"
    NO_SUCH_PATH = "path_not_found_error"
    METHOD = "method_not_allowed_error"
    MEDIA_TYPE = "unsupported_media_type_error"
    TOO_LARGE = "request_too_large_error"
    HEADERS_TOO_LARGE = "request_header_fields_too_large_error"
    PROTOCOL = "protocol_error"
    BUSY = "engine_overloaded_error"


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """
    A request is answered with a 4xx.

    Args:
        kind: why; the profile turns it into a status.
        message: a sentence for the caller. It never quotes the request, which may hold secrets.
        param: name of the documented request parameter that it is about; empty for none.
    """

    def __init__(self, kind: Kind, message: str, param: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param


_STATUS = {
    Kind.AUTHENTICATION: 401,
    Kind.NO_SUCH_PATH: 404,
    Kind.METHOD: 405,
    Kind.MEDIA_TYPE: 415,
    Kind.TOO_LARGE: 413,
    Kind.HEADERS_TOO_LARGE: 431,
    Kind.PROTOCOL: 400,
    Kind.BUSY: 429,
}

_WORDS = {
    Kind.AUTHENTICATION: "invalid_api_key",
    Kind.UNKNOWN_MODEL: "model_not_found",
    Kind.CONTEXT: Kind.CONTEXT.value,
}
"""OpenAI's error codes; other errors have none."""


def status_of(refusal: Refusal, dialect: Dialect, operation: Operation | None) -> int:
    """
    The HTTP status of a refusal: of several the vendor's own, which the profile names first.

    What is well-formed and cannot be done gets 422 where the document lists it, else the status of malformed bodies.
    """
    if refusal.kind is Kind.UNKNOWN_MODEL:
        return dialect.unknown_model_status[0]
    if refusal.kind in (Kind.UNPROCESSABLE, Kind.CONTEXT) and operation is not None and 422 in operation.statuses:
        return 422
    return _STATUS.get(refusal.kind) or dialect.malformed_status[0]


def body_of(refusal: Refusal, status: int, dialect: Dialect, operation: Operation | None) -> dict[str, Any]:
    """
    The error body in the profile's form; where the document describes the status's body and takes that form not, in another.

    A document that takes everything describes nothing: the form whose members its schema speaks of goes first.
    """
    numbered, worded = _numbered(refusal, status), _worded(refusal)
    envelope = worded if dialect.error_code != "integer" else numbered
    own = {
        "detail": _detail(refusal, status),
        "openai-or-string": {"error": refusal.message},
    }.get(dialect.error_envelope, envelope)
    if operation is None or not operation.documents_body(status, JSON):
        return own
    validator = operation.response(status, JSON)
    taken = [body for body in (own, envelope, numbered, worded, _detail(refusal, 422)) if validator.accepts(body)]
    described = [body for body in taken if not validator.accepts(dict.fromkeys(body, 0))]
    return next(iter(described or taken), own)


def _numbered(refusal: Refusal, status: int) -> dict[str, Any]:
    """Seekr's `StructuredError`: `code` is an integer, and `param` is a string or not there."""
    error: dict[str, Any] = {"message": refusal.message, "type": refusal.kind.value, "code": status}
    if refusal.param:
        error["param"] = refusal.param
    return {"error": error}


def _worded(refusal: Refusal) -> dict[str, Any]:
    """OpenAI's error: `code` is a word or null, and so is `param`."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind.value,
            "param": refusal.param or None,
            "code": _WORDS.get(refusal.kind),
        }
    }


def _detail(refusal: Refusal, status: int) -> dict[str, Any]:
    """FastAPI's: a list for 422 (`HTTPValidationError`), a text for other statuses."""
    if status != 422:
        return {"detail": refusal.message}
    place = ["body", refusal.param] if refusal.param else ["body"]
    return {"detail": [{"loc": place, "msg": refusal.message, "type": refusal.kind.value}]}
