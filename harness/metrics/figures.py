"""Everything that a bundle says about its load run, computed once and for all who show it."""

from dataclasses import dataclass, replace
from typing import Any

from streamgauge.bundle.layout import LOAD
from streamgauge.bundle.reader import Bundle
from streamgauge.errors import BundleError, UsageError
from streamgauge.metrics.client import ClientReport, judge_client
from streamgauge.metrics.goodput import goodput
from streamgauge.metrics.objectives import Objective, judge_slo
from streamgauge.metrics.record import Record
from streamgauge.metrics.run import load_records
from streamgauge.metrics.slo import Slo
from streamgauge.metrics.summary import Summary, summarise
from streamgauge.metrics.telemetry import Telemetry, load_telemetry

__all__ = ["Figures", "figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """
    A load run and its figures.

    Attributes:
        run: load.json; empty when the run got no further than its records.
        records: of all workers, on the wall clock.
        window_us: the steady window on that clock; None without one.
        summary: the figures; its goodput is the one that the objectives are judged by, the client's doubt included.
        objectives: what became of each `--slo`, in their order.
        client: whether this client was quick enough to know.
        telemetry: what its processes said about themselves.
    """

    run: dict[str, Any]
    records: list[Record]
    window_us: tuple[int, int] | None
    summary: Summary
    objectives: tuple[Objective, ...]
    client: ClientReport
    telemetry: Telemetry


def figures(bundle: Bundle) -> Figures:
    """
    The figures of a bundle's load run, finished or not.

    Raises:
        BundleError: records, telemetry or load.json cannot be read.
    """
    run = bundle.load
    records = load_records(bundle)
    telemetry = load_telemetry(bundle)
    try:
        slos = [Slo.parse(str(text)) for text in run.get("slos", ())]
        start, end = (round(edge * 1_000_000) for edge in run.get("window", (0, 0)))
    except (TypeError, ValueError, UsageError) as problem:
        raise BundleError(f"not the description of a load run: {problem}", where=str(bundle.path / LOAD)) from None
    window = (start, end) if end > start else None
    summary = summarise(records, window, scheduled=run.get("scheduled"), slos=slos)
    client = judge_client(records, telemetry)
    counted = [_doubted(record, client.doubt_ms) for record in records if not record.warm_up]
    good = goodput(counted, slos, len(counted) + summary.missing)
    return Figures(
        run=run,
        records=records,
        window_us=window,
        summary=replace(summary, goodput=good) if slos else summary,
        objectives=tuple(judge_slo(slo, counted, good, summary.missing) for slo in slos),
        client=client,
        telemetry=telemetry,
    )


def _doubted(record: Record, doubt_ms: float) -> Record:
    """The record with all the lag that this client may have had, so that nothing is proved that it cannot know."""
    doubt = round(doubt_ms * 1000)
    return replace(record, first_lag_us=record.first_lag_us + doubt, lag_us=record.lag_us + doubt) if doubt else record
