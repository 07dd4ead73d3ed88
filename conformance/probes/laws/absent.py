"""The plain request with the defaults of all that it leaves out; with nulls it is asked among the variants."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import MAX_TOKENS, FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request

__all__ = ["absent"]

_OPTIONS = frozenset({"parallel_tool_calls", "tool_choice", "top_logprobs"})
"""Options of what a plain request does not ask for: right servers refuse them without it."""


def absent(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """One request; nothing for a document without defaults."""
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    defaults = {
        name: schema["default"]
        for name, schema in operation.properties.items()
        if isinstance(schema, dict) and schema.get("default") is not None and name not in {*plain, *_OPTIONS}
    }
    if defaults:
        yield Probe("law.absent.defaults", {**plain, **defaults})
