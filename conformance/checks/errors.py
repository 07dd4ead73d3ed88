"""`error.*`: how the endpoint says no."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.limits import judged_whole, misshapen, text_beyond_limit
from streamgauge.conformance.predicates import answered, outgrown, refused, streamed, whole
from streamgauge.contract.contract import JSON
from streamgauge.contract.profile import ANY
from streamgauge.contract.validator import Validator
from streamgauge.contract.widening import key_needed
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence, Exchange

_RESPONSES = "/responses"
_ENVELOPE = "ErrorResponse: oneOf: {error: {message (required), type, code, param}} or {error: string}"


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("message"), str)


ENVELOPES: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "openai": ("an object `error` with a `message`", lambda body: _is_error(body.get("error"))),
    "openai-or-string": (
        "an object `error` with a `message`, or a text `error`",
        lambda body: _is_error(body.get("error")) or isinstance(body.get("error"), str),
    ),
    "detail": ("a `detail`, text or list", lambda body: isinstance(body.get("detail"), str | list)),
}
"""Value of `dialect.error_envelope` → its form in words, and whether a body has it."""


def describes(validator: Validator, body: dict[str, Any]) -> bool:
    """Whether a schema takes the body and says something of its members: one that takes everything says nothing."""
    return validator.accepts(body) and not validator.accepts(dict.fromkeys(body, 0))


def _documented_error(case: Case) -> bool:
    """A refusal whose body the document describes; of another method on the path it says nothing."""
    own = case.exchange.request.method == case.operation.method
    return refused(case) and own and case.operation.documents_body(case.exchange.status, JSON)


def error_schemas(case: Case, member: str = "") -> list[Validator]:
    """Validators of every error body that the document describes, by code, range or default; of those with this member."""
    operation = case.operation
    statuses = [status for status in dict.fromkeys((*operation.statuses, 400, 500)) if status >= 400]
    return [
        operation.response(status, JSON)
        for status in statuses
        if operation.documents_body(status, JSON)
        and (not member or member in operation.response_properties(status, JSON))
    ]


def _in_stream(case: Case) -> list[Validator]:
    """Validators of what an error within a stream may be: that of a refused request, say, has no `error`."""
    return error_schemas(case, "error")


def _known(case: Case) -> bool:
    """Whether document or profile knows the status."""
    return case.contract.allows_status(case.operation, case.exchange.status)


def _unknown(case: Case, expected: str) -> Iterator[Departure]:
    """The status that nobody knows; or the one that passes because the profile allows it, which has to be seen."""
    status, profile = case.exchange.status, case.contract.profile.name
    if case.operation.documents_status(status):
        return
    if _known(case):
        told = f"{status}, allowed by the profile {profile}, not listed by the document"
        yield Departure(expected, told, outcome=Outcome.PASS)
    else:
        yield Departure(expected, f"{status} {case.exchange.response.reason}")


@check(
    "error.no-5xx",
    Level.MUST,
    "No request makes the server fail",
    requirement="responses: 502 (backend disconnected) and 503 (no healthy backend) are the only documented failures.",
    source=_RESPONSES,
    applies=answered,
)
def no_5xx(case: Case) -> Iterator[Departure]:
    """Whatever a request holds, a 500 is the server's own fault."""
    if case.exchange.status >= 500:
        yield from _unknown(case, "2xx or a documented 4xx")


@check(
    "error.status-documented",
    Level.MUST,
    "Each status is one that the document lists",
    requirement="responses: the statuses that a caller has to expect.",
    source=_RESPONSES,
    applies=lambda case: answered(case) and case.exchange.status < 500,
)
def status_documented(case: Case) -> Iterator[Departure]:
    """A caller cannot handle what nobody told him of. Statuses about the transport (404, 405, 413, ...) are allowed."""
    status, expected = case.exchange.status, f"one of {', '.join(map(str, case.operation.statuses))}"
    if status == 401 and key_needed(case.operation, case.contract) and not _known(case):
        told = f"401, which the profile {case.contract.profile.name} demands, not listed by the document"
        yield Departure(expected, told, outcome=Outcome.PASS)
    else:
        yield from _unknown(case, expected)


