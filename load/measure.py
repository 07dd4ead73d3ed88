"""A load run as a person sees it: shown while it goes, its figures in a table at the end."""

from rich.console import Console
from rich.table import Table

from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter
from streamgauge.load.live import live_view
from streamgauge.load.plan import LoadPlan
from streamgauge.load.runner import LoadOutcome, run_load
from streamgauge.load.verdict import load_verdict
from streamgauge.metrics.definitions import METRICS
from streamgauge.metrics.run import load_records
from streamgauge.metrics.statistics import Quantile
from streamgauge.metrics.summary import Summary, summarise
from streamgauge.outcomes import ExitCode

__all__ = ["measure", "print_summary", "summary_of"]

_SHOWN = ("ttft", "ttfo", "tpot", "gap", "e2e")


def measure(plan: LoadPlan, writer: BundleWriter, console: Console) -> tuple[ExitCode, str]:
    """
    Run a plan into an open bundle, show it, and print its figures.

    Returns:
        The exit code that the run alone would give, and the reason.
    """
    stream = "streams" if plan.streams else "whole answers"
    console.print(
        f"load: {plan.users} users for {plan.duration_s} s at {plan.target.url(plan.operation)}, {stream}, "
        f"about {plan.prompt_tokens} tokens in and at most {plan.max_tokens} out, seed {plan.seed}",
        markup=False,
        soft_wrap=True,
    )
    with live_view(console) as show:
        outcome = run_load(plan, writer.path, on_progress=show)
    summary = summary_of(writer, outcome)
    print_summary(summary, console)
    if outcome.state != "finished":
        console.print(f"the load run {outcome.state}" if outcome.state == "failed" else "the load run was interrupted")
        console.print(outcome.detail, markup=False, soft_wrap=True)
    return load_verdict(outcome, summary)


def summary_of(writer: BundleWriter, outcome: LoadOutcome) -> Summary:
    """The figures of the run whose records the bundle holds."""
    window = outcome.window and (round(outcome.window[0] * 1_000_000), round(outcome.window[1] * 1_000_000))
    return summarise(load_records(Bundle(writer.path)), window)


def print_summary(summary: Summary, console: Console) -> None:
    """The table at the end of a run."""
    if not summary.requests:
        return
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    console.print(f"\n{summary.requests} requests: {outcomes}", markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("ms")
    for title in ("n", "p50", "p90", "p95", "p99"):
        table.add_column(title, justify="right")
    for metric in METRICS:
        found = summary.distributions.get(metric.id)
        if found is not None and metric.id in _SHOWN:
            quantiles = (found.p50, found.p90, found.p95, found.p99)
            table.add_row(metric.title, str(found.n), *map(_figure, quantiles))
    console.print(table)
    rates = {
        "output tokens per second": summary.output_tokens_per_s,
        "output tokens per second, ramp and drain included": summary.output_tokens_per_s_whole,
        "requests per second": summary.requests_per_s,
    }
    for name, value in rates.items():
        console.print(f"{name}: {'no value' if value is None else f'{value:.1f}'}", markup=False)
    for note in summary.notes:
        console.print(f"note: {note}", markup=False)


def _figure(quantile: Quantile) -> str:
    return "-" if quantile.value is None else f"{quantile.value:.1f}"
