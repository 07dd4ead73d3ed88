"""`chunk.*`: what goes wrong in the payloads of a stream."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamgauge.reference.answers import Payload
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import Bend, declare, each_body, each_choice, texts_of
from streamgauge.reference.faults.fault import Stage, chat_streams

_SCHEMA = ("chunk.schema", "chunk.reference-shape")


# --- the frame of each chunk: id, object, created, model ---------------------------------------------------------------


def _set(**members: Any) -> Bend:
    """In every chunk."""
    return each_body(lambda payload: payload.update(members))


def _later(name: str, change: Callable[[Any, int], Any]) -> Bend:
    """Another value in every chunk but the first, which counts as 0."""

    def bend(draft: Draft) -> None:
        for number, payload in enumerate(draft.payloads):
            payload[name] = change(payload[name], number) if number else payload[name]

    return bend


def _without(name: str) -> Bend:
    return each_body(lambda payload: payload.pop(name))


def _float_created(draft: Draft) -> None:
    draft.events = [
        replace(event, data=re.sub(rb'"created":\d+', rb"\g<0>.254391", event.data)) for event in draft.events
    ]


def _integral_float_created(draft: Draft) -> None:
    draft.events = [replace(event, data=re.sub(rb'"created":\d+', rb"\g<0>.0", event.data)) for event in draft.events]


def _azure(draft: Draft) -> None:
    """A first chunk about the prompt, before the model has said anything."""
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    draft.chunks = [Payload(0.0, first), *(draft.chunks or ())]


declare(
    "chunk.id-changes",
    "Each chunk has an id of its own",
    "chunk.id-stable",
    _later("id", lambda value, number: f"{value}-{number}"),
    "BerriAI/litellm#37792",
)
declare("chunk.id-empty", "The id of each chunk is empty", "chunk.id-stable", _set(id=""))
declare("chunk.id-missing", "No chunk has an id", _SCHEMA, _without("id"), "mudler/LocalAI#340")
declare("chunk.object-wrong", "Each chunk calls itself a whole answer", "chunk.object", _set(object="completion"))
declare("chunk.object-missing", "No chunk says what it is", "chunk.object", _without("object"))
declare(
    "chunk.created-moves",
    "Each chunk was created at another time",
    "chunk.created-stable",
    _later("created", lambda value, number: value + number),
)
declare("chunk.created-missing", "No chunk says when it was created", _SCHEMA, _without("created"))
declare(
    "chunk.created-milliseconds",
    "`created` of each chunk is in milliseconds",
    "chunk.created-seconds",
    each_body(lambda payload: payload.update(created=payload["created"] * 1000)),
    "mlc-ai/web-llm#829",
    "zed-industries/zed#32982",
)
declare("chunk.created-zero", "`created` of each chunk is 0", "chunk.created-seconds", _set(created=0))
declare(
    "chunk.created-float",
    "`created` of each chunk has a fraction",
    "chunk.created-integer",
    _float_created,
    "BerriAI/litellm#4654",
    stage=Stage.TEXT,
)
declare(
    "chunk.created-integral-float",
    "`created` of each chunk is written with .0",
    "chunk.created-integer",
    _integral_float_created,
    "openai/openai-dotnet#1006",
    stage=Stage.TEXT,
)
declare("chunk.model-empty", "No chunk names its model", "chunk.model-stable", _set(model=""))
declare(
    "chunk.model-changes",
    "Later chunks name another model",
    "chunk.model-stable",
    _later("model", lambda value, number: f"{value}-backend"),
)
declare(
    "chunk.model-other",
    "Every chunk names another model",
    "chunk.model",
    _set(model="backend"),
    "triton-inference-server/server#7796",
)
declare(
    "chunk.first-empty",
    "The first chunk has no choice, and no id, object, time or model",
    "chunk.choices-present",
    _azure,
    "pydantic/pydantic-ai#164",
    "run-llama/llama_index#7640",
)


# --- the choices ------------------------------------------------------------------------------------------------------


def _finish_under_first(draft: Draft) -> None:
    for choice in draft.choices:
        if choice["finish_reason"] is not None:
            choice["index"] = 0


def _keep_alive(draft: Draft) -> None:
    first, *others = draft.chunks or ()
    draft.chunks = [first, Payload(first.due_ms, {**(first.body or {}), "choices": [], "usage": None}), *others]


def _null_choices(draft: Draft) -> None:
    for payload in draft.payloads:
        payload["choices"] = payload["choices"] or None


def _of_other_family(draft: Draft) -> None:
    for choice in draft.choices:
        if draft.chat:
            choice["text"] = choice.pop("delta").get("content", "")
        else:
            choice["delta"] = {"content": choice.pop("text")}


declare(
    "chunk.index-all-zero",
    "Every choice is streamed under index 0",
    "chunk.choice-indexes",
    each_choice(lambda choice: choice.update(index=0)),
    "BerriAI/litellm#3276",
)
declare(
    "chunk.index-from-one",
    "The indexes of the choices begin with 1",
    "chunk.choice-indexes",
    each_choice(lambda choice: choice.update(index=choice["index"] + 1)),
    "BerriAI/litellm#376",
)
declare(
    "chunk.index-missing",
    "No choice has an index",
    _SCHEMA,
    each_choice(lambda choice: choice.pop("index")),
    "mudler/LocalAI#340",
)
declare(
    "chunk.finish-index-zero",
    "Every choice ends under index 0",
    "finish.stream-once",
    _finish_under_first,
    "ggml-org/llama.cpp#20226",
)
declare("chunk.choices-empty", "A chunk without usage has no choice", "chunk.choices-present", _keep_alive)
declare("chunk.choices-null", "The choices of the chunk with the usage are null", _SCHEMA, _null_choices)
declare("chunk.other-family", "The choices have the form of the other family", _SCHEMA, _of_other_family)


# --- what a choice says ------------------------------------------------------------------------------------------------


def _roles(first: Any, later: Any) -> Bend:
    """The role of each choice's first delta, and that of its others."""

    def bend(draft: Draft) -> None:
        seen: set[int] = set()
        for choice in draft.choices:
            role = later if choice["index"] in seen else first
            seen.add(choice["index"])
            if role is not ...:
                choice["delta"]["role"] = role

    return bend


