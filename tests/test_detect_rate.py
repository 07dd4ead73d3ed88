"""Faults that come and go, end to end: `--detect-rate` repeats, and everything printed says how many of how many."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from commandline import streamgauge
from report_bundles import validate_bundle
from scripted import answer, scripted
from test_plugin_options import suite
from transcripts import MODEL, contract_of, whole_answer

from streamgauge.bundle.reader import Bundle
from streamgauge.reference import DEFAULT_KEY

SPEC = "openai-chat"
ONE_PROBE = ("--spec", SPEC, "--model", MODEL, "--select", "form.basic", "--output", "out")
RIGHT = answer(200, json.dumps(whole_answer(contract_of(SPEC)[1])).encode())
BROKEN = answer(500, b'{"error": {"message": "no", "type": "server_error", "param": null, "code": null}}')
BAD_TRY = 7
"""Which request meets the fault: one of the tries, behind the preflight's."""

EXCLUDED = "13 of 13; a fault in more than 21 % of such requests would have shown, at 95 %"


@pytest.fixture
def flaky() -> Iterator[str]:
    """Base URL of a server that breaks one answer and gives all others right."""
    with scripted(choose=lambda number, _: BROKEN if number == BAD_TRY else RIGHT) as served:
        yield served.url


@pytest.fixture
def right() -> Iterator[str]:
    """Base URL of a server that always gives the same right answer."""
    with scripted(RIGHT) as served:
        yield served.url


