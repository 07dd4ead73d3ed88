"""Folds the records of a run into its figures: counts, distributions, rates and warnings. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from streamgauge.metrics.definitions import METRICS, credible_tokens
from streamgauge.metrics.distribution import Distribution, distribution_of
from streamgauge.metrics.goodput import Goodput, goodput, is_good
from streamgauge.metrics.notes import notes_on
from streamgauge.metrics.record import Outcome, Record, TokenSource
from streamgauge.metrics.slo import Slo

__all__ = ["Distribution", "Summary", "summarise", "token_arrivals"]


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The figures of a load run.

    Attributes:
        requests: how many records count, whatever became of them: all but the warm-up's.
        warm_up: how many belong to the warm-up.
        scheduled: how many requests the schedule had, warm-up included; None in a closed loop.
        missing: how many of these left no record.
        outcomes: how many ended how; only outcomes that occur.
        violations: how many events (or whole bodies) broke their schema.
        distributions: by metric id; a metric without a single value is absent. Successful requests only.
        goodput: the share of good requests among all that were scheduled; None without any.
        output_tokens_per_s: inside the steady window; None when there is none.
        output_tokens_per_s_whole: from the first dispatch to the last close; None when nothing was sent.
        requests_per_s: successes that closed inside the window; None when there is none.
        good_per_s: those of them that were good.
        token_sources: how many successful requests had their tokens counted how.
        notes: what a reader must know before believing the figures, most important first.
    """

    requests: int
    warm_up: int
    scheduled: int | None
    missing: int
    outcomes: dict[Outcome, int]
    violations: int
    distributions: dict[str, Distribution]
    goodput: Goodput | None
    output_tokens_per_s: float | None
    output_tokens_per_s_whole: float | None
    requests_per_s: float | None
    good_per_s: float | None
    token_sources: dict[TokenSource, int]
    notes: list[str]


def summarise(
    records: Sequence[Record],
    window_us: tuple[int, int] | None,
    *,
    scheduled: int | None = None,
    slos: Sequence[Slo] = (),
) -> Summary:
    """
    The figures of a run; the order of the records makes no difference.

    What is about requests leaves the warm-up's out. What is about the steady window counts all that happens in it, answers
    to the warm-up included, but the window does not begin before the first request that counts.

    Args:
        records: of all workers, on one clock (:func:`streamgauge.metrics.run.load_records`).
        window_us: start and end of the steady window on that clock; None when the run never had one.
        scheduled: how many requests the schedule had, warm-up included; None in a closed loop.
        slos: the limits of latency that a good request keeps.
    """
    counted = [record for record in records if not record.warm_up]
    warm_up = len(records) - len(counted)
    window = _window(window_us, counted) if warm_up else window_us
    window = window if window is not None and window[1] > window[0] else None
    missing = max((scheduled or 0) - len(records), 0)
    successes = [record for record in counted if record.outcome is Outcome.OK]
    distributions = {metric.id: found for metric in METRICS if (found := distribution_of(metric, successes))}
    outcomes = Counter(record.outcome for record in counted)
    sources = Counter(record.token_source for record in successes)
    closed = [
        record for record in records if record.outcome is Outcome.OK and window and _inside(record.closed, window)
    ]
    return Summary(
        requests=len(counted),
        warm_up=warm_up,
        scheduled=scheduled,
        missing=missing,
        outcomes={outcome: outcomes[outcome] for outcome in Outcome if outcome in outcomes},
        violations=sum(record.violations for record in counted),
        distributions=distributions,
        goodput=goodput(counted, slos, len(counted) + missing),
        output_tokens_per_s=_per_s(_tokens(records, window), window) if window else None,
        output_tokens_per_s_whole=_tokens_per_s_whole(counted),
        requests_per_s=_per_s(len(closed), window) if window else None,
        good_per_s=_per_s(sum(is_good(record, slos) for record in closed), window) if window else None,
        token_sources={source: sources[source] for source in TokenSource if source in sources},
        notes=notes_on(counted, distributions, window=window, warm_up=warm_up, scheduled=scheduled, missing=missing),
    )


def token_arrivals(record: Record) -> Iterator[tuple[int, float]]:
    """When the record's tokens came and how many at a time; a whole answer's tokens come when it closes."""
    tokens = credible_tokens(record)
    if record.token_times:
        # Where usage cannot be true, what was seen counts.
        each = (len(record.token_times) if tokens is None else tokens) / len(record.token_times)
        for time in record.token_times:
            yield time, each
    elif tokens:
        yield record.closed, float(tokens)


def _window(window: tuple[int, int] | None, counted: Sequence[Record]) -> tuple[int, int] | None:
    if window is None or not counted:
        return None
    return max(window[0], min(record.scheduled for record in counted)), window[1]


def _inside(time: int, window: tuple[int, int]) -> bool:
    return window[0] <= time < window[1]


def _per_s(amount: float, window: tuple[int, int]) -> float:
    return amount / ((window[1] - window[0]) / 1_000_000)


def _tokens(records: Iterable[Record], window: tuple[int, int]) -> float:
    return fsum(tokens for record in records for time, tokens in token_arrivals(record) if _inside(time, window))


def _tokens_per_s_whole(counted: Sequence[Record]) -> float | None:
    sent = [record for record in counted if record.outcome is not Outcome.DROPPED]
    start = min((record.dispatched for record in sent), default=0)
    end = max((record.closed for record in sent), default=0)
    if end <= start:
        return None
    return _per_s(fsum(tokens for record in sent for _, tokens in token_arrivals(record)), (start, end))
