"""Charts: their figures add up, their colours read, and odd runs do not break them."""

import itertools
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.summary import summarise
from streamgauge.reports.axes import Scale, figure, scale_of
from streamgauge.reports.charts import Chart, cumulative_chart, gap_chart
from streamgauge.reports.kinds import BLUE, GREEN, KINDS, ORANGE, kind_of
from streamgauge.reports.timelines import MOST_BARS, MOST_POINTS, throughput_chart, timeline_chart

SECOND = 1_000_000


def record(number: int, outcome: Outcome = Outcome.OK, **fields: Any) -> Record:
    """A request dispatched at `number` tenths of a second, with three tokens 20 ms apart."""
    start = number * SECOND // 10
    base: dict[str, Any] = {"token_times": [start + 100_000 + step * 20_000 for step in range(3)]}
    return Record(str(number), "t", "o", True, start, start + 200_000, outcome, **{**base, **fields})


def charts_of(records: list[Record], window: tuple[int, int] | None = None) -> list[Chart]:
    """All charts that the records give."""
    summary = summarise(records, window)
    origin = min((each.dispatched for each in records), default=0)
    found = (
        cumulative_chart(summary),
        timeline_chart(records, origin),
        throughput_chart(records, origin, window, summary.output_tokens_per_s),
        gap_chart(summary),
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
        assert len(chart.rows) <= MOST_BARS + 1
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
    """Without records there are no charts."""
    assert charts_of([]) == []
