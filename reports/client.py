"""How much the load client itself had to do: its figures, and charts of its processes over the run."""

from collections.abc import Callable, Sequence

from streamgauge.metrics.client import Bar, ClientReport
from streamgauge.metrics.telemetry import Sample
from streamgauge.reports.axes import figure
from streamgauge.reports.charts import Chart
from streamgauge.reports.kinds import BLUE, GREEN, GREY, ORANGE, TEAL, VIOLET
from streamgauge.reports.lines import SMALL, Line, line_chart
from streamgauge.reports.slots import Slots

__all__ = ["client_charts", "client_rows"]

_LOOKS = ((BLUE, ""), (ORANGE, "9 3"), (GREEN, "2 3"), (VIOLET, "6 3 2 3"), (TEAL, "4 4"))
"""Colours and dashes of the processes; where there are more of them, the worst ones get these."""

_LONGEST_NAME = 10

_Value = Callable[[Sample], float | None]


def client_rows(client: ClientReport, samples: Sequence[Sample], allowed_ms: float) -> tuple[tuple[str, str, str], ...]:
    """
    What is measured of the client: title, value, explanation.

    Args:
        client: what is known about it.
        samples: of all processes.
        allowed_ms: by how much a quantile of TTFT may be in doubt.
    """
    ttft, gap = (_widest(client.bars.get(metric, {})) for metric in ("ttft", "gap"))
    waited = [sample.core_wait_mean_us / 1000 for sample in samples if sample.core_wait_mean_us is not None]
    values: tuple[tuple[str, float | None, str, str], ...] = (
        (
            "TTFT certified to within",
            ttft,
            "ms",
            f"the widest error bar of a quantile; at most {figure(allowed_ms)} ms may be in doubt",
        ),
        ("Gap certified to within", gap, "ms", "the widest error bar of a quantile"),
        (
            "Further doubt",
            client.doubt_ms or None,
            "ms",
            "what a standstill or the calibration adds to each bar; objectives are judged with it",
        ),
        ("Lateness of dispatch, p99", client.lateness_p99_ms, "ms", "how late requests were sent; no value below 100"),
        ("Loop lag, p99 of the worst second", client.loop_lag_p99_ms, "ms", "how late an event loop woke up"),
        ("Wait for a core, worst second", max(waited, default=None), "ms", "each time that a process wanted to run"),
        (
            "CPU of the busiest process",
            None if client.cpu is None else 100 * client.cpu,
            "% of a core",
            "on average over the run",
        ),
        ("Garbage collection", client.gc_ms, "ms", "in all, of all processes"),
    )
    return tuple(
        (title, "no value" if value is None else f"{figure(value)} {unit}", told)
        for title, value, unit, told in values
        if value is not None or title != "Further doubt"
    )


def client_charts(
    samples: Sequence[Sample], origin: int, slots: Slots, window: tuple[float, float] | None
) -> tuple[Chart, ...]:
    """
    Loop lag, wait for a core and CPU of each process over the run; none without samples.

    Args:
        samples: of all processes.
        origin: the start of the run, in microseconds.
        slots: of the run.
        window: the steady window, in seconds since the start.
    """

    def chart(name: str, title: str, caption: str, unit: str, value: _Value) -> Chart | None:
        return line_chart(
            name, title, caption, unit, _lines(samples, origin, slots, value), slots, window=window, height=SMALL
        )

    found = (
        chart(
            "client-lag",
            "Loop lag of the client's processes",
            "How late each event loop woke up, p99 of each second: so much later bytes may have been read than they came.",
            "ms",
            lambda sample: sample.loop_lag_p99_us / 1000,
        ),
        chart(
            "client-wait",
            "Wait of the client's processes for a core",
            "How long each waited on average when it wanted to run: other work on this machine took its core.",
            "ms",
            lambda sample: None if sample.core_wait_mean_us is None else sample.core_wait_mean_us / 1000,
        ),
        chart(
            "client-cpu",
            "CPU of the client's processes",
            "One core is all that a process can use.",
            "% of a core",
            lambda sample: 100 * sample.cpu,
        ),
    )
    return tuple(each for each in found if each is not None)


def _lines(samples: Sequence[Sample], origin: int, slots: Slots, value: _Value) -> tuple[Line, ...]:
    points: dict[str, list[tuple[float, float]]] = {}
    for sample in sorted(samples, key=lambda sample: (sample.process, sample.time)):
        second = sample.time - origin / 1_000_000
        seen = value(sample)
        if seen is not None and 0 <= second <= slots.count * slots.width + sample.span_s:
            points.setdefault(sample.process, []).append((second, seen))
    worst = sorted(points, key=lambda process: (-max(high for _, high in points[process]), process))[: len(_LOOKS)]
    looks = dict(zip(sorted(worst), _LOOKS, strict=False))
    lines = []
    for name, places in points.items():
        colour, dash = looks.get(name, (GREY, ""))
        lines.append(Line(name[:_LONGEST_NAME], colour, tuple(places), dash, faint=name not in looks))
    return tuple(lines)


def _widest(bars: dict[float, Bar]) -> float | None:
    return max((bar.high - bar.low for bar in bars.values()), default=None)
