"""What one process has seen so far, small enough to be sent every few seconds, and merged where the run is steered from."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

from streamgauge.metrics.definitions import BY_ID
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.record import Outcome, Record

__all__ = ["Counts"]

_LATENCIES = ("ttft", "tpot", "e2e")
_FOLDED_AT = 4096


class Counts:
    """
    Counts and latencies of the requests that have ended; what is merged is the same however the requests were shared out.

    The times of single tokens are in the records alone: a worker would be busy with nothing else.

    Attributes:
        outcomes: how many ended how, the warm-up included.
        tokens: output tokens of all of them.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.tokens = 0
        self._histograms = {name: Histogram() for name in _LATENCIES}
        self._values: dict[str, Counter[int]] = {name: Counter() for name in _LATENCIES}

    def add(self, record: Record) -> None:
        """Take one record."""
        self.outcomes[record.outcome.value] += 1
        self.tokens += record.tokens
        if record.outcome is not Outcome.OK or record.warm_up:
            return
        for name, values in self._values.items():
            values.update(round(value * 1000) for value in BY_ID[name].of(record))
        if len(self._values["e2e"]) >= _FOLDED_AT:
            self._fold()

    @property
    def requests(self) -> int:
        """How many have ended."""
        return self.outcomes.total()

    @property
    def latencies(self) -> dict[str, Histogram]:
        """Of the successful requests after the warm-up, in microseconds, by metric id."""
        self._fold()
        return self._histograms

    def line(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "outcomes": dict(self.outcomes),
            "tokens": self.tokens,
            "latencies": {name: histogram.data() for name, histogram in self.latencies.items()},
        }

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Self:
        """The inverse of :meth:`line`."""
        made = cls()
        made.outcomes, made.tokens = Counter(line["outcomes"]), line["tokens"]
        made._histograms = {name: Histogram.from_data(found) for name, found in line["latencies"].items()}
        return made

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """What all of them have seen together."""
        total = cls()
        for part in parts:
            total.outcomes.update(part.outcomes)
            total.tokens += part.tokens
            for name, histogram in part.latencies.items():
                total._histograms[name].merge(histogram)
        return total

    def summary(self) -> dict[str, Any]:
        """The counts as people read them: counts, and quantiles in milliseconds."""
        return {
            "requests": self.requests,
            "outcomes": {
                outcome.value: self.outcomes[outcome.value] for outcome in Outcome if self.outcomes[outcome.value]
            },
            "tokens": self.tokens,
            "ms": {
                name: {
                    "n": found.count,
                    "p50": _ms(found, 0.5),
                    "p99": _ms(found, 0.99) if found.count >= 100 else None,
                }
                for name, found in self.latencies.items()
                if found.count
            },
        }

    def _fold(self) -> None:
        for name, values in self._values.items():
            self._histograms[name].add(values)
            values.clear()


def _ms(histogram: Histogram, p: float) -> float | None:
    value = histogram.quantile(p)
    return None if value is None else round(value / 1000, 3)
