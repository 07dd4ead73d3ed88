"""A log-linear histogram of whole microseconds: any number of values in little room, merged in any order."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Self, overload

from streamgauge.metrics.statistics import at_rank

__all__ = ["BOUND", "Histogram", "Ranked"]

_BITS = 9
_LINEAR = 1 << _BITS
_HALF = _LINEAR >> 1

BOUND = 1 / _LINEAR
"""
No value is told with a larger relative error: 0.2 %.

Below 512 µs each value has a bucket of its own; above, each doubling is divided into 256 equal ones, and a bucket is told by
its middle (the layout of Tene's HdrHistogram).
"""


@dataclass(slots=True)
class Histogram:
    """
    Counts of values.

    Attributes:
        counts: by bucket; only those that hold something.
        total: sum of the values, exact.
        low, high: smallest and largest value, exact; None while there is none.
    """

    counts: Counter[int] = field(default_factory=Counter)
    total: int = 0
    low: int | None = None
    high: int | None = None

    @classmethod
    def of(cls, values: Iterable[int]) -> Self:
        """The histogram of these values."""
        made = cls()
        made.add(Counter(values))
        return made

    def add(self, values: Counter[int]) -> None:
        """
        Take values, given as value → how often.

        Raises:
            ValueError: a value is negative.
        """
        if not values:
            return
        least, most = min(values), max(values)
        if least < 0:
            raise ValueError(f"{least} is negative; the histogram holds lengths of time")
        for value, count in values.items():
            self.counts[_bucket(value)] += count
            self.total += value * count
        self._reach(least, most)

    def merge(self, other: Self) -> None:
        """Take everything that the other one holds; whichever merges first, the result is the same."""
        self.counts.update(other.counts)
        self.total += other.total
        if other.low is not None and other.high is not None:
            self._reach(other.low, other.high)

    @property
    def count(self) -> int:
        """How many values it holds."""
        return self.counts.total()

    def ranked(self, unit: float = 1.0) -> "Ranked":
        """Its values in ascending order, each divided by `unit`."""
        buckets = sorted(self.counts)
        low, high = self.low or 0, self.high or 0
        return Ranked(
            tuple(min(max(_middle(bucket), low), high) / unit for bucket in buckets),
            tuple(accumulate(self.counts[bucket] for bucket in buckets)),
        )

    def quantile(self, p: float) -> float | None:
        """The value at rank ceil(p n), within :data:`BOUND`; None when it holds nothing."""
        return at_rank(self.ranked(), p) if self.counts else None

    def data(self) -> dict[str, Any]:
        """As JSON, only the buckets that hold something; for :meth:`from_data`."""
        return {
            "bits": _BITS,
            "total": self.total,
            "low": self.low,
            "high": self.high,
            "counts": [[bucket, self.counts[bucket]] for bucket in sorted(self.counts)],
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """
        The inverse of :meth:`data`.

        Raises:
            ValueError: it was made with other buckets.
        """
        if data["bits"] != _BITS:
            raise ValueError(f"a histogram of {data['bits']} bits cannot be merged into one of {_BITS}")
        return cls(Counter(dict(data["counts"])), data["total"], data["low"], data["high"])

    def _reach(self, low: int, high: int) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


@dataclass(frozen=True, slots=True)
class Ranked(Sequence[float]):
    """
    Values in ascending order, equal ones stored once.

    Attributes:
        values: the different ones, ascending.
        ends: how many values there are up to and with each of them.
    """

    values: tuple[float, ...]
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return self.values[bisect_right(self.ends, place)]

    def counts(self) -> Iterator[tuple[float, int]]:
        """Each different value and how often it is there."""
        before = 0
        for value, end in zip(self.values, self.ends, strict=True):
            yield value, end - before
            before = end


def _bucket(value: int) -> int:
    shift = value.bit_length() - _BITS
    return value if shift <= 0 else shift * _HALF + (value >> shift)


def _middle(bucket: int) -> int:
    if bucket < _LINEAR:
        return bucket
    shift = bucket // _HALF - 1
    return ((bucket - shift * _HALF) << shift) + ((1 << shift) >> 1)
