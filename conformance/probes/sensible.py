"""Makes drawn requests affordable, harmless and sensible, so that what they are about is all that is odd in them."""

import functools
from typing import Any

from streamgauge.contract.contract import Operation
from streamgauge.contract.validator import Validator
from streamgauge.wire.json import is_number

__all__ = ["DANGEROUS", "LIMIT", "affordable", "harmless", "names_a_url", "sensible", "within_bounds"]

LIMIT = 2
"""The most tokens and choices that a generated case may ask for."""

_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
_LIMITED = (*_TOKEN_LIMITS, "min_tokens", "n", "best_of")

_ORDINARY: dict[str, Any] = {
    "max_tokens": LIMIT,
    "n": 1,
    "prompt": "Count from one to five.",
    "repetition_penalty": 1,
    "response_format": {"type": "text"},
    "stop": ["\u241e"],
    "top_p": 1,
}
"""
What replaces an empty value (0, "", {}) in a case that names most properties; an allowed null is left out of it.

Schemathesis varies one property at a time in one such object: an empty value there, or a null that a server does not
take, would have every case refused for the same reason. Cases that name a property alone keep its value.
"""

_OPTIONS = {"top_logprobs": "logprobs", "tool_choice": "tools", "parallel_tool_calls": "tools"}
"""
Option → what it is an option of.

Its default is left out of such an object where that is not asked for: llama.cpp refuses `top_logprobs: 0` without logprobs,
and so would have refused every case for the same reason.
"""

DANGEROUS = (
    "allowed_token_ids",
    "chat_template",
    "chat_template_kwargs",
    "data",
    "kv_transfer_params",
    "logit_bias",
    "media_io_kwargs",
    "mm_processor_kwargs",
    "stop_token_ids",
    "structured_outputs",
    "vllm_xargs",
)
"""Properties whose odd values have stopped engines for everybody; a generated case is sent without them."""

_BOUNDS: dict[str, tuple[float, float]] = {
    "frequency_penalty": (-2, 2),
    "logprobs": (0, 5),
    "min_p": (0, 1),
    "presence_penalty": (-2, 2),
    "priority": (0, 0),
    "prompt_logprobs": (0, 1),
    "repetition_penalty": (0.5, 2),
    "seed": (0, 2**31 - 1),
    "temperature": (0, 2),
    "thinking_token_budget": (-1, 8),
    "top_k": (1, 100),
    "top_logprobs": (0, 5),
    "top_p": (0.1, 1),
    "truncate_prompt_tokens": (1, 100),
}
"""Property → the numbers that every server takes which has it. The schemas give none, and random numbers are mostly beyond."""


def harmless(body: dict[str, Any]) -> dict[str, Any]:
    """Without what may stop an engine."""
    return {name: value for name, value in body.items() if name not in DANGEROUS}


def affordable(body: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """With small limits: also where it gives none."""
    limited = {name: LIMIT for name in _LIMITED if _is_beyond(body.get(name))}
    names = [name for name in _TOKEN_LIMITS if name in operation.properties]
    if names and all(body.get(name) is None for name in names):
        limited[next((name for name in names if name not in body), names[0])] = LIMIT
    return body | limited


def _is_beyond(value: Any) -> bool:
    return is_number(value) and value == value // 1 and value > LIMIT


def sensible(body: dict[str, Any], plain: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """Real values where the case has none of its own and the schema does not ask for one: the case's point stays."""
    required = operation.required
    body = dict(body)
    if isinstance(body.get("model"), str) or (body.get("model") is None and "model" not in required):
        body["model"] = plain["model"]
    for name in ("prompt", "messages"):
        if name in plain and name not in required and body.get(name) in (None, "", []):
            body[name] = plain[name]
    if len(body) * 2 > len(operation.properties):
        body = _without_idle_options(_ordinary(body, _nullable(operation)), operation.properties)
    return body


def within_bounds(body: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """Without what the document does not know, and with no number that a server might refuse."""
    known = {name: value for name, value in body.items() if name in operation.properties}
    return known | {name: _clamped(known[name], *_BOUNDS[name]) for name in _BOUNDS if is_number(known.get(name))}


def _clamped(value: Any, low: float, high: float) -> Any:
    return min(max(value, low), high)


def _ordinary(body: dict[str, Any], nullable: frozenset[str]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if value is not None or name not in nullable}
    empty = [name for name in _ORDINARY if name in kept and kept[name] in (0, "", {}) and kept[name] is not False]
    return kept | {name: _ORDINARY[name] for name in empty}


def _without_idle_options(body: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    idle = {name for name, whole in _OPTIONS.items() if name in body and not body.get(whole)}
    return {name: value for name, value in body.items() if name not in idle or not _is_default(value, known.get(name))}


def _is_default(value: Any, schema: Any) -> bool:
    """Whether the schema names just this value, and no other type that equals it (False is no 0), as its default."""
    default = schema.get("default") if isinstance(schema, dict) else None
    return type(value) is type(default) and value == default


@functools.cache
def _nullable(operation: Operation) -> frozenset[str]:
    """The request properties whose schema takes null."""
    components = operation.components
    return frozenset(
        name for name, schema in operation.properties.items() if Validator(schema, components).accepts(None)
    )


def names_a_url(node: Any) -> bool:
    """Whether a part of the body would make the target call somebody."""
    if isinstance(node, dict):
        return any((key == "url" and isinstance(value, str)) or names_a_url(value) for key, value in node.items())
    return isinstance(node, list) and any(map(names_a_url, node))
