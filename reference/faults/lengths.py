"""`lengths.*`: limits that are not kept."""

from typing import Any

from streamgauge.reference.faults.bends import ignoring, rewriting

__all__: list[str] = []

_MUCH = 64
_REASONING = 3

Asked = dict[str, Any]


def _detection(asked: Asked) -> dict[str, Any]:
    return asked.get("repetition_detection") or {}


def _detects(asked: Asked) -> bool:
    """Whether a repetition is to be detected, by parameters that do not contradict each other."""
    given = {"max_pattern_size": 0, "min_pattern_size": 0, "min_count": 0, **_detection(asked)}
    return bool(0 < given["max_pattern_size"] >= given["min_pattern_size"] and given["min_count"] > 1)


def _with_detection(asked: Asked, **changes: int) -> Asked:
    return {**asked, "repetition_detection": {**_detection(asked), **changes}}


ignoring(
    "lengths.limit-ignored",
    "`max_tokens` is ignored",
    "usage.limit",
    "max_tokens",
    seen=("vllm-project/vllm-omni#445",),
)
ignoring(
    "lengths.successor-ignored",
    "`max_completion_tokens` is ignored",
    "lengths.max-completion-tokens",
    "max_completion_tokens",
    seen=("ikawrakow/ik_llama.cpp#2321", "abetlen/llama-cpp-python#1907", "ScalingIntelligence/tokasaurus#7"),
)
rewriting(
    "lengths.successor-refused",
    "`max_completion_tokens` is refused",
    "request.valid",
    lambda asked: asked.get("max_completion_tokens") is not None,
    lambda asked: {**asked, "max_completion_tokens": "refused"},
    seen=("voideditor/void#128",),
)
rewriting(
    "lengths.reasoning-uncounted",
    "`max_completion_tokens` does not include the reasoning",
    "lengths.max-completion-tokens",
    lambda asked: asked.get("max_completion_tokens") and asked.get("reasoning_effort") not in (None, "none"),
    lambda asked: {**asked, "max_completion_tokens": asked["max_completion_tokens"] + _REASONING},
    seen=("vllm-project/vllm#28266",),
)
rewriting(
    "lengths.default-ignored",
    "Without a limit an answer is longer than the document's default",
    "lengths.default-limit",
    lambda asked: asked.get("max_tokens") is None and asked.get("max_completion_tokens") is None,
    lambda asked: {**asked, "max_tokens": _MUCH},
)
ignoring("lengths.least-ignored", "`min_tokens` is ignored", "lengths.min-tokens", "min_tokens")
rewriting(
    "lengths.least-stopped",
    "A stop string ends an answer before `min_tokens`",
    "lengths.min-tokens",
    lambda asked: asked.get("min_tokens") and asked.get("stop"),
    lambda asked: {**asked, "min_tokens": 0},
    seen=("vllm-project/vllm#21987", "vllm-project/vllm#15967", "InternLM/lmdeploy#2681"),
)
ignoring(
    "lengths.end-heeded",
    "`ignore_eos` is ignored",
    "lengths.ignore-eos",
    "ignore_eos",
    seen=("vllm-project/vllm#4589", "tenstorrent/vllm#344"),
)
ignoring(
    "lengths.truncation-ignored",
    "`truncate_prompt_tokens` is ignored",
    "lengths.truncate-prompt",
    "truncate_prompt_tokens",
    seen=("vllm-project/vllm#27642",),
)
ignoring("lengths.side-ignored", "`truncation_side` is ignored", "lengths.truncation-side", "truncation_side")
ignoring(
    "lengths.repetition-ignored",
    "`repetition_detection` is ignored",
    "lengths.repetition-detection",
    "repetition_detection",
)
rewriting(
    "lengths.repetition-count-ignored",
    "`min_count` is ignored: twice is enough",
    "lengths.repetition-detection",
    _detects,
    lambda asked: _with_detection(asked, min_count=2),
)
rewriting(
    "lengths.repetition-least-size-ignored",
    "`min_pattern_size` is ignored",
    "lengths.repetition-detection",
    lambda asked: _detects(asked) and _detection(asked).get("min_pattern_size"),
    lambda asked: _with_detection(asked, min_pattern_size=1),
)
rewriting(
    "lengths.repetition-size-ignored",
    "`max_pattern_size` is ignored: 0 does not turn the detection off",
    "lengths.repetition-detection",
    lambda asked: _detection(asked).get("max_pattern_size") == 0,
    lambda asked: _with_detection(asked, max_pattern_size=8, min_count=2),
)
rewriting(
    "lengths.repetition-rules-unheeded",
    "Parameters of the repetition detection that contradict each other are accepted",
    "lengths.repetition-rules",
    lambda asked: _detection(asked).get("max_pattern_size") and not _detects(asked),
    lambda asked: {**asked, "repetition_detection": None},
)
