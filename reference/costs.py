"""What an answer says of its cost beside its text: tokens, and times and a tier where its document has a place for them."""

import functools
from typing import Any

from streamgauge.contract.contract import JSON, Operation
from streamgauge.contract.fields import properties_of
from streamgauge.reference.settings import Settings

__all__ = ["described", "metrics", "tier", "usage"]

_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
_METRICS, _TIER = "metrics", "service_tier"


@functools.cache
def described(operation: Operation) -> frozenset[str]:
    """Which of these an operation's document describes: both kinds of details in a usage, timing metrics, a service tier."""
    answer = operation.response_properties(200, JSON)
    told = properties_of(operation.schemas, answer.get("usage"), any_branch=True)
    return frozenset({_PROMPT, _COMPLETION} & told.keys() | {_METRICS, _TIER} & answer.keys())


def usage(prompt: int, completion: int, *, reasoning: int, told: frozenset[str]) -> dict[str, Any]:
    """The usage object; of the details those of :func:`described`. Nothing is cached here."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if _PROMPT in told:
        counts[_PROMPT] = {"cached_tokens": 0}
    if _COMPLETION in told:
        counts[_COMPLETION] = {"reasoning_tokens": reasoning}
    return counts


def metrics(settings: Settings, steps: int, told: frozenset[str]) -> dict[str, Any]:
    """
    The member that tells the times of an answer of so many token steps.

    Empty where the document has none, and behind an accelerator: nobody knows these times beforehand.
    """
    if _METRICS not in told or settings.accelerated:
        return {}
    times = {
        "time_to_first_token_ms": settings.ttft_ms,
        "generation_time_ms": (steps - 1) * settings.itl_ms,
        "queue_time_ms": 0.0,
        "mean_itl_ms": settings.itl_ms,
    }
    return {_METRICS: times}


def tier(asked: str | None, told: frozenset[str]) -> dict[str, Any]:
    """The member that tells the scheduling class; empty where the document has none, or the request."""
    return {} if asked is None or _TIER not in told else {_TIER: asked}
