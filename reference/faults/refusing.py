"""`request.*`: wrong requests that are accepted, or turned away in a wrong way."""

from typing import Any

from streamgauge.contract.plain import plain_request
from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind
from streamgauge.reference.faults.bends import ask
from streamgauge.reference.faults.fault import Stage, fault, requests
from streamgauge.reference.faults.telling import PLAIN, mistyped, tell, tell_raw, turned_down
from streamgauge.wire.json import read_json

_STATUSES = (400, 422, 404)


def _posted(draft: Draft) -> bool:
    return draft.operation is not None and draft.request.method == draft.operation.method


def _no_object(draft: Draft) -> bool:
    return _posted(draft) and not draft.asked


def _plain(draft: Draft) -> dict[str, Any]:
    assert draft.operation is not None
    return plain_request(draft.operation, draft.models[0], max_tokens=2)


def _object(draft: Draft) -> bool:
    """A request whose body is a JSON object, without a defect."""
    return requests(draft) and not read_json(draft.request.body).defects


def _breaks_schema(draft: Draft) -> bool:
    return _object(draft) and draft.operation is not None and not draft.operation.request.accepts(draft.asked)


def _other(draft: Draft, taken: tuple[int, ...]) -> int:
    """A documented 4xx that the profile does not take here."""
    return next(status for status in _STATUSES if status not in taken)


@fault(
    "request.malformed-accepted",
    "A body that is no JSON is answered",
    caught_by="request.malformed",
    stage=Stage.REQUEST,
    concerns=lambda draft: _posted(draft) and not read_json(draft.request.body).valid,
)
def malformed_accepted(draft: Draft) -> None:
    """As if it had been the plainest request."""
    ask(draft, _plain(draft))


@fault(
    "request.malformed-500",
    "A body that is no JSON makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: turned_down(draft) and not read_json(draft.request.body).valid,
    seen=("sgl-project/sglang#5599", "ggml-org/llama.cpp#5961", "vllm-project/vllm#17036"),
)
def malformed_500(draft: Draft) -> None:
    """Its parser's exception is nobody's."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "request.malformed-other-status",
    "A body that is no JSON gets a status that stands for something else",
    caught_by="request.malformed-status",
    stage=Stage.ANSWER,
    concerns=lambda draft: turned_down(draft) and not read_json(draft.request.body).valid,
)
def malformed_other_status(draft: Draft) -> None:
    """A documented one."""
    assert draft.contract is not None
    tell(draft, _other(draft, draft.contract.profile.dialect.malformed_status), kind=Kind.MALFORMED)


@fault(
    "request.array-500",
    "A body that is JSON, but no object, makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: turned_down(draft) and read_json(draft.request.body).valid and not draft.asked,
    seen=("vllm-project/vllm#51654", "vllm-project/vllm#42961"),
)
def array_500(draft: Draft) -> None:
    """An array, a text, null."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "request.array-accepted",
    "A body that is JSON, but no object, is answered",
    caught_by="request.invalid",
    stage=Stage.REQUEST,
    concerns=lambda draft: _no_object(draft) and read_json(draft.request.body).valid,
)
def array_accepted(draft: Draft) -> None:
    """As if it had been the plainest request."""
    ask(draft, _plain(draft))


@fault(
    "request.model-missing-accepted",
    "A request without a model is answered",
    caught_by="request.model-missing",
    stage=Stage.REQUEST,
    concerns=lambda draft: _object(draft) and draft.asked.get("model") is None,
)
def model_missing_accepted(draft: Draft) -> None:
    """By a default."""
    ask(draft, {**draft.asked, "model": draft.models[0]})


@fault(
    "request.model-unknown-accepted",
    "A request for a model that does not exist is answered",
    caught_by="request.model-unknown",
    stage=Stage.REQUEST,
    concerns=lambda draft: _object(draft) and draft.asked.get("model") not in (None, *draft.models),
)
def model_unknown_accepted(draft: Draft) -> None:
    """By the one that there is, as llama.cpp and many mocks do."""
    ask(draft, {**draft.asked, "model": draft.models[0]})


@fault(
    "request.model-unknown-other-status",
    "A request for a model that does not exist gets a status that stands for something else",
    caught_by="request.model-unknown-status",
    stage=Stage.ANSWER,
    concerns=lambda draft: turned_down(draft) and bool(draft.refusal and draft.refusal.kind is Kind.UNKNOWN_MODEL),
)
def model_unknown_other_status(draft: Draft) -> None:
    """A documented one."""
    assert draft.contract is not None
    tell(draft, _other(draft, draft.contract.profile.dialect.unknown_model_status), kind=Kind.UNKNOWN_MODEL)


@fault(
    "request.model-unknown-500",
    "A request for a model that does not exist makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: turned_down(draft) and bool(draft.refusal and draft.refusal.kind is Kind.UNKNOWN_MODEL),
)
def model_unknown_500(draft: Draft) -> None:
    """It looked for its backend."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "request.required-accepted",
    "A request without a property that the document requires is answered",
    caught_by="request.required",
    stage=Stage.REQUEST,
    concerns=lambda draft: (
        _object(draft)
        and draft.operation is not None
        and bool(set(draft.operation.required) - {"model"} - draft.asked.keys())
    ),
)
def required_accepted(draft: Draft) -> None:
    """With a prompt of the server's own."""
    ask(draft, {**_plain(draft), **draft.asked})


@fault(
    "request.invalid-accepted",
    "A property of the wrong type is passed over",
    caught_by="request.invalid",
    stage=Stage.REQUEST,
    concerns=_breaks_schema,
)
def invalid_accepted(draft: Draft) -> None:
    """The request is answered without it."""
    assert draft.operation is not None
    asked = draft.asked
    pointers = [problem.pointer for problem in draft.operation.request.problems(asked)]
    wrong = {pointer.split("/")[1] for pointer in pointers if pointer}
    kept = {name: value for name, value in asked.items() if name not in wrong}
    ask(draft, {**kept, **{name: value for name, value in _plain(draft).items() if name in wrong}})


@fault(
    "request.stream-status-differs",
    "A property of the wrong type gets another status when a stream is asked for",
    caught_by="request.stream-status",
    stage=Stage.ANSWER,
    concerns=lambda draft: mistyped(draft) and draft.asked.get("stream") is True,
    seen=("huggingface/huggingface_hub#2558",),
)
def stream_status_differs(draft: Draft) -> None:
    """A documented one."""
    tell(draft, 422 if draft.status == 400 else 400)
