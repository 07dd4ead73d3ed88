"""Prompts in all their forms; echo and suffix."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["prompts"]


def prompts(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """None yet."""
    yield from ()
