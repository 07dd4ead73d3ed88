"""What random draws found, in the report: every exploration, and the smallest request that still fails (docs/exploring.md)."""

import json
from pathlib import Path

import pytest
from report_bundles import full_bundle, lean_bundle

from streamgauge.reports.html import report_html
from streamgauge.reports.model import Report, report_of
from streamgauge.reports.summary import summary_json


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on the bundle that has everything."""
    return report_of(full_bundle(tmp_path_factory.mktemp("full") / "b"))


def test_explorations(report: Report) -> None:
    """Each is there in its order, with what it cost, why it stopped, and what it found."""
    stops, prompts, texts = report.explored
    assert (stops.id, stops.operation, stops.examples, stops.requests, stops.tokens) == (
        *("explore.stops", "seekr-chat", 10, 14, 1470),
    )
    assert (prompts.failure, prompts.stopped) == (None, "the tokens were spent")
    assert texts.failure is not None
    assert (texts.failure.anchor, texts.failure.curl) == ("", None)


def test_failure(report: Report) -> None:
    """It leads to the finding of its check, and is sent again by the first of its exchanges that the bundle holds."""
    failure = report.explored[0].failure
    assert failure is not None
    assert failure.anchor == next(
        each.anchor for each in report.findings if (each.check, each.operation) == ("sampling.stop", "seekr-chat")
    )
    assert failure.others == ("finish.reason",)
    assert (failure.properties, failure.departed, failure.replays) == (("stop", "n"), 2, 3)
    assert json.loads(failure.body) == {"model": "m", "stop": "\u2028</pre>"}
    assert failure.curl is not None
    assert "$HOME" in failure.curl


SAID = [
    '<section id="explored"',
    "Requests that were drawn (seed 7)",
    '<a class="count fail" href="#explored-1">sampling.stop</a>',
    "<td>the tokens were spent</td>",
    "on the same request also <code>finish.reason</code>",
    "<code>stop</code> and <code>n</code>",
    "failed again 2 of 3 times",
    "not sent again",
    "nothing beside model, prompt and limit",
    r"&#34;stop&#34;: &#34;\u2028&lt;/pre&gt;&#34;",
]


@pytest.mark.parametrize("said", SAID)
def test_page(report: Report, said: str) -> None:
    """The section has a line for each exploration and the failures in full; what comes from outside is escaped."""
    assert said in report_html(report).decode()


def test_a_finding_names_the_smallest_set_of_properties(report: Report) -> None:
    """It stands in the finding itself, with a way to the request; findings that no draw found have no such line."""
    page = report_html(report).decode()
    told = "The smallest set of properties that still fails: <code>stop</code> and <code>n</code>"
    assert page.count("The smallest set of properties") == 1
    failure = report.explored[0].failure
    assert failure is not None
    finding = page[page.index(f'id="{failure.anchor}"') :]
    assert told in finding[: finding.index("</blockquote>") + 600]
    assert '(<a href="#explored-1">explore.stops</a>; failed again 2 of 3 times)' in page


def test_summary(report: Report) -> None:
    """summary.json has the same for machines."""
    stops, prompts, _ = json.loads(summary_json(report))["explored"]
    assert prompts["failure"] is None
    assert stops["exploration"] == "explore.stops"
    assert stops["failure"]["properties"] == ["stop", "n"]
    assert stops["failure"]["body"] == {"model": "m", "stop": "\u2028</pre>"}


def test_nothing_was_drawn(tmp_path: Path) -> None:
    """A run without explorations has no such section."""
    report = report_of(lean_bundle(tmp_path / "b", "findings"))
    assert b'id="explored"' not in report_html(report)
    assert json.loads(summary_json(report))["explored"] == []
