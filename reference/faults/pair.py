"""`pair.*`: where the streamed form of an answer differs from the whole one."""

from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import calls_of, declare, parts_of, texts_of
from streamgauge.reference.faults.fault import chat_streams

Part = dict[str, Any]

_THOUGHTS = ("reasoning", "reasoning_content")


def _texts(draft: Draft) -> list[list[tuple[Part, str]]]:
    """Choice by choice: where the pieces of its text stand, as an object and the member's name."""
    found: dict[int, list[tuple[Part, str]]] = {}
    for index, part, name in texts_of(draft):
        if part.get(name):
            found.setdefault(index, []).append((part, name))
    return list(found.values())


def _arguments(draft: Draft) -> list[Part]:
    """The functions of the deltas that bring arguments."""
    return [call["function"] for call in calls_of(draft) if call["function"].get("arguments")]


def _calls(draft: Draft) -> bool:
    return chat_streams(draft) and bool(_arguments(draft))


def _thinks(draft: Draft) -> bool:
    return chat_streams(draft) and any(name in part for part in parts_of(draft) for name in _THOUGHTS)


def _first_lost(draft: Draft) -> None:
    for part, name in (pieces[0] for pieces in _texts(draft)):
        part[name] = ""


def _last_lost(draft: Draft) -> None:
    for part, name in (pieces[-1] for pieces in _texts(draft)):
        part[name] = ""


def _other_text(draft: Draft) -> None:
    for part, name in (piece for pieces in _texts(draft) for piece in pieces):
        part[name] = part[name].swapcase()


def _finish_differs(draft: Draft) -> None:
    for choice in draft.choices:
        if choice["finish_reason"] == "tool_calls":
            choice["finish_reason"] = "stop"


def _usage_differs(draft: Draft) -> None:
    for usage in (payload["usage"] for payload in draft.payloads if payload.get("usage")):
        usage["completion_tokens"] -= 1
        usage["total_tokens"] -= 1


def _arguments_cut(draft: Draft) -> None:
    _arguments(draft)[-1]["arguments"] = ""


def _calls_as_text(draft: Draft) -> None:
    for choice in draft.choices:
        for call in choice["delta"].pop("tool_calls", ()):
            choice["delta"]["content"] = call["function"]["arguments"]


def _reasoning_lost(draft: Draft) -> None:
    for choice in draft.choices:
        for name in _THOUGHTS:
            choice["delta"].pop(name, None)


def _reasoning_in_content(draft: Draft) -> None:
    for choice in draft.choices:
        for name in _THOUGHTS:
            if name in choice["delta"]:
                choice["delta"]["content"] = choice["delta"].pop(name)


declare(
    "pair.first-token-lost",
    "A stream lacks the first token's text",
    "pair.text",
    _first_lost,
    "vllm-project/vllm#30866",
)
declare(
    "pair.last-text-lost", "A stream lacks the last token's text", "pair.text", _last_lost, "ggml-org/llama.cpp#15007"
)
declare("pair.other-text", "A stream says another text", "pair.text", _other_text)
declare(
    "pair.finish-differs",
    "A stream that calls a tool ends with stop, the whole form with tool_calls",
    "pair.finish",
    _finish_differs,
    "vllm-project/vllm#25054",
    "vllm-project/vllm#49496",
    "googleapis/python-genai#2868",
    concerns=_calls,
)
declare("pair.usage-differs", "A stream counts one token less", "pair.usage", _usage_differs)
declare(
    "pair.tool-arguments-cut",
    "A stream lacks the end of the arguments",
    "pair.tool-calls",
    _arguments_cut,
    "vllm-project/vllm#9693",
    "lmstudio-ai/lmstudio-bug-tracker#649",
    concerns=_calls,
)
declare(
    "pair.tool-calls-as-text",
    "A stream tells the arguments of a call as text",
    "pair.tool-calls",
    _calls_as_text,
    "mudler/LocalAI#9988",
    "vllm-project/vllm#24509",
    "vllm-project/vllm#46303",
    concerns=_calls,
)
declare(
    "pair.reasoning-lost",
    "A stream does not tell the reasoning",
    "pair.reasoning",
    _reasoning_lost,
    "BerriAI/litellm#20246",
    concerns=_thinks,
)
declare(
    "pair.reasoning-in-content",
    "A stream tells the reasoning as content",
    "pair.reasoning",
    _reasoning_in_content,
    "BerriAI/litellm#22568",
    concerns=_thinks,
)
