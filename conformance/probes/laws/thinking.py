"""Reasoning, more and less of it."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request

__all__ = ["thinking"]

_LONG = 64
"""Tokens in which a model that does not keep to its budget thinks for longer than its engine may."""

_ASKED: dict[str, tuple[int, dict[str, Any]]] = {
    "none": (MAX_TOKENS, {"reasoning_effort": "none"}),
    "minimal": (MAX_TOKENS, {"reasoning_effort": "minimal"}),
    "high": (_LONG, {"reasoning_effort": "high"}),
    "hidden": (MAX_TOKENS, {"reasoning_effort": "low", "include_reasoning": False}),
    "budget": (_LONG, {"reasoning_effort": "high", "thinking_token_budget": 1}),
    "budget-alone": (MAX_TOKENS, {"thinking_token_budget": 4}),
    "unlimited": (MAX_TOKENS, {"thinking_token_budget": -1}),
}
"""Name → the limit of tokens, and what is asked for."""


def thinking(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Whole answers, and streams where reasoning must not show."""
    for name, (tokens, asked) in _ASKED.items():
        body = {**plain_request(operation, model, max_tokens=tokens), **asked}
        if not (asked.keys() <= operation.properties.keys() and operation.request.accepts(body)):
            continue
        yield Probe(f"law.thinking.{name}", body)
        if operation.streams and name in ("none", "hidden"):
            yield Probe(f"law.thinking.{name}-stream", {**body, "stream": True})
