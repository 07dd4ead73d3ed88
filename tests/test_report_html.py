"""The HTML report: safe whatever the target said, complete, and readable without scripts and styles."""

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from report_bundles import full_bundle, lean_bundle, meta

from streamgauge.bundle.writer import BundleWriter
from streamgauge.metrics.definitions import METRICS, RATES
from streamgauge.outcomes import OUTCOME_MEANING, Outcome
from streamgauge.reports.html import report_html
from streamgauge.reports.model import Report, report_of

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; asserts that every element is closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that closes itself, as SVG's do."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        assert self._open.pop() == tag
        if tag in {"dt", "td", "th"}:
            self.text += "\n"

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.text += data

    def attributes(self, *names: str) -> list[str]:
        """The values of these attributes, anywhere."""
        return [str(attrs[name]) for _, attrs in self.elements for name in names if name in attrs]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on the bundle that has everything."""
    return report_html(report_of(full_bundle(tmp_path_factory.mktemp("full") / "b"))).decode("utf-8")


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    """The same, parsed."""
    return Page(source)


def test_nothing_runs(page: Page) -> None:
    """No script, no event handler, no inline style, no frame, no form: nothing a policy would block."""
    assert not {"script", "iframe", "object", "embed", "form", "base", "link", "img"} & {
        tag for tag, _ in page.elements
    }
    names = {name for _, attrs in page.elements for name in attrs}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names


def test_nothing_is_fetched(page: Page, source: str) -> None:
    """Every address leads into the page itself."""
    assert all(value.startswith("#") for value in page.attributes("href", "src", "xlink:href", "action"))
    assert "@import" not in source
    assert "url(" not in source


def test_links_lead_somewhere(page: Page) -> None:
    """Every link and every label has its target, and no id stands twice."""
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for value in page.attributes("href")}
    wanted |= {name for value in page.attributes("aria-labelledby") for name in value.split()}
    assert wanted <= set(ids)


def test_hostile_text_is_text(page: Page, source: str) -> None:
    """What a server says is shown, not obeyed; characters that hide or turn text are spelt out."""
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "chat.<b>probe</b>-0" in page.text
    assert not {"b"} & {tag for tag, _ in page.elements}
    assert not set("\0\x07\u2028\u202e\u202c\r") & set(source)


def test_secrets_are_not_there(source: str) -> None:
    """The filler of the key gives way to the variable's name."""
    assert "STREAMGAUGE_API_KEY" in source
    assert "authorization: ***" not in source


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_shown_and_explained(page: Page, outcome: Outcome) -> None:
    """Each outcome that occurs is counted in the overview, and each has its meaning in the method."""
    assert f"1 {outcome}" in page.text or f"2 {outcome}" in page.text or f"3 {outcome}" in page.text
    assert OUTCOME_MEANING[outcome] in page.text


@pytest.mark.parametrize("definition", [*METRICS, *RATES], ids=lambda definition: definition.id)
def test_every_metric_is_defined(page: Page, definition: object) -> None:
    """A figure's formula and source stand in the same page."""
    assert getattr(definition, "formula") in page.text  # noqa: B009 - two types share these names
    assert getattr(definition, "source") in page.text  # noqa: B009 - mypy knows no such attribute


SAID = [
    "At least one MUST is broken",
    "Exit code 1.",
    "1 known failure excused; expired: framing.utf8; stale (no longer failing): usage.total",
    "Fix framing.done-last",
    "Known to the baseline until 2025-12-31: ticket 42",
    "3 of 12 exchanges",
    "The stream is terminated by a data: [DONE] message.",
    "event 0",
    "status 200; ended: the server closed the connection before the end of the message",
    "budget: 20000 tokens",
    "rate-limited: 429",
    "limits.huge-prompt",
    "configured, sent in Authorization (as it is)",
    "not used (plain HTTP)",
    "closed loop of 8 users",
    "uncertified",
    "refused (n<100)",
    "a" * 64,
    "meta-llama/Llama-3.1-8B-Instruct",
    "not in the bundle",
    "2.47.0",
]


@pytest.mark.parametrize("said", SAID)
def test_says(page: Page, said: str) -> None:
    """What a reader needs is said in words, without any style."""
    assert said in " ".join(page.text.split())


def test_fixing_known_failures_is_not_asked_for(page: Page) -> None:
    """A failure that the baseline excuses is shown, and not at the top of the list."""
    assert "Fix finish.reason" not in page.text


