"""Charts: their figures add up, their colours read, and odd runs do not break them."""

import itertools
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.server import Phase, Sample
from streamgauge.metrics.summary import summarise
from streamgauge.metrics.telemetry import Sample as ClientSample
from streamgauge.reports.axes import Scale, figure, scale_of
from streamgauge.reports.charts import Chart, cumulative_chart, gap_chart
from streamgauge.reports.client import client_charts
from streamgauge.reports.kinds import BLUE, GREEN, KINDS, ORANGE, kind_of
from streamgauge.reports.rates import rate_chart, running_chart
from streamgauge.reports.slots import MOST_SLOTS, Slots, slots_of
from streamgauge.reports.timelines import MOST_POINTS, throughput_chart, timeline_chart

SECOND = 1_000_000


def record(number: int, outcome: Outcome = Outcome.OK, **fields: Any) -> Record:
    """A request dispatched at `number` tenths of a second, with three tokens 20 ms apart."""
    start = number * SECOND // 10
    base: dict[str, Any] = {
        "dispatched": start,
        "closed": start + 200_000,
        "token_times": [start + 100_000 + step * 20_000 for step in range(3)],
    }
    return Record(str(number), "t", "o", True, outcome=outcome, **{**base, **fields})


LOOP = {
    "kind": "open",
    "segments": [{"seconds": 20, "start": 0, "end": 10}, {"seconds": 10, "start": 10, "end": 5}],
}
SERVER = [
    Sample(second, Phase.DURING, {"running": second % 3, "waiting": second % 5} if second else {})
    for second in range(30)
]
CLIENT = [
    ClientSample(f"{process}-machine-of-a-long-name", second, 1.0, process / 10, 0, 1000 * second, 2000 * second)
    for process in range(9)
    for second in range(30)
]


def charts_of(records: list[Record], window: tuple[int, int] | None = None) -> list[Chart]:
    """All charts that the records give."""
    summary = summarise(records, window)
    origin = min((each.dispatched for each in records), default=0)
    slots = slots_of(max(((each.closed - origin) / SECOND for each in records), default=0))
    edges = ((window[0] - origin) / SECOND, (window[1] - origin) / SECOND) if window else None
    found = (
        cumulative_chart(summary),
        timeline_chart(records, origin),
        throughput_chart(records, origin, window, summary.output_tokens_per_s),
        gap_chart(summary),
        rate_chart(records, origin, slots, edges, LOOP),
        running_chart(records, origin, slots, edges, SERVER),
        *client_charts(CLIENT, origin, slots, edges),
    )
    return [chart for chart in found if chart is not None]


def test_every_outcome_has_one_kind() -> None:
    """No outcome is without a mark, and none has two."""
    for outcome in Outcome:
        assert [kind for kind in KINDS if outcome in kind.outcomes] == [kind_of(outcome)]


