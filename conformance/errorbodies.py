"""The bodies of refusals: what the document says of them, and which form they have."""

from collections.abc import Callable, Iterable
from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.conformance.predicates import complete, refused
from streamgauge.contract.contract import JSON, Operation
from streamgauge.contract.profile import ANY
from streamgauge.contract.validator import Validator
from streamgauge.wire.exchange import Exchange

__all__ = [
    "ENVELOPES",
    "ENVELOPE_SENTENCE",
    "described",
    "documented",
    "documented_error",
    "error_schemas",
    "error_within",
    "form_of",
    "has_own_form",
    "leaves_open",
    "spoken_error",
]

ENVELOPE_SENTENCE = "ErrorResponse: oneOf: {error: {message (required), type, code, param}} or {error: string}"


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("message"), str)


ENVELOPES: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "openai": ("an object `error` with a `message`", lambda body: _is_error(body.get("error"))),
    "openai-or-string": (
        "an object `error` with a `message`, or a text `error`",
        lambda body: _is_error(body.get("error")) or isinstance(body.get("error"), str),
    ),
    "detail": ("a `detail`, text or list", lambda body: isinstance(body.get("detail"), str | list)),
    ANY: ("a JSON object", lambda body: True),
}
"""Value of `dialect.error_envelope` → its form in words, and whether a body has it."""

_FORMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "an object `error`": lambda body: isinstance(body.get("error"), dict),
    "a text `error`": lambda body: isinstance(body.get("error"), str),
    "a `detail`": lambda body: "detail" in body,
    "a `message` without `error` around it": lambda body: "message" in body,
}


def form_of(body: dict[str, Any]) -> str:
    """The form of an error body in words: what a reader of errors has to tell apart."""
    return next((name for name, holds in _FORMS.items() if holds(body)), "another object")


def _told_as_stream(case: Case) -> bool:
    """A stream in answer to a refused request for one: `request.stream-refused-whole` judges it."""
    return case.exchange.wants_stream and case.exchange.is_stream


def documented(operation: Operation, exchange: Exchange) -> bool:
    """Whether the document describes the body that comes with this status; of another method on the path it says nothing."""
    return exchange.request.method == operation.method and operation.documents_body(exchange.status, JSON)


def documented_error(case: Case) -> bool:
    """A refusal whose body the document describes, and that arrived as a whole."""
    return refused(case) and complete(case) and not _told_as_stream(case) and documented(case.operation, case.exchange)


def spoken_error(case: Case) -> bool:
    """A refusal whose body the document leaves open, and that arrived as a whole."""
    if not (refused(case) and complete(case)) or _told_as_stream(case) or case.exchange.request.method == "HEAD":
        return False
    return not documented(case.operation, case.exchange)


def describes(validator: Validator, body: dict[str, Any]) -> bool:
    """Whether a schema takes the body and says something of its members: one that takes everything says nothing."""
    return validator.accepts(body) and not validator.accepts(dict.fromkeys(body, 0))


def error_schemas(operation: Operation, member: str = "") -> list[Validator]:
    """Validators of every error body that the document describes, by code, range or default; of those with this member."""
    statuses = [status for status in dict.fromkeys((*operation.statuses, 400, 500)) if status >= 400]
    return [
        operation.response(status, JSON)
        for status in statuses
        if operation.documents_body(status, JSON)
        and (not member or member in operation.response_properties(status, JSON))
    ]


def described(operation: Operation, body: dict[str, Any]) -> bool:
    """Whether the body has the form of an error that the document describes."""
    return any(describes(each, body) for each in error_schemas(operation))


def has_own_form(case: Case, exchange: Exchange) -> bool:
    """An error body in a form that is right for its status, so that only its likeness to the others can be asked for."""
    body = exchange.json.value
    if exchange.status < 400 or exchange.rate_limited or not isinstance(body, dict):
        return False
    if documented(case.operation, exchange):
        return case.operation.response(exchange.status, JSON).accepts(body)
    _, holds = ENVELOPES[case.contract.profile.dialect.error_envelope]
    return holds(body) or described(case.operation, body)


def error_within(exchange: Exchange) -> dict[str, Any]:
    """The object `error` of the body; empty where there is none."""
    body = exchange.json.value
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def leaves_open(case: Case, member: str, values: Iterable[Any]) -> bool:
    """Whether the document takes an error with any of these values of a member; otherwise `error.envelope` judges it."""
    body, error = case.exchange.json.value, error_within(case.exchange)
    validator = case.operation.response(case.exchange.status, JSON)
    return all(validator.accepts({**body, "error": {**error, member: value}}) for value in values)
