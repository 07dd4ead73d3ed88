"""
Requests that have killed engines: each looks valid, and each has taken a server down for everybody.

They are sent only on demand (`--destructive`), each alone and with a canary behind it. A right server refuses them, or
answers; the catalogue of faults that was seen on real servers tells where each comes from (`docs/isolation.md`).
"""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.isolation import canary
from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request

__all__ = ["poisons", "with_canaries"]

_BIG = 2**31 - 1
"""Beyond every vocabulary, and the greatest index that a kernel may take without a look."""

_OBJECT = {"type": "object", "required": ["x"], "additionalProperties": False}


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "poison", "schema": schema}}}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


_LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}x"
_ESCAPE = "{{ ''.__class__.__mro__[1].__subclasses__() | length }}"

_TABLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("seed-63-bits", {"seed": 2**63}),
    ("seed-64-bits", {"seed": 2**64}),
    ("logit-bias-beyond", {"logit_bias": {str(_BIG): 10}}),
    ("logit-bias-negative", {"logit_bias": {"-1": 10}}),
    ("stop-token-beyond", {"stop_token_ids": [_BIG], "min_tokens": 1}),
    ("stop-token-negative", {"stop_token_ids": [-1], "min_tokens": 1}),
    ("allowed-token-beyond", {"allowed_token_ids": [_BIG]}),
    ("allowed-token-none", {"allowed_token_ids": []}),
    ("logprob-token-beyond", {"logprob_token_ids": [_BIG], "logprobs": True}),
    ("schema-integers", _format({**_OBJECT, "properties": {"x": {"type": "integer", "maximum": 10**19}}})),
    ("schema-count", _format({"type": "array", "items": {"type": "integer"}, "minItems": _BIG})),
    ("schema-deep", _format(_nested(60))),
    ("schema-recursive", _format({"$ref": "#"})),
    ("schema-pattern", _format({**_OBJECT, "properties": {"x": {"type": "string", "pattern": "(a+)+$"}}})),
    ("regex-broken", {"structured_outputs": {"regex": "("}}),
    ("regex-backtracking", {"structured_outputs": {"regex": "(a+)+$"}}),
    ("regex-long", {"structured_outputs": {"regex": "[a-z]{1,100000}"}}),
    ("grammar-broken", {"structured_outputs": {"grammar": "root ::= ("}}),
    ("grammar-endless", {"structured_outputs": {"grammar": "root ::= root"}}),
    ("choices", {"n": _BIG}),
    ("best-of", {"best_of": _BIG}),
    ("top-k", {"top_k": 2**31}),
    ("top-logprobs", {"top_logprobs": _BIG, "logprobs": True}),
    ("prompt-logprobs", {"prompt_logprobs": _BIG}),
    ("priority", {"priority": 2**63}),
    ("template-loop", {"chat_template": _LOOP}),
    ("template-escape", {"chat_template": _ESCAPE}),
)
"""Name → what it changes in the plain request. A row is sent where the document has its first property."""

_COMPLETIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("prompt-token-beyond", {"prompt": [_BIG]}),
    ("prompt-token-negative", {"prompt": [-1]}),
    ("prompt-none", {"prompt": []}),
    ("logprobs", {"logprobs": _BIG}),
)

_REFUSED = frozenset({"choices", "best-of"})
"""What nobody could pay for: a right server refuses it."""


def poisons(operation: Operation, model: str) -> Iterator[Probe]:
    """Every poison that the document leaves room for."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    known = operation.properties
    for name, changes in (*_TABLE, *(_COMPLETIONS if operation.family == COMPLETIONS else ())):
        if next(iter(changes)) not in known or (name in _FOR_CHAT and operation.family != CHAT):
            continue
        given = {key: value for key, value in changes.items() if key in known}
        yield Probe(f"poison.{name}", {**plain, **given}, free=name in _REFUSED, alone=True, destructive=True)


_FOR_CHAT = frozenset({"logprob-token-beyond", "top-logprobs"})
"""Rows whose `logprobs` is chat's yes or no."""


def with_canaries(operation: Operation, model: str) -> Iterator[Probe]:
    """Each poison, and behind it a canary."""
    for probe in poisons(operation, model):
        yield probe
        yield Probe(f"{probe.id}.canary", canary(operation, model), alone=True)
