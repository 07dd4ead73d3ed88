"""Every check of Schemathesis has its counterpart here, and where both look, both see the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import verdict_of
from schemathesis.checks import CHECKS as THEIRS
from schemathesis.checks import load_all_checks, max_response_time

from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.schemathesis_names import SCHEMATHESIS_CHECKS
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running

ROOT = Path(__file__).parent.parent
TEXT = "openai-completions"

STATUSES = '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "400", "422"]\n'
"""A valid body may ask for what a server does not have (docs/schemathesis.md)."""


def test_every_check_that_schemathesis_has_is_named() -> None:
    """A new version may bring new ones; `max_response_time` is registered only where it is configured."""
    load_all_checks()
    assert set(SCHEMATHESIS_CHECKS) == {*THEIRS.get_all_names(), max_response_time.__name__}


def test_every_counterpart_exists() -> None:
    """An id that no check has would lead nowhere; where there is none, the note says why."""
    assert {id_ for each in SCHEMATHESIS_CHECKS.values() for id_ in each.checks} <= set(CHECKS)
    assert all(each.note for each in SCHEMATHESIS_CHECKS.values())


def test_the_page_says_what_the_table_says() -> None:
    """docs/schemathesis.md lists each name with the ids and levels of ours, and the note."""
    page = (ROOT / "docs" / "schemathesis.md").read_text("utf-8")
    for name, each in SCHEMATHESIS_CHECKS.items():
        ours = ", ".join(f"`{id_}` {CHECKS[id_].level}" for id_ in each.checks) or "none"
        assert f"| `{name}` | {ours} | {each.note} |" in page


def _run(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`schemathesis run` on one document, with our hooks."""
    (folder / "schemathesis.toml").write_text(STATUSES)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"]
    command += [str(ROOT / "spec" / "openapi" / f"{TEXT}.yaml"), "--url", url]
    command += ["-H", f"Authorization: Bearer {DEFAULT_KEY}", "--seed", "1", "--generation-database", "none"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "STREAMGAUGE_MODEL": DEFAULT_MODEL,
    }
    return subprocess.run([*command, *options], cwd=folder, env=environment, capture_output=True, text=True)


def test_schemathesis_finds_nothing_on_a_right_endpoint(tmp_path: Path) -> None:
    """All its checks, on the reference endpoint: by coverage, and by some random requests."""
    with running(profiles=["openai"]) as url:
        done = _run(tmp_path, url, "--phases", "coverage,fuzzing", "-n", "10")

    assert done.returncode == 0, done.stdout
    assert "No issues found" in done.stdout


@pytest.mark.parametrize(
    ("fault", "theirs", "phase"),
    [
        ("error.500-json", "not_a_server_error", "fuzzing"),
        ("error.undocumented-status", "status_code_conformance", "fuzzing"),
        ("error.no-content-type", "content_type_conformance", "fuzzing"),
        ("error.detail-envelope", "response_schema_conformance", "fuzzing"),
        ("request.invalid-accepted", "negative_data_rejection", "coverage"),
        ("request.method-404", "unsupported_method", "coverage"),
        ("request.method-allow-others", "allow_header_conformance", "coverage"),
        ("auth.missing-accepted", "ignored_auth", "coverage"),
    ],
)
def test_both_see_the_same_fault(tmp_path: Path, fault: str, theirs: str, phase: str) -> None:
    """A fault that a check of Schemathesis finds is found by a counterpart of that check."""
    with running(profiles=["openai"], faults=[fault]) as url:
        done = _run(tmp_path, url, "--phases", phase, "-n", "10", "--checks", theirs, "--max-failures", "1")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILURES" in done.stdout
    assert set(verdict_of(TEXT, fault)[0]) & set(SCHEMATHESIS_CHECKS[theirs].checks)
