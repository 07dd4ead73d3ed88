"""Sampling parameters, penalties, numbers of choices."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["sampling"]


def sampling(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """None yet."""
    yield from ()
