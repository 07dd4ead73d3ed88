"""`request.*`: right requests that are turned away, or that make the server fail."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, answers, fault, requests, wholes
from streamgauge.reference.faults.telling import PLAIN, tell, tell_raw
from streamgauge.wire.json import read_json

_PLAINEST = {"model", "messages", "prompt", "max_tokens"}


def _fail(draft: Draft) -> None:
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


def _asks(name: str) -> Callable[[Draft], bool]:
    return lambda draft: answers(draft) and draft.asked.get(name) is not None


def _within(value: Any) -> bool:
    """Whether a member of an object below is one that nobody knows."""
    if isinstance(value, dict):
        return any(name.startswith("x_") or _within(item) for name, item in value.items())
    return isinstance(value, list) and any(map(_within, value))


def _plainest(draft: Draft) -> bool:
    return answers(draft) and draft.asked.keys() <= _PLAINEST


@fault(
    "request.plain-refused",
    "A request without a temperature is refused",
    caught_by="request.plain-accepted",
    stage=Stage.ANSWER,
    concerns=_plainest,
)
def plain_refused(draft: Draft) -> None:
    """No document demands one."""
    tell(draft, 400, "`temperature` is missing.")


@fault(
    "request.temperature-refused",
    "A request with a temperature is refused",
    caught_by="request.valid",
    stage=Stage.ANSWER,
    concerns=_asks("temperature"),
)
def temperature_refused(draft: Draft) -> None:
    """As models that think do."""
    tell(draft, 400, "`temperature` is not supported with this model.")


@fault(
    "request.header-demanded",
    "A request without a header field that the document calls optional is refused",
    caught_by="request.plain-accepted",
    stage=Stage.ANSWER,
    concerns=lambda draft: (
        answers(draft)
        and draft.contract is not None
        and any(not draft.request.header(name.lower()) for name in draft.contract.profile.headers)
    ),
)
def header_demanded(draft: Draft) -> None:
    """`x-deepinfra-source`, for instance."""
    tell(draft, 400, "A header field is missing.")


@fault(
    "request.stream-refused",
    "A request for a stream is refused",
    caught_by="request.feature-supported",
    stage=Stage.ANSWER,
    concerns=_asks("stream"),
)
def stream_refused(draft: Draft) -> None:
    """Which is a fault where the vendor promises streams, else a refused feature."""
    tell(draft, 400, "Streams are not supported.")


@fault(
    "request.extra-refused",
    "A property that the document does not know is refused",
    caught_by="request.extra-property",
    stage=Stage.ANSWER,
    concerns=lambda draft: answers(draft) and any(name.startswith("x_") for name in draft.asked),
)
def extra_refused(draft: Draft) -> None:
    """As OpenAI does it; Seekr's documents allow it."""
    tell(draft, 400, "Unrecognized request argument.")


@fault(
    "request.extra-nested-refused",
    "A member of a message or an option that the document does not know is refused",
    caught_by="request.extra-nested",
    stage=Stage.ANSWER,
    concerns=lambda draft: (
        answers(draft) and _within(list(draft.asked.values())) and "x_streamgauge" not in draft.asked
    ),
)
def extra_nested_refused(draft: Draft) -> None:
    """While one of the request itself is accepted."""
    tell(draft, 400, "Extra inputs are not permitted.")


@fault(
    "request.null-refused",
    "A property that is null is refused",
    caught_by="request.null-accepted",
    stage=Stage.ANSWER,
    concerns=lambda draft: answers(draft) and None in draft.asked.values(),
)
def null_refused(draft: Draft) -> None:
    """Where the document has null as a value of it, and as the default."""
    tell(draft, 400, "A property must not be null.")


@fault(
    "request.one-token-500",
    "A limit of one token makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: wholes(draft) and draft.asked.get("max_tokens") == 1,
    seen=("BerriAI/litellm#37710",),
)
def one_token_500(draft: Draft) -> None:
    """Since it ends within the thoughts, for instance."""
    _fail(draft)


@fault(
    "request.reasoning-effort-500",
    "A reasoning effort makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=_asks("reasoning_effort"),
    seen=("vllm-project/vllm#54017",),
)
def reasoning_effort_500(draft: Draft) -> None:
    """The model's template does not know it."""
    _fail(draft)


@fault(
    "request.tool-arguments-500",
    "Arguments of a call in the conversation that are no JSON make the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: answers(draft) and bool(_broken_arguments(draft)),
    seen=("ggml-org/llama.cpp#25510", "am17an/llama.cpp#43"),
)
def tool_arguments_500(draft: Draft) -> None:
    """The model itself had been cut off in them."""
    _fail(draft)


def _broken_arguments(draft: Draft) -> list[str]:
    calls = [call for message in draft.asked.get("messages", []) for call in message.get("tool_calls") or []]
    return [text for call in calls if not read_json((text := call["function"]["arguments"]).encode()).valid]


@fault(
    "request.poisoned",
    "After a body that is no JSON every request is refused",
    caught_by="request.plain-accepted",
    stage=Stage.ANSWER,
    concerns=lambda draft: draft.operation is not None and draft.request.method == draft.operation.method,
)
def poisoned(draft: Draft) -> None:
    """A worker is stuck with it."""
    if not draft.asked:
        draft.memory["poisoned"] = True
    elif draft.answer is not None and draft.memory.get("poisoned"):
        tell(draft, 422, "The worker is busy.")


@fault(
    "request.poisoned-500",
    "After a body that is no JSON every request makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=lambda draft: requests(draft) or (draft.operation is not None and not draft.asked),
    seen=("vllm-project/vllm#4529",),
)
def poisoned_500(draft: Draft) -> None:
    """Its worker has died."""
    if not draft.asked:
        draft.memory["dead"] = True
    elif draft.answer is not None and draft.memory.get("dead"):
        _fail(draft)
