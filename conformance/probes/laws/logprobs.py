"""Log-probabilities in all their forms."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["logprobs"]

_TOKENS = 4
_SAMPLED_TOKENS = 12
"""So many that their numbers cannot all be equal."""

_OPEN = "Invent a name for each of ten unknown planets."
_MOST = 5
"""The least that every server allows at most."""

_IDS = [7, 5]
"""In every vocabulary, and hardly ever among the likeliest."""

_TOOL = {"type": "function", "function": {"name": "visit", "parameters": {"type": "object", "properties": {}}}}


def logprobs(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """As far as the document has them."""
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    for name, changes in _asked(operation).items():
        if changes.keys() <= operation.properties.keys() | {"max_tokens"}:
            yield Probe(f"law.logprobs.{name}", {**plain, **changes})


def _asked(operation: Operation) -> dict[str, dict[str, Any]]:
    """Name of the probe → what it changes in the plain request."""
    chat = operation.family == CHAT
    most: dict[str, Any] = {"logprobs": True, "top_logprobs": _MOST} if chat else {"logprobs": _MOST}
    by_ids = {**most, "return_tokens_as_token_ids": True, "logprob_token_ids": _IDS}
    sampled = {**prompt_member(operation, _OPEN), "temperature": 1, "max_tokens": _SAMPLED_TOKENS}
    shared = {
        "most": most,
        "sampled": {**sampled, **({"logprobs": True} if chat else {"logprobs": 1})},
        "ids-requested": by_ids,
        "prompt": {"prompt_logprobs": 2, "max_tokens": 1},
    }
    if not chat:
        return {"none": {"logprobs": 0}, **shared}
    tools = {"logprobs": True, "tools": [_TOOL], "tool_choice": "auto", "stream": True, "max_tokens": 1}
    return {
        "no-top": {"logprobs": True},
        "zero-top": {"logprobs": True, "top_logprobs": 0},
        **shared,
        "tools-stream": tools,
    }
