"""`streamgauge run` from nothing: the built-in endpoint is checked and loaded, and no socket leaves the machine."""

import ipaddress
import json
import subprocess
from pathlib import Path

import pytest
from commandline import passed, streamgauge
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.run import load_records
from streamgauge.reference import DEFAULT_KEY

pytestmark = pytest.mark.timeout(300)  # one run of everything

WATCH = """
import os, sys

def hook(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        said = arguments[1][0]
    elif event == "socket.getaddrinfo":
        said = arguments[0]
    else:
        return
    with open(os.environ["SOCKETS"], "a") as file:
        file.write(f"{said}\\n")

sys.addaudithook(hook)
"""
"""A sitecustomize module that writes down whom every Python process of the run looks up or connects to."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The README's command, with a shorter load and without random draws, which take a quarter of a minute."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "watch").mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(WATCH)
    done = streamgauge(
        *("run", "--duration", "4s", "--users", "4", "--explore-tokens", "0"),
        cwd=folder,
        timeout=280,
        PYTHONPATH=str(folder / "watch"),
        SOCKETS=str(folder / "sockets"),
    )
    return done, folder


def test_run_without_a_target_passes(ran: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """A verdict that passes, the path of a report, and findings for every bundled operation."""
    done, folder = ran
    (bundle,) = (folder / "runs").iterdir()

    assert passed(done, bundle), done.stdout + done.stderr
    assert f"verdict: {Bundle(bundle).gate['verdict'].upper()} " in done.stdout
    assert f"runs/{bundle.name}/report.html" in done.stdout
    assert (bundle / "report.html").exists()
    assert {finding["operation"] for finding in Bundle(bundle).findings} == set(catalog.DOCUMENTS)


def test_run_keeps_records_that_add_up(ran: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Every request of the load run is a record, and load.json says what was run."""
    _, folder = ran
    (path,) = (folder / "runs").iterdir()
    bundle = Bundle(path)
    records = load_records(bundle)
    definitions = {"$defs": catalog.schema("bundle")["$defs"]}

    assert bundle.load["state"] == "finished"
    assert {record.outcome for record in records} <= {Outcome.OK, Outcome.UNFINISHED_AT_STOP}
    assert len(records) >= 8
    assert Draft202012Validator({"$ref": "#/$defs/load", **definitions}).is_valid(bundle.load)
    for _, line in bundle.record_lines():
        kind = "anchor" if "anchor" in line else "record"
        assert Draft202012Validator({"$ref": f"#/$defs/{kind}", **definitions}).is_valid(line), json.dumps(line)


def test_run_connects_to_loopback_only(ran: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """No process of the run, Locust's included, looks up or connects to anybody but the target that it started itself."""
    _, folder = ran
    seen = set((folder / "sockets").read_text().split())

    assert seen
    assert {host for host in seen if host != "localhost" and not ipaddress.ip_address(host).is_loopback} == set()


def test_run_writes_the_key_nowhere(ran: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Not in any file of the folder, and not on the console."""
    done, folder = ran

    for path in folder.rglob("*"):
        assert not path.is_file() or DEFAULT_KEY.encode() not in path.read_bytes(), path.name
    assert DEFAULT_KEY not in done.stdout + done.stderr
