"""Answers in a form that no model would choose by itself."""

import json
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.paths import request_paths
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["structured"]

_TOKENS = 64
"""Enough for the object below and for the white space with which models without training fill it up."""

_FEW = 16
"""Enough for one word."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "c": {"const": "zq7"},
        "s": {"enum": ["雪🙂", "é雪"]},
        "n": {"type": "integer", "minimum": 41, "maximum": 43},
    },
    "required": ["c", "s", "n"],
    "additionalProperties": False,
}
"""Nobody says this by chance; and text outside of ASCII has been escaped twice (vllm 8805)."""

_SMALL: dict[str, Any] = {
    "type": "object",
    "properties": {"c": {"const": 7}, "d": {"const": 8}},
    "required": ["c", "d"],
}
_LOOSE: dict[str, Any] = {"type": "object", "properties": {"c": {"const": 7}}}

_SEVEN: dict[str, Any] = {"const": 7}
_TAG: dict[str, Any] = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<zq>",
        "content": {"type": "json_schema", "json_schema": _SEVEN},
        "end": "</zq>",
    },
}
_TAGS: dict[str, Any] = {
    "type": "structural_tag",
    "structures": [{"begin": letter, "schema": _SEVEN, "end": ";"} for letter in " eo"],
    "triggers": [*" eo"],
}
"""Hardly a text comes by without one of these letters."""

_FORMATS: dict[str, tuple[dict[str, Any], int]] = {
    "json-schema": (
        {
            "type": "json_schema",
            "json_schema": {"name": "code", "description": "A code.", "strict": True, "schema": _SCHEMA},
        },
        _TOKENS,
    ),
    "format-regex": ({"type": "regex", "regex": "zq[0-9]{3}"}, _FEW),
    "format-tag": (_TAG, _TOKENS),
    "format-tags": (_TAGS, _FEW),
    "format-text": ({"type": "text"}, 1),
}
"""Name of the probe → `response_format`, and how many tokens it may take."""

_OUTPUTS: dict[str, tuple[dict[str, Any], int]] = {
    "json": ({"json": _SCHEMA}, _TOKENS),
    "json-text": ({"json": json.dumps(_SCHEMA)}, _TOKENS),
    "regex": ({"regex": "zq[0-9]{3}"}, _FEW),
    "choice": ({"choice": ["zq7", "雪🙂"]}, _FEW),
    "grammar": ({"grammar": 'root ::= "zq7" | "zq8"'}, _FEW),
    "any-object": ({"json_object": True}, _TOKENS),
    "structural-tag": ({"structural_tag": json.dumps(_TAG)}, _TOKENS),
    "tight": ({"json": _SMALL, "disable_any_whitespace": True}, _TOKENS),
    "closed": ({"json": _LOOSE, "disable_additional_properties": True}, _TOKENS),
    "spacing": ({"json": _SMALL, "whitespace_pattern": "[\t]"}, _TOKENS),
}
"""Name of the probe → `structured_outputs`, and how many tokens it may take."""


def structured(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Every form that the document knows; then what a right server refuses."""
    # Sampled: at temperature 0 a model without training may write white space for ever.
    plain = {**plain_request(operation, model, max_tokens=_TOKENS), "temperature": 1}
    known = request_paths(operation)
    if "response_format" in known:
        yield from _formats(operation, plain)
    if "structured_outputs" in known:
        for name, (wanted, tokens) in _OUTPUTS.items():
            yield Probe(f"law.structured.{name}", {**plain, "structured_outputs": wanted, "max_tokens": tokens})
        yield Probe(
            "law.structured.several",
            {**plain, "structured_outputs": {"regex": "zq[0-9]", "choice": ["zq7"]}, "max_tokens": _FEW},
            free=True,
        )
    if {"response_format", "structured_outputs"} <= known.keys():
        both = {"response_format": {"type": "json_object"}, "structured_outputs": {"choice": ["zq7"]}}
        yield Probe("law.structured.both", {**plain, **both, "max_tokens": _FEW}, free=True)


def _formats(operation: Operation, plain: dict[str, Any]) -> Iterator[Probe]:
    # OpenAI refuses this format where the prompt does not speak of JSON.
    prose = prompt_member(operation, "Count from one to five in words, without JSON.")
    yield Probe("law.structured.json-object", {**plain, **prose, "response_format": {"type": "json_object"}})
    for name, (wanted, tokens) in _FORMATS.items():
        body = {**plain, "response_format": wanted, "max_tokens": tokens}
        if operation.request.accepts(body):
            yield Probe(f"law.structured.{name}", body)
    schema = {**plain, "response_format": _FORMATS["json-schema"][0]}
    if operation.streams:
        yield Probe("law.structured.json-schema-stream", {**schema, "stream": True})
    logprobs = {"logprobs": True} if operation.family == "chat" else {"logprobs": 1}
    # Tokens that a form forbids have no finite log-probability (sglang 5984).
    yield Probe("law.structured.json-schema-logprobs", {**schema, **logprobs})
    lacking = {**plain, "response_format": {"type": "json_schema", "json_schema": {"name": "code"}}, "max_tokens": 1}
    if operation.request.accepts(lacking):
        yield Probe("law.structured.schema-missing", lacking, free=True)
    unknown = {**plain, "response_format": {"type": "zq7"}, "max_tokens": 1}
    if not operation.request.accepts(unknown):
        yield Probe("law.structured.type-unknown", unknown, free=True)
