"""The suite under plain pytest, from a folder that holds nothing, and baselines there and on the command line."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from commandline import environment, streamgauge
from scripted import answer, scripted
from transcripts import MODEL, contract_of, whole_answer

from streamgauge.bundle.reader import Bundle
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL


def _pytest(*arguments: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "streamgauge.conformance.suite"]
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=environment(**changes), capture_output=True, text=True, timeout=110
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "xdist"])
def test_plain_pytest_judges_the_reference(workers: tuple[str, ...], reference: str, tmp_path: Path) -> None:
    """`pytest --pyargs` passes on the right endpoint and keeps every finding, also with workers."""
    done = _pytest(
        *("--sg-base-url", reference, "--sg-spec", "seekr-completions", "--sg-output", "out", *workers),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(bundle.findings) == len(bundle.checks)
    assert bundle.gate["verdict"] == "pass"
    probes = [exchange.id for exchange in bundle.exchanges.values()]
    assert len(probes) == len(set(probes))


def test_collecting_sends_nothing(tmp_path: Path) -> None:
    """`--collect-only` knows every test of a target that is not even there."""
    done = _pytest(
        "--collect-only", "-q", "--sg-base-url", "http://127.0.0.1:1", "--sg-spec", "seekr-chat", cwd=tmp_path
    )

    assert done.returncode == 0
    assert "test_contract[sse.done-seekr-seekr-chat]" in done.stdout
    assert not list(tmp_path.glob("runs"))


def test_without_a_target_nothing_runs(tmp_path: Path) -> None:
    """Installed, the plugin does nothing until somebody names a target; the environment alone does not start traffic."""
    done = _pytest("-q", cwd=tmp_path, STREAMGAUGE_BASE_URL="http://127.0.0.1:1", STREAMGAUGE_SPEC="seekr-chat")

    assert done.returncode == 0
    assert "1 skipped" in done.stdout


def test_unreachable_target_ends_the_session_with_3(tmp_path: Path) -> None:
    """Nobody there: pytest ends with our exit code and one plain message."""
    done = _pytest("--sg-base-url", "http://127.0.0.1:1", "--sg-spec", "seekr-chat", cwd=tmp_path)

    assert done.returncode == 3
    assert "Nothing listens there" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture
def limiting() -> Iterator[str]:
    """Base URL of a server that answers the preflight and nothing but 429 after it."""
    right = answer(200, json.dumps(whole_answer(contract_of("seekr-chat")[1])).encode())
    limited = answer(429, b'{"error": "slow down"}', "Retry-After: 0")
    preflight = b'"max_tokens": 1,'
    with scripted(
        choose=lambda _, request: right if preflight in request and b'"n"' not in request else limited
    ) as served:
        yield served.url


@pytest.mark.parametrize("runner", ["pytest", "streamgauge"])
def test_what_cannot_be_told_is_not_green(runner: str, limiting: str, tmp_path: Path) -> None:
    """Where 429 answers everything nothing failed, and nothing passed: exit 3, by pytest as by our own command."""
    if runner == "pytest":
        arguments = ("--sg-base-url", limiting, "--sg-spec", "seekr-chat", "--sg-model", MODEL)
        done = _pytest(*arguments, "--sg-select", "form.basic", "--sg-output", "out", cwd=tmp_path)
    else:
        arguments = ("--base-url", limiting, "--spec", "seekr-chat", "--model", MODEL)
        done = streamgauge("check", *arguments, "--select", "form.basic", "--output", "out", cwd=tmp_path)
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 3, done.stdout + done.stderr
    assert bundle.gate["verdict"] == "inconclusive"
    assert {exchange.status for exchange in bundle.exchanges.values()} == {429}


def test_users_own_configuration_is_not_read(reference: str, tmp_path: Path) -> None:
    """`streamgauge check` ignores an ini file, a conftest and options in the environment that would break the suite."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nonsense\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('somebody else')\n")
    done = streamgauge(
        *("check", "sse", "--select", "form", "--base-url", reference, "--spec", "seekr-chat"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
        PYTEST_ADDOPTS="--other-nonsense",
        PYTEST_PLUGINS="no_such_plugin",
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def deviating(tmp_path: Path) -> list[str]:
    """Arguments that check an operation at a path where the reference answers something else: a MUST is broken."""
    return ["--spec", "seekr-completions", "--model", DEFAULT_MODEL, "--path", "/v1/completions", "--select", "form"]


def test_baseline_accepts_what_it_was_written_from(reference: str, tmp_path: Path, deviating: list[str]) -> None:
    """Fails alone, passes with its own baseline, fails again when an entry is stale or expired."""
    # DeepInfra's operation takes the key as Bearer: Seekr's raw key makes the preflight fail, so it goes without profile.
    arguments = ["check", "--base-url", reference, "--profile", "bearer.yaml", *deviating]
    profile = yaml.safe_load((Path(__file__).parents[1] / "spec" / "profiles" / "seekr.yaml").read_text())
    profile["auth"]["scheme"] = "Bearer"
    (tmp_path / "bearer.yaml").write_text(yaml.safe_dump(profile))

    def check(*more: str) -> subprocess.CompletedProcess[str]:
        return streamgauge(*arguments, *more, cwd=tmp_path, STREAMGAUGE_API_KEY=DEFAULT_KEY)

    broken = check("--write-baseline", "known.yaml")
    known = yaml.safe_load((tmp_path / "known.yaml").read_text())["known"]
    accepted = check("--baseline", "known.yaml")

    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert known
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr

    stale = {"check": "sse.done", "reason": "was broken once", "expires": "2999-01-01"}
    (tmp_path / "stale.yaml").write_text(yaml.safe_dump({"known": [*known, stale]}))
    expired = [entry | {"expires": "2020-01-01"} for entry in known]
    (tmp_path / "expired.yaml").write_text(yaml.safe_dump({"known": expired}))

    (tmp_path / "typo.yaml").write_text(yaml.safe_dump({"known": [stale | {"check": "sse.dome"}]}))
    typo = check("--baseline", "typo.yaml")

    assert typo.returncode == 2
    assert "no check is called sse.dome" in typo.stderr
    outdated = check("--baseline", "stale.yaml")
    assert "stale baseline entry" in outdated.stdout
    assert outdated.returncode == 1
    assert "expired baseline entry" in check("--baseline", "expired.yaml").stdout
