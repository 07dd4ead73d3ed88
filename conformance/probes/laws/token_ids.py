"""Token ids in the answer."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["token_ids"]


def token_ids(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """None yet."""
    yield from ()
