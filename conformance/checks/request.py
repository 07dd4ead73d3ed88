"""`request.*`: what the endpoint takes and what it turns away."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.predicates import (
    answered,
    key_refused,
    sends_key,
    unknown_model,
    used_features,
    valid_request,
)
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.features import FEATURES
from streamgauge.contract.profile import SUPPORTED
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence

_BODY = "/requestBody/content/application~1json/schema"


def _posted(case: Case) -> bool:
    right_method = case.exchange.request.method == case.operation.method
    return answered(case) and sends_key(case) and not key_refused(case) and right_method


def _shown(case: Case) -> str:
    return f"{case.exchange.status} {case.exchange.response.reason}".strip()


def _one_of(case: Case, allowed: tuple[int, ...]) -> Iterator[Departure]:
    """The first status is the vendor's own; that one of the others passes has to be seen."""
    status = case.exchange.status
    if status not in allowed:
        yield Departure(" or ".join(map(str, allowed)), _shown(case))
    elif status != allowed[0]:
        name = case.contract.profile.name
        yield Departure(str(allowed[0]), f"{status}, accepted by the profile {name} as well", outcome=Outcome.PASS)


def _no_json(case: Case) -> bool:
    return _posted(case) and not case.exchange.request.is_json


@check(
    "request.malformed",
    Level.MUST,
    "A body that is no JSON is refused with 4xx",
    requirement="'400': description: Malformed request body, or `model` missing.",
    source="/responses/400; RFC 9110, section 15.5",
    applies=_no_json,
    needs=(Evidence.REQUEST,),
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
    needs=(Evidence.REQUEST,),
)
def malformed_status(case: Case) -> Iterator[Departure]:
    """The profile says which statuses count as the document's."""
    yield from _one_of(case, case.contract.profile.dialect.malformed_status)


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
    needs=(Evidence.REQUEST,),
)
def model_missing(case: Case) -> Iterator[Departure]:
    """A default nobody asked for answers, and is billed, instead."""
    if not 400 <= case.exchange.status < 500:
        yield Departure("4xx", _shown(case))


def _surely_unknown(case: Case) -> bool:
    """
    A request for another model that surely does not exist.

    Our own probes name such a one. Others may have asked for a second model that is there: of what they captured, a refusal
    in the expected form, or an answer by the model of all other requests, tells.
    """
    if not (_posted(case) and unknown_model(case)):
        return False
    exchange = case.exchange
    if exchange.holds == frozenset(Evidence):
        return True
    first = (
        next((chunk.object for chunk in exchange.stream.chunks), None) if exchange.is_stream else exchange.json.value
    )
    answered_by = first.get("model") if isinstance(first, dict) else None
    return answered_by == case.model or exchange.status in case.contract.profile.dialect.unknown_model_status


_NO_UNKNOWN = "no request named a model of which it is known that it does not exist"


@check(
    "request.model-unknown",
    Level.MUST,
    "A request for a model that does not exist is refused",
    requirement="'422': description: Deployment not found, or the request is unprocessable.",
    source="/responses/422",
    applies=_surely_unknown,
    absent=_NO_UNKNOWN,
    needs=(Evidence.REQUEST,),
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
    applies=lambda case: _surely_unknown(case) and 400 <= case.exchange.status < 500,
    absent=_NO_UNKNOWN,
    needs=(Evidence.REQUEST,),
)
def model_unknown_status(case: Case) -> Iterator[Departure]:
    """The profile says which statuses count as the document's."""
    yield from _one_of(case, case.contract.profile.dialect.unknown_model_status)


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
    needs=(Evidence.REQUEST,),
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
    needs=(Evidence.REQUEST,),
)
def valid(case: Case) -> Iterator[Departure]:
    """A documented 4xx for an optional feature is a refusal, and no fault by itself."""
    if not 400 <= case.exchange.status < 500:
        return
    profile = case.contract.profile
    if lacking := profile.unsupported(used_features(case)):
        told = f"{case.exchange.status}, expected by the profile {profile.name}: it has {', '.join(lacking)} as unsupported"
        yield Departure("2xx", told, outcome=Outcome.PASS)
        return
    body = case.exchange.response.body[:160].decode("utf-8", "replace")
    yield Departure("2xx", f"{_shown(case)}: {body}", outcome=Outcome.REFUSED)