def test_document_outline(page: Page) -> None:
    """One main heading, no level skipped, landmarks, a language, and a way past the navigation."""
    levels = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tags = [tag for tag, _ in page.elements]
    assert {"main", "nav", "header", "footer"} <= set(tags)
    assert page.elements[0] == ("html", {"lang": "en"})
    assert next(attrs["href"] for tag, attrs in page.elements if tag == "a") == "#verdict"


def test_charts_carry_their_meaning(page: Page) -> None:
    """Each chart has a name, a description, colours of its own, and its figures in a table."""
    charts = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert len(charts) == 6
    assert all(attrs["role"] == "img" and attrs["aria-labelledby"] for attrs in charts)
    assert [tag for tag, _ in page.elements].count("desc") == 6
    assert page.text.count("The figures as a table") == 6
    shapes = [attrs for tag, attrs in page.elements if tag in {"path", "rect", "circle", "polygon"}]
    assert all("fill" in attrs and "class" not in attrs for attrs in shapes if "stroke" not in attrs)


def test_same_bundle_same_bytes(tmp_path: Path, source: str) -> None:
    """Two reports on equal bundles are equal to the byte."""
    assert report_html(report_of(full_bundle(tmp_path / "b"))).decode("utf-8") == source


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            (),
            (
                "Verdict: none",
                "Conformance: not run. Load: not run.",
                "Conformance was not run.",
                "No load was applied.",
            ),
        ),
        (("gate",), ("Verdict: pass", "Exit code 0.", "Nothing: no finding and no figure asks for it.")),
        (("findings",), ("Verdict: none", "fail: 3 of 12 exchanges", "main-0, not in the bundle")),
        (("records",), ("The run left records, and nothing about how they came to be.", "There was no steady window")),
        (("load",), ("State running", "no requests", "no value", "there was no successful request")),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_partial_bundles(tmp_path: Path, parts: tuple[str, ...], said: tuple[str, ...]) -> None:
    """A run that ended early, or did only one thing, has a report that says so."""
    found = Page(report_html(report_of(lean_bundle(tmp_path / "b", *parts))).decode("utf-8"))
    text = " ".join(found.text.split())
    assert [each for each in said if each not in text] == []


def test_unsafe_ways_to_the_target_stand_out(tmp_path: Path) -> None:
    """Unverified TLS and a proxy in between are said of the target itself, not in a note alone."""
    report = report_of(full_bundle(tmp_path / "b"))
    report.meta["targets"][0] |= {"insecure": True, "proxy": "http://proxy.example:3128", "client_certificate": True}
    text = Page(report_html(report).decode("utf-8")).text
    assert "certificates not verified; with a client certificate" in text
    assert "through http://proxy.example:3128" in text


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on two checks that fail alike over five operations, and a gate with as many reasons."""
    directory = tmp_path_factory.mktemp("many") / "b"
    writer = BundleWriter(directory)
    writer.meta(meta())
    said = {"level": "MUST", "target": "house", "outcome": "fail", "counts": {"fail": 1}, "reason": "", "examples": []}
    lines = [{**said, "check": f"a.{check}", "operation": f"o{n}"} for n in range(5) for check in ("b", "c")]
    with writer.findings() as findings:
        for line in lines:
            findings.write(line)
    reasons = [f"fail: {line['check']} (house, {line['operation']}), 1 of 1" for line in lines]
    writer.gate({"exit_code": 1, "verdict": "fail", "reasons": reasons})
    return report_of(directory)


def test_what_fails_alike_is_one_step(many: Report) -> None:
    """What to do next names each check once, with every operation that it fails for."""
    where = "; ".join(f"house, o{n}" for n in range(5))
    assert [step.text for step in many.steps[:2]] == [f"Fix a.b: a.b ({where})", f"Fix a.c: a.c ({where})"]


def test_many_failures_leave_the_page_short(many: Report) -> None:
    """The first failure of each check is open; beyond six reasons the gate's are folded, and none is left out."""
    page = Page(report_html(many).decode("utf-8"))
    findings = [attrs for tag, attrs in page.elements if tag == "details" and "finding" in (attrs.get("class") or "")]

    assert len(findings) == 10
    assert sum("open" in attrs for attrs in findings) == 2
    assert "and 4 more" in page.text
    assert all(reason in page.text for reason in many.verdict.reasons)
