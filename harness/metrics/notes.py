"""What a reader must know before believing the figures of a load run, in sentences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from streamgauge.metrics.coalescing import coalescing
from streamgauge.metrics.definitions import credible_tokens
from streamgauge.metrics.distribution import Distribution
from streamgauge.metrics.record import Judged, Outcome, Record
from streamgauge.metrics.statistics import CERTIFIED_P99, MINIMUM_P99

__all__ = ["notes_on"]

_MISMATCH = 0.02
"""From so large a share on, usage and event count are said to differ."""


def notes_on(
    counted: Sequence[Record],
    distributions: Mapping[str, Distribution],
    *,
    window: tuple[int, int] | None,
    warm_up: int,
    scheduled: int | None,
    missing: int,
) -> list[str]:
    """
    The notes, most important first.

    Args:
        counted: the records without the warm-up's.
        distributions: by metric id.
        window: the steady window.
        warm_up: how many requests belong to the warm-up.
        scheduled: how many requests were scheduled, warm-up included; None in a closed loop.
        missing: how many of them left no record.
    """
    successes = [record for record in counted if record.outcome is Outcome.OK]
    return [
        *_accounting_notes(counted, warm_up, scheduled, missing),
        *_window_notes(window),
        *_judging_notes(counted),
        *_token_notes(successes),
        *_gap_notes(successes, distributions),
        *_quantile_notes(distributions),
    ]


def _accounting_notes(counted: Sequence[Record], warm_up: int, scheduled: int | None, missing: int) -> Iterator[str]:
    if missing:
        yield (
            f"{missing} of {scheduled} scheduled requests left no record: the run ended before their time, or a process died. "
            "They count against goodput."
        )
    failed = sum(record.outcome is not Outcome.OK for record in counted)
    if failed:
        yield (
            f"{failed} of {len(counted)} requests did not succeed; latencies are those of the successful "
            "ones only, so slow failures do not show in them."
        )
    replaced = sum(record.replaced for record in counted)
    if replaced:
        yield (
            f"{replaced} requests were sent again on a new connection, since the server had closed the kept one without an "
            "answer: it ends connections at a bad moment, or drops requests."
        )
    if warm_up:
        yield f"{warm_up} requests of the warm-up count in no figure of a request."


def _window_notes(window: tuple[int, int] | None) -> Iterator[str]:
    if window is None:
        yield "There was no steady window: only the whole run's throughput is known, ramp and drain included."


def _judging_notes(counted: Sequence[Record]) -> Iterator[str]:
    judged = Counter(record.judged for record in counted if record.stream and 200 <= record.status < 300)
    if judged[Judged.ENDS]:
        whole, n = judged[Judged.ALL], judged.total()
        share = f"a sample of {100 * whole / n:.2g} % of the streams ({whole} of {n})" if whole else "no stream"
        yield (
            f"Only both ends of streams were judged: {share} was judged event by event; faults within the others "
            "do not lower goodput."
        )
    broken = [record for record in counted if record.violations]
    if broken:
        # Of all first examples the one of the earliest request, so that the order of the records makes no difference.
        first = min(broken, key=lambda record: (record.dispatched, record.id, record.detail)).detail
        events = sum(record.violations for record in broken)
        yield f"{events} events or bodies of {len(broken)} requests broke their schema" + (
            f": {first}" if first else "."
        )


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
    doubtful = sum(credible_tokens(record) is None for record in successes)
    if doubtful:
        yield (
            f"Usage is not plausible for {doubtful} requests; their tokens are counted by events, those of whole answers "
            "not at all."
        )
    estimated = sum(record.completion_tokens is None for record in successes)
    if estimated:
        yield (
            f"{estimated} of {len(successes)} successful requests came without usage; "
            "their tokens are counted by events."
        )


def _gap_notes(successes: Sequence[Record], distributions: Mapping[str, Distribution]) -> Iterator[str]:
    found = coalescing(successes)
    if found is not None:
        yield str(found)
    gap = distributions.get("gap")
    if gap is not None and gap.estimated:
        yield "Gaps are estimated: between the ends of answers no text was held against the schema."


def _quantile_notes(distributions: Mapping[str, Distribution]) -> Iterator[str]:
    refused = [name.upper() for name, found in distributions.items() if found.p99.value is None]
    uncertified = [
        name.upper() for name, found in distributions.items() if found.p99.value is not None and not found.p99.certified
    ]
    if refused:
        yield f"p99 is refused below {MINIMUM_P99} values: {', '.join(refused)}."
    if uncertified:
        yield f"p99 is uncertified below {CERTIFIED_P99} values: {', '.join(uncertified)}."
