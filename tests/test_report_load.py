"""The load part of the report: objectives, accounting, error bars, the client itself, the server's own counts."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from report_bundles import full_bundle, lean_bundle
from report_load import open_bundle, open_load
from test_report_html import Page

from streamgauge.metrics.objectives import Kept
from streamgauge.metrics.record import Outcome
from streamgauge.reports.asked import asked
from streamgauge.reports.html import report_html
from streamgauge.reports.junit import junit_xml
from streamgauge.reports.model import Report, report_of
from streamgauge.reports.summary import summary_json


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on the open-loop run."""
    return report_of(open_bundle(tmp_path_factory.mktemp("open") / "b"))


@pytest.fixture(scope="module")
def source(report: Report) -> str:
    """It as HTML."""
    return report_html(report).decode("utf-8")


@pytest.fixture(scope="module")
def text(source: str) -> str:
    """All that a reader sees, in one line."""
    return " ".join(Page(source).text.split())


@pytest.fixture(scope="module")
def load(report: Report) -> dict[str, Any]:
    """Its part of summary.json."""
    found: dict[str, Any] = json.loads(summary_json(report))["load"]
    return found


@pytest.fixture(scope="module")
def cases(report: Report) -> dict[str, ET.Element]:
    """The test cases of the load run, by name."""
    suite = ET.fromstring(junit_xml(report)).find("testsuite[@name='house load']")
    assert suite is not None
    return {case.attrib["name"]: case for case in suite.iter("testcase")}


SAID = [
    "2 to 20 a second for 10 s, then 20 a second for 10 s; 310 requests in all",
    "gamma arrivals of burstiness 0.5",
    "one beyond 40 in flight in a process is dropped",
    "75 % seekr-chat, streamed; 25 % seekr-completions, whole answers",
    "about 256,0.5 tokens (lognormal: median, sigma), the first 128 of them the same in each",
    "at most 16..64 tokens (uniform: from, to)",
    "2 s; what was scheduled in it counts in no figure of a request",
    "25 % of the answers event by event, the others at both ends only",
    "errors>50% or consecutive>=20",
    "18.0 s, from 2.0 s after the start",
    "10 without a record = 310, as many as were scheduled",
    "too slow to know",
    "Look into the broken objective ttft:p95<=100ms",
    "Measure again with a client that is quick enough to know",
    "Find out why the server counts otherwise than the client",
    "p99 is uncertified below 662 values",
    "GAP ms estimated",
    "client \u2212",
    "before the run 0-7",
]


@pytest.mark.parametrize("said", SAID)
def test_says(text: str, said: str) -> None:
    """What a reader needs stands there in words."""
    assert said in text


def test_objectives_come_first(source: str) -> None:
    """Within the load section the objectives stand before everything else, each with its verdict and what was seen."""
    section = source[source.index('<section id="load"') :]
    headings = [
        section.index(f'id="{name}"') for name in ("objectives", "asked", "load-outcomes", "latencies", "client")
    ]
    assert headings == sorted(headings)
    first = section[headings[0] : headings[1]]
    assert first.count('<tr><th scope="row"><code>') == len(open_load()["slos"])
    assert all(f'class="tag {kept}"' in first for kept in Kept)


def test_everything_is_accounted_for(report: Report) -> None:
    """Every outcome, the warm-up and what left no record add up to the schedule."""
    load = report.load
    assert load is not None
    summary = load.summary
    assert sum(summary.outcomes.values()) + sum(load.warm_up.values()) + summary.missing == summary.scheduled == 310
    assert load.accounted == summary.scheduled
    assert load.failed == sum(n for name, n in summary.outcomes.items() if name not in ("ok", "unfinished_at_stop"))


def test_what_does_not_add_up_is_said(tmp_path: Path) -> None:
    """More records than the schedule has requests: the page says so instead of an equation that does not hold."""
    directory = open_bundle(tmp_path / "b")
    (directory / "load.json").write_text(json.dumps(open_load() | {"scheduled": 299}))
    text = " ".join(Page(report_html(report_of(directory)).decode("utf-8")).text.split())
    assert "= 300, where 299 were scheduled." in text


def test_hostile_text_is_text(source: str, text: str) -> None:
    """What the server says in details, notes and counters is shown, not obeyed."""
    assert "<script>" not in source
    assert text.count("<script>alert(1)</script>") >= 3
    assert not set("\0\x07\u2028\u202e\u202c\r") & set(source)


