"""`tools.*`: what goes wrong in how a stream tells a call."""

import copy
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import calls_of
from streamgauge.reference.faults.fault import Stage, answers, chat_streams, fault


def _answers_with_call(draft: Draft) -> bool:
    return answers(draft) and draft.chat and bool(calls_of(draft))


def _streams_call(draft: Draft) -> bool:
    return chat_streams(draft) and bool(calls_of(draft))


@fault(
    "tools.type-missing",
    "The first piece of a call lacks its type",
    caught_by="tools.stream-first-delta",
    stage=Stage.ANSWER,
    concerns=_streams_call,
    seen=("vllm-project/vllm#16340",),
)
def type_missing(draft: Draft) -> None:
    """Id and name are there."""
    for call in calls_of(draft):
        call.pop("type", None)


@fault(
    "tools.name-missing",
    "No piece of a call names the function",
    caught_by="tools.stream-first-delta",
    stage=Stage.ANSWER,
    concerns=_streams_call,
)
def name_missing(draft: Draft) -> None:
    """The arguments are there."""
    for call in calls_of(draft):
        call["function"].pop("name", None)


@fault(
    "tools.index-shared",
    "All calls of a stream have the index 0",
    caught_by="tools.stream-index",
    stage=Stage.ANSWER,
    concerns=_answers_with_call,
    seen=(
        "vercel/ai#14277",
        "ollama/ollama#15457",
        "ai-dynamo/dynamo#4723",
        "mcowger/plexus#691",
        "InternLM/lmdeploy#3412",
    ),
)
def index_shared(draft: Draft) -> None:
    """Every answer makes its call twice; only in a stream does that go wrong."""
    if not draft.streamed:
        for choice in draft.choices:
            calls = choice["message"]["tool_calls"]
            calls.append({**calls[0], "id": calls[0]["id"] + "-b"})
        return
    again = [copy.deepcopy(chunk) for chunk in draft.chunks or () if chunk.body and _pieces(chunk.body)]
    for chunk in again:
        for call in _pieces(chunk.body or {}):
            if "id" in call:
                call["id"] += "-b"
    chunks = list(draft.chunks or ())
    last = max(at for at, chunk in enumerate(chunks) if chunk.body and _pieces(chunk.body))
    draft.chunks = [*chunks[: last + 1], *again, *chunks[last + 1 :]]


@fault(
    "tools.index-from-one",
    "The calls of a stream are counted from 1",
    caught_by="tools.stream-index",
    stage=Stage.ANSWER,
    concerns=_streams_call,
)
def index_from_one(draft: Draft) -> None:
    """Clients that keep calls in an array by their index leave a hole in front."""
    for call in calls_of(draft):
        call["index"] += 1


def _pieces(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for choice in body.get("choices", ()) for call in choice["delta"].get("tool_calls", ())]
