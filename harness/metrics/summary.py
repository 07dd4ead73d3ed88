"""Folds the records of a run into its figures: counts, distributions, rates and warnings. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean

from streamgauge.metrics.definitions import METRICS, Metric, credible_tokens
from streamgauge.metrics.record import Outcome, Record, TokenSource
from streamgauge.metrics.statistics import CERTIFIED_P99, MINIMUM_P99, Quantile, quantile

__all__ = ["Distribution", "Summary", "summarise", "token_arrivals"]

_MISMATCH = 0.02
"""From so large a share on, usage and event count are said to differ."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """
    One metric over the successful requests of a run.

    Attributes:
        n: how many values.
        mean, low, high: their mean, smallest and largest, in the metric's unit.
        p50, p90, p95, p99: quantiles with their 95 % intervals.
        ordered: the values, ascending.
    """

    n: int
    mean: float
    low: float
    high: float
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    ordered: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The figures of a load run.

    Attributes:
        requests: how many records there are, whatever became of them.
        outcomes: how many ended how; only outcomes that occur.
        distributions: by metric id; a metric without a single value is absent. Successful requests only.
        output_tokens_per_s: inside the steady window; None when there is none.
        output_tokens_per_s_whole: from the first dispatch to the last close; None when nothing was sent.
        requests_per_s: successes that closed inside the window; None when there is none.
        token_sources: how many successful requests had their tokens counted how.
        notes: what a reader must know before believing the figures, most important first.
    """

    requests: int
    outcomes: dict[Outcome, int]
    distributions: dict[str, Distribution]
    output_tokens_per_s: float | None
    output_tokens_per_s_whole: float | None
    requests_per_s: float | None
    token_sources: dict[TokenSource, int]
    notes: list[str]


def summarise(records: Sequence[Record], window_us: tuple[int, int] | None) -> Summary:
    """
    The figures of a run; the order of the records makes no difference.

    Args:
        records: of all workers, on one clock (:func:`streamgauge.metrics.run.load_records`).
        window_us: start and end of the steady window on that clock; None when the run never had one.
    """
    window = window_us if window_us is not None and window_us[1] > window_us[0] else None
    successes = [record for record in records if record.outcome is Outcome.OK]
    distributions = {metric.id: found for metric in METRICS if (found := _distribution(metric, successes))}
    outcomes = Counter(record.outcome for record in records)
    sources = Counter(record.token_source for record in successes)
    return Summary(
        requests=len(records),
        outcomes={outcome: outcomes[outcome] for outcome in Outcome if outcome in outcomes},
        distributions=distributions,
        output_tokens_per_s=_tokens_per_s(records, *window) if window else None,
        output_tokens_per_s_whole=_tokens_per_s_whole(records),
        requests_per_s=_requests_per_s(successes, *window) if window else None,
        token_sources={source: sources[source] for source in TokenSource if source in sources},
        notes=[
            *_failure_notes(records, outcomes),
            *_window_notes(window),
            *_token_notes(successes),
            *_quantile_notes(distributions),
        ],
    )


def token_arrivals(record: Record) -> Iterator[tuple[int, float]]:
    """When the record's tokens came and how many at a time; a whole answer's tokens come when it closes."""
    if record.token_times:
        # Where usage cannot be true, what was seen counts.
        tokens = credible_tokens(record)
        each = (len(record.token_times) if tokens is None else tokens) / len(record.token_times)
        for time in record.token_times:
            yield time, each
    elif record.tokens:
        yield record.closed, float(record.tokens)


def _distribution(metric: Metric, records: Sequence[Record]) -> Distribution | None:
    values = sorted(value for record in records for value in metric.of(record))
    if not values:
        return None
    return Distribution(
        n=len(values),
        mean=fmean(values),
        low=values[0],
        high=values[-1],
        p50=quantile(values, 0.50),
        p90=quantile(values, 0.90),
        p95=quantile(values, 0.95),
        p99=quantile(values, 0.99),
        ordered=tuple(values),
    )


def _tokens_per_s(records: Sequence[Record], start: int, end: int) -> float:
    arrivals = (tokens for record in records for time, tokens in token_arrivals(record) if start <= time < end)
    return fsum(arrivals) / ((end - start) / 1_000_000)


def _tokens_per_s_whole(records: Sequence[Record]) -> float | None:
    sent = [record for record in records if record.outcome is not Outcome.DROPPED]
    start = min((record.dispatched for record in sent), default=0)
    end = max((record.closed for record in sent), default=0)
    if end <= start:
        return None
    return fsum(tokens for record in sent for _, tokens in token_arrivals(record)) / ((end - start) / 1_000_000)


def _requests_per_s(successes: Sequence[Record], start: int, end: int) -> float:
    return sum(start <= record.closed < end for record in successes) / ((end - start) / 1_000_000)


def _failure_notes(records: Sequence[Record], outcomes: Counter[Outcome]) -> Iterator[str]:
    failed = len(records) - outcomes[Outcome.OK]
    if failed:
        yield (
            f"{failed} of {len(records)} requests did not succeed; latencies are those of the successful "
            "ones only, so slow failures do not show in them."
        )


def _window_notes(window: tuple[int, int] | None) -> Iterator[str]:
    if window is None:
        yield "There was no steady window: only the whole run's throughput is known, ramp and drain included."


def _token_notes(successes: Sequence[Record]) -> Iterator[str]:
    counted = [record for record in successes if record.completion_tokens is not None and record.token_times]
    usage = sum(record.tokens for record in counted)
    events = sum(len(record.token_times) for record in counted)
    if events and abs(usage - events) / events > _MISMATCH:
        yield (
            f"Usage reports {usage} tokens where {events} token-bearing events came "
            f"({usage / events:.2f} tokens per event)."
        )
        if usage > events:
            yield "Events carry several tokens: gaps are between events, not tokens; ITL spreads them evenly."
    doubtful = sum(credible_tokens(record) is None for record in counted)
    if doubtful:
        yield f"Usage is not plausible for {doubtful} requests; their tokens are counted by events."
    estimated = sum(record.completion_tokens is None for record in successes)
    if estimated:
        yield (
            f"{estimated} of {len(successes)} successful requests came without usage; "
            "their tokens are counted by events."
        )


def _quantile_notes(distributions: dict[str, Distribution]) -> Iterator[str]:
    refused = [name.upper() for name, found in distributions.items() if found.p99.value is None]
    uncertified = [
        name.upper() for name, found in distributions.items() if found.p99.value is not None and not found.p99.certified
    ]
    if refused:
        yield f"p99 is refused below {MINIMUM_P99} values: {', '.join(refused)}."
    if uncertified:
        yield f"p99 is uncertified below {CERTIFIED_P99} values: {', '.join(uncertified)}."
