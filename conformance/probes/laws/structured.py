"""Answers in a form that no model would choose by itself."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["structured"]


def structured(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """None yet."""
    yield from ()
