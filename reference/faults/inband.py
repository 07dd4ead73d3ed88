"""`error.*`: errors that are told with a 200."""

from typing import Any

from streamgauge.contract.contract import SSE
from streamgauge.reference.answers import Payload, to_json
from streamgauge.reference.drafts import Draft, Event
from streamgauge.reference.errors import Kind, Refusal, body_of
from streamgauge.reference.faults.fault import Stage, fault, streams
from streamgauge.reference.faults.telling import turned_down
from streamgauge.reference.framing import DONE_EVENT, event

_NOT_200 = "error.not-in-200"
_NOT_IN_STREAM = "error.not-in-stream"
_MESSAGE = "The engine stopped."


def _error(draft: Draft) -> dict[str, Any]:
    """An error as the contract has them: where several forms are documented, one with a member `error`."""
    assert draft.contract is not None
    refusal = Refusal(Kind.UNPROCESSABLE, _MESSAGE)
    told = body_of(refusal, 503, draft.contract.profile.dialect, draft.operation)
    return told if "error" in told else {"error": {"message": _MESSAGE, "type": refusal.kind.value, "code": None}}


def _whole(draft: Draft) -> bool:
    return turned_down(draft) and not draft.asked.get("stream")


def _wants_stream(draft: Draft) -> bool:
    return turned_down(draft) and draft.asked.get("stream") is True


def _middle(draft: Draft, told: dict[str, Any], *, done: bool = True, rest: bool = False) -> None:
    """Let an error come in the middle of a stream."""
    chunks = [chunk for chunk in draft.chunks or () if chunk.body is not None]
    at = len(chunks) // 2
    failed = Payload(chunks[at].due_ms, told)
    draft.chunks = [*chunks[:at], failed, *(chunks[at:] if rest else []), *([Payload(failed.due_ms, None)] * done)]


def _middle_bytes(draft: Draft, data: bytes) -> None:
    """Let these bytes come in the middle of a stream, and [DONE] behind them."""
    events = list(draft.events)
    at = len(events) // 2
    due = events[at].due_ms
    draft.events = [*events[:at], Event(due, data), Event(due, DONE_EVENT)]


@fault(
    "error.200-with-error-body",
    "A refusal is told with 200",
    caught_by=_NOT_200,
    stage=Stage.ANSWER,
    concerns=_whole,
    seen=("langgenius/dify-plugin-sdks#74", "UKGovernmentBEIS/inspect_ai#1536", "xyOz-dev/Saturn#43"),
)
def error_200(draft: Draft) -> None:
    """The body is that of the refusal."""
    draft.status, draft.body = 200, _error(draft)


@fault(
    "error.200-object-error",
    'A refusal is told with 200, as {"object": "error"}',
    caught_by=_NOT_200,
    stage=Stage.ANSWER,
    concerns=_whole,
    seen=("vllm-project/vllm#12886", "langgenius/dify-plugin-sdks#74"),
)
def object_error_200(draft: Draft) -> None:
    """The flat form of vLLM."""
    draft.status, draft.body = 200, {"object": "error", "message": _MESSAGE, "type": "BadRequestError", "code": 400}


@fault(
    "error.stream-200",
    "A refused request for a stream gets 200 and an error as its only event",
    caught_by=("request.stream-status", _NOT_IN_STREAM),
    stage=Stage.ANSWER,
    concerns=_wants_stream,
    seen=("majiayu000/litellm-rs#170", "huggingface/huggingface_hub#2514", "BerriAI/litellm#2180"),
)
def stream_200(draft: Draft) -> None:
    """The status was sent before the request was read."""
    draft.status, draft.body, draft.chunks = 200, None, [Payload(0.0, _error(draft)), Payload(0.0, None)]


@fault(
    "error.stream-200-keep-alive",
    "A stream keeps its client waiting by comments, then reports an error in the place of its answer",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.TEXT,
    concerns=streams,
    seen=("vercel/ai#2720",),
)
def stream_200_keep_alive(draft: Draft) -> None:
    """The comments forced the status out."""
    comments = [Event(0.0, b": PROCESSING\n\n"), Event(1.0, b": PROCESSING\n\n")]
    draft.events = [*comments, Event(2.0, event(to_json(_error(draft)))), Event(2.0, DONE_EVENT)]