@check(
    "error.media-type",
    Level.MUST,
    "A documented error is application/json",
    requirement="content: application/json",
    source=f"{_RESPONSES}/<status>/content",
    applies=_documented_error,
)
def media_type(case: Case) -> Iterator[Departure]:
    """A proxy's HTML page is no error of the API."""
    allowed = case.operation.json_types(case.exchange.status)
    if case.exchange.response.media_type not in allowed:
        yield Departure(" or ".join(allowed), case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "error.envelope",
    Level.MUST,
    "A documented error has the documented shape",
    requirement=_ENVELOPE,
    source=f"{_RESPONSES}/<status>/content/application~1json/schema",
    applies=lambda case: _documented_error(case) and not outgrown(case),
    needs=(Evidence.ENDING,),
)
def envelope(case: Case) -> Iterator[Departure]:
    """Callers show its message and switch on its code."""
    text = case.exchange.json
    if limited := text_beyond_limit(text, len(case.exchange.response.body)):
        yield limited
        return
    if not text.valid:
        yield Departure("a JSON error body", text.defects[0].detail if text.defects else "no JSON")
        return
    for problem in case.operation.response(case.exchange.status, JSON).problems(text.value)[:1]:
        yield misshapen(problem, "the documented error body")


@check(
    "error.envelope-undocumented",
    Level.SHOULD,
    "An error whose body is not documented looks like the others",
    requirement=_ENVELOPE,
    source=CLIENTS,
    applies=lambda case: (
        refused(case) and not _documented_error(case) and not outgrown(case) and case.exchange.request.method != "HEAD"
    ),
    concerns=lambda operation, contract: contract.profile.dialect.error_envelope != ANY,
    needs=(Evidence.ENDING,),
)
def envelope_undocumented(case: Case) -> Iterator[Departure]:
    """One parser for all errors: in the profile's form, or in that of the errors that the document describes."""
    if limited := text_beyond_limit(case.exchange.json, len(case.exchange.response.body)):
        yield limited
        return
    expected, holds = ENVELOPES[case.contract.profile.dialect.error_envelope]
    body = case.exchange.json.value if case.exchange.json.valid else None
    if not (isinstance(body, dict) and (holds(body) or any(describes(each, body) for each in error_schemas(case)))):
        shown = case.exchange.response.body[:60].decode("utf-8", "replace")
        yield Departure(expected, repr(shown))


@check(
    "error.code",
    Level.SHOULD,
    "A numeric error code equals the status",
    requirement="error.code: type: integer",
    source=f"{_RESPONSES}/<status>/content/application~1json/schema",
    applies=lambda case: refused(case) and isinstance(_code(case.exchange), int),
)
def code(case: Case) -> Iterator[Departure]:
    """Two numbers for one failure leave the caller to guess."""
    value = _code(case.exchange)
    if value is not None and 400 <= value <= 599 and value != case.exchange.status:
        yield Departure(str(case.exchange.status), str(value))


def _code(exchange: Exchange) -> int | None:
    body = exchange.json.value
    error = body.get("error") if isinstance(body, dict) else None
    value = error.get("code") if isinstance(error, dict) else None
    return value if type(value) is int else None


def _open_code(case: Case) -> bool:
    """An error with a code whose type the document leaves open: it takes a number there as well as a word."""
    body = case.exchange.json.value
    error = body.get("error") if isinstance(body, dict) else None
    if not (refused(case) and isinstance(error, dict) and "code" in error):
        return False
    validator = case.operation.response(case.exchange.status, JSON)
    return all(validator.accepts({**body, "error": {**error, "code": code}}) for code in (1, "word"))


_CODES: dict[str, tuple[str, tuple[type, ...]]] = {
    "integer": ("an integer", (int,)),
    "string": ("a string or null", (str, type(None))),
}


