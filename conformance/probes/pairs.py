"""Questions that are asked several times in both forms: what differs between the forms has to be more than noise."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import Probe
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["TIMES", "TOOL", "UNICODE", "pairs"]

TIMES = 4
"""
How often each form of a question is sent.

A model that says one of two things keeps each form equal in itself and the two apart in less than 1 % of questions only
from four times on, however noisy it is; with three it is 3 %.
"""

_TOKENS = 16
"""Enough for a text of several words."""

_CALL_TOKENS = 32
"""Enough for a call, which some servers let the model write with more around it than they tell."""

_LOGPROBS: dict[str, dict[str, Any]] = {CHAT: {"logprobs": True, "top_logprobs": 1}, COMPLETIONS: {"logprobs": 1}}
UNICODE = "Repeat: 「雪」 мир 🙂"
_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "visit", "parameters": _CITY}}


def pairs(operation: Operation, model: str) -> Iterator[Probe]:
    """
    Each question in both forms by turns, so that what changes with time (a cache that fills up) strikes both alike.

    Nothing for an operation that does not stream.
    """
    if not operation.streams:
        return
    for name, body in _questions(operation, model):
        whole = Probe(f"pair.{name}", body)
        options = {"stream_options": {"include_usage": True}} if "stream_options" in operation.properties else {}
        streamed = Probe(f"pair.{name}-stream", {**body, "stream": True, **options})
        for turn in range(TIMES):
            yield from (whole, streamed) if turn % 2 == 0 else (streamed, whole)


def _questions(operation: Operation, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    known = operation.properties
    seed = {"seed": 7} if "seed" in known else {}
    plain = {**plain_request(operation, model, max_tokens=_TOKENS), **seed}
    yield "unicode", {**plain, **prompt_member(operation, UNICODE)}
    if operation.family == CHAT and {"tools", "tool_choice"} <= known.keys():
        yield "tool", {**plain, "tools": [TOOL], "tool_choice": "required", "max_tokens": _CALL_TOKENS}
    if operation.family == CHAT and "reasoning_effort" in known:
        yield "reasoning", {**plain, "reasoning_effort": "low"}
    yield "logprobs", {**plain, **_LOGPROBS[operation.family]}
