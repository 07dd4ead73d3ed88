"""Locust's own processes under plain `locust`: however many there are and however they end, every request is accounted for."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from commandline import environment
from jsonschema import Draft202012Validator
from load_endpoint import Answer, chunk, endpoint, held_port, json_answer, stream
from load_processes import wait_for

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.load.arrivals import OpenLoop, Segment, schedule
from streamgauge.load.command import LOCUSTFILE
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.run import load_records
from streamgauge.reference.launch import running

KEY = "a-key-of-these-tests-0123"
MODEL = "streamgauge-reference"
RATE = 60
SECONDS = 1
SEED = 11
SCHEDULE = schedule(OpenLoop((Segment(SECONDS, RATE, RATE),)), SEED)


@pytest.fixture(scope="module")
def paced() -> Iterator[str]:
    """A reference endpoint with a pace."""
    with running(ttft_ms=20, itl_ms=5, key=KEY) as url:
        yield url


def locust(folder: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    """One process of plain Locust."""
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--only-summary", "--host", url]
    return subprocess.Popen(
        [*command, "--sg-model", MODEL, "--sg-max-tokens", "4", "--sg-seed", str(SEED), *arguments],
        env=environment(STREAMGAUGE_API_KEY=KEY, PYTHONUNBUFFERED="1"),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Run:
    """A run of one or more processes, the one that steers it first."""

    def __init__(self, folder: Path, url: str, kind: str, *arguments: str, headless: bool = True) -> None:
        self.directory = folder / kind
        self._held = ExitStack()
        port = self._held.enter_context(held_port())
        ends = ["--headless"] if headless else []
        alone = [*ends, "--sg-output", str(self.directory), *arguments]
        address = [f"--master-bind-port={port}", "--master-bind-host=127.0.0.1"]
        worker = ["--worker", f"--master-port={port}"]
        master = {
            "local": [],
            "processes": ["--processes", "2", *address, f"--master-port={port}"],
            "workers": ["--master", "--expect-workers", "2", *address],
        }[kind]
        self.steering = locust(folder, url, *alone, *master)
        self.workers = [locust(folder, url, *worker) for _ in range(2 if kind == "workers" else 0)]

    def end(self) -> str:
        """Wait for all of them; what the one that steers said."""
        said, _ = self.steering.communicate(timeout=60)
        for worker in self.workers:
            worker.communicate(timeout=60)
        return said

    def close(self) -> None:
        """Leave nothing behind."""
        for process in (self.steering, *self.workers):
            process.kill()
            process.communicate()
        self._held.close()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of all records, as they are written."""
        found = [line for path in sorted(self.directory.glob("records-*.jsonl")) for line in read_lines(path)]
        return [line for line in found if "anchor" not in line]

    @property
    def outcomes(self) -> Counter[str]:
        """How many requests ended how."""
        return Counter(line["outcome"] for line in self.lines)

    @property
    def load(self) -> dict[str, Any]:
        """load.json, valid by the bundle's schema."""
        found: dict[str, Any] = json.loads((self.directory / "load.json").read_bytes())
        Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/load"}).validate(found)
        return found


@pytest.fixture
def runs() -> Iterator[ExitStack]:
    """Ends whatever a test has started."""
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, *arguments: Any, **options: Any) -> Run:
    """A run that ends with the test."""
    run = Run(*arguments, **options)
    stack.callback(run.close)
    return run


def judged(run: Run, said: str) -> None:
    """The run passed; on a machine that is too busy for the client to know, it says just that."""
    assert run.steering.returncode == 0 or (run.steering.returncode == 3 and "too slow to know" in said), said


KINDS = ("local", "processes", "workers")


