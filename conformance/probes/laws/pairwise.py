"""
Requests in which every two of the parameters that interact meet.

Single parameters work where two together fail: n with a stream, logprobs with a stop string, min_tokens with one. A covering
array needs few requests for it: each pair of values of two parameters is in one of them.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import covertable

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.probes.pairs import TOOL
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.contract.contract import Operation
from streamgauge.contract.paths import request_paths
from streamgauge.contract.plain import plain_request

__all__ = ["MOST", "ROWS", "pairwise", "rows"]

ROWS = "law.pairwise"
"""What the ids of these probes begin with."""

MOST = 60
"""How many requests cover all pairs at most."""

_TEXT_TOKENS = 16
_FORMED_TOKENS = 32
"""A call, or a JSON object, takes more than a few words."""

_SOURCE = "law.stop.text"
"""The probe whose answer the stop string is taken from."""

_STOP = "a string of the text"
"""Stands for the stop string until the text is known."""

_TOOLS = {"tools": [TOOL]}
_CODE = {
    "type": "object",
    "properties": {"code": {"const": "q7-ж-31"}},
    "required": ["code"],
    "additionalProperties": False,
}

_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
_CONTINUOUS = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}

_FACTORS: dict[str, tuple[dict[str, Any], ...]] = {
    "n": ({}, {"n": 2}),
    "stream": ({}, {"stream": True}, _USAGE, _CONTINUOUS),
    "logprobs": ({}, {"logprobs": True, "top_logprobs": 2}, {"logprobs": 2}),
    "stop": ({}, {"stop": [_STOP]}),
    "min_tokens": ({}, {"min_tokens": 4}),
    "echo": ({}, {"echo": True}),
    "prompt": ({}, {"prompt": ["One river, two rivers", "Green stones"]}),
    "tools": ({}, _TOOLS, {**_TOOLS, "tool_choice": "required"}),
    "response_format": (
        {},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "code", "schema": _CODE}}},
    ),
    "return_token_ids": ({}, {"return_token_ids": True}),
    "reasoning_effort": ({}, {"reasoning_effort": "low"}),
}
"""Parameter → what it may add to a request, as far as the operation's document knows it."""


_FORCED = len(_FACTORS["tools"]) - 1

_SENSE = [
    {
        "operator": "or",
        "conditions": [
            {"operator": "ne", "left": "tools", "value": _FORCED},
            {"operator": "eq", "left": "response_format", "value": 0},
        ],
    }
]
"""A call that has to be made is no text, so its form is nobody's promise."""


def pairwise(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """A request for each row; those with a stop string once the text is known that it is taken from."""
    plain = plain_request(operation, model, max_tokens=_TEXT_TOKENS)
    for number, row in enumerate(rows(operation), start=1):
        body = {**plain, **row}
        if row.keys() & {"tools", "response_format"}:
            body["max_tokens"] = _FORMED_TOKENS
        id_ = f"{ROWS}.{number:02d}"
        if "stop" not in body:
            yield Probe(id_, body)
        else:
            yield FollowUp(id_, worst_case_tokens(body), functools.partial(_with_stop, body))


@functools.cache
def rows(operation: Operation) -> tuple[Mapping[str, Any], ...]:
    """What each request adds to the plain one; a right server takes every one, or refuses a feature that it lacks."""
    factors = {
        name: known
        for name, choices in _FACTORS.items()
        if len(known := [at for at, added in enumerate(choices) if _knows(operation, added)]) > 1
    }
    made = covertable.make(factors, constraints=_SENSE if {"tools", "response_format"} <= factors.keys() else None)
    return tuple(
        {key: value for name in _FACTORS if name in row for key, value in _FACTORS[name][row[name]].items()}
        for row in made
    )


def _knows(operation: Operation, added: dict[str, Any]) -> bool:
    if not added:
        return True
    if added == _CONTINUOUS and "stream_options.continuous_usage_stats" not in request_paths(operation):
        return False
    plain = plain_request(operation, "model", max_tokens=1)
    known = added.keys() <= operation.properties.keys() and operation.request.accepts({**plain, **added})
    return known and (not added.get("stream") or operation.streams)


def _with_stop(body: dict[str, Any], answered: Answered) -> dict[str, Any] | str:
    source = answered.get(_SOURCE)
    choices = answer_in(source).choices if source is not None else {}
    text = choices[0].text if 0 in choices else ""
    if len(text) < 8:
        return "no text to take a stop string from"
    return {**body, "stop": [text[len(text) // 2 :][:4]]}
