"""Requests that a right server refuses: they cost nothing there."""

import json
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.plain import plain_request

__all__ = ["refusals"]

UNKNOWN_MODEL = "streamgauge/no-such-model"

_RAW: dict[str, bytes] = {
    "empty": b"",
    "truncated": b'{"model": "x", ',
    "not-utf8": b'{"model": "\xff\xfe"}',
    "trailing": b'{"model": "x"} }',
}

_WRONG: dict[str, dict[str, Any]] = {
    "n-text": {"n": "two"},
    "stream-text": {"stream": "yes"},
    "max-tokens-text": {"max_tokens": "many"},
    "temperature-object": {"temperature": {}},
    "stop-number": {"stop": 5},
}
"""Name → what it changes in the plain request; each breaks the schema of every document that we know."""

_MEDIA_TYPES: dict[str, str | None] = {
    "media-type-missing": None,
    "media-type-form": "application/x-www-form-urlencoded",  # what `curl -d` says unless told otherwise
}


def refusals(operation: Operation, model: str) -> Iterator[Probe]:
    """Malformed bodies, missing and unknown models, wrong types, another method, other media types."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    for name, raw in _RAW.items():
        yield Probe(f"refusal.{name}", raw, free=True)
    for name, value in {"array": [1, 2], "null": None, "text": "x"}.items():
        yield Probe(f"refusal.{name}", json.dumps(value).encode(), free=True)
    for name, changes in _WRONG.items():
        yield Probe(f"refusal.{name}", {**plain, **changes}, free=True)
    without_prompt = {key: value for key, value in plain.items() if key not in ("messages", "prompt")}
    if operation.family == CHAT:
        yield Probe("refusal.messages-text", {**plain, "messages": "hello"}, free=True)
        yield Probe("refusal.messages-missing", without_prompt, free=True)
        yield Probe("refusal.role-unknown", {**plain, "messages": [{"role": "wizard", "content": "hi"}]}, free=True)
    else:
        yield Probe("refusal.prompt-object", {**plain, "prompt": {"text": "hello"}}, free=True)
        if not operation.request.accepts({**plain, "prompt": ["hello"]}):
            yield Probe("refusal.prompt-list", {**plain, "prompt": ["hello"]}, free=True)
        if "prompt" in operation.required:
            yield Probe("refusal.prompt-missing", without_prompt, free=True)
    yield Probe("refusal.model-missing", {key: value for key, value in plain.items() if key != "model"}, free=True)
    yield Probe("refusal.model-unknown", {**plain, "model": UNKNOWN_MODEL}, free=True)
    if operation.streams:
        yield Probe("refusal.model-unknown-stream", {**plain, "model": UNKNOWN_MODEL, "stream": True}, free=True)
        yield Probe("refusal.n-text-stream", {**plain, "n": "two", "stream": True}, free=True)
    yield Probe("refusal.method-get", b"", free=True, method="GET")
    for name, media_type in _MEDIA_TYPES.items():
        # A server that reads it all the same has to refuse the model.
        body = {**plain, "model": f"{UNKNOWN_MODEL}-{name}"}
        yield Probe(f"refusal.{name}", body, free=True, headers=(("content-type", media_type),))