def test_every_reference_leads_somewhere(source: str) -> None:
    """Links of steps and metrics have their targets, and no id stands twice."""
    page = Page(source)
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for value in page.attributes("href")}
    wanted |= {name for value in page.attributes("aria-labelledby") for name in value.split()}
    assert wanted <= set(ids)


def test_error_bars(load: dict[str, Any]) -> None:
    """A quantile never lies outside its error bar; metrics without a known bound have none."""
    for name, found in load["latencies"].items():
        for p in ("p50", "p90", "p95", "p99"):
            seen = found[p]
            if seen["client_low"] is not None:
                assert seen["client_low"] <= seen["value"] <= seen["client_high"], (name, p)
    assert load["latencies"]["ttft"]["p50"]["client_low"] < load["latencies"]["ttft"]["p50"]["value"]
    assert load["latencies"]["late"]["p50"]["client_low"] is None


def test_summary_of_the_run(load: dict[str, Any]) -> None:
    """Objectives, accounting, the client and the server's counts are there for programs."""
    assert [each["objective"] for each in load["objectives"]] == open_load()["slos"]
    assert {each["verdict"] for each in load["objectives"]} == {"pass", "fail", "inconclusive"}
    assert load["requests"] + load["warm_up"] + load["missing"] == load["scheduled"]
    assert (load["missing"], load["violations"]) == (10, 2)
    assert load["goodput"]["n"] == load["requests"] + load["missing"]
    assert load["client"]["sufficient"] is False
    assert load["client"]["reasons"]
    assert [each["phase"] for each in load["client"]["calibrations"]] == ["before", "after"] * 2
    assert load["server"]["agreement"] == "differs"
    assert load["latencies"]["gap"]["estimated"]


def test_a_quick_client(tmp_path: Path) -> None:
    """Where no digit shown is in doubt, no error bar is shown either, and nothing is asked of the client."""
    report = report_of(open_bundle(tmp_path / "b", lag_us=1))
    text = " ".join(Page(report_html(report).decode("utf-8")).text.split())
    assert "quick enough What it reports is the server's, within the error bars." in text
    assert "client \u2212" not in text
    assert "client" not in [step.anchor for step in report.steps]
    (case,) = ET.fromstring(junit_xml(report)).iterfind(".//testcase[@name='the client is quick enough to know']/*")
    assert case.tag == "system-out"


def test_bursts(tmp_path: Path) -> None:
    """Where something collects events, programs and readers are told how."""
    directory = full_bundle(tmp_path / "b")
    assert json.loads(summary_json(report_of(directory)))["load"]["coalescing"] is None
    for path in directory.glob("records-*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "token_times" in line:
                first = line["token_times"][0]
                line["token_times"] = [first, *([0, 0, 0, 80_000] * 9)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = report_of(directory)
    found = json.loads(summary_json(report))["load"]["coalescing"]
    assert (found["events"], found["every_ms"]) == (4, 80)
    assert "events come in bursts (4 at a time, every 80 ms)" in Page(report_html(report).decode("utf-8")).text


def test_junit_of_the_run(cases: dict[str, ET.Element], load: dict[str, Any]) -> None:
    """A broken objective is a failure, an undecided one and a slow client are skipped, each with its reason."""
    element = {"pass": "system-out", "fail": "failure", "inconclusive": "skipped"}
    for each in load["objectives"]:
        (child,) = cases[each["objective"]]
        assert child.tag == element[each["verdict"]]
        assert each["reason"] in (child.text or child.attrib["message"])
    assert [child.tag for child in cases["the client is quick enough to know"]] == ["skipped"]
    assert [child.tag for child in cases["the run finishes"]] == ["system-out"]
    # An objective says how many requests may fail, so that they are no failure of their own.
    assert [child.tag for child in cases["requests succeed"]] == ["system-out"]


@pytest.mark.parametrize(
    ("state", "tag"),
    [
        ("finished", "system-out"),
        ("failed", "error"),
        ("aborted", "skipped"),
        ("interrupted", "skipped"),
        ("running", "skipped"),
    ],
)
def test_junit_of_each_state(tmp_path: Path, state: str, tag: str) -> None:
    """A run that did not get to its end is no pass."""
    directory = full_bundle(tmp_path / "b")
    (directory / "load.json").write_text(json.dumps(open_load() | {"state": state}))
    (child,) = ET.fromstring(junit_xml(report_of(directory))).iterfind(".//testcase[@name='the run finishes']/*")
    assert child.tag == tag


def test_failed_requests_fail_where_nothing_allows_them(tmp_path: Path) -> None:
    """Without an objective about errors, every failed request counts."""
    found = ET.fromstring(junit_xml(report_of(full_bundle(tmp_path / "b"))))
    assert found.find(".//testcase[@name='requests succeed']/failure") is not None


@pytest.mark.parametrize(("outcome", "tag"), [("client_overload", "system-out"), ("reset", "failure")])
def test_what_is_our_own_failure_is_not_the_server_s(tmp_path: Path, outcome: str, tag: str) -> None:
    """Requests for which this client had no room fail no case about the server, as they fail no verdict about it."""
    directory = full_bundle(tmp_path / "b")
    for path in directory.glob("records-*.jsonl"):
        lines = map(json.loads, path.read_text("utf-8").splitlines())
        told = [line if line.get("outcome", "ok") == "ok" else {**line, "outcome": outcome} for line in lines]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in told), "utf-8")
    cases = ET.fromstring(junit_xml(report_of(directory)))
    assert [child.tag for child in cases.iterfind(".//testcase[@name='requests succeed']/*")] == [tag]


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (("telemetry",), "Its processes said nothing about themselves."),
        (("server",), "They were not read."),
        (("telemetry", "server"), "They were not read."),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, without: tuple[str, ...], said: str) -> None:
    """Without telemetry, or without the server's counts, the rest of the report stands."""
    text = " ".join(
        Page(report_html(report_of(open_bundle(tmp_path / "b", without=without))).decode("utf-8")).text.split()
    )
    assert said in text
    assert "310, as many as were scheduled" in text


