"""The report's section about what the document says: the outcomes of the run beside each statement."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from report_bundles import CHAT, HOSTILE, TEXT, full_bundle, lean_bundle
from test_report_html import Page

from streamgauge import catalog
from streamgauge.bundle.layout import CHECKS
from streamgauge.bundle.writer import write_whole
from streamgauge.outcomes import Outcome
from streamgauge.reports.html import report_html
from streamgauge.reports.model import Report, report_of
from streamgauge.reports.traceability import Statements

ENTRIES: list[dict[str, Any]] = [
    {"at": "/responses/401/description#1", "sentence": "No key.", "statements": 1, "checks": ["finish.reason"]},
    {"at": "/a#1", "sentence": HOSTILE, "statements": 1, "checks": ["framing.done-last", "framing.utf8"]},
    {"at": "/b", "text": "integer; minimum: 0", "statements": 1, "checks": ["usage.sum"]},
    {"at": "/b/**", "statements": 70, "checks": ["auth.missing-key", "usage.sum"]},
    {"at": "/c", "text": "string", "statements": 1, "checks": ["sse.unknown"]},
    {"at": "/d#1", "sentence": "Fast.", "statements": 1, "unobservable": "no amount is promised"},
    {"at": "/e#1", "sentence": "Later.", "statements": 1, "open": "no check yet"},
    {"at": "/e/**", "statements": 3, "open": "no check of these"},
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on a bundle whose chat operation is traced."""
    bundle = full_bundle(tmp_path_factory.mktemp("traced") / "b")
    lines = [{"target": "house", "operation": CHAT, "document": "the-chat", "entries": ENTRIES}]
    valid = Draft202012Validator({"$ref": "#/$defs/traceability", "$defs": catalog.schema("bundle")["$defs"]})
    assert valid.is_valid(json.loads(json.dumps(lines[0])))
    write_whole(bundle / "traceability.json", lines)
    return report_of(bundle)


@pytest.fixture(scope="module")
def said(report: Report) -> Statements:
    """The statements of its chat operation."""
    (found,) = report.statements
    return found


def test_statements_are_counted_by_what_became_of_them(said: Statements) -> None:
    """One verdict makes a statement judged; a check that was not run, not selected or not applicable gives none."""
    assert said.counts == {"judged": 73, "not judged in this run": 1, "not observable": 1, "open": 4}


def test_outcomes_stand_beside_the_statement(said: Statements, report: Report) -> None:
    """With the place of the finding; a check without a finding has none."""
    anchors = {(found.check, found.operation): found.anchor for found in report.findings}
    by_place = {each.at: each.checks for each in said.judged}

    assert by_place["/b"] == (("usage.sum", Outcome.PASS, anchors["usage.sum", CHAT]),)
    assert [outcome for _, outcome, _ in by_place["/a#1"]] == [Outcome.FAIL, Outcome.FAIL]
    assert [outcome for _, outcome, _ in by_place["/b/**"]] == [Outcome.NOT_RUN, Outcome.PASS]
    assert by_place["/c"] == (("sse.unknown", "not selected", ""),)


def test_what_nothing_judges_has_its_reason(said: Statements) -> None:
    """Not observable and open, apart."""
    assert [(each.text, each.reason) for each in said.unobservable] == [("Fast.", "no amount is promised")]
    assert [(each.text, each.reason) for each in said.open] == [
        ("Later.", "no check yet"),
        ("3 statements", "no check of these"),
    ]


def test_the_page_shows_it(report: Report) -> None:
    """Folded, with links that lead to the findings; a sentence is text, whatever is in it."""
    source = report_html(report).decode("utf-8")
    page = Page(source)
    ids = set(page.attributes("id"))

    assert "73 judged, 1 not judged in this run, 1 not observable, 4 open." in page.text
    assert "no amount is promised" in page.text
    assert "statements" in ids
    assert {value[1:] for value in page.attributes("href")} <= ids
    assert "<script>alert" not in source


def test_a_finding_quotes_its_own_document(report: Report) -> None:
    """Where a sentence of the operation's document names its check; elsewhere the check's own requirement."""
    quoted = {(found.check, found.operation): (found.requirement, found.source) for found in report.findings}

    assert quoted["finish.reason", CHAT] == ("401: No key.", "the-chat: /responses/401/description#1")
    assert quoted["framing.done-last", CHAT][1] == "the-chat: /a#1"
    assert quoted["usage.sum", CHAT] == quoted["usage.sum", TEXT]
    assert quoted["usage.sum", CHAT][1] == "OpenAPI document, line 12"


@pytest.mark.parametrize(
    ("at", "source"),
    [
        ("/responses/429/description#1", "/responses/429"),
        ("/responses/400/description#1", "/responses/429 of other documents; the-chat does not list it"),
    ],
)
def test_a_status_of_other_documents_is_called_so(at: str, source: str, tmp_path: Path) -> None:
    """A finding does not point to an answer that its document does not list."""
    bundle = full_bundle(tmp_path / "b")
    declared = json.loads((bundle / CHECKS).read_text(encoding="utf-8"))
    write_whole(bundle / CHECKS, [{**each, "source": "/responses/429"} for each in declared])
    entries = [{"at": at, "sentence": "No.", "statements": 1, "open": "no check yet"}]
    lines = [{"target": "house", "operation": CHAT, "document": "the-chat", "entries": entries}]
    write_whole(bundle / "traceability.json", lines)

    sources = {found.source for found in report_of(bundle).findings if found.operation == CHAT}

    assert source in sources


def test_without_traced_documents_the_page_says_so(tmp_path: Path) -> None:
    """Also a bundle that was written before there was such a file."""
    page = Page(report_html(report_of(lean_bundle(tmp_path / "b", "gate", "findings"))).decode("utf-8"))

    assert "Statements are traced for the documents that streamgauge ships" in page.text
