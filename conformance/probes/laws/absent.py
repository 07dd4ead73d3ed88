"""Properties as null and as their default."""

from collections.abc import Iterator

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation

__all__ = ["absent"]


def absent(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """None yet."""
    yield from ()