def test_earlier_runs_have_a_report(tmp_path: Path) -> None:
    """A run of an earlier streamgauge, without loop, objectives and telemetry, is shown as far as it goes."""
    text = " ".join(Page(report_html(report_of(full_bundle(tmp_path / "b"))).decode("utf-8")).text.split())
    for said in (
        "closed loop of 8 users, each with one request at a time, for 60 s",
        "None was set (--slo)",
        "= 300 sent.",
        "TTFT_INTENDED (from the schedule on) is the same as TTFT (from the dispatch on), to every digit shown.",
    ):
        assert said in text


def test_same_bundle_same_bytes(tmp_path: Path, source: str, report: Report) -> None:
    """Two reports on equal bundles are equal to the byte."""
    again = report_of(open_bundle(tmp_path / "b"))
    assert report_html(again).decode("utf-8") == source
    assert summary_json(again) == summary_json(report)
    assert junit_xml(again) == junit_xml(report)


WORDS: list[tuple[dict[str, Any], str, str]] = [
    ({"loop": {"kind": "closed", "users": 1, "think_s": 0.5}}, "Load", "closed loop of 1 user, each with one request"),
    ({"loop": {"kind": "closed", "users": 4, "think_s": 0.5}}, "Load", "thinking for 0.5 s on average"),
    ({"requests": 50}, "Load", "at most 50 requests"),
    ({"scheduled": None}, "Load", "20 a second for 10 s; gamma"),
    ({"dataset": "talks.jsonl", "prompt_tokens": None, "shared_prefix": 0}, "Prompts", "of talks.jsonl, each unlike"),
    ({"prompt_tokens": 64}, "Prompts", "about 64 tokens"),
    ({"prompt_tokens": "normal:64,8"}, "Prompts", "about 64,8 tokens (normal: mean, deviation)"),
    ({"judge": 1.0}, "Judged", "every answer, event by event"),
    ({"judge": 0.0}, "Judged", "answers at both ends only"),
    ({"budget_tokens": 5000}, "Token budget", "5\u202f000"),
]


@pytest.mark.parametrize(("said", "term", "words"), WORDS)
def test_what_was_asked_in_words(said: dict[str, Any], term: str, words: str) -> None:
    """Each thing that a run may be told is told again."""
    assert words in dict(asked(open_load() | said))[term]


@pytest.mark.parametrize("process", ["constant", "poisson", "gamma"])
def test_every_arrival_process_has_words(process: str) -> None:
    """No process is without a description."""
    run = open_load()
    assert "arrivals" in dict(asked(run | {"loop": run["loop"] | {"process": process}}))["Load"]


def test_nothing_was_sent(tmp_path: Path) -> None:
    """A run that ended before its first request has tables without figures, and no chart of requests."""
    load = report_of(lean_bundle(tmp_path / "b", "load")).load
    assert load is not None
    assert (load.time_charts, load.latency_charts, load.client_charts) == ((), (), ())
    assert not load.outcomes
    assert Outcome.OK not in load.summary.outcomes
