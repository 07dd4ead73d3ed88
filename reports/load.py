"""What a load run was and what it measured, from load.json and the records."""

from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.definitions import METRICS, Metric
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.run import load_records
from streamgauge.metrics.summary import Distribution, Summary, summarise
from streamgauge.reports.charts import Chart, cumulative_chart, gap_chart
from streamgauge.reports.timelines import throughput_chart, timeline_chart

__all__ = ["LoadReport", "load_report"]


@dataclass(frozen=True, slots=True)
class LoadReport:
    """
    A load run.

    Attributes:
        run: load.json; empty when the run got no further than its records.
        summary: the figures.
        latencies: every metric with its distribution; None for one without a value.
        window: start and length of the steady window, in seconds since the first dispatch and in seconds.
        charts: those that have something to show.
    """

    run: dict[str, Any]
    summary: Summary
    latencies: tuple[tuple[Metric, Distribution | None], ...]
    window: tuple[float, float] | None
    charts: tuple[Chart, ...]

    @property
    def failed(self) -> int:
        """How many requests had any outcome but ok."""
        return self.summary.requests - self.summary.outcomes.get(Outcome.OK, 0)


def load_report(bundle: Bundle) -> LoadReport | None:
    """
    The report on the bundle's load run; None when there was none.

    Raises:
        BundleError: the records cannot be read.
    """
    records = load_records(bundle)
    if not bundle.load and not records:
        return None
    window = _window_us(bundle.load)
    summary = summarise(records, window)
    sent = [record for record in records if record.outcome is not Outcome.DROPPED]
    origin = min((record.dispatched for record in sent), default=window[0] if window else 0)
    charts = (
        cumulative_chart(summary),
        timeline_chart(records, origin),
        throughput_chart(records, origin, window, summary.output_tokens_per_s),
        gap_chart(summary),
    )
    return LoadReport(
        run=bundle.load,
        summary=summary,
        latencies=tuple((metric, summary.distributions.get(metric.id)) for metric in METRICS),
        window=((window[0] - origin) / 1_000_000, (window[1] - window[0]) / 1_000_000) if window else None,
        charts=tuple(chart for chart in charts if chart is not None),
    )


def _window_us(load: dict[str, Any]) -> tuple[int, int] | None:
    if "window" not in load:
        return None
    start, end = (round(edge * 1_000_000) for edge in load["window"])
    return (start, end) if end > start else None
