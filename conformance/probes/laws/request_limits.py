"""Prompts beyond the context, and a body beyond what proxies take: a right server refuses both before it generates anything."""

import functools
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["UNKNOWN_MODEL", "bodies", "digits", "request_limits"]

UNKNOWN_MODEL = "streamgauge/no-such-model-large"

_TRIES = 3
_BEYOND = 64
"""So many digits more than the context has tokens."""

_MOST_TOKENS = 200_000
"""A prompt for a larger context is too large to send."""

_BODY_BYTES = 5 * 2**18
"""1.25 MiB: more than 1 MB, which is where nginx stops unless told otherwise."""

_MODELS = "law.limits.models"


@functools.cache
def digits(count: int) -> str:
    """
    So many digits, each apart: a tokenizer has at least one token for each.

    No two neighbours are alike, and no short pattern comes again, so that nothing can be taken together.
    """
    return " ".join(str((number * number + number // 7) % 10) for number in range(count))


def request_limits(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """The model list, which may say how much context there is, and the same prompt beyond it a few times."""
    yield Probe(_MODELS, b"", free=True, method="GET", models=True)

    def beyond(answered: Answered) -> dict[str, Any] | str:
        context = _context(answered, model)
        if context is None:
            return "the model list does not say how long a prompt may be (`max_model_len`)"
        if context > _MOST_TOKENS:
            return f"a prompt beyond the context of {context} tokens is too large to send"
        plain = plain_request(operation, model, max_tokens=1)
        return {**plain, **prompt_member(operation, digits(context + _BEYOND))}

    for number in range(_TRIES):
        yield FollowUp(f"law.limits.context-{number}", 0, beyond, free=True)


def _context(answered: Answered, model: str) -> int | None:
    source = answered.get(_MODELS)
    body = source.json.value if source is not None and source.status == 200 else None
    listed = body.get("data") if isinstance(body, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and entry.get("id") == model and type(entry.get("max_model_len")) is int:
            return int(entry["max_model_len"])
    return None


def bodies(operation: Operation, model: str) -> Iterator[Probe]:
    """A large body for a model that does not exist: its size stands in a property that nobody knows."""
    padding = {"model": UNKNOWN_MODEL, "x_streamgauge_padding": "x" * _BODY_BYTES}
    yield Probe("alone.large-body", {**plain_request(operation, model, max_tokens=1), **padding}, free=True, alone=True)
