"""The command line as a user meets it: help, errors on one screen, exit codes, and the way from probes to a report."""

import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from commandline import environment, passed, streamgauge
from jsonschema import Draft202012Validator
from scripted import dead_port

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reference.launch import running

HEAVY = ("httpx", "pytest", "hypothesis", "schemathesis", "locust", "jsonschema", "yaml", "rich")

ONE_SCREEN = 12


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """`streamgauge --help` answers without any of the heavy packages."""
    program = (
        "import sys\n"
        "from streamgauge.cli import main\n"
        "try:\n    main(['--help'])\n"
        f"finally:\n    print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert "loaded: []" in done.stdout
    assert "Commands:" in done.stdout


@pytest.mark.parametrize("command", ["run", "check", "load", "report", "serve", "list", "explain"])
def test_every_command_has_help_that_teaches(command: str, tmp_path: Path) -> None:
    """The help of each command shows examples."""
    done = streamgauge(command, "--help", cwd=tmp_path)

    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"streamgauge {command}" in done.stdout


def test_version(tmp_path: Path) -> None:
    """--version names the program and its version."""
    assert re.fullmatch(r"streamgauge \d+\.\d+\.\d+\n", streamgauge("--version", cwd=tmp_path).stdout)


NOBODY = ("check", "--base-url", "http://127.0.0.1:1", "--spec", "seekr-chat")
"""A check of a target that does not exist."""

BAD: dict[str, tuple[list[str], int, str]] = {
    "no-target": (["check"], 2, "no target named"),
    "no-document": (["check", "--base-url", "http://127.0.0.1:1"], 2, "no document named"),
    "unknown-target": (["check", "--target", "nobody", "--config", "good.yaml"], 2, "no target is called nobody"),
    "no-config": (["check", "--target", "x"], 2, "there is no streamgauge.yaml"),
    "broken-yaml": (["check", "--target", "x", "--config", "broken.yaml"], 2, "broken.yaml:3:1: "),
    "duplicate-key": (["check", "--target", "x", "--config", "twice.yaml"], 2, "twice.yaml:4:5: "),
    "unknown-setting": (["check", "--target", "x", "--config", "typo.yaml"], 2, "typo.yaml:2:3"),
    "plain-key": (["check", "--target", "x", "--config", "key.yaml"], 2, "key.yaml:5:5: api_key has to be ${VARIABLE}"),
    "no-openapi": (["check", "--base-url", "http://127.0.0.1:1", "--spec", "good.yaml"], 2, "not an OpenAPI document"),
    "no-such-file": (["check", "--base-url", "http://127.0.0.1:1", "--spec", "nope.yaml"], 2, "no such document"),
    "bad-url": (["check", "--base-url", "127.0.0.1:1", "--spec", "seekr-chat"], 2, "not an http or https URL"),
    "unknown-check": (["check", "nonsense", "--base-url", "http://x", "--spec", "seekr-chat"], 2, "no check is called"),
    "unknown-id": (["explain", "nonsense"], 2, "nothing is called nonsense"),
    "no-bundle": (["report", "."], 2, "no bundle"),
    "unknown-option": (["check", "--nonsense"], 2, "--nonsense"),
    "two-targets": (["check", "--target", "x", "--target", "y"], 2, "'--target': given 2 times; a run has one"),
    "negative-tokens": (["check", "--explore-tokens", "-1"], 2, "'--explore-tokens': -1 is not in the range"),
    "unknown-probe": (
        [*NOBODY, "--select", "law.nothing"],
        2,
        "--select law.nothing: these targets have no such probe",
    ),
    "unknown-draw": (
        [*NOBODY, "--select", "explore.nothing"],
        2,
        "--select explore.nothing: these targets have no such",
    ),
    "poison-unasked": ([*NOBODY, "--select", "poison"], 2, "poison with --destructive"),
    "misspelt-property": (["explain", "messages[].rol"], 2, "Close to it: messages[].role"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_use_is_explained_on_one_screen(case: str, tmp_path: Path) -> None:
    """Whatever is wrong: what, where and how to mend it, exit code 2, no traceback, no key."""
    arguments, code, said = BAD[case]
    entry = "targets:\n  x:\n    base_url: http://127.0.0.1:1\n    spec: seekr-chat\n"
    (tmp_path / "good.yaml").write_text(entry)
    (tmp_path / "broken.yaml").write_text("targets:\n  x: [1\n")
    (tmp_path / "twice.yaml").write_text("targets:\n  x:\n    spec: c\n    spec: d\n")
    (tmp_path / "typo.yaml").write_text("targets:\n  x:\n    base_uri: http://127.0.0.1:1\n    spec: seekr-chat\n")
    (tmp_path / "key.yaml").write_text(f"{entry}    api_key: sk-plain-text-key\n")

    done = streamgauge(*arguments, cwd=tmp_path)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "sk-plain-text-key" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) <= ONE_SCREEN


def test_unreachable_host_cannot_be_told(tmp_path: Path) -> None:
    """Nobody there: exit code 3, and a hint."""
    with dead_port() as port:
        done = streamgauge("check", "--base-url", f"http://127.0.0.1:{port}", "--spec", "seekr-chat", cwd=tmp_path)

    assert done.returncode == 3
    assert "Nothing listens there" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_key_is_named(reference: str, tmp_path: Path) -> None:
    """A refused key: exit code 2, the profile's form of it, and not the key itself."""
    key = "sk-this-is-not-the-right-key"
    done = streamgauge(
        "check", "--base-url", reference, "--spec", "seekr-chat", "--model", "m", cwd=tmp_path, STREAMGAUGE_API_KEY=key
    )

    assert done.returncode == 2
    assert "The key was refused" in done.stderr
    assert key not in done.stdout + done.stderr


def test_unknown_model_lists_those_that_are_served(reference: str, tmp_path: Path) -> None:
    """A model that is not there: the message names those that are."""
    done = streamgauge(
        *("check", "--base-url", reference, "--spec", "seekr-chat", "--model", "nobody"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )

    assert done.returncode == 2
    assert "streamgauge-reference" in done.stderr


def test_dry_run_sends_nothing(tmp_path: Path) -> None:
    """--dry-run shows topics and tokens for a target that does not even exist, on one screen; --verbose each probe."""
    command = (*NOBODY, "--dry-run")
    done = streamgauge(*command, cwd=tmp_path)

    assert done.returncode == 0
    assert "law.stop.* " in done.stdout
    assert len(done.stdout.splitlines()) <= 45
    assert "form.basic " in streamgauge(*command, "--verbose", cwd=tmp_path).stdout
    assert "generated.valid-*" in done.stdout
    assert "nothing was sent" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_budget_of_nothing_is_nothing(tmp_path: Path) -> None:
    """--budget-tokens 0 means 0, not the default."""
    done = streamgauge(
        *("check", "--base-url", "http://127.0.0.1:1", "--spec", "seekr-chat", "--dry-run", "--budget-tokens", "0"),
        cwd=tmp_path,
    )

    assert "requests, 0 tokens at most" in done.stdout
    assert "probes beyond the budget" in done.stdout


@pytest.fixture(scope="module")
def checked(reference: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One check of all three documents on the reference endpoint."""
    folder = tmp_path_factory.mktemp("checked")
    done = streamgauge(
        *("check", "--base-url", reference, "--output", "out"),
        *("--spec", "seekr-chat", "--spec", "seekr-completions", "--spec", "deepinfra-completions"),
        *("--path", "deepinfra-completions=/v1/openai/completions"),
        cwd=folder,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    return done, folder / "out"


def test_check_of_the_reference_passes(checked: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """The endpoint that is right by construction has no finding that departs from a MUST or SHOULD."""
    done, out = checked
    outcomes = {finding["outcome"] for finding in Bundle(out).findings}

    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes <= {"pass", "refused", "not-applicable", "not-run"}
    assert "verdict: PASS" in done.stdout
    assert "report.html" in done.stdout


def test_bundle_keeps_its_schema(checked: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Every line of a real bundle is what bundle.schema.json says."""
    _, out = checked
    definitions = catalog.schema("bundle")
    kinds = {
        "meta": [json.loads((out / "meta.json").read_bytes())],
        "gate": [json.loads((out / "gate.json").read_bytes())],
        "check": json.loads((out / "checks.json").read_bytes()),
        "finding": list(read_lines(out / "findings.jsonl")),
        "exchange": list(read_lines(out / "exchanges-main.jsonl")),
    }

    for kind, lines in kinds.items():
        validator = Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions["$defs"]})
        assert lines
        for line in lines:
            assert [error.message for error in validator.iter_errors(line)] == []


def test_key_is_in_no_file(checked: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Not in the bundle, not in the reports, not on the console."""
    done, out = checked

    assert {path.name for path in out.iterdir()} >= {"report.html", "junit.xml", "summary.json", "findings.jsonl"}
    for path in out.iterdir():
        assert DEFAULT_KEY.encode() not in path.read_bytes(), path.name
    assert DEFAULT_KEY not in done.stdout + done.stderr


def test_header_from_the_environment_is_a_secret_whatever_its_name(reference: str, tmp_path: Path) -> None:
    """A header value that came by ${VARIABLE} is in no file of a run, the load's included; a plain one may be."""
    secret = "team-token-0123456789"
    done = streamgauge(
        *("run", "--base-url", reference, "--spec", "seekr-chat", "--select", "form", "--output", "out"),
        *("--header", "X-Team=${TEAM}", "--header", "X-Plain=a", "--duration", "2s", "--users", "2"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
        TEAM=secret,
    )

    assert passed(done, tmp_path / "out"), done.stdout + done.stderr
    assert secret not in done.stdout + done.stderr
    for path in (tmp_path / "out").iterdir():
        assert secret.encode() not in path.read_bytes(), path.name
    assert b"x-plain" in (tmp_path / "out" / "exchanges-main.jsonl").read_bytes().lower()


def test_junit_and_summary_agree_with_the_findings(checked: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Every finding is a test case."""
    _, out = checked
    findings = Bundle(out).findings

    assert len(list(ElementTree.parse(out / "junit.xml").iter("testcase"))) == len(findings)
    assert json.loads((out / "summary.json").read_bytes())["verdict"] == "pass"


def test_no_request_goes_to_the_documents_servers(
    checked: tuple[subprocess.CompletedProcess[str], Path], reference: str
) -> None:
    """Every exchange went to the host that the user named, whatever `servers` the document lists."""
    _, out = checked

    assert all(exchange.request.url.startswith(reference) for exchange in Bundle(out).exchanges.values())


def test_without_a_base_url_nothing_is_sent(tmp_path: Path) -> None:
    """A document's own server is never a default: naming a document alone is an error."""
    done = streamgauge("check", "--spec", "seekr-chat", "--model", "m", cwd=tmp_path)

    assert done.returncode == 2
    assert "no target named" in done.stderr


def test_interrupt_keeps_what_was_recorded(tmp_path: Path) -> None:
    """Ctrl-C while probes run: exit code 130, a verdict and a report over what had come."""
    with running(ttft_ms=400, itl_ms=50) as url:
        command = [
            sys.executable,
            "-m",
            "streamgauge",
            "check",
            "--base-url",
            url,
            "--spec",
            "seekr-chat",
            "--output",
            "out",
        ]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(STREAMGAUGE_API_KEY=DEFAULT_KEY), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "sending" in line:
                break
        exchanges = tmp_path / "out" / "exchanges-main.jsonl"
        while process.poll() is None and (not exchanges.exists() or not exchanges.stat().st_size):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "INTERRUPTED" in printed
    assert Bundle(tmp_path / "out").findings
    assert (tmp_path / "out" / "report.html").exists()


def test_broken_suite_is_no_verdict(reference: str, tmp_path: Path) -> None:
    """Where judging itself breaks, checks come to no finding: that is exit 3 and said so, never a pass."""
    program = (
        "from streamgauge.cli import main\n"
        "from streamgauge.conformance.session import Settings\n"
        "def broken(self, item):\n    raise ZeroDivisionError('ours')\n"
        "Settings.judge = broken\n"
        f"main(['check', '--base-url', {reference!r}, '--spec', 'seekr-chat', '--select', 'form'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(STREAMGAUGE_API_KEY=DEFAULT_KEY),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 3
    assert "the suite broke: 0 of" in done.stderr


@pytest.mark.parametrize("kind", ["checks", "probes", "metrics", "outcomes", "profiles", "specs", "runs"])
def test_everything_can_be_listed(kind: str, tmp_path: Path) -> None:
    """Each kind is listed for people and as JSON."""
    rows = json.loads(streamgauge("list", kind, "--json", cwd=tmp_path).stdout)

    assert streamgauge("list", kind, cwd=tmp_path).stdout.count("\n") == len(rows)
    assert rows or kind == "runs"


@pytest.mark.parametrize("id_", ["sse.done", "ttft", "inconclusive", "seekr", "seekr-chat"])
def test_everything_can_be_explained(id_: str, tmp_path: Path) -> None:
    """A check, a metric, an outcome, a profile, a document."""
    done = streamgauge("explain", id_, cwd=tmp_path)

    assert done.returncode == 0
    assert id_ in done.stdout
