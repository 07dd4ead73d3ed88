"""The honour table in the report: rows by property, columns by operation, computed from the bundle alone."""

import json
from pathlib import Path

from report_bundles import full_bundle, lean_bundle

from streamgauge.bundle.reader import Bundle
from streamgauge.reports.honour import HonourCell, honour_rows
from streamgauge.reports.html import report_html
from streamgauge.reports.model import report_of
from streamgauge.reports.summary import summary_json


def test_rows(tmp_path: Path) -> None:
    """A property is one row, whatever operations have it; where exchanges differ, the counts are told."""
    columns = (("house", "seekr-chat"), ("house", "seekr-completions"))
    stop, user, suffix = honour_rows(Bundle(full_bundle(tmp_path / "b")), columns, [])
    laws = (("sampling.stop", ""),)
    assert stop.cells == (
        HonourCell("ignored", "1 ignored, 3 honoured", "", laws, wrong=True),
        HonourCell("honoured", "", "", laws),
    )
    assert stop.wrong
    assert not user.wrong
    assert user.cells[1] == HonourCell()
    assert suffix.reasons == ("the budget",)


def test_page_and_summary(tmp_path: Path) -> None:
    """The page has the table with links to the laws, what comes from outside escaped; summary.json has the words."""
    report = report_of(full_bundle(tmp_path / "b"))
    page = report_html(report).decode()
    assert '<section id="honour"' in page
    assert "&lt;b&gt;nobody&lt;/b&gt; sees it" in page
    (law,) = report.honour[0].cells[0].laws
    assert f'href="#{law[1]}"' in page
    assert f'id="{law[1]}"' in page
    told = json.loads(summary_json(report))["honour"]["house"]
    assert told["seekr-chat"] == {"ignored": ["stop"], "accepted": ["user"]}
    assert told["seekr-completions"] == {"honoured": ["stop"], "not probed": ["suffix"]}


def test_without_table(tmp_path: Path) -> None:
    """A run that has not been judged has no such section."""
    assert b'id="honour"' not in report_html(report_of(lean_bundle(tmp_path / "b", "findings")))
