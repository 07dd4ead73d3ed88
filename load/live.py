"""Shows a run while it goes: a live table on a terminal, a plain line every five seconds elsewhere."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamgauge.load.tally import Progress
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.statistics import quantile

__all__ = ["live_view"]

_EVERY_S = 5.0


@contextlib.contextmanager
def live_view(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Yields what :func:`streamgauge.load.runner.run_load` calls with each progress."""
    if not console.is_terminal or console.is_dumb_terminal or console.quiet:
        yield _Lines(console).show
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda progress: live.update(_table(progress), refresh=True)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = _EVERY_S

    def show(self, progress: Progress) -> None:
        if progress.elapsed_s >= self._next:
            self._next += _EVERY_S
            parts = [_time(progress), *_rows(progress).values()]
            self._console.print(", ".join(parts), markup=False, highlight=False, soft_wrap=True)


def _table(progress: Progress) -> Group:
    done = max(progress.elapsed_s, 0.0) / progress.planned_s if progress.planned_s else 0.0
    if progress.planned_requests:
        done = max(done, progress.requests / progress.planned_requests)
    what = "running" if progress.elapsed_s >= 0 else "making ready"
    what = "waiting for the requests in flight" if progress.stopping or done >= 1 else what
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, value in _rows(progress).items():
        table.add_row(name, Text(value))
    head = Text(f"{_time(progress)}, {what}")
    return Group(head, ProgressBar(total=1.0, completed=min(done, 1.0), width=50), table)


def _is_over(progress: Progress) -> bool:
    """Whether nothing new is sent any more."""
    return progress.stopping or (bool(progress.planned_s) and progress.elapsed_s >= progress.planned_s)


def _time(progress: Progress) -> str:
    elapsed = int(max(progress.elapsed_s, 0))
    return f"{elapsed} of {progress.planned_s:g} s" if progress.planned_s else f"{elapsed} s"


def _rows(progress: Progress) -> dict[str, str]:
    planned = f" of {progress.planned_requests}" if progress.planned_requests else ""
    running = "" if progress.running is None else f", {progress.running} running"
    rate = f"{progress.done_per_s:.1f} requests/s"
    if progress.asked_per_s is not None and not _is_over(progress):
        rate += f" of {progress.asked_per_s:.1f} asked"
    rows = {
        "requests": f"{progress.requests}{planned} requests{running}",
        "outcomes": ", ".join(f"{count} {name}" for name, count in _outcomes(progress)) or "none ended yet",
        "rate": rate,
        "output": f"{progress.tokens_per_s:.0f} tok/s",
        "TTFT": f"TTFT p50 {_milliseconds(progress.ttft_ms, 0.50)}, p99 {_milliseconds(progress.ttft_ms, 0.99)}",
        "E2E": f"E2E p50 {_milliseconds(progress.e2e_ms, 0.50)}",
    }
    if progress.lag_ms is not None:
        rows["client"] = f"client lag p99 {progress.lag_ms:.1f} ms"
    return rows


def _outcomes(progress: Progress) -> list[tuple[Outcome, int]]:
    return [(outcome, progress.outcomes[outcome]) for outcome in Outcome if progress.outcomes.get(outcome)]


def _milliseconds(ordered: Sequence[float], p: float) -> str:
    value = quantile(ordered, p).value
    return "-" if value is None else f"{value:.1f} ms"
