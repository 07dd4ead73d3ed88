"""`finish.*`: what goes wrong in why and when a choice ended."""

from typing import Any

from streamgauge.reference.answers import Payload
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import Bend, calls_of, declare, each_choice
from streamgauge.reference.faults.fault import answers, wholes

Choice = dict[str, Any]


def _reason(old: tuple[str | None, ...], new: str | None) -> Bend:
    """One reason in the place of others."""
    return each_choice(lambda choice: choice["finish_reason"] in old and choice.update(finish_reason=new))


_ENDS = ("stop", "length", "tool_calls")


def _renamed(choice: Choice) -> None:
    if choice["finish_reason"] is not None:
        choice["finishReason"], choice["finish_reason"] = choice["finish_reason"].upper(), None


def _only_at_the_end(choice: Choice) -> None:
    if choice["finish_reason"] is None:
        del choice["finish_reason"]


def _is_end(payload: Payload) -> bool:
    return any(choice["finish_reason"] is not None for choice in (payload.body or {}).get("choices", ()))


def _twice(draft: Draft) -> None:
    draft.chunks = [each for chunk in draft.chunks or () for each in ([chunk, chunk] if _is_end(chunk) else [chunk])]


def _first(draft: Draft) -> None:
    """The reason stands on the first chunk of a choice in the place of the last."""
    first: dict[int, Choice] = {}
    for choice in draft.choices:
        reason, choice["finish_reason"] = choice["finish_reason"], None
        begun = first.setdefault(choice["index"], choice)
        if reason is not None:
            begun["finish_reason"] = reason


def _calls(draft: Draft) -> bool:
    return answers(draft) and bool(calls_of(draft))


def _texts(draft: Draft) -> bool:
    return answers(draft) and not _calls(draft)


declare(
    "finish.missing",
    "No choice of a stream ends",
    "finish.stream-once",
    _reason(_ENDS, None),
    "vllm-project/vllm#52852",
)
declare(
    "finish.renamed",
    "The finish reason of a stream is null, and another member tells it",
    "finish.stream-once",
    each_choice(_renamed),
    "jakobdylanc/llmcord#84",
)
declare(
    "finish.missing-whole",
    "No choice of a whole answer has a finish reason",
    "finish.whole",
    each_choice(lambda choice: choice.pop("finish_reason")),
    "mudler/LocalAI#788",
    concerns=wholes,
)
declare(
    "finish.null-whole",
    "The finish reasons of a whole answer are null",
    "finish.whole",
    _reason(_ENDS, None),
    concerns=wholes,
)
declare("finish.twice", "Every choice ends twice", "finish.stream-once", _twice)
declare(
    "finish.empty-string",
    "The finish reason is an empty text until the choice ends",
    "finish.null-until-end",
    _reason((None,), ""),
    "ollama/ollama#4357",
    "sgl-project/sglang#3912",
    "dstackai/dstack#2228",
)
declare(
    "finish.key-missing",
    "Only the chunk that ends a choice has a finish reason",
    "finish.key-present",
    each_choice(_only_at_the_end),
    "Oaklight/llm-rosetta#444",
    "vllm-project/vllm#19650",
    "mudler/LocalAI#1744",
)
declare(
    "finish.on-every-chunk",
    "Every chunk says that its choice has ended",
    "finish.nothing-after",
    _reason((None,), "stop"),
    "su-kaka/gcli2api#403",
)
declare(
    "finish.before-text",
    "Every choice ends before it says anything",
    "finish.nothing-after",
    _first,
    "BerriAI/litellm#2692",
    "open-webui/open-webui#16377",
)
declare(
    "finish.unknown-word",
    "Streamed choices end with a word that clients do not know",
    "finish.stream-reason",
    _reason(_ENDS, "end_turn"),
    "gethouston/houston#1211",
    "BerriAI/litellm#12249",
)
declare(
    "finish.unknown-word-whole",
    "The choices of a whole answer end with a word that clients do not know",
    "finish.whole",
    _reason(_ENDS, "error"),
    "mudler/vllm.cpp#398",
    concerns=wholes,
)
declare(
    "finish.stop-at-limit",
    "What the limit cut ends with the reason stop",
    "finish.length",
    _reason(("length",), "stop"),
    "triton-inference-server/server#7796",
    concerns=answers,
)
declare(
    "finish.tool-calls-without-calls",
    "Every answer ends with the reason tool_calls",
    "finish.tool-calls",
    _reason(_ENDS, "tool_calls"),
    "mudler/LocalAI#6218",
    "vllm-project/vllm#53255",
    concerns=_texts,
)
declare(
    "finish.stop-with-calls",
    "What calls a tool ends with the reason stop",
    "finish.calls-told",
    _reason(("tool_calls",), "stop"),
    "sgl-project/sglang#2877",
    "BerriAI/litellm#35663",
    concerns=_calls,
)
