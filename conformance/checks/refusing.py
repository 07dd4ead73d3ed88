"""`request.*`: what the endpoint has to turn away, and how."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.posting import judged_by_body, not_plain, one_of, posted, shown
from streamgauge.conformance.predicates import unknown_model
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.validator import DISPUTED
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence, Exchange
from streamgauge.wire.json import read_json

_BODY = "/requestBody/content/application~1json/schema"


def _no_json(case: Case) -> bool:
    return judged_by_body(case) and not case.exchange.request.is_json


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
        yield Departure("4xx", shown(case))


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
    yield from one_of(case, case.contract.profile.dialect.malformed_status)


def _lacks_model(case: Case) -> bool:
    body = case.exchange.sent
    return judged_by_body(case) and isinstance(body, dict) and body.get("model") is None


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
        yield Departure("4xx", shown(case))


def _needed(operation: Operation) -> set[str]:
    """What the schema requires; of the model `request.model-missing` tells."""
    return set(operation.required) - {"model"}


def _lacks_required(case: Case) -> bool:
    body = case.exchange.sent
    return judged_by_body(case) and isinstance(body, dict) and bool(_needed(case.operation) - body.keys())


@check(
    "request.required",
    Level.MUST,
    "A request without a property that the document requires is refused",
    requirement="required: [...]",
    source=f"{_BODY}/required",
    applies=_lacks_required,
    concerns=lambda operation, contract: bool(_needed(operation)),
    needs=(Evidence.REQUEST,),
)
def required(case: Case) -> Iterator[Departure]:
    """There is nothing to answer: what comes back is made up, and billed."""
    if not 400 <= case.exchange.status < 500:
        missing = sorted(_needed(case.operation) - case.exchange.sent.keys())
        yield Departure(f"4xx, since {', '.join(missing)} is missing", shown(case))


def _surely_unknown(case: Case) -> bool:
    """
    A request for another model that surely does not exist.

    Our own probes name such a one. Others may have asked for a second model that is there: of what they captured, a refusal
    in the expected form, or an answer by the model of all other requests, tells.
    """
    if not (judged_by_body(case) and unknown_model(case)):
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
        yield Departure("4xx", shown(case))


@check(
    "request.model-unknown-status",
    Level.SHOULD,
    "A request for a model that does not exist gets the status that the document names",
    requirement="'422': description: Deployment not found, or the request is unprocessable.",
    source="/responses/422",
    # 413 is about the size of the body, whatever model it names: `limit.body-status` judges it. Anything unusual, or a
    # null, may be what was refused.
    applies=lambda case: (
        _surely_unknown(case)
        and 400 <= case.exchange.status < 500
        and case.exchange.status != 413
        and not not_plain(case)
        and None not in case.exchange.sent.values()
    ),
    absent="no request was refused that is plain but for its model, of which it is known that it does not exist",
    needs=(Evidence.REQUEST,),
)
def model_unknown_status(case: Case) -> Iterator[Departure]:
    """The profile says which statuses count as the document's."""
    yield from one_of(case, case.contract.profile.dialect.unknown_model_status)


def _lacks_something(case: Case) -> bool:
    """What a request must not lack, `request.model-missing` and `request.required` judge."""
    return _lacks_required(case) or (_lacks_model(case) and _model_needed(case.operation, case.contract))


def _breaks_schema(case: Case) -> bool:
    """
    A request that breaks its schema beyond doubt, in another way than by what it lacks.

    A number beyond a double, such as 1e400, is an integer by its text and an infinity to most readers: the schema does not
    tell whether it may be refused.
    """
    if not (judged_by_body(case) and case.exchange.request.is_json) or _lacks_something(case):
        return False
    validator = case.operation.request
    return not validator.accepts(case.exchange.sent) and not read_json(case.exchange.request.body).infinite


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
        outcome = Outcome.INCONCLUSIVE if problem.keyword == DISPUTED else Outcome.IGNORED
        yield Departure(f"4xx, since {problem}", shown(case), outcome=outcome)


def _refused_as_stream(case: Case) -> bool:
    return posted(case) and 400 <= case.exchange.status < 500 and case.exchange.wants_stream


@check(
    "request.stream-refused-whole",
    Level.MUST,
    "A refused request for a stream gets a JSON error, not a stream",
    requirement="'400' ... '429': content: application/json",
    source="/responses",
    applies=_refused_as_stream,
    needs=(Evidence.REQUEST,),
)
def stream_refused_whole(case: Case) -> Iterator[Departure]:
    """The statuses hold for the request, whatever form its answer should have had; other media types: `error.media-type`."""
    if case.exchange.is_stream:
        told = case.exchange.response.header("content-type") or "a stream without Content-Type"
        yield Departure(" or ".join(case.operation.json_types(case.exchange.status)), told)


_STREAM_MEMBERS = ("stream", "stream_options")


def _surely_wrong(case: Case) -> bool:
    """A body that has to be refused whether a stream is asked for or not."""
    sent = case.exchange.sent
    if not isinstance(sent, dict):
        return False
    bare = {name: value for name, value in sent.items() if name not in _STREAM_MEMBERS}
    if not case.operation.request.accepts(bare):
        return not read_json(case.exchange.request.body).infinite
    return case.exchange.holds == frozenset(Evidence) and unknown_model(case)


def _whole_statuses(case: Case) -> list[int]:
    """How the same request was refused that says nothing of streams."""
    return _refused_whole(case).get(asked(case.exchange), [])


@once
def _refused_whole(case: Case) -> dict[Asked, list[int]]:
    """The statuses with which each question was refused in the whole form."""
    found = {
        key: {twin.status for twin in group if _is_whole(twin) and 400 <= twin.status < 500 and not twin.rate_limited}
        for key, group in case.others.groups.items()
    }
    return {key: sorted(statuses) for key, statuses in found.items()}


def _is_whole(twin: Exchange) -> bool:
    """A null may be what was refused: `request.null-accepted` judges that."""
    return isinstance(twin.sent, dict) and not any(twin.sent.get(name, False) is not False for name in _STREAM_MEMBERS)


def _told_in_both_forms(case: Case) -> bool:
    wants = posted(case) and case.exchange.wants_stream and case.exchange.status < 500
    return wants and _surely_wrong(case) and bool(_whole_statuses(case))


@check(
    "request.stream-status",
    Level.MUST,
    "A wrong request gets the same status whether it asks for a stream or not",
    requirement="responses: the statuses hold for the request, not for the form of its answer.",
    source="/responses",
    applies=_told_in_both_forms,
    concerns=lambda operation, contract: operation.streams,
    absent="no wrong request was sent in both forms and refused in the whole one",
    needs=(Evidence.REQUEST,),
)
def stream_status(case: Case) -> Iterator[Departure]:
    """The two forms read the request by different code, and one of them finds out too late."""
    statuses = _whole_statuses(case)
    if case.exchange.status not in statuses:
        yield Departure(f"{' or '.join(map(str, statuses))}, as without `stream`", shown(case))