def test_kinds_differ_in_shape_and_colour() -> None:
    """Who cannot tell the colours apart can tell the shapes, and the other way round."""
    assert len({kind.colour for kind in KINDS}) == len(KINDS)
    assert len({kind.mark(0, 0, "none", "") for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("page", ["#ffffff", "#14171b"])
@pytest.mark.parametrize("colour", sorted({BLUE, ORANGE, GREEN, *(kind.colour for kind in KINDS)}))
def test_contrast(colour: str, page: str) -> None:
    """Every colour has a contrast of at least 3 to a white and to a dark page (WCAG 2.2, 1.4.11)."""
    light, dark = sorted((_luminance(colour), _luminance(page)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def _luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@given(values=st.lists(st.floats(1e-3, 1e7), min_size=1, max_size=20), from_zero=st.booleans())
def test_scale_holds_its_values(values: list[float], from_zero: bool) -> None:
    """All values and ticks lie between the ends, in their order; there are always some ticks."""
    scale = scale_of(values, 100, 300, from_zero=from_zero)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(100 <= place <= 300 for place in places)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 14
    assert all(scale.low * (1 - 1e-6) <= tick <= scale.high * (1 + 1e-6) for tick in ticks)


def test_scale_without_values() -> None:
    """Nothing to draw still has a scale."""
    assert scale_of([], 0, 10) == Scale(0, 1, 0, 10)
    assert scale_of([0.0], 0, 10) == Scale(0, 1, 0, 10)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (1.5, "1.5"),
        (12.34, "12.3"),
        (199.6, "200"),
        (1234.5, "1\u202f234"),
        (-3.25, "-3.25"),
    ],
)
def test_figure(value: float, text: str) -> None:
    """Figures have about three significant digits."""
    assert figure(value) == text


def test_throughput_table_adds_up() -> None:
    """The bars hold every token that came, whatever their width."""
    for length in (5, 5000):
        records = [record(number * length) for number in range(40)]
        chart = throughput_chart(records, 0, None, None)
        assert chart is not None
        assert len(chart.rows) <= MOST_SLOTS + 1
        total = sum(float(rate) * (int(end) - int(start)) for start, end, rate in chart.rows)
        assert total == pytest.approx(120, rel=0.02)


def test_gap_table_adds_up() -> None:
    """Every gap is in one bar, one of 0 ms too."""
    records = [record(number, token_times=[number, number, number + 7 * 10**number]) for number in range(7)]
    chart = gap_chart(summarise(records, None))
    assert chart is not None
    assert sum(int(count) for *_, count in chart.rows) == 14


def test_timeline_table_adds_up() -> None:
    """The slices hold every request, each under its kind."""
    records = [record(number, outcome) for number, outcome in enumerate(Outcome)]
    chart = timeline_chart(records, 0)
    assert chart is not None
    assert sum(int(row[2]) for row in chart.rows) == len(records)
    assert sum(int(field) for row in chart.rows for field in row[3:-1]) == len(records)


def test_thinning_keeps_every_failure() -> None:
    """A long run draws a part of its successes, all of its failures, and says so."""
    records = [record(number) for number in range(4000)] + [record(7, Outcome.RESET) for _ in range(50)]
    chart = timeline_chart(records, 0)
    assert chart is not None
    assert chart.svg.count("<circle") <= MOST_POINTS + 1
    assert chart.svg.count("reset") == 50
    assert "every failure among them" in chart.caption


def test_window_is_drawn() -> None:
    """The steady window and the throughput inside it stand in the chart."""
    records = [record(number) for number in range(100)]
    chart = throughput_chart(records, 0, (2 * SECOND, 8 * SECOND), 30.0)
    assert chart is not None
    assert "steady window" in chart.svg
    assert "window: 30 tok/s" in chart.svg


@settings(max_examples=50)
@given(
    records=st.lists(
        st.builds(
            record,
            number=st.integers(0, 300),
            outcome=st.sampled_from(Outcome),
            token_times=st.lists(st.integers(0, 10**8), max_size=6).map(lambda gaps: list(itertools.accumulate(gaps))),
        ),
        max_size=15,
    ),
    window=st.none() | st.tuples(st.integers(0, SECOND), st.integers(2 * SECOND, 60 * SECOND)),
)
def test_any_run_can_be_drawn(records: list[Record], window: tuple[int, int] | None) -> None:
    """Charts of any run are well-formed, whatever the clocks said, and do not depend on the records' order."""
    charts = charts_of(records, window)
    assert [chart.svg for chart in charts] == [chart.svg for chart in charts_of(records[::-1], window)]
    for chart in charts:
        root = ET.fromstring(chart.svg)
        assert all("style" not in element.attrib and "class" not in element.attrib for element in root.iter())
        assert all(len(row) == len(chart.header) for row in chart.rows)


def test_nothing_to_draw() -> None:
    """Without records there are no charts of them."""
    assert [chart.name for chart in charts_of([])] == ["client-lag", "client-cpu"]
    assert client_charts([], 0, slots_of(5), None) == ()


def column(chart: Chart | None, name: str) -> list[float]:
    """A column of the chart's table, slots without a value left out."""
    assert chart is not None
    index = next(place for place, title in enumerate(chart.header) if title.startswith(name))
    return [float(row[index]) for row in chart.rows if row[index] != "no value"]


@pytest.mark.parametrize("length", [1, 5, 500])
def test_rates_add_up(length: int) -> None:
    """Over all slots each rate gives back the number of requests, whatever the slots' width."""
    fates = [Outcome.OK] * 30 + [Outcome.RESET] * 4 + [Outcome.DROPPED] * 6
    records = [
        record(number * length, outcome, scheduled=number * length * SECOND // 10)
        for number, outcome in enumerate(fates)
    ]
    slots = slots_of(max(each.closed for each in records) / SECOND)
    chart = rate_chart(records, 0, slots, None, LOOP)
    for name, count in (("asked for", 40), ("sent", 34), ("succeeded", 30), ("failed", 4), ("dropped", 6)):
        assert sum(column(chart, name)) * slots.width == pytest.approx(count, rel=0.02), name


def test_rates_of_a_closed_loop() -> None:
    """Without a schedule nothing was asked for or planned; what never occurs has no line."""
    chart = rate_chart([record(number) for number in range(30)], 0, slots_of(4), None, {"kind": "closed"})
    assert chart is not None
    assert chart.header[2:] == ("sent (1/s)", "succeeded (1/s)")


def test_planned_rate() -> None:
    """The plan's corners are where its segments begin and end."""
    chart = rate_chart([record(number) for number in range(300)], 0, slots_of(30), None, LOOP)
    assert max(column(chart, "planned")) == 10


def test_running_is_the_mean_over_each_slot() -> None:
    """Two requests, one of them from 0.5 to 2.5 s, the other from 1 to 1.25 s; the last slot ends with the last of them."""
    spans = [(500_000, 2_500_000), (1_000_000, 1_250_000)]
    records = [record(0, dispatched=begin, closed=end) for begin, end in spans]
    chart = running_chart(records, 0, slots_of(2.5), None, [])
    assert column(chart, "ours") == [0.5, 1.25, 1]


@given(
    spans=st.lists(st.tuples(st.integers(0, 9 * SECOND), st.integers(1, 9 * SECOND)), min_size=1, max_size=20),
    width=st.integers(1, 4),
)
def test_running_holds_all_of_every_request(spans: list[tuple[int, int]], width: int) -> None:
    """The time under the line is the time that all requests took together."""
    records = [record(0, dispatched=begin, closed=begin + length) for begin, length in spans]
    end = max(each.closed for each in records) / SECOND
    chart = running_chart(records, 0, Slots(width, int(end // width) + 1), None, [])
    means = column(chart, "ours")
    lengths = [min(end - slot * width, width) for slot in range(len(means))]
    area = sum(mean * length for mean, length in zip(means, lengths, strict=True))
    assert area == pytest.approx(sum(length for _, length in spans) / SECOND, rel=0.01, abs=0.01)


def test_gauges_of_the_server() -> None:
    """Each gauge has the values that were read, and none where it was not."""
    chart = running_chart([record(0), record(250)], 0, slots_of(28), None, SERVER)
    assert column(chart, "running at the server") == [second % 3 for second in range(1, 29)]


def test_many_processes() -> None:
    """The worst five of many are told apart by colour and dash; the others are there without a name of their own."""
    lag, cpu = client_charts(CLIENT, 0, slots_of(29), None)
    assert lag.svg.count("stroke-dasharray") == cpu.svg.count("stroke-dasharray") == 2 * 4
    assert len(cpu.header) == 2 + 9
    assert cpu.rows[3][2:] == tuple(str(process * 10) for process in range(9))