def _asks_only_for_supported(case: Case) -> bool:
    """A plain request but for features that the profile calls supported: nothing else in it could be refused."""
    if not (_posted(case) and valid_request(case)):
        return False
    used, said = used_features(case), case.contract.profile.features
    if not used or any(said.get(name) != SUPPORTED for name in used):
        return False
    return _not_plain(case) <= {param for name in used for param in FEATURES[name].params}


@check(
    "request.feature-supported",
    Level.SHOULD,
    "A feature that the profile calls supported is not refused",
    requirement="features: NAME: supported",
    source="the profile's `features`, which quotes the vendor",
    applies=_asks_only_for_supported,
    concerns=lambda operation, contract: SUPPORTED in contract.profile.features.values(),
    absent="no plain request used a feature that the profile calls supported",
    needs=(Evidence.REQUEST,),
)
def feature_supported(case: Case) -> Iterator[Departure]:
    """What the vendor promises has to be there."""
    if 400 <= case.exchange.status < 500:
        yield Departure(f"2xx for {', '.join(sorted(used_features(case)))}", _shown(case))


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "model": lambda value: True,
    "messages": lambda value: isinstance(value, list) and bool(value) and all(map(_says_text, value)),
    "prompt": lambda value: isinstance(value, str) and value != "",
    "max_tokens": lambda value: _within(value, 1, 256),
    "max_completion_tokens": lambda value: _within(value, 1, 256),
    "temperature": lambda value: _within(value, 0, 2),
    "stream": lambda value: True,
}
"""Property of every request → whether no server could refuse its value, which is valid by the document."""


def _within(value: Any, low: int, high: int) -> bool:
    return isinstance(value, (int, float)) and low <= value <= high


def _says_text(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
        return False
    return isinstance(message.get("content"), str) and message["content"] != ""


def _not_plain(case: Case) -> set[str]:
    """The documented properties of a valid request that a server might refuse."""
    return {
        name
        for name, value in case.exchange.sent.items()
        if name in case.operation.properties and value is not None and not (name in _PLAIN and _PLAIN[name](value))
    }


def _only_adds_unknown(case: Case) -> bool:
    return (
        _posted(case)
        and valid_request(case)
        and bool(set(case.exchange.sent) - set(case.operation.properties))
        and not _not_plain(case)
    )


def _takes_more(operation: Operation) -> bool:
    """The document says outright that further properties are allowed."""
    return operation.schemas.resolved(operation.request_schema).get("additionalProperties") is True


@check(
    "request.extra-property",
    Level.MUST,
    "A property that the document does not know is accepted",
    requirement="additionalProperties: true",
    source=f"{_BODY}/additionalProperties",
    applies=_only_adds_unknown,
    concerns=lambda operation, contract: _takes_more(operation),
    needs=(Evidence.REQUEST,),
)
def extra_property(case: Case) -> Iterator[Departure]:
    """Clients send the properties of newer or other versions along."""
    if case.contract.profile.unsupported(used_features(case)) and 400 <= case.exchange.status < 500:
        return  # the refusal is about the feature: the request without it tells
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
    needs=(Evidence.REQUEST,),
)
def stream_refused_whole(case: Case) -> Iterator[Departure]:
    """The statuses hold for the request, whatever form its answer should have had."""
    allowed = case.operation.json_types(case.exchange.status)
    if case.exchange.response.media_type not in allowed:
        yield Departure(" or ".join(allowed), case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "request.method",
    Level.SHOULD,
    "Another method on the path gets 405 with Allow",
    requirement="The origin server MUST generate an Allow header field in a 405 response.",
    source="RFC 9110, section 15.5.6",
    applies=lambda case: (
        answered(case) and sends_key(case) and case.exchange.request.method not in (case.operation.method, "OPTIONS")
    ),
    needs=(Evidence.REQUEST,),
)
def method(case: Case) -> Iterator[Departure]:
    """404 hides that the path is right."""
    if case.exchange.status != 405:
        yield Departure("405", _shown(case))
    elif case.exchange.response.header("allow") is None:
        yield Departure("an Allow field", "none")
