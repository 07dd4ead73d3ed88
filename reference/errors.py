"""Refusals, and the error bodies in which each vendor's document wants them told."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["VENDORS", "Kind", "Refusal", "Vendor"]


class Kind(enum.StrEnum):
    """Why a request is refused; the value stands in the error body's `type`."""

    AUTHENTICATION = "authentication_error"
    MALFORMED = "invalid_request_error"
    UNPROCESSABLE = "unprocessable_entity_error"
    UNKNOWN_MODEL = "not_found_error"
    NO_SUCH_PATH = "path_not_found_error"
    METHOD = "method_not_allowed_error"
    MEDIA_TYPE = "unsupported_media_type_error"
    TOO_LARGE = "request_too_large_error"
    HEADERS_TOO_LARGE = "request_header_fields_too_large_error"
    PROTOCOL = "protocol_error"


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """
    A request is answered with a 4xx.

    Args:
        kind: why; the vendor's table turns it into a status.
        message: a sentence for the caller. It never quotes the request, which may hold secrets.
        param: name of the documented request parameter that it is about; empty for none.
    """

    def __init__(self, kind: Kind, message: str, param: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class Vendor:
    """
    How one profile's documents want errors told.

    Attributes:
        malformed: status of a body that is no JSON or breaks the schema.
        unknown_model: status for a model that is not served.
        body: makes the error body of a refusal and its status.
    """

    malformed: int
    unknown_model: int
    body: Callable[[Refusal, int], dict[str, Any]]

    def status(self, refusal: Refusal) -> int:
        """The HTTP status of a refusal."""
        own = {Kind.MALFORMED: self.malformed, Kind.UNKNOWN_MODEL: self.unknown_model}
        return own.get(refusal.kind) or _STATUS[refusal.kind]


_STATUS = {
    Kind.AUTHENTICATION: 401,
    Kind.UNPROCESSABLE: 422,
    Kind.NO_SUCH_PATH: 404,
    Kind.METHOD: 405,
    Kind.MEDIA_TYPE: 415,
    Kind.TOO_LARGE: 413,
    Kind.HEADERS_TOO_LARGE: 431,
    Kind.PROTOCOL: 400,
}


def _structured(refusal: Refusal, status: int) -> dict[str, Any]:
    """Seekr's `StructuredError`: `code` is an integer, and `param` is a string or not there."""
    error: dict[str, Any] = {"message": refusal.message, "type": refusal.kind.value, "code": status}
    if refusal.param:
        error["param"] = refusal.param
    return {"error": error}


def _openai(refusal: Refusal, status: int) -> dict[str, Any]:
    """OpenAI's envelope; for 422, the one error on DeepInfra's page, FastAPI's `HTTPValidationError`."""
    if status == 422:
        place = ["body", refusal.param] if refusal.param else ["body"]
        return {"detail": [{"loc": place, "msg": refusal.message, "type": refusal.kind.value}]}
    code = "model_not_found" if refusal.kind is Kind.UNKNOWN_MODEL else None
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind.value,
            "param": refusal.param or None,
            "code": code,
        }
    }


VENDORS: dict[str, Vendor] = {
    "seekr": Vendor(malformed=400, unknown_model=422, body=_structured),
    "deepinfra": Vendor(malformed=422, unknown_model=404, body=_openai),
}
"""Name of each profile that can be served → its vendor's errors."""
