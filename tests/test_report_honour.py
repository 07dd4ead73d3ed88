"""The honour table in the report: rows by property, columns by operation, computed from the bundle alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_bundles import full_bundle, lean_bundle

from streamgauge.bundle.layout import HONOUR
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import write_whole
from streamgauge.reports.honour import Attention, HonourCell, HonourTable, honour_table
from streamgauge.reports.html import report_html
from streamgauge.reports.model import report_of
from streamgauge.reports.summary import summary_json

COLUMNS = (("house", "seekr-chat"), ("house", "seekr-completions"))


@pytest.fixture
def table(tmp_path: Path) -> HonourTable:
    """That of the bundle that has everything, without findings."""
    return honour_table(Bundle(full_bundle(tmp_path / "b")), COLUMNS, [])


def test_rows(table: HonourTable) -> None:
    """A property is one row, whatever operations have it; where exchanges differ, the counts are told."""
    stop, user, suffix = table.rows
    assert stop.cells == (HonourCell("ignored", "1 ignored, 3 honoured"), HonourCell("honoured"))
    assert stop.laws == (("sampling.stop", ""),)
    assert stop.wrong
    assert not user.wrong
    assert user.cells[1] == HonourCell()
    assert suffix.reasons == ("the budget",)


def test_counts(table: HonourTable) -> None:
    """On top it says of each operation how many properties stand behind each word."""
    assert table.words == ("ignored", "honoured", "accepted", "not probed")
    assert table.counts == ({"ignored": 1, "accepted": 1}, {"honoured": 1, "not probed": 1})


def test_what_nobody_judged_has_no_column(tmp_path: Path) -> None:
    """An operation without rows (its judging was interrupted) takes no room."""
    table = honour_table(Bundle(full_bundle(tmp_path / "b")), (*COLUMNS, ("house", "other")), [])
    assert table.columns == COLUMNS


def line(path: str, word: str, target: str = "house", operation: str = "seekr-chat") -> dict[str, Any]:
    """A line of honour.json."""
    told = {"target": target, "operation": operation, "property": path, "honour": word}
    return {**told, "counts": {word: 1}, "laws": ["a.b"], "reason": "", "example": ""}


def table_of(lines: list[dict[str, Any]], directory: Path) -> HonourTable:
    """The table of these lines."""
    bundle = lean_bundle(directory / "b")
    write_whole(bundle / HONOUR, lines)
    columns = tuple(dict.fromkeys((each["target"], each["operation"]) for each in lines))
    return honour_table(Bundle(bundle), columns, [])


def test_attention(tmp_path: Path) -> None:
    """The worst comes first; properties that stand on the same findings are one entry, whatever is right is none."""
    lines = [
        line("a", "wrong"),
        line("b", "ignored"),
        line("b.c", "ignored"),
        line("d", "refused"),
        line("e", "honoured"),
    ]
    here = (("seekr-chat", "", ""),)
    assert table_of(lines, tmp_path).attention == (
        Attention(("b", "b.c"), "ignored", here),
        Attention(("a",), "wrong", here),
    )


def test_two_targets_with_one_operation_are_told_apart(tmp_path: Path) -> None:
    """The matrix of several vendors: a column each."""
    lines = [line("a", "ignored"), line("a", "ignored", target="other")]
    (entry,) = table_of(lines, tmp_path).attention
    assert [name for name, _, _ in entry.where] == ["house, seekr-chat", "other, seekr-chat"]


def test_nested_properties_are_folded_away(tmp_path: Path) -> None:
    """The table shows those that stand for themselves first."""
    flat, nested = table_of([line("a", "honoured"), line("a[].b", "honoured"), line("c", "honoured")], tmp_path).parts
    assert ([row.path for row in flat], [row.path for row in nested]) == (["a", "c"], ["a[].b"])


def test_page_and_summary(tmp_path: Path) -> None:
    """The page has the table with links to the laws, what comes from outside escaped; summary.json has the words."""
    report = report_of(full_bundle(tmp_path / "b"))
    page = report_html(report).decode()
    assert '<section id="honour"' in page
    assert "&lt;b&gt;nobody&lt;/b&gt; sees it" in page
    anchor = report.honour.rows[0].cells[0].anchor
    assert f'<td class="ignored"><a href="#{anchor}">ignored</a>' in page
    assert f'id="{anchor}"' in page
    told = json.loads(summary_json(report))["honour"]["house"]
    assert told["seekr-chat"] == {"ignored": ["stop"], "accepted": ["user"]}
    assert told["seekr-completions"] == {"honoured": ["stop"], "not probed": ["suffix"]}


def test_much_that_needs_attention_is_folded(tmp_path: Path) -> None:
    """A mock ignores nearly all: twenty lines are shown at once, the others are there."""
    bundle = lean_bundle(tmp_path / "b", "findings")
    write_whole(bundle / HONOUR, [{**line(f"p{number}", "ignored"), "laws": [f"a.b{number}"]} for number in range(30)])
    page = report_html(report_of(bundle)).decode()
    shown, _, folded = page.partition("<summary>and 10 more</summary>")
    assert "<code>p19</code>" in shown
    assert "<code>p20</code>" not in shown
    assert "<code>p20</code>" in folded


def test_without_table(tmp_path: Path) -> None:
    """A run that has not been judged has no such section."""
    assert b'id="honour"' not in report_html(report_of(lean_bundle(tmp_path / "b", "findings")))
