"""Requests that a right server answers: each in its whole and its streamed form."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.conformance.tokens import knows_continuous
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.features import FEATURES
from streamgauge.contract.plain import plain_request, prompt_member
from streamgauge.contract.profile import Profile

__all__ = ["claims", "forms"]

_USAGE = {"stream_options": {"include_usage": True}}
_LOGPROBS: dict[str, dict[str, Any]] = {CHAT: {"logprobs": True, "top_logprobs": 2}, COMPLETIONS: {"logprobs": 2}}
_UNICODE = "Répète : 「雪」 🌨️ e\u0301 \u202eabc\u202c \u2028 fin"
_LONG = "Count from one to fifty."
_LONG_TOKENS = 32
"""Enough to see whether a stream arrives while it is generated; sent late, so that it waits for no other."""

_FORMS: dict[str, dict[str, Any]] = {
    "basic": {},
    "one-token": {"max_tokens": 1},
    "two-choices": {"n": 2, "temperature": 1, "ignore_eos": True},
    "no-token": {"max_tokens": 0},
    "unknown-property": {"x_streamgauge": {"nested": [1, None, "text"]}},
}
"""Name of the probe → what it changes in the plain request."""


def forms(operation: Operation, model: str) -> Iterator[Probe]:
    """The whole form of each request, and the streamed one with and without usage."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    bodies = {name: {**plain, **changes} for name, changes in _FORMS.items()}
    bodies["logprobs"] = {**plain, **_LOGPROBS[operation.family]}
    bodies["unicode"] = {**plain, **prompt_member(operation, _UNICODE)}
    if operation.family == CHAT and "reasoning_effort" in operation.properties:
        bodies["reasoning"] = {**plain, "reasoning_effort": "low"}
    for name, body in bodies.items():
        yield Probe(f"form.{name}", body)
        if operation.streams:
            yield Probe(f"form.{name}-stream", {**body, "stream": True, **_USAGE})
    if operation.streams:
        yield Probe("form.basic-stream-no-usage", {**plain, "stream": True})
        if knows_continuous(operation):
            options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
            yield Probe("form.continuous-usage-stream", {**plain, "stream": True, **options})
        longer = {**plain, **prompt_member(operation, _LONG), "max_tokens": _LONG_TOKENS, "stream": True, **_USAGE}
        yield Probe("form.long-stream", longer, late=True)


def claims(operation: Operation, model: str, profile: Profile) -> Iterator[Probe]:
    """One request for each feature of which the profile says anything, in the first form that the document takes."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    for name in profile.features:
        bodies = [
            {**plain, **sample} for sample in FEATURES[name].samples if sample.keys() <= operation.properties.keys()
        ]
        for body in [body for body in bodies if operation.request.accepts(body)][:1]:
            yield Probe(f"form.feature-{name.replace('_', '-')}", body)