@fault(
    "error.refused-as-stream",
    "A refused request for a stream gets its 4xx as a stream",
    caught_by="request.stream-refused-whole",
    stage=Stage.TEXT,
    concerns=_wants_stream,
)
def refused_as_stream(draft: Draft) -> None:
    """An event with the error, and [DONE]."""
    draft.text, draft.media_type = event(draft.text) + DONE_EVENT, SSE


@fault(
    "error.in-stream",
    "A stream reports an error in its middle, and [DONE]",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("vllm-project/guidellm#743", "aaif-goose/goose#8027"),
)
def in_stream(draft: Draft) -> None:
    """In the documented form."""
    _middle(draft, _error(draft))


@fault(
    "error.in-stream-no-done",
    "A stream reports an error in its middle, and ends",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
)
def in_stream_no_done(draft: Draft) -> None:
    """Without [DONE]."""
    _middle(draft, _error(draft), done=False)


@fault(
    "error.in-stream-choices",
    "A stream reports an error in a chunk that has no choices",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("diegosouzapw/OmniRoute#8210", "dcdpr/jp#978"),
)
def in_stream_choices(draft: Draft) -> None:
    """An error beside the usual members of a chunk."""
    _middle(draft, {**draft.payloads[0], "choices": [], **_error(draft)})


@fault(
    "error.in-stream-finish",
    "A stream reports an error in a chunk whose choice ends for it",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("damianvtran/local-operator#223", "gethouston/houston#1211"),
)
def in_stream_finish(draft: Draft) -> None:
    """`finish_reason: "error"`, and the error beside it."""
    first = draft.payloads[0]
    choices = [{**choice, "finish_reason": "error"} for choice in first["choices"]]
    _middle(draft, {**first, "choices": choices, **_error(draft)})


@fault(
    "error.in-stream-string",
    "A stream reports an error as a text",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("huggingface/huggingface.js#1079",),
)
def in_stream_string(draft: Draft) -> None:
    """One of two forms in Seekr's documents."""
    _middle(draft, {"error": _MESSAGE})


@fault(
    "error.in-stream-flat",
    'A stream reports an error as {"object": "error", "message": ...}',
    caught_by=_NOT_IN_STREAM,
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("vllm-project/vllm#12886",),
)
def in_stream_flat(draft: Draft) -> None:
    """The older form of vLLM."""
    _middle(draft, {"object": "error", "message": _MESSAGE, "type": "InternalServerError", "code": 500})


@fault(
    "error.in-stream-shapeless",
    "A stream reports an error that has no message",
    caught_by=("error.stream-shape", _NOT_IN_STREAM),
    stage=Stage.ANSWER,
    concerns=streams,
)
def in_stream_shapeless(draft: Draft) -> None:
    """A flag."""
    _middle(draft, {"error": True})


@fault(
    "error.in-stream-goes-on",
    "A stream reports an error and goes on",
    caught_by="error.stream-last",
    stage=Stage.ANSWER,
    concerns=streams,
)
def in_stream_goes_on(draft: Draft) -> None:
    """As if nothing had happened."""
    _middle(draft, _error(draft), rest=True)


@fault(
    "error.in-stream-named",
    "A stream reports an error in an event that is called error",
    caught_by=_NOT_IN_STREAM,
    stage=Stage.TEXT,
    concerns=streams,
)
def in_stream_named(draft: Draft) -> None:
    """Which clients of the OpenAI API do not wait for."""
    _middle_bytes(draft, b"event: error\n" + event(to_json(_error(draft))))


@fault(
    "error.in-stream-text",
    "A stream reports an error in words, no JSON",
    caught_by="sse.data-json",
    stage=Stage.TEXT,
    concerns=streams,
)
def in_stream_text(draft: Draft) -> None:
    """Clients fail to read it, and show that."""
    _middle_bytes(draft, event(b"[ERROR] " + _MESSAGE.encode()))
