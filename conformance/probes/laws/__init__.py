"""Requests that ask for one property each, so that it shows whether it is honoured. One module for each topic."""

from collections.abc import Callable, Iterator

from streamgauge.conformance.probes.laws.absent import absent
from streamgauge.conformance.probes.laws.bookkeeping import bookkeeping
from streamgauge.conformance.probes.laws.lengths import lengths
from streamgauge.conformance.probes.laws.logprobs import logprobs
from streamgauge.conformance.probes.laws.messages import messages
from streamgauge.conformance.probes.laws.pairwise import pairwise
from streamgauge.conformance.probes.laws.prompts import prompts
from streamgauge.conformance.probes.laws.request_limits import request_limits
from streamgauge.conformance.probes.laws.sampling import sampling
from streamgauge.conformance.probes.laws.steering import steering
from streamgauge.conformance.probes.laws.stop import stop
from streamgauge.conformance.probes.laws.structured import structured
from streamgauge.conformance.probes.laws.template import template
from streamgauge.conformance.probes.laws.thinking import thinking
from streamgauge.conformance.probes.laws.token_ids import token_ids
from streamgauge.conformance.probes.laws.tool_calls import tool_calls
from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["TOPICS", "laws"]

TOPICS: tuple[Callable[[Operation, str], Iterator[Probe | FollowUp]], ...] = (
    stop,
    lengths,
    sampling,
    steering,
    logprobs,
    token_ids,
    prompts,
    structured,
    tool_calls,
    messages,
    template,
    thinking,
    bookkeeping,
    absent,
    pairwise,
    request_limits,
)
"""In the order in which the budget is spent on them."""


def laws(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """The probes of every topic."""
    for topic in TOPICS:
        yield from topic(operation, model)
