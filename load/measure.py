"""A load run as a person sees it: shown while it goes, its figures in a table at the end."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter
from streamgauge.load.arrivals import ClosedLoop
from streamgauge.load.child import Child
from streamgauge.load.live import live_view
from streamgauge.load.plan import LoadPlan
from streamgauge.load.runner import run_load
from streamgauge.load.verdict import load_verdict
from streamgauge.metrics.client import Bar, ClientReport
from streamgauge.metrics.crosscheck import cross_check_of
from streamgauge.metrics.definitions import METRICS
from streamgauge.metrics.figures import Figures, figures
from streamgauge.metrics.record import NO_FAILURE, Outcome, Record
from streamgauge.metrics.statistics import Quantile
from streamgauge.metrics.summary import Summary
from streamgauge.outcomes import ExitCode
from streamgauge.text import one_line

__all__ = ["heading", "measure", "print_figures"]

_SHOWN = ("ttft", "ttfo", "tpot", "gap", "e2e")
_INTENDED = ("ttft_intended", "e2e_intended")
"""Shown besides where requests follow a schedule."""

_LEVELS = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}

_BAR = " -"
_LEGEND = "behind the minus: by how much this client's own delays may have raised the figure"

_LONGEST_DETAIL = 200


def measure(
    plan: LoadPlan, writer: BundleWriter, console: Console, standby: Child | None = None
) -> tuple[ExitCode, str]:
    """
    Run a plan into an open bundle, show it, and print its figures.

    Args:
        plan: what to run.
        writer: the bundle's.
        console: where the run is shown.
        standby: as :func:`streamgauge.load.runner.run_load` takes it.

    Returns:
        The exit code that the run alone would give, and the reason.
    """
    console.print(heading(plan), markup=False, soft_wrap=True)
    with live_view(console) as show:
        outcome = run_load(plan, writer.path, on_progress=show, standby=standby)
    bundle = Bundle(writer.path)
    found = figures(bundle)
    print_figures(found, console)
    check = cross_check_of(bundle, found.records)
    for line in check.lines() if check and found.records else ():
        console.print(line, markup=False, soft_wrap=True)
    if outcome.state != "finished" or outcome.detail:
        said = {"interrupted": "the load run was interrupted", "aborted": "the load run was given up"}
        console.print(said.get(outcome.state, f"the load run {outcome.state}"))
        console.print(outcome.detail, markup=False, soft_wrap=True)
    return load_verdict(outcome, found.summary, found.objectives, found.client)


def heading(plan: LoadPlan) -> str:
    """What is about to be run, in one line."""
    loop = plan.loop
    if isinstance(loop, ClosedLoop):
        think = f", each thinking for {loop.think_s:g} s on average" if loop.think_s else ""
        load = f"{loop.users} users{think}"
    else:
        parts = [
            f"{part.start:g}" if part.start == part.end else f"{part.start:g} to {part.end:g}" for part in loop.segments
        ]
        shape = f" (burstiness {loop.burstiness:g})" if loop.process == "gamma" else ""
        load = f"{', then '.join(parts)} requests/s, {loop.process}{shape} arrivals"
    weights = sum(part.weight for part in plan.mix)
    kinds = [
        f"{part.weight / weights:.0%} {part.operation.name} {'streams' if part.stream else 'whole answers'}"
        for part in plan.mix
    ]
    what = ", ".join(kinds) if len(kinds) > 1 else "streams" if plan.streams else "whole answers"
    prompts = f"prompts of {plan.dataset.name}" if plan.dataset else f"about {plan.prompt_tokens} tokens in"
    warm_up = f", {plan.warm_up_s:g} s of it warm-up" if plan.warm_up_s else ""
    return (
        f"load: {load} for {plan.duration_s} s{warm_up} at {', '.join(plan.urls)}, {what}, "
        f"{prompts} and at most {plan.max_tokens} out, seed {plan.seed}"
    )


def print_figures(found: Figures, console: Console) -> None:
    """The tables at the end of a run."""
    summary = found.summary
    if not summary.requests:
        return
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    warm_up = f" (and {summary.warm_up} of the warm-up)" if summary.warm_up else ""
    console.print(f"\n{summary.requests} requests{warm_up}: {outcomes}", markup=False)
    for line in _failures(found.records):
        console.print(line, markup=False, soft_wrap=True)
    if summary.distributions:
        table = _latencies(summary, found.client)
        console.print(table)
        if any(_BAR in str(cell) for column in table.columns[2:] for cell in column.cells):
            console.print(_LEGEND, markup=False)
    for line in (*_rates(summary), *_objectives(found), *_client(found.client)):
        console.print(line, markup=False, soft_wrap=True)
    for note in summary.notes:
        console.print(f"note: {note}", markup=False)


def _failures(records: Sequence[Record]) -> Iterator[str]:
    """Of each kind of failure what the first one said, the warm-up's left out."""
    first: dict[Outcome, Record] = {}
    failed = [each for each in records if each.outcome not in NO_FAILURE and not each.warm_up and each.detail]
    for record in sorted(failed, key=lambda record: (record.dispatched, record.id)):
        first.setdefault(record.outcome, record)
    for outcome in Outcome:
        if outcome in first:
            yield f"  {outcome}: {one_line(first[outcome].detail, _LONGEST_DETAIL)}"


def _latencies(summary: Summary, client: ClientReport) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("ms")
    for title in ("n", *_LEVELS):
        table.add_column(title, justify="right")
    shown = (*_SHOWN, *(_INTENDED if summary.scheduled is not None else ()))
    for metric in METRICS:
        distribution = summary.distributions.get(metric.id)
        if distribution is not None and metric.id in shown:
            bars = client.bars.get(metric.id, {})
            cells = [_figure(getattr(distribution, name), bars.get(level)) for name, level in _LEVELS.items()]
            table.add_row(metric.title, str(distribution.n), *cells)
    return table


def _figure(quantile: Quantile, bar: Bar | None) -> str:
    """The quantile, and by how much this client's own delays may have raised it, where one decimal shows that."""
    if quantile.value is None:
        return "-"
    doubt = quantile.value - bar.low if bar is not None else 0.0
    return f"{quantile.value:.1f}" + (f"{_BAR}{doubt:.1f}" if doubt >= 0.05 else "")


def _rates(summary: Summary) -> Iterator[str]:
    rates = {
        "output tokens per second": summary.output_tokens_per_s,
        "output tokens per second, ramp and drain included": summary.output_tokens_per_s_whole,
        "requests per second": summary.requests_per_s,
    }
    for name, value in rates.items():
        yield f"{name}: {'no value' if value is None else f'{value:.1f}'}"


def _objectives(found: Figures) -> Iterator[str]:
    for objective in found.objectives:
        yield f"{objective.kept.upper()} {objective.slo}: {objective.reason}"


def _client(client: ClientReport) -> Iterator[str]:
    if client.processes:
        parts = [
            f"{client.processes} process{'es' * (client.processes > 1)}",
            *([f"{client.cpu:.0%} of a core"] if client.cpu is not None else []),
            *([f"loop lag p99 {client.loop_lag_p99_ms:.1f} ms"] if client.loop_lag_p99_ms is not None else []),
            *([f"dispatch late p99 {client.lateness_p99_ms:.1f} ms"] if client.lateness_p99_ms is not None else []),
        ]
        yield f"client: {', '.join(parts)}"
    for reason in client.reasons:
        yield f"client: too slow to know: {reason}"
    for warning in client.warnings:
        yield f"client: {warning}"