def check(url: str, *more: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """One probe, sent as often as the options say."""
    return streamgauge("check", "--base-url", url, *ONE_PROBE, *more, cwd=cwd)


def finding(folder: Path, check_id: str) -> dict[str, Any]:
    """The finding of a check in the run's bundle, which keeps the published schema."""
    validate_bundle(folder / "out")
    return next(found for found in Bundle(folder / "out").findings if found["check"] == check_id)


def test_fault_in_one_try_fails_with_its_count(flaky: str, tmp_path: Path) -> None:
    """One broken answer in 13 fails the gate; console, findings, HTML and JUnit say 1 of 13."""
    done = check(flaky, "--detect-rate", "0.3", cwd=tmp_path)
    found = finding(tmp_path, "error.no-5xx")
    case = ET.parse(tmp_path / "out" / "junit.xml").find(".//testcase[@name='error.no-5xx']/failure")

    assert done.returncode == 1, done.stdout + done.stderr
    assert (found["outcome"], found["counts"], found["n"]) == ("fail", {"fail": 1, "pass": 12}, 13)
    assert "fail error.no-5xx [MUST] openai-chat: 1 of 13" in done.stdout
    assert "fail: error.no-5xx (openai, openai-chat), 1 of 13" in done.stdout
    assert "1 of 13 exchanges" in (tmp_path / "out" / "report.html").read_text()
    assert case is not None
    assert case.attrib["message"].endswith("(1 of 13)")
    assert "\n1 of 13\n" in (case.text or "")


def test_repetitions_of_a_right_endpoint_find_nothing(reference: str, tmp_path: Path) -> None:
    """Asking the same again and again is no fault of the endpoint: the reference passes with 7 tries of every curated probe."""
    done = streamgauge(
        *("check", "--base-url", reference, "--spec", "seekr-chat", "--spec", "seekr-completions", "--output", "out"),
        *("--detect-rate", "0.5", "--select", "form", "--select", "refusal", "--select", "auth"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(Counter((found.operation, found.probe) for found in bundle.exchanges.values()).values()) == {7}
    assert {found["outcome"] for found in bundle.findings} <= {"pass", "refused", "not-applicable", "not-run"}


def test_pass_prints_what_it_excludes(right: str, tmp_path: Path) -> None:
    """13 right answers: the finding, `--verbose`, HTML and JUnit say n and which rate of faults it excludes."""
    done = check(right, "--detect-rate", "0.3", "--verbose", cwd=tmp_path)
    found = finding(tmp_path, "error.no-5xx")
    case = ET.parse(tmp_path / "out" / "junit.xml").findtext(".//testcase[@name='error.no-5xx']/system-out")
    report = (tmp_path / "out" / "report.html").read_text()

    assert (found["outcome"], found["n"], found["excluded_rate"]) == ("pass", 13, 0.205817)
    assert f"pass error.no-5xx [MUST] openai-chat: {EXCLUDED}" in done.stdout
    assert case == f"pass: {EXCLUDED}"
    assert "<td>13 of 13</td><td>a fault in more than 21 %</td>" in report
    assert "n counts the exchanges of all probes" in report


def test_without_verbose_passes_are_told_by_their_range(right: str, tmp_path: Path) -> None:
    """The plain output says on how many exchanges the passes stand, and where to read more."""
    done = check(right, "--detect-rate", "0.3", cwd=tmp_path)
    found = [each["n"] for each in Bundle(tmp_path / "out").findings if each["outcome"] == "pass"]

    assert f"passes stand on {min(found)} to {max(found)} exchanges each" in done.stdout
    assert EXCLUDED not in done.stdout


@pytest.mark.parametrize(("options", "rate", "tries"), [((), None, 1), (("--detect-rate", "0.5"), 0.5, 7)])
def test_bundle_says_how_often(
    options: tuple[str, ...], rate: float | None, tries: int, right: str, tmp_path: Path
) -> None:
    """meta.json holds rate and tries, and so many exchanges are there, each with an id of its own."""
    check(right, *options, cwd=tmp_path)
    bundle = Bundle(tmp_path / "out")

    assert (bundle.meta["detect_rate"], bundle.meta["tries"]) == (rate, tries)
    assert Counter(exchange.probe for exchange in bundle.exchanges.values()) == {"form.basic": tries}


def test_budget_that_cuts_tries_is_told(right: str, tmp_path: Path) -> None:
    """With tokens for some tries these are sent; console, meta.json and the report name the probe once."""
    done = check(right, "--detect-rate", "0.3", "--budget-tokens", "150", cwd=tmp_path)
    bundle = Bundle(tmp_path / "out")
    sent = len(bundle.exchanges)
    (left_out,) = bundle.meta["not_run"]

    assert 1 <= sent < 13
    assert left_out["reason"].startswith(f"{13 - sent} of 13 tries left out: budget: up to ")
    assert "left out by the budget, wholly or in part: 1 probe;" in done.stdout
    assert left_out["reason"] in (tmp_path / "out" / "report.html").read_text()


def test_dry_run_shows_the_tries(tmp_path: Path) -> None:
    """--dry-run counts every try, says how often, and names what the budget leaves out with the reason."""
    arguments = ("--base-url", "http://127.0.0.1:1", "--spec", SPEC, "--select", "form.basic")
    done = streamgauge("check", *arguments, "--detect-rate", "0.3", "--dry-run", cwd=tmp_path)
    cut = streamgauge("check", *arguments, "--detect-rate", "0.3", "--budget-tokens", "0", "--dry-run", cwd=tmp_path)

    assert "13 requests" in done.stdout
    assert "each curated probe up to 13 times" in done.stdout
    assert "openai-chat form.basic: 13 of 13 tries left out: budget: up to " in cut.stdout


def _command(name: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return streamgauge(name, *arguments, cwd=cwd)

    return run


def _pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    own = [f"--sg-{word[2:]}" if word.startswith("--") else word for word in arguments]
    return suite(*own, cwd=cwd)


@pytest.mark.parametrize("rate", ["0", "1.5", "nan"])
@pytest.mark.parametrize("run", [_command("check"), _command("run"), _pytest], ids=["check", "run", "pytest"])
def test_rate_that_is_none_is_refused(
    run: Callable[..., subprocess.CompletedProcess[str]], rate: str, tmp_path: Path
) -> None:
    """Exit code 2 before anything is sent, with the option's name and what it takes; no traceback."""
    with scripted(RIGHT) as served:
        done = run("--base-url", served.url, "--spec", SPEC, "--model", MODEL, f"--detect-rate={rate}", cwd=tmp_path)
        assert served.requests == []

    assert done.returncode == 2
    assert "detect-rate: " in done.stderr
    assert "0.3 takes 13 tries" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("run", [_command("check"), _pytest], ids=["check", "pytest"])
def test_captures_cannot_be_repeated(run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """`--from` sends nothing, so there is nothing to repeat."""
    (tmp_path / "c").mkdir()
    done = run("--from=c", "--spec", SPEC, "--detect-rate", "0.3", cwd=tmp_path)

    assert done.returncode == 2
    assert "from sends nothing, so it does not go with --" in done.stderr
    assert "detect-rate" in done.stderr


def test_plain_pytest_repeats(flaky: str, tmp_path: Path) -> None:
    """--sg-detect-rate does the same under plain pytest, whose failure says 1 of 13."""
    arguments = ("--sg-base-url", flaky, "--sg-spec", SPEC, "--sg-model", MODEL, "--sg-select", "form.basic")
    done = suite(*arguments, "--sg-detect-rate", "0.3", "--sg-output", "out", cwd=tmp_path)

    assert done.returncode == 1
    assert "fail (1 of 13): error.no-5xx [MUST]" in done.stdout
    assert finding(tmp_path, "error.no-5xx")["n"] == 13
