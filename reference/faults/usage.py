"""`usage.*`: what goes wrong in what the answer says it cost."""

import functools
from collections.abc import Callable
from typing import Any

from streamgauge.reference.answers import Payload
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import Bend, declare, each_body
from streamgauge.reference.faults.fault import answers, streams, wholes

_SCHEMA = ("response.schema", "response.reference-shape")

Usage = dict[str, Any]


def _usages(draft: Draft) -> list[Usage]:
    """The usage of the whole answer, or of each chunk that has any."""
    bodies = draft.payloads if draft.streamed else [draft.body or {}]
    return [body["usage"] for body in bodies if body.get("usage") is not None]


def _counts(draft: Draft) -> bool:
    return answers(draft) and bool(_usages(draft))


def _asked(draft: Draft) -> dict[str, Any]:
    options: dict[str, Any] = draft.asked.get("stream_options") or {}
    return options


def _streams_usage(draft: Draft) -> bool:
    return streams(draft) and bool(_usages(draft)) and not _asked(draft).get("continuous_usage_stats")


def _streams_continuously(draft: Draft) -> bool:
    return streams(draft) and bool(_asked(draft).get("continuous_usage_stats"))


_declare = functools.partial(declare, concerns=_counts)


def _each(change: Callable[[Usage], Any]) -> Bend:
    return each_body(lambda body: body.get("usage") and change(body["usage"]))


def _count(usage: Usage, *, prompt: int | None = None, completion: int | None = None) -> None:
    """Other counts, and a total that fits them."""
    usage["prompt_tokens"] = usage["prompt_tokens"] if prompt is None else prompt
    usage["completion_tokens"] = usage["completion_tokens"] if completion is None else completion
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]


# --- the counts -------------------------------------------------------------------------------------------------------


def _one_choice(draft: Draft) -> None:
    for usage in _usages(draft):
        _count(usage, completion=usage["completion_tokens"] // (len(draft.answer.choices) if draft.answer else 1))


def _zero(usage: Usage) -> None:
    usage.update(prompt_tokens=0, completion_tokens=0, total_tokens=0)
    for part in ("prompt_tokens_details", "completion_tokens_details"):
        usage.pop(part, None)


def _too_short(usage: Usage) -> None:
    _count(usage, completion=max(usage["completion_tokens"] - 1, 0))


def _apart(usage: Usage) -> None:
    """The reasoning is no part of the completion, but one of the total."""
    usage["completion_tokens"] -= usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)


def _reasons(draft: Draft) -> bool:
    details = [usage.get("completion_tokens_details", {}) for usage in _usages(draft)] if answers(draft) else []
    return any(each.get("reasoning_tokens") for each in details)


def _details(part: str, name: str, count: Callable[[Usage], int]) -> Bend:
    return _each(lambda usage: part in usage and usage.update({part: {name: count(usage)}}))


_declare(
    "usage.total-wrong", "The total is not the sum", "usage.sum", _each(lambda usage: usage.update(total_tokens=1))
)
_declare(
    "usage.zero",
    "Every count is 0",
    "usage.counted",
    _each(_zero),
    ("mudler/LocalAI#1744"),
)
_declare(
    "usage.prompt-zero",
    "The prompt has no tokens",
    "usage.counted",
    _each(lambda usage: _count(usage, prompt=0)),
    "langgenius/dify#2144",
)
_declare(
    "usage.over-limit",
    "More tokens are counted than the limit allows",
    "usage.limit",
    _each(lambda usage: _count(usage, completion=usage["completion_tokens"] + 1)),
    "vllm-project/vllm#28266",
)
_declare(
    "usage.one-choice-counted",
    "Of several choices one is counted",
    "usage.all-choices",
    _one_choice,
    "ggml-org/llama.cpp#27318",
    concerns=lambda draft: _counts(draft) and draft.answer is not None and len(draft.answer.choices) > 1,
)
_declare(
    "usage.completion-short",
    "One token less is counted than the limit allows",
    "usage.length",
    _each(_too_short),
    "lmstudio-ai/lmstudio-bug-tracker#2335",
)
_declare(
    "usage.prompt-differs-streamed",
    "The prompt of a stream has a token more",
    "usage.pair",
    _each(lambda usage: _count(usage, prompt=usage["prompt_tokens"] + 1)),
    concerns=lambda draft: streams(draft) and _counts(draft),
)
_declare(
    "usage.cached-over-prompt",
    "More tokens are cached than the prompt has",
    "usage.cached",
    _details("prompt_tokens_details", "cached_tokens", lambda usage: usage["prompt_tokens"] + 1),
)
_declare(
    "usage.reasoning-over-completion",
    "More tokens of reasoning are counted than were generated",
    "usage.reasoning",
    _details("completion_tokens_details", "reasoning_tokens", lambda usage: usage["completion_tokens"] + 1),
    "router-for-me/CLIProxyAPI#5733",
)
_declare(
    "usage.reasoning-apart",
    "The total holds the reasoning, the completion does not",
    "usage.sum",
    _each(_apart),
    "router-for-me/CLIProxyAPI#5733",
    concerns=_reasons,
)
_declare(
    "usage.null",
    "A whole answer's usage is null",
    _SCHEMA,
    lambda draft: (draft.body or {}).update(usage=None),
    "triton-inference-server/server#7796",
    concerns=wholes,
)


