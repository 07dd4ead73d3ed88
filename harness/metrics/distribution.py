"""How a metric is distributed over requests: exactly, or by a histogram where a request has many values."""

import enum
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from streamgauge.metrics.definitions import Metric
from streamgauge.metrics.histogram import Histogram, Ranked
from streamgauge.metrics.record import Judged, Record
from streamgauge.metrics.statistics import Clusters, Quantile, quantile

__all__ = ["LEVELS", "Distribution", "Edge", "distribution_of", "ordered_values", "values_of", "values_within"]

LEVELS = (0.50, 0.90, 0.95, 0.99)
"""The quantiles that tables show."""


class Edge(enum.Enum):
    """Which of the values that a record allows, given how busy this client was."""

    LOWEST = enum.auto()
    SEEN = enum.auto()
    HIGHEST = enum.auto()


@dataclass(frozen=True, slots=True)
class Distribution:
    """
    One metric over the successful requests of a run.

    Attributes:
        n: how many values.
        mean, low, high: their mean, smallest and largest, in the metric's unit.
        p50, p90, p95, p99: quantiles with their 95 % intervals; those of pooled metrics know that the values of one
            request belong together.
        ordered: the values, ascending; of a pooled metric within the histogram's bound.
        histogram: of a pooled metric, in microseconds; None where the values are exact.
        estimated: whether the values rest on an assumption that the records cannot prove.
    """

    n: int
    mean: float
    low: float
    high: float
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    ordered: Sequence[float]
    histogram: Histogram | None = None
    estimated: bool = False

    def counts(self) -> Iterator[tuple[float, int]]:
        """Each different value, ascending, and how often it is there."""
        if isinstance(self.ordered, Ranked):
            yield from self.ordered.counts()
        else:
            for value, equal in groupby(self.ordered):
                yield value, sum(1 for _ in equal)


def distribution_of(metric: Metric, records: Sequence[Record]) -> Distribution | None:
    """The metric's distribution over these records; None without a single value."""
    histogram, ordered = _sample(metric, records, Edge.SEEN)
    if not ordered:
        return None
    if histogram is None:
        mean, low, high = fmean(ordered), ordered[0], ordered[-1]
    else:
        mean, low, high = (
            each / 1000 for each in (histogram.total / len(ordered), histogram.low or 0, histogram.high or 0)
        )
    p50, p90, p95, p99 = _quantiles(metric, records, ordered)
    guessed = metric.pooled and any(record.judged is Judged.ENDS for record in records)
    return Distribution(
        len(ordered), mean, low, high, p50, p90, p95, p99, ordered, histogram, metric.estimated or guessed
    )


def ordered_values(metric: Metric, records: Sequence[Record], edge: Edge) -> Sequence[float]:
    """All values in ascending order, as they were seen, or as low or as high as they may truly have been."""
    return _sample(metric, records, edge)[1]


def values_of(metric: Metric, record: Record, edge: Edge) -> Sequence[float]:
    """The metric's values of one record as they were seen, or as low or as high as they may truly have been."""
    values = metric.of(record)
    if edge is Edge.SEEN or metric.slack is None:
        return values
    below, above = metric.slack(record)
    shift = -below if edge is Edge.LOWEST else above
    if shift > 0:
        return [value + shift for value in values]
    return [lower if (lower := value + shift) > 0 else 0.0 for value in values] if shift else values


def values_within(metric: Metric, records: Sequence[Record], limit: float, edge: Edge) -> Clusters:
    """How many of the values are at most `limit`, and how many independent ones all of them are worth."""
    found = Clusters()
    for record in records:
        values = values_of(metric, record, edge)
        if values:
            found.add(sum(map(limit.__ge__, values)), len(values))
    return found


def _sample(metric: Metric, records: Sequence[Record], edge: Edge) -> tuple[Histogram | None, Sequence[float]]:
    if not metric.pooled:
        return None, tuple(sorted(value for record in records for value in values_of(metric, record, edge)))
    seen: Counter[float] = Counter()
    for record in records:
        seen.update(values_of(metric, record, edge))
    counted: Counter[int] = Counter()
    for value, count in seen.items():
        counted[round(value * 1000)] += count
    histogram = Histogram()
    histogram.add(counted)
    return histogram, histogram.ranked(1000)


def _quantiles(metric: Metric, records: Sequence[Record], ordered: Sequence[float]) -> list[Quantile]:
    if not metric.pooled:
        return [quantile(ordered, level) for level in LEVELS]
    limits = [quantile(ordered, level).value for level in LEVELS]
    clusters = [Clusters() for _ in LEVELS]
    for record in records:
        values = sorted(metric.of(record))
        if values:
            for cluster, limit in zip(clusters, limits, strict=True):
                if limit is not None:
                    cluster.add(bisect_right(values, limit), len(values))
    return [
        quantile(ordered, level, cluster.worth if limit is not None else None)
        for level, limit, cluster in zip(LEVELS, limits, clusters, strict=True)
    ]
