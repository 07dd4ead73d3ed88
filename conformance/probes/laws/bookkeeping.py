"""What a request carries for accounting, tracing and scheduling: each property with an ordinary value."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.features import PIXEL
from streamgauge.contract.plain import plain_request

__all__ = ["bookkeeping"]

_ORDINARY: dict[str, Any] = {
    "user": "streamgauge-user",
    "priority": 0,
    "service_tier": "default",
    "fail_fast": False,
    "prompt_cache_key": "streamgauge-key",
    "prompt_cache_options": {"mode": "explicit", "ttl": "5m"},
    "cache_salt": "c3RyZWFtZ2F1Z2UtY2FjaGUtc2FsdA",
    "store": False,
    "metadata": {"purpose": "conformance"},
    "request_id": "streamgauge-request-1",
    "vllm_xargs": {},
    "mm_processor_kwargs": {},
    "media_io_kwargs": {},
    "data": {"image": [PIXEL]},
    "documents": [{"title": "Rivers", "text": "The river is green."}],
}
"""Property → a value that any server which has it takes."""

_STREAMED = ("request_id", "service_tier")
"""Those whose effect an answer tells, in either form."""


def bookkeeping(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """One request for each, as the document takes it."""
    plain = plain_request(operation, model, max_tokens=1)
    for name, value in _ORDINARY.items():
        body = {**plain, name: value}
        if name not in operation.properties or not operation.request.accepts(body):
            continue
        probe = f"law.bookkeeping.{name.replace('_', '-')}"
        yield Probe(probe, body)
        if operation.streams and name in _STREAMED:
            yield Probe(f"{probe}-stream", {**body, "stream": True})