def test_the_schedule_is_shared(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """Alone, with two processes and with two workers, every arrival of the schedule is sent once, and at its time."""
    arguments = ("-u", "2", "-r", "2", "-t", f"{SECONDS}s", "--sg-rate", str(RATE))
    found = {kind: start(runs, tmp_path, paced, kind, *arguments) for kind in KINDS}
    for kind, run in found.items():
        said = run.end()
        judged(run, said)
        described = run.load
        assert (described["state"], described["scheduled"]) == ("finished", len(SCHEDULE)), said
        assert sorted(int(line["id"]) for line in run.lines) == list(range(len(SCHEDULE)))
        assert len(list(run.directory.glob("records-*.jsonl"))) == (1 if kind == "local" else 2)
        begin = described["start"] * 1e6
        for record in load_records(Bundle(run.directory)):
            assert record.scheduled - begin == pytest.approx(SCHEDULE[int(record.id)] * 1e6, abs=2_000)
            assert record.dispatched >= record.scheduled
        assert run.outcomes == {"ok": len(SCHEDULE)}
        # One genuine event of Locust's for each request.
        assert f"{len(SCHEDULE)}     0(0.00%)" in said


def test_planned_requests_are_shared(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """A closed loop sends exactly the planned requests, whoever sends them, and all of them differ."""
    run = start(runs, tmp_path, paced, "workers", "-u", "3", "-r", "3", "--sg-requests", "9")
    said = run.end()
    judged(run, said)
    assert run.load["state"] == "finished", said
    assert run.outcomes == {"ok": 9}
    assert len({line["id"] for line in run.lines}) == 9
    assert "9 requests: 9 ok" in said


def test_a_process_without_users_has_no_share_of_the_requests(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """One user over two processes sends all requests, and the run ends behind the last one, not at its planned end."""
    run = start(runs, tmp_path, paced, "processes", "-u", "1", "--sg-requests", "5", "-t", "40s")
    judged(run, run.end())
    assert run.outcomes == {Outcome.OK: 5}
    assert (run.load["state"], run.load["window"][1] - run.load["start"] < 20) == ("finished", True)


def test_workers_elsewhere(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """Where the records lie on other machines, the merged counts tell the exit code."""
    (tmp_path / "there").mkdir()
    port = runs.enter_context(held_port())
    master = ("--headless", "--master", "--expect-workers", "1", f"--master-bind-port={port}")
    arguments = ("-u", "2", "-r", "2", "-t", "1s", "--sg-rate", "30", "--sg-output", "out")
    steering = locust(tmp_path, paced, *arguments, *master, "--master-bind-host=127.0.0.1")
    worker = locust(tmp_path / "there", paced, "--worker", f"--master-port={port}")
    for process in (steering, worker):
        runs.callback(process.communicate)
        runs.callback(process.kill)
    said, _ = steering.communicate(timeout=60)
    worker.communicate(timeout=60)
    described = json.loads((tmp_path / "out" / "load.json").read_bytes())
    assert described["state"] == "finished"
    assert f"{described['scheduled']} records are on other machines" in said
    assert steering.returncode == 0, said
    assert not list((tmp_path / "out").glob("records-*"))
    assert list((tmp_path / "there" / "out").glob("records-*"))


def hanging(*, first: int = 0) -> list[Answer]:
    """The n-th answer and all after it never end."""
    right = stream(chunk({"content": "Hi"}), chunk({}, finish="stop"), b"data: [DONE]\n\n")
    wires = [right] * first + [stream(chunk({"content": "Hi"}), end=False)]
    return [methodcaller("sendall", wire) for wire in wires]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_an_open_loop(number: signal.Signals, runs: ExitStack, tmp_path: Path) -> None:
    """What had been due by then is accounted for: what is in flight is cut off when the patience ends, and recorded."""
    arguments = ("-u", "1", "-t", "50s", "-s", "1", "--sg-rate", "20")
    with endpoint(*hanging(first=3)) as served:
        run = start(runs, tmp_path, served.url, "local", *arguments)
        wait_for(lambda: len(served.bodies) >= 8, "requests in flight", run.steering)
        run.steering.send_signal(number)
        said = run.end()
    described = run.load
    assert (described["state"], described["detail"]) == ("interrupted", "")
    assert described["scheduled"] == len(run.lines)
    assert sum("written" in line for line in run.lines) == len(served.bodies)
    assert run.outcomes == {"ok": 3, "unfinished_at_stop": described["scheduled"] - 3}
    assert run.steering.returncode == 130, said


def test_a_second_signal_does_not_wait(runs: ExitStack, tmp_path: Path) -> None:
    """Asked twice, it cuts off what is in flight, which is recorded all the same."""
    with endpoint(*hanging()) as served:
        run = start(runs, tmp_path, served.url, "processes", "-u", "4", "-r", "4", "-t", "50s", "-s", "40")
        wait_for(lambda: len(served.bodies) >= 4, "requests in flight", run.steering)
        run.steering.send_signal(signal.SIGTERM)
        wait_for(lambda: "Got SIGTERM" in next(iter(run.steering.stdout), "Got SIGTERM"), "it drains", run.steering)
        run.steering.send_signal(signal.SIGTERM)
        run.end()
    assert run.load["state"] == "interrupted"
    assert run.outcomes == {"unfinished_at_stop": 4}


def test_a_worker_is_killed(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """Every record whose write had returned is kept; load.json says that the worker is lost, and how much with it."""
    arguments = ("-u", "2", "-r", "2", "-t", "3s", "--sg-rate", "40")
    run = start(runs, tmp_path, paced, "processes", *arguments)
    wait_for(lambda: len(run.lines) >= 10, "the first records", run.steering)
    victim = next(run.directory.glob("records-1-*.jsonl"))
    os.kill(int(victim.stem.rpartition("-")[2]), signal.SIGKILL)
    kept = len(list(read_lines(victim))) - 1
    said = run.end()
    described = run.load
    assert described["state"] == "failed"
    assert "1 worker ended before the run did" in described["detail"]
    whole = schedule(OpenLoop((Segment(3, 40, 40),)), SEED)
    assert described["scheduled"] == len(whole)
    records = load_records(Bundle(run.directory))
    assert sum(int(record.id) % 2 for record in records) >= kept
    assert sum(int(record.id) % 2 == 0 for record in records) == len(whole[::2])
    assert f"{len(whole) - len(records)} of the scheduled requests" in described["detail"]
    assert run.steering.returncode == 3, said


def test_given_up(runs: ExitStack, tmp_path: Path) -> None:
    """A rule of --sg-abort-on ends the run in all workers, and load.json says which and why; failures are kept whole."""
    wrong = json_answer({"error": {"message": f"no {KEY}"}}, "500 Internal Server Error")
    with endpoint(lambda connection: connection.sendall(wrong)) as served:
        arguments = ("-u", "2", "-r", "2", "-t", "50s", "--sg-rate", "50", "--sg-abort-on", "consecutive>=6")
        run = start(runs, tmp_path, served.url, "processes", *arguments)
        said = run.end()
    described = run.load
    assert described["state"] == "aborted", said
    assert described["detail"].startswith("consecutive>=6: ")
    assert described["scheduled"] == len(run.lines)
    assert 6 <= run.outcomes["http_5xx"] <= 100
    assert run.steering.returncode == 3
    exchanges = Bundle(run.directory).exchanges
    assert {exchange.status for exchange in exchanges.values()} == {500}
    assert 3 <= len(exchanges) <= 6
    for path in run.directory.iterdir():
        assert KEY.encode() not in path.read_bytes(), path


def test_a_budget(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """No request begins once the tokens are spent; that is how such a run ends, and no failure."""
    arguments = ("-u", "1", "-t", "50s", "--sg-rate", "30", "--sg-load-budget-tokens", "400")
    run = start(runs, tmp_path, paced, "local", *arguments)
    said = run.end()
    judged(run, said)
    described = run.load
    assert (described["state"], described["detail"]) == ("finished", "the budget of 400 tokens is spent")
    spent = [line["prompt_tokens"] + line["completion_tokens"] for line in run.lines]
    assert described["scheduled"] == len(spent)
    assert sum(spent) >= 400


def test_too_many_in_flight(runs: ExitStack, tmp_path: Path) -> None:
    """An arrival for which there is no room is a record; dropped ones are no events of Locust's."""
    with endpoint(*hanging()) as served:
        arguments = ("-u", "1", "-t", "1s", "-s", "0", "--sg-rate", "50", "--sg-max-in-flight", "5")
        run = start(runs, tmp_path, served.url, "local", *arguments)
        run.end()
    described = run.load
    assert run.outcomes == {"unfinished_at_stop": 5, "dropped": described["scheduled"] - 5}
    assert len(served.bodies) == 5


def test_the_web_ui(paced: str, runs: ExitStack, tmp_path: Path) -> None:
    """Under the web UI a page of JSON shows the merged counts of all workers while it runs."""
    port = runs.enter_context(held_port())
    arguments = ("--autostart", "-u", "2", "-r", "2", f"--web-port={port}", "--web-host=127.0.0.1")
    run = start(runs, tmp_path, paced, "processes", *arguments, headless=False)

    def page() -> dict[str, Any]:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return {"requests": 0}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/streamgauge") as answer:
            shown: dict[str, Any] = json.loads(answer.read())
        return shown

    wait_for(lambda: page()["requests"] > 0, "requests on the page", run.steering)
    assert page()["outcomes"].keys() == {Outcome.OK}
    run.steering.send_signal(signal.SIGTERM)
    run.end()
    assert run.load["state"] == "finished"
    assert page()["requests"] == 0