# --- where a stream brings it ------------------------------------------------------------------------------------------


def _without(draft: Draft) -> None:
    draft.chunks = [chunk for chunk in draft.chunks or () if chunk.body is None or chunk.body["choices"]]


def _everywhere(draft: Draft) -> None:
    [usage] = _usages(draft)
    for payload in draft.payloads:
        payload["usage"] = usage


def _beside(draft: Draft) -> None:
    """With the last choice, in no chunk of its own."""
    [usage] = _usages(draft)
    _without(draft)
    draft.payloads[-1]["usage"] = usage


def _before_the_end(draft: Draft) -> None:
    chunks = list(draft.chunks or ())
    place = next(number for number, chunk in enumerate(chunks) if chunk.body and not chunk.body["choices"])
    chunks.insert(place - 1, chunks.pop(place))
    draft.chunks = chunks


def _unrequested(draft: Draft) -> None:
    *chunks, done = draft.chunks or ()
    tokens = draft.answer.completion_tokens if draft.answer else 0
    prompt = draft.answer.parameters.prompt_tokens if draft.answer else 0
    usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
    body = {**(chunks[-1].body or {}), "choices": [], "usage": usage}
    draft.chunks = [*chunks, Payload(done.due_ms, body), done]


def _only_the_last(draft: Draft) -> None:
    for payload in draft.payloads[:-1]:
        del payload["usage"]


def _not_the_first(draft: Draft) -> None:
    del draft.payloads[0]["usage"]


def _falls(draft: Draft) -> None:
    """Each chunk counts what it brings itself."""
    for usage in _usages(draft)[2:-1]:
        _count(usage, completion=0)


def _stuck(draft: Draft) -> None:
    for usage in _usages(draft)[:-1]:
        _count(usage, completion=0)


def _prompt_once(draft: Draft) -> None:
    for usage in _usages(draft)[1:-1]:
        _count(usage, prompt=0)


_declare(
    "usage.missing-in-stream",
    "A stream does not bring the usage that was asked for",
    "usage.stream-requested",
    _without,
    concerns=_streams_usage,
)
_declare(
    "usage.null-in-stream",
    "The usage that was asked for is null",
    "usage.stream-requested",
    each_body(lambda payload: payload.update(usage=None)),
    "sgl-project/sglang#954",
    concerns=_streams_usage,
)
_declare(
    "usage.in-every-chunk",
    "Every chunk brings the usage, asked for once",
    "usage.stream-once",
    _everywhere,
    "vllm-project/vllm#7262",
    concerns=_streams_usage,
)
_declare(
    "usage.beside-choice",
    "The usage comes with the last choice",
    "usage.stream-place",
    _beside,
    "ggml-org/llama.cpp#15443",
    concerns=_streams_usage,
)
_declare(
    "usage.before-finish",
    "The usage comes before the last choice has ended",
    "usage.stream-place",
    _before_the_end,
    concerns=_streams_usage,
)
_declare(
    "usage.unrequested",
    "A stream brings usage that nobody asked for",
    "usage.stream-unrequested",
    _unrequested,
    "ggml-org/llama.cpp#16048",
    concerns=lambda draft: streams(draft) and not _usages(draft),
)
_declare(
    "usage.continuous-ignored",
    "Usage that was asked for in every chunk comes once",
    "usage.stream-continuous",
    _only_the_last,
    "sgl-project/sglang#12241",
    "ai-dynamo/dynamo#11708",
    concerns=_streams_continuously,
)
_declare(
    "usage.continuous-late",
    "Usage that was asked for in every chunk is missing in the first",
    "usage.stream-continuous",
    _not_the_first,
    "vllm-project/vllm#5708",
    concerns=_streams_continuously,
)
_declare(
    "usage.continuous-falls",
    "Later chunks count fewer tokens",
    "usage.stream-continuous",
    _falls,
    concerns=_streams_continuously,
)
_declare(
    "usage.continuous-stuck",
    "Every chunk but the last counts no token",
    "usage.stream-continuous",
    _stuck,
    concerns=_streams_continuously,
)
_declare(
    "usage.continuous-prompt-moves",
    "The prompt is counted in some chunks only",
    "usage.stream-continuous",
    _prompt_once,
    concerns=_streams_continuously,
)


# --- the times --------------------------------------------------------------------------------------------------------


def _timed(draft: Draft) -> bool:
    bodies = draft.payloads if draft.streamed else [draft.body or {}]
    return answers(draft) and any(body.get("metrics") for body in bodies)


def _each_time(change: Callable[[float], float]) -> Bend:
    def bend(body: dict[str, Any]) -> None:
        if metrics := body.get("metrics"):
            metrics.update({name: change(value) for name, value in metrics.items()})

    return each_body(bend)


_declare(
    "usage.metrics-negative", "Times are negative", "usage.metrics", _each_time(lambda ms: -1.0 - ms), concerns=_timed
)
_declare(
    "usage.metrics-microseconds",
    "Times are in microseconds",
    "usage.metrics",
    _each_time(lambda ms: ms * 1000),
    concerns=_timed,
)
