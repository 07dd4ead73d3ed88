"""Requests side by side, each with a nonce of its own; and streams that the client leaves."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.isolation.nonces import nonce
from streamgauge.conformance.probes.probe import Probe
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["LEFT_TOKENS", "canary", "leaving", "nonces"]

_NONCES = 12
_SHORT, _LONG, _OBJECT = 8, 32, 48
"""Tokens; a nonce has about twenty, and an object around it some more."""

_STREAMS = 4
_EVENTS = 8
"""After so many the client leaves: enough to tell the server's pace."""

LEFT_TOKENS = 256
"""Tokens that a stream asks for which the client leaves: some seconds on most servers."""

_CANARY_TOKENS = 4


def nonces(operation: Operation, model: str) -> Iterator[Probe]:
    """
    Requests of mixed shapes that stand side by side in the plan: whole and streamed, short and long, one choice and two.

    The nonce stands in the prompt, in `user` and `request_id` where the document has them, and for some where the answer has
    to repeat it: `echo` of text completions, a JSON schema with a constant.
    """
    known = operation.properties
    for number in range(_NONCES):
        text = nonce(operation.name, number)
        body: dict[str, Any] = {
            **plain_request(operation, model, max_tokens=_LONG if number % 4 < 2 else _SHORT),
            **prompt_member(operation, f"Repeat: {text}"),
            **{name: text for name in ("user", "request_id") if name in known},
        }
        if number % 2 and operation.streams:
            body["stream"] = True
        if number % 6 == 5:
            body["n"] = 2
        elif operation.family == COMPLETIONS and "echo" in known and number % 6 in (2, 3):
            body["echo"] = True
        elif operation.family == CHAT and "response_format" in known and number % 6 in (0, 1):
            body |= {"max_tokens": _OBJECT, "response_format": _constant(text)}
        yield Probe(f"isolation.nonce-{number:02d}", body)


def _constant(text: str) -> dict[str, Any]:
    """The response format of an object that says the text."""
    schema = {
        "type": "object",
        "properties": {"nonce": {"type": "string", "enum": [text]}},
        "required": ["nonce"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "nonce", "schema": schema, "strict": True}}


def canary(operation: Operation, model: str) -> dict[str, Any]:
    """A plain request that shows whether the server still answers, and how soon."""
    return {
        **plain_request(operation, model, max_tokens=_CANARY_TOKENS),
        **prompt_member(operation, "Say in one word whether you are ready."),
    }


def leaving(operation: Operation, model: str) -> Iterator[Probe]:
    """Streams that the client leaves after their first events, between two canaries."""
    if not operation.streams:
        return
    body = {
        **plain_request(operation, model, max_tokens=LEFT_TOKENS),
        **prompt_member(operation, "Count from 1 to 1000, one number in each line."),
        "stream": True,
        **({"ignore_eos": True} if "ignore_eos" in operation.properties else {}),
    }
    yield Probe("alone.canary-before", canary(operation, model), alone=True)
    for number in range(_STREAMS):
        yield Probe(f"alone.leave-{number}", body, alone=True, leave_after=_EVENTS)
    yield Probe("alone.canary-behind", canary(operation, model), alone=True)
