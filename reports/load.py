"""What a load run was asked for and what it measured, computed from its bundle."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.client import Bar
from streamgauge.metrics.coalescing import Coalescing, coalescing
from streamgauge.metrics.crosscheck import Agreement, CrossCheck, cross_check_of
from streamgauge.metrics.definitions import METRICS, Metric
from streamgauge.metrics.distribution import Distribution
from streamgauge.metrics.figures import Figures, figures
from streamgauge.metrics.objectives import Kept
from streamgauge.metrics.record import NOT_THE_SERVER, Outcome
from streamgauge.metrics.server import samples_of
from streamgauge.metrics.sufficiency import allowed_error_ms
from streamgauge.metrics.summary import Summary
from streamgauge.reports.asked import asked
from streamgauge.reports.axes import figure
from streamgauge.reports.charts import Chart, cumulative_chart, gap_chart
from streamgauge.reports.client import client_charts, client_rows
from streamgauge.reports.rates import rate_chart, running_chart
from streamgauge.reports.slots import slots_of
from streamgauge.reports.timelines import throughput_chart, timeline_chart
from streamgauge.reports.words import plural

__all__ = ["Latency", "LoadReport", "load_report"]

_INTENDED = {"ttft_intended": "ttft", "e2e_intended": "e2e"}
"""Each metric from the schedule on, and the one from the dispatch on."""


@dataclass(frozen=True, slots=True)
class Latency:
    """
    One metric.

    Attributes:
        metric: its declaration.
        found: its distribution; None without a value.
        bars: by quantile, where it lies given how busy the client was.
        same_as: the metric whose every figure it shares, so that no table need show both; empty where it is on its own.
    """

    metric: Metric
    found: Distribution | None
    bars: dict[float, Bar]
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """
    A load run.

    Attributes:
        figures: all that the bundle says; its `run` is empty when the run got no further than its records.
        asked: what it was told to do, in words.
        latencies: every metric.
        warm_up: outcomes of the requests of the warm-up.
        coalescing: whether something collects events; None where nothing shows it.
        check: the server's own counts beside ours; None where they were not to be read.
        client_rows: figures of the client itself.
        window: start and length of the steady window, in seconds since the start of the run and in seconds.
        latency_charts, time_charts, client_charts: those that have something to show.
    """

    figures: Figures
    asked: tuple[tuple[str, str], ...]
    latencies: tuple[Latency, ...]
    warm_up: dict[Outcome, int]
    coalescing: Coalescing | None
    check: CrossCheck | None
    client_rows: tuple[tuple[str, str, str], ...]
    window: tuple[float, float] | None
    latency_charts: tuple[Chart, ...]
    time_charts: tuple[Chart, ...]
    client_charts: tuple[Chart, ...]

    @property
    def summary(self) -> Summary:
        """The figures of the requests."""
        return self.figures.summary

    @property
    def failed(self) -> int:
        """How many requests failed, as the verdict counts them: one that still ran at the end, or found no room here, did not."""
        return sum(count for outcome, count in self.summary.outcomes.items() if outcome not in NOT_THE_SERVER)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every outcome of any request, the warm-up's too."""
        return tuple(each for each in Outcome if each in self.summary.outcomes or each in self.warm_up)

    @property
    def accounted(self) -> int:
        """Every request with a record and without."""
        return self.summary.requests + self.summary.warm_up + self.summary.missing

    @property
    def kept(self) -> dict[Kept, int]:
        """How many objectives were kept, broken, or are undecided; only what occurs."""
        counts = Counter(objective.kept for objective in self.figures.objectives)
        return {kept: counts[kept] for kept in Kept if kept in counts}

    @property
    def steps(self) -> Iterator[tuple[str, str]]:
        """What to do next, and the place in the report that it is about."""
        for objective in self.figures.objectives:
            if objective.kept is Kept.FAIL:
                yield f"Look into the broken objective {objective.slo}", "objectives"
        if self.failed:
            yield f"Look into {plural(self.failed, 'failed load request')}", "load-outcomes"
        if not self.figures.client.sufficient:
            yield "Measure again with a client that is quick enough to know", "client"
        undecided = self.kept.get(Kept.INCONCLUSIVE, 0)
        if undecided:
            yield f"Settle {plural(undecided, 'undecided objective')}", "objectives"
        if self.check and self.check.agreement is Agreement.DIFFERS:
            yield "Find out why the server counts otherwise than the client", "server-counts"


def load_report(bundle: Bundle) -> LoadReport | None:
    """
    The report on the bundle's load run; None when there was none.

    Raises:
        BundleError: the records, or what else the run left, cannot be read.
    """
    found = figures(bundle)
    records, run = found.records, found.run
    if not run and not records:
        return None
    successes = [record for record in records if record.outcome is Outcome.OK and not record.warm_up]
    warm_up = Counter(record.outcome for record in records if record.warm_up)
    origin = _origin(found)
    slots = slots_of(max(((record.closed - origin) / 1_000_000 for record in records), default=0))
    edges = found.window_us
    window = ((edges[0] - origin) / 1_000_000, (edges[1] - origin) / 1_000_000) if edges else None
    loop = run.get("loop", {})
    return LoadReport(
        figures=found,
        asked=asked(run) if run else (),
        latencies=tuple(_latencies(found)),
        warm_up={outcome: warm_up[outcome] for outcome in Outcome if outcome in warm_up},
        coalescing=coalescing(successes),
        check=cross_check_of(bundle, records),
        client_rows=client_rows(found.client, found.telemetry.samples, allowed_error_ms(successes)),
        window=(window[0], window[1] - window[0]) if window else None,
        latency_charts=_drawn(cumulative_chart(found.summary), gap_chart(found.summary)),
        time_charts=_drawn(
            rate_chart(records, origin, slots, window, loop),
            running_chart(records, origin, slots, window, samples_of(bundle.server_metrics)),
            throughput_chart(records, origin, edges, found.summary.output_tokens_per_s),
            timeline_chart(records, origin),
        ),
        client_charts=client_charts(found.telemetry.samples, origin, slots, window),
    )


def _origin(found: Figures) -> int:
    """The start of the run, in microseconds: that of the schedule, else the first dispatch."""
    start: float | None = found.run.get("start")
    if start is not None:
        return round(start * 1_000_000)
    sent = (record.dispatched for record in found.records if record.outcome is not Outcome.DROPPED)
    return min(sent, default=found.window_us[0] if found.window_us else 0)


def _latencies(found: Figures) -> Iterator[Latency]:
    distributions = found.summary.distributions
    for metric in METRICS:
        mine = distributions.get(metric.id)
        other = _INTENDED.get(metric.id, "")
        same = bool(other) and mine is not None and _alike(mine, distributions.get(other))
        yield Latency(metric, mine, found.client.bars.get(metric.id, {}), other if same else "")


def _alike(one: Distribution, other: Distribution | None) -> bool:
    """Whether all that a table shows of them is the same."""
    return other is not None and _shown(one) == _shown(other)


def _shown(found: Distribution) -> list[str]:
    quantiles = (found.p50, found.p90, found.p95, found.p99)
    values = [found.mean, found.high, *(value for each in quantiles for value in (each.value, each.low, each.high))]
    return ["" if value is None else figure(value) for value in values]


def _drawn(*charts: Chart | None) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart is not None)