@check(
    "error.code-type",
    Level.SHOULD,
    "An error code is of the type that the profile says",
    requirement="error.code: type: integer (Seekr, vLLM); string or null (OpenAI)",
    source=f"{CLIENTS}; the profile's `dialect.error_code`",
    applies=_open_code,
    concerns=lambda operation, contract: contract.profile.dialect.error_code != ANY,
    absent="no error with a code whose type the document leaves open",
)
def code_type(case: Case) -> Iterator[Departure]:
    """Typed clients read one or the other; where the document says which, `error.envelope` judges it."""
    expected, types = _CODES[case.contract.profile.dialect.error_code]
    value = case.exchange.json.value["error"]["code"]
    if type(value) not in types:
        yield Departure(expected, repr(value))


@check(
    "error.not-in-200",
    Level.MUST,
    "A 200 answer reports no error",
    requirement="'200': description: Successful response.",
    source=f"{_RESPONSES}/200",
    applies=lambda case: whole(case) and isinstance(case.exchange.json.value, dict),
)
def not_in_200(case: Case) -> Iterator[Departure]:
    """Whoever looks at the status only takes it for an answer."""
    body = case.exchange.json.value
    if body.get("error") is not None or body.get("object") == "error":
        yield Departure("a 4xx or 5xx status", "200 with an error body")


@check(
    "error.not-in-stream",
    Level.MUST,
    "A 200 stream reports no error in place of its answer",
    requirement="'502': description: Backend disconnected before sending a response. (the status tells what happened)",
    source=_RESPONSES,
    applies=streamed,
)
@judged_whole
def not_in_stream(case: Case) -> Iterator[Departure]:
    """Once the status is out, many clients never look for an error again."""
    failed = case.exchange.stream.error
    if failed is not None:
        yield Departure("an answer, or an error status before it", failed.event.data[:120], event=failed.event)


@check(
    "error.stream-shape",
    Level.MUST,
    "An error within a stream has the documented error shape",
    requirement=_ENVELOPE,
    source=f"{_RESPONSES}/<status>/content/application~1json/schema",
    applies=lambda case: streamed(case) and case.exchange.stream.error is not None and bool(_in_stream(case)),
    absent="no stream reported an error",
)
def stream_shape(case: Case) -> Iterator[Departure]:
    """The same parser reads both. Which of several documented shapes is meant, no status tells."""
    failed = case.exchange.stream.error
    if failed is not None:
        found = [validator.problems(failed.object) for validator in _in_stream(case)]
        if all(found):
            yield misshapen(found[0][0], "a documented error body", failed.event)


@check(
    "error.retry-after",
    Level.SHOULD,
    "A limited rate says when to come back",
    requirement=(
        "The response representations ... MAY include a Retry-After header indicating how long to wait before making a new "
        "request."
    ),
    source="RFC 6585, section 4",
    applies=lambda case: case.exchange.status == 429,
    absent="the rate was never limited",
)
def retry_after(case: Case) -> Iterator[Departure]:
    """Without it, callers guess, mostly too short."""
    if case.exchange.response.header("retry-after") is None:
        yield Departure("Retry-After", "none")


@check(
    "error.limit-envelope",
    Level.MUST,
    "A limited rate answers in the documented shape",
    requirement="'429': description: Rate limit exceeded. content: application/json",
    source=f"{_RESPONSES}/429",
    applies=lambda case: (
        case.exchange.status == 429 and not outgrown(case) and case.operation.documents_body(429, JSON)
    ),
    concerns=lambda operation, contract: operation.documents_body(429, JSON),
    absent="the rate was never limited",
    needs=(Evidence.ENDING,),
)
def limit_envelope(case: Case) -> Iterator[Departure]:
    """A gateway's own page is what callers get exactly when they most need the message."""
    text = case.exchange.json
    if not text.valid:
        yield Departure("a JSON error body", "no JSON")
        return
    for problem in case.operation.response(429, JSON).problems(text.value)[:1]:
        yield misshapen(problem, "the documented error body")
