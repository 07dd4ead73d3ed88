"""JUnit XML, summary.json, and the command that writes all outputs."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from report_bundles import HOSTILE, full_bundle, lean_bundle

from streamgauge.cli.report import command
from streamgauge.errors import BundleError
from streamgauge.outcomes import Outcome
from streamgauge.reports.junit import junit_xml
from streamgauge.reports.model import report_of
from streamgauge.reports.summary import summary_json
from streamgauge.reports.write import OUTPUTS, write_all


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle that has everything."""
    return full_bundle(tmp_path_factory.mktemp("full") / "b")


@pytest.fixture(scope="module")
def suites(bundle: Path) -> ET.Element:
    """Its JUnit XML, parsed."""
    return ET.fromstring(junit_xml(report_of(bundle)))


@pytest.fixture(scope="module")
def summary(bundle: Path) -> dict[str, Any]:
    """Its summary.json, parsed."""
    found: dict[str, Any] = json.loads(summary_json(report_of(bundle)))
    return found


def test_junit_counts_add_up(suites: ET.Element) -> None:
    """Each suite's counts are those of its cases, and the whole's are the sum."""
    totals: Counter[str] = Counter()
    for suite in suites:
        cases = suite.findall("testcase")
        counted = {
            "tests": len(cases),
            **{
                name: sum(case.find(element) is not None for case in cases)
                for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
            },
        }
        assert {name: int(suite.attrib[name]) for name in counted} == counted
        totals.update(counted)
    assert {name: int(suites.attrib[name]) for name in totals} == totals
    assert totals == {"tests": 19, "failures": 4, "errors": 1, "skipped": 4}


def test_junit_shape(suites: ET.Element) -> None:
    """One suite for each target and operation, and one for the load run; a case is a topic and a check."""
    assert suites.tag == "testsuites"
    assert [suite.attrib["name"] for suite in suites] == ["house seekr-chat", "house seekr-completions", "house load"]
    assert all(suite.attrib["timestamp"] == "2025-06-01T12:00:00" for suite in suites)
    for suite in suites[:2]:
        for case in suite.iter("testcase"):
            assert case.attrib["name"].startswith(case.attrib["classname"] + ".")


CASES = [
    ("framing.done-last", "failure", "expected [DONE] is the last event; got an event follows"),
    ("sampling.stop", "failure", "expected"),
    ("errors.envelope", "error", "the check raised KeyError"),
    ("finish.reason", "skipped", "known until 2025-12-31: ticket 42"),
    ("errors.unknown-model", "skipped", "inconclusive: rate-limited: 429"),
    ("auth.missing-key", "skipped", "not-run: budget: 20000 tokens"),
]


@pytest.mark.parametrize(("check", "element", "message"), CASES)
def test_junit_case(suites: ET.Element, check: str, element: str, message: str) -> None:
    """Each outcome is the element that CI servers know it by, with the reason as its message."""
    found = suites.find(f"testsuite[@name='house seekr-chat']/testcase[@name='{check}']/{element}")
    assert found is not None
    assert message in found.attrib["message"]


@pytest.mark.parametrize("check", ["framing.no-cache", "sampling.seed", "tools.arguments"])
def test_junit_warnings_pass(suites: ET.Element, check: str) -> None:
    """What does not fail the gate passes, and says what was seen."""
    case = suites.find(f".//testcase[@name='{check}']")
    assert case is not None
    assert [child.tag for child in case] == ["system-out"]


def test_junit_evidence(suites: ET.Element) -> None:
    """A failure carries the requirement, the exchange and its curl line, without what XML forbids."""
    text = suites.findtext(".//testcase[@name='framing.done-last']/failure") or ""
    for part in ("The stream is terminated by", "exchange main-0 (probe chat.<b>probe</b>-0)", "STREAMGAUGE_API_KEY"):
        assert part in text
    assert HOSTILE.replace("\x07\ud800", "") in text


def test_summary(summary: dict[str, Any]) -> None:
    """The verdict, the counts, what did not pass and the documents are there."""
    assert (summary["verdict"], summary["exit_code"], summary["seed"]) == ("fail", 1, 7)
    assert summary["counts"]["fail"] == 3
    assert sum(sum(level.values()) for level in summary["levels"].values()) == 16
    assert {finding["outcome"] for finding in summary["findings"]} == set(Outcome) - {"pass", "not-applicable"}
    assert summary["findings"][1]["examples"][0]["actual"].endswith(HOSTILE)
    assert [document["sha256"] for document in summary["documents"]] == ["a" * 64, "b" * 64]


