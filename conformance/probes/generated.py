"""
Schemathesis' coverage cases, sent by our own recorder.

Schemathesis judges a stream's envelope instead of its payload and generates unbounded token limits; so it only supplies
the cases. Each is made affordable (limits clamped) and sensible (a real model, a prompt), and whether it is valid is
computed anew by the checks.
"""

import functools
import json
from collections.abc import Iterator
from typing import Any

import schemathesis
from schemathesis import GenerationMode

from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.contract.contract import JSON, Operation
from streamgauge.contract.plain import plain_request
from streamgauge.contract.validator import Validator
from streamgauge.wire.json import is_number

__all__ = ["DANGEROUS", "generated"]

LIMIT = 2
"""The most tokens and choices that a generated case may ask for."""

_LIMITED = ("max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of")

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


def generated(operation: Operation, model: str) -> Iterator[Probe]:
    """
    The cases of Schemathesis' coverage phase for one operation, each body once.

    Bodies that break the schema come first: a right server refuses them, so they cost nothing.
    """
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    seen: set[str] = set()
    valid: list[dict[str, Any]] = []
    broken: list[Any] = []
    for case in _bodies(operation):
        body = _affordable(_sensible(case, plain, operation)) if isinstance(case, dict) else case
        if _names_a_url(body):
            continue
        key = json.dumps(body, sort_keys=True, default=repr)
        if key in seen:
            continue
        seen.add(key)
        (valid if operation.request.accepts(body) else broken).append(body)
    for number, body in enumerate(broken):
        yield Probe(f"generated.broken-{number:04d}", body, free=True)
    probes = [Probe(f"generated.valid-{number:04d}", body) for number, body in enumerate(valid)]
    yield from sorted(probes, key=lambda probe: probe.tokens)  # cheap ones first: more of them fit into a budget


def _bodies(operation: Operation) -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(_alone(operation))
    source = schema[operation.path][operation.method]
    for case in schema.iter_coverage_cases(
        source,
        generation_modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE],
        generation_config=schema.config.generation,
    ):
        body = case.body
        if case.method == operation.method and isinstance(body, (dict, list, str, int, float, bool, type(None))):
            yield body


def _alone(operation: Operation) -> dict[str, Any]:
    """The operation's request as a document of its own, its schemas normalised: what OpenAPI 3.1 calls a schema."""
    body = {"required": True, "content": {JSON: {**operation.request_examples, "schema": operation.request_schema}}}
    described = {"requestBody": body, "responses": {"200": {"description": "An answer."}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": operation.document.name, "version": "1"},
        "paths": {operation.path: {operation.method.lower(): described}},
        "components": operation.components,
    }


def _sensible(body: dict[str, Any], plain: dict[str, Any], operation: Operation) -> dict[str, Any]:
    """Real values where the case has none of its own and the schema does not ask for one: the case's point stays."""
    required = operation.required
    body = {name: value for name, value in body.items() if name not in DANGEROUS}
    if isinstance(body.get("model"), str) or (body.get("model") is None and "model" not in required):
        body["model"] = plain["model"]
    for name in ("prompt", "messages"):
        if name in plain and name not in required and body.get(name) in (None, "", []):
            body[name] = plain[name]
    if len(body) * 2 > len(operation.properties):
        body = _without_idle_options(_ordinary(body, _nullable(operation)), operation.properties)
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in operation.properties]
    if all(body.get(name) is None for name in limits):
        body[next((name for name in limits if name not in body), limits[0])] = LIMIT
    return body


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


def _affordable(body: dict[str, Any]) -> dict[str, Any]:
    for name in _LIMITED:
        value = body.get(name)
        if is_number(value) and value == value // 1 and value > LIMIT:
            body[name] = LIMIT
    return body


def _names_a_url(node: Any) -> bool:
    """Whether a part of the body would make the target call somebody."""
    if isinstance(node, dict):
        return any((key == "url" and isinstance(value, str)) or _names_a_url(value) for key, value in node.items())
    return isinstance(node, list) and any(map(_names_a_url, node))