def _grow(draft: Draft) -> None:
    said: dict[int, str] = {}
    for index, part, name in texts_of(draft):
        if part.get(name):
            part[name] = said[index] = said.get(index, "") + part[name]


def _message_beside(draft: Draft) -> None:
    said: dict[int, str] = {}
    for choice in draft.choices:
        index = choice["index"]
        said[index] = said.get(index, "") + (choice["delta"].get("content") or "")
        choice["message"] = {"role": "assistant", "content": said[index]}


def _silent(draft: Draft) -> None:
    for _, part, name in texts_of(draft):
        part[name] = ""
        part.pop("reasoning", None)


declare(
    "chunk.role-missing",
    "No delta names a role",
    "chunk.role-first",
    each_choice(lambda choice: choice["delta"].pop("role", None)),
    concerns=chat_streams,
)
declare(
    "chunk.first-role-null",
    "The role of the first delta is null",
    "chunk.role-first",
    _roles(None, ...),
    "sgl-project/sglang#18335",
    concerns=chat_streams,
)
declare(
    "chunk.role-null",
    "The role of every later delta is null",
    "chunk.role-null",
    _roles("assistant", None),
    "vercel/ai#2548",
    concerns=chat_streams,
)
declare(
    "chunk.role-repeated",
    "Every delta names the role",
    "chunk.role-once",
    _roles("assistant", "assistant"),
    "mudler/LocalAI#648",
    concerns=chat_streams,
)
declare(
    "chunk.message-grows",
    "Every chunk holds the whole message so far beside the delta",
    "chunk.no-message",
    _message_beside,
    "perplexityai/api-discussion#209",
    concerns=chat_streams,
)
declare("chunk.delta-cumulative", "Every chunk repeats the text so far", "chunk.delta-cumulative", _grow)
declare("chunk.text-missing", "A stream counts tokens and says nothing", "chunk.text", _silent)
declare(
    "chunk.tool-calls-empty",
    "Every delta has an empty array of tool calls",
    "chunk.no-empty-calls",
    each_choice(lambda choice: choice["delta"].setdefault("tool_calls", [])),
    "spring-projects/spring-ai#6441",
    "vllm-project/vllm#44104",
    concerns=chat_streams,
)
declare(
    "chunk.tool-calls-null",
    "The tool calls of every delta are null",
    "chunk.schema",
    each_choice(lambda choice: choice["delta"].setdefault("tool_calls", None)),
    concerns=chat_streams,
)
