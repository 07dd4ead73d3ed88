"""Goodput: which share of everything that was scheduled was answered correctly and in time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamgauge.metrics.distribution import Edge, values_of
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.slo import Slo
from streamgauge.metrics.statistics import at_rank, share_interval

__all__ = ["Goodput", "goodput", "is_good"]


@dataclass(frozen=True, slots=True)
class Goodput:
    """
    The share of good requests.

    Attributes:
        good: how many were good, by the times that were seen.
        least, most: how many were good at least and at most, given how busy this client was.
        n: how many were scheduled; what left no record is among them.
        low, high: ends of the share's 95 % interval, the doubt between least and most included.
    """

    good: int
    least: int
    most: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Of all that were scheduled."""
        return self.good / self.n


def goodput(records: Sequence[Record], slos: Sequence[Slo], scheduled: int) -> Goodput | None:
    """
    The share of good requests among so many scheduled ones; None when there were none.

    Args:
        records: those that count (no warm-up).
        slos: objectives; those about shares make no difference.
        scheduled: how many requests were to be sent, never fewer than there are records.
    """
    if not scheduled:
        return None
    least, good, most = (
        sum(is_good(record, slos, edge) for record in records) for edge in (Edge.HIGHEST, Edge.SEEN, Edge.LOWEST)
    )
    return Goodput(good, least, most, scheduled, *share_interval(least, most, scheduled))


def is_good(record: Record, slos: Iterable[Slo], edge: Edge = Edge.SEEN) -> bool:
    """
    Whether a request succeeded and its own values keep each latency limit.

    One value has to keep the limit itself, whichever quantile the objective names. Of many values (gaps, inter-token
    latencies) the request's own p-quantile, the value at rank ceil(p n), has to: `gap:p99<=100ms` lets one gap of a
    hundred be longer, and none of fewer. What is undefined (a single token has no gap) breaks no limit.
    """
    return record.outcome is Outcome.OK and all(_keeps(record, slo, edge) for slo in slos)


def _keeps(record: Record, slo: Slo, edge: Edge) -> bool:
    if slo.latency is None or slo.p is None:
        return True
    values = sorted(values_of(slo.latency, record, edge))
    return not values or at_rank(values, slo.p) <= slo.limit