def test_summary_of_load(summary: dict[str, Any]) -> None:
    """Figures have n and intervals; a refused quantile is null."""
    load = summary["load"]
    assert load["requests"] == sum(load["outcomes"].values()) == 300
    ttft = load["latencies"]["ttft"]
    assert ttft["n"] == load["outcomes"]["ok"] == 274
    assert ttft["p50"]["low"] <= ttft["p50"]["value"] <= ttft["p50"]["high"]
    unknown = dict.fromkeys(("value", "low", "high", "client_low", "client_high"))
    assert load["latencies"]["connect"]["p99"] == {**unknown, "certified": False}
    assert load["rates"]["output_tokens_per_s"] > 0


def test_summary_keys_are_stable(summary: dict[str, Any]) -> None:
    """The keys stand in the documented order."""
    assert list(summary) == [
        "version",
        "streamgauge",
        "python",
        "platform",
        "started",
        "command",
        "seed",
        "verdict",
        "exit_code",
        "reasons",
        "baseline",
        "counts",
        "levels",
        "findings",
        "honour",
        "explored",
        "load",
        "documents",
        "from",
        "not_judged",
        "targets",
        "widened",
    ]


@pytest.mark.parametrize("parts", [(), ("gate",), ("findings",), ("records",), ("load",)], ids="-".join)
def test_partial_bundles(tmp_path: Path, parts: tuple[str, ...]) -> None:
    """Every output copes with a bundle that lacks things; what is not known is null."""
    report = report_of(lean_bundle(tmp_path / "b", *parts))
    ET.fromstring(junit_xml(report))
    found = json.loads(summary_json(report))
    assert (found["exit_code"] is None) == ("gate" not in parts)
    assert (found["load"] is None) == (not {"records", "load"} & set(parts))


def test_same_bundle_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """Writing twice, and from a copy, gives the same files; the outputs themselves change nothing."""
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    first = {path.name: path.read_bytes() for path in write_all(copy)}
    assert set(first) == set(OUTPUTS)
    assert {path.name: path.read_bytes() for path in write_all(copy)} == first
    assert {path.name: path.read_bytes() for path in write_all(bundle, tmp_path / "else")} == first


def test_command_writes_into_the_bundles(tmp_path: Path) -> None:
    """Each run gets its three files, whose paths are printed."""
    runs = [lean_bundle(tmp_path / name, "gate") for name in ("one", "two")]
    result = CliRunner().invoke(command, [str(run) for run in runs], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output.split() == [str(run / name) for run in runs for name in OUTPUTS]
    assert all((run / name).stat().st_size for run in runs for name in OUTPUTS)


def test_command_writes_elsewhere(tmp_path: Path) -> None:
    """With --output the bundles stay as they are; several runs get a directory each."""
    runs = [lean_bundle(tmp_path / name, "gate") for name in ("one", "two")]
    arguments = [*map(str, runs), "--output", str(tmp_path / "site")]
    assert CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == ["one", "two"]
    assert not (runs[0] / "report.html").exists()


def _no_bundle(root: Path) -> list[str]:
    (root / "empty").mkdir()
    return [str(root / "empty")]


def _same_names(root: Path) -> list[str]:
    return [str(lean_bundle(root / part / "run")) for part in ("a", "b")] + ["--output", str(root / "site")]


def _output_is_a_file(root: Path) -> list[str]:
    (root / "file").write_text("")
    return [str(lean_bundle(root / "run")), "--output", str(root / "file" / "below")]


@pytest.mark.parametrize("arrange", [_no_bundle, _same_names, _output_is_a_file])
def test_command_refuses(tmp_path: Path, arrange: Any) -> None:
    """A mistake is a BundleError, which the command line prints."""
    result = CliRunner().invoke(command, arrange(tmp_path))
    assert isinstance(result.exception, BundleError)


def test_command_explains_itself() -> None:
    """The help has examples."""
    assert "\n    streamgauge report runs/* --output site\n" in CliRunner().invoke(command, ["--help"]).output
