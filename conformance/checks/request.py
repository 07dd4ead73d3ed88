"""`request.*`: what the endpoint takes and what it turns away."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.predicates import answered, sends_key, unknown_model, valid_request
from streamgauge.contract.contract import JSON, Contract, Operation
from streamgauge.outcomes import Level, Outcome

_BODY = "/requestBody/content/application~1json/schema"


def _posted(case: Case) -> bool:
    return answered(case) and sends_key(case) and case.exchange.request.method == case.operation.method


def _shown(case: Case) -> str:
    return f"{case.exchange.status} {case.exchange.response.reason}".strip()


def _no_json(case: Case) -> bool:
    return _posted(case) and not case.exchange.request.is_json


@check(
    "request.malformed",
    Level.MUST,
    "A body that is no JSON is refused with 4xx",
    requirement="'400': description: Malformed request body, or `model` missing.",
    source="/responses/400; RFC 9110, section 15.5",
    applies=_no_json,
)
def malformed(case: Case) -> Iterator[Departure]:
    """The client's fault has to look like it."""
    if not 400 <= case.exchange.status < 500:
        yield Departure("4xx", _shown(case))


@check(
    "request.malformed-status",
    Level.SHOULD,
    "A body that is no JSON gets the status that the document names for it",
    requirement="'400': description: Malformed request body, or `model` missing.",
    source="/responses/400",
    applies=lambda case: _no_json(case) and 400 <= case.exchange.status < 500,
)
def malformed_status(case: Case) -> Iterator[Departure]:
    """The profile says which statuses count as the document's."""
    allowed = case.contract.profile.dialect.malformed_status
    if case.exchange.status not in allowed:
        yield Departure(" or ".join(map(str, allowed)), _shown(case))


def _lacks_model(case: Case) -> bool:
    body = case.exchange.sent
    return _posted(case) and isinstance(body, dict) and body.get("model") is None


def _model_needed(operation: Operation, contract: Contract) -> bool:
    """The document demands a model: by its schema, or by the text of its 400."""
    told = str(operation.definition["responses"].get("400", {}).get("description", ""))
    return "`model` missing" in told or "model" in operation.required


@check(
    "request.model-missing",
    Level.MUST,
    "A request without a model is refused",
    requirement="'400': description: Malformed request body, or `model` missing.",
    source="/responses/400",
    applies=_lacks_model,
    concerns=_model_needed,
)
def model_missing(case: Case) -> Iterator[Departure]:
    """A default nobody asked for answers, and is billed, instead."""
    if not 400 <= case.exchange.status < 500:
        yield Departure("4xx", _shown(case))


@check(
    "request.model-unknown",
    Level.MUST,
    "A request for a model that does not exist is refused",
    requirement="'422': description: Deployment not found, or the request is unprocessable.",
    source="/responses/422",
    applies=lambda case: _posted(case) and unknown_model(case),
)
def model_unknown(case: Case) -> Iterator[Departure]:
    """Another model answers in its place, and its answer is taken for the right one's."""
    if not 400 <= case.exchange.status < 500:
        yield Departure("4xx", _shown(case))


@check(
    "request.model-unknown-status",
    Level.SHOULD,
    "A request for a model that does not exist gets the status that the document names",
    requirement="'422': description: Deployment not found, or the request is unprocessable.",
    source="/responses/422",
    applies=lambda case: _posted(case) and unknown_model(case) and 400 <= case.exchange.status < 500,
)
def model_unknown_status(case: Case) -> Iterator[Departure]:
    """The profile says which statuses count as the document's."""
    allowed = case.contract.profile.dialect.unknown_model_status
    if case.exchange.status not in allowed:
        yield Departure(" or ".join(map(str, allowed)), _shown(case))


def _breaks_schema(case: Case) -> bool:
    return (
        _posted(case)
        and case.exchange.request.is_json
        and not case.operation.request.accepts(case.exchange.request.json)
    )


@check(
    "request.invalid",
    Level.SHOULD,
    "A request that breaks the document's schema is refused",
    requirement="'400': description: Malformed request body; 422: the request is unprocessable.",
    source=_BODY,
    applies=_breaks_schema,
)
def invalid(case: Case) -> Iterator[Departure]:
    """Accepted, it hides the caller's mistake: the property is read in some other way, or not at all."""
    if 200 <= case.exchange.status < 300:
        problem = case.operation.request.problems(case.exchange.sent)[0]
        yield Departure(f"4xx, since {problem}", _shown(case), outcome=Outcome.IGNORED)


@check(
    "request.valid",
    Level.SHOULD,
    "A request that the document allows is not refused",
    requirement="'200': description: Successful response.",
    source=_BODY,
    applies=lambda case: _posted(case) and valid_request(case),
)
def valid(case: Case) -> Iterator[Departure]:
    """A documented 4xx for an optional feature is a refusal, and no fault by itself."""
    if 400 <= case.exchange.status < 500:
        body = case.exchange.response.body[:160].decode("utf-8", "replace")
        yield Departure("2xx", f"{_shown(case)}: {body}", outcome=Outcome.REFUSED)


def _plain_names(operation: Operation) -> set[str]:
    return {
        "model",
        "messages",
        "prompt",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "stream",
    } & set(operation.properties)


def _only_adds_unknown(case: Case) -> bool:
    body = case.exchange.sent
    return (
        _posted(case)
        and valid_request(case)
        and bool(set(body) - set(case.operation.properties))
        and set(body) & set(case.operation.properties) <= _plain_names(case.operation)
    )


@check(
    "request.extra-property",
    Level.MUST,
    "A property that the document does not know is accepted",
    requirement="additionalProperties: true",
    source=f"{_BODY}/additionalProperties",
    applies=_only_adds_unknown,
    concerns=lambda operation, contract: operation.request_object.get("additionalProperties") is True,
)
def extra_property(case: Case) -> Iterator[Departure]:
    """Clients send the properties of newer or other versions along."""
    if not 200 <= case.exchange.status < 300:
        extra = sorted(set(case.exchange.sent) - set(case.operation.properties))
        yield Departure("2xx", f"{_shown(case)} for {', '.join(extra)}")


def _wants_json(case: Case) -> bool:
    return _posted(case) and 400 <= case.exchange.status < 500 and case.exchange.wants_stream


@check(
    "request.stream-refused-whole",
    Level.MUST,
    "A refused request for a stream gets a JSON error, not a stream",
    requirement="'400' ... '429': content: application/json",
    source="/responses",
    applies=_wants_json,
)
def stream_refused_whole(case: Case) -> Iterator[Departure]:
    """The statuses hold for the request, whatever form its answer should have had."""
    if case.exchange.response.media_type != JSON:
        yield Departure(JSON, case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "request.method",
    Level.SHOULD,
    "Another method on the path gets 405 with Allow",
    requirement="The origin server MUST generate an Allow header field in a 405 response.",
    source="RFC 9110, section 15.5.6",
    applies=lambda case: answered(case) and case.exchange.request.method not in (case.operation.method, "OPTIONS"),
)
def method(case: Case) -> Iterator[Departure]:
    """404 hides that the path is right."""
    if case.exchange.status != 405:
        yield Departure("405", _shown(case))
    elif case.exchange.response.header("allow") is None:
        yield Departure("an Allow field", "none")
