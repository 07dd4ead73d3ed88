"""Whole load runs: Locust in its own process against real servers, judged by what is on disk afterwards."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from commandline import environment, streamgauge
from jsonschema import Draft202012Validator
from load_endpoint import DONE, Answer, Served, chunk, endpoint, held_port, json_answer, stream, whole
from load_processes import have_ended, locusts, wait_for, with_all_below

from streamgauge import catalog
from streamgauge.bundle.reader import read_lines
from streamgauge.contract.contract import load_contracts
from streamgauge.errors import UsageError
from streamgauge.load import runner
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.command import LOCUSTFILE
from streamgauge.load.lengths import Lengths
from streamgauge.load.plan import LoadPlan, Part
from streamgauge.load.runner import run_load
from streamgauge.load.tally import Progress
from streamgauge.metrics.record import Outcome, Record
from streamgauge.reference.launch import running
from streamgauge.target import Target

KEY = "a-key-of-these-tests-0123"
MODEL = "streamgauge-reference"
RIGHT = stream(chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, finish="stop"), DONE)


@pytest.fixture(scope="module")
def paced() -> Iterator[str]:
    """A reference endpoint with a pace and a key of its own."""
    with running(ttft_ms=20, itl_ms=5, key=KEY) as url:
        yield url


def plan(base_url: str, *, users: int = 4, stream: bool = True, **changes: Any) -> LoadPlan:
    """A small plan for the chat operation."""
    contract = load_contracts(["seekr-chat"])[0]
    target = Target("here", base_url, contract, model=MODEL, key=KEY)
    settings: dict[str, Any] = {"duration_s": 2, "max_tokens": Lengths.constant(12), "drain_s": 9, **changes}
    return LoadPlan(target, (Part(contract.operations[0], stream),), loop=ClosedLoop(users), **settings)


def records_in(directory: Path) -> list[Record]:
    """All records, in the order of the files."""
    lines = [line for path in sorted(directory.glob("records-*.jsonl")) for line in read_lines(path)]
    return [Record.from_line(line) for line in lines if "anchor" not in line]


def load_json(directory: Path) -> dict[str, Any]:
    """The run's load.json, valid by the bundle's schema."""
    found: dict[str, Any] = json.loads((directory / "load.json").read_bytes())
    Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/load"}).validate(found)
    return found


def finished_requests(base_url: str) -> int:
    """How many requests the endpoint says it has finished."""
    with urllib.request.urlopen(f"{base_url}/metrics") as page:
        text = page.read().decode()
    return sum(int(float(value)) for value in re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", text, re.M))


def test_a_run(paced: str, tmp_path: Path) -> None:
    """What the records say is what the server counted; times have the server's pace; no secret is on disk."""
    before = finished_requests(paced)
    seen: list[Progress] = []
    outcome = run_load(plan(paced), tmp_path, on_progress=seen.append)
    found = records_in(tmp_path)
    assert (outcome.state, outcome.detail, outcome.requests) == ("finished", "", len(found))
    assert len(found) == finished_requests(paced) - before
    assert {record.outcome for record in found} == {Outcome.OK}
    assert len({record.id for record in found}) == len(found)
    assert all(record.token_times[0] - record.dispatched >= 20_000 for record in found)
    assert all(record.completion_tokens == 12 for record in found)
    assert not any(record.connect_us for record in found)
    described = load_json(tmp_path)
    assert (described["state"], described["users"], described["requests"]) == ("finished", 4, None)
    start, end = described["window"]
    assert outcome.window == (start, end)
    assert 0.5 < end - start <= 2.1
    assert [progress.requests for progress in seen] == sorted(progress.requests for progress in seen)
    assert seen[-1].outcomes[Outcome.OK] > 0
    for path in tmp_path.rglob("*"):
        assert KEY.encode() not in path.read_bytes(), path
    assert {path.name for path in tmp_path.iterdir()} >= {"load.json", "locust.log"}


def test_so_many_requests_and_whole_answers(paced: str, tmp_path: Path) -> None:
    """A run that is to end after so many requests sends exactly so many, and does not wait for its duration."""
    started = time.monotonic()
    outcome = run_load(plan(paced, duration_s=60, requests=11, stream=False), tmp_path)
    found = records_in(tmp_path)
    assert outcome.state == "finished"
    assert len(found) == 11
    assert time.monotonic() - started < 50
    assert all(record.outcome is Outcome.OK and record.token_times == [] and record.tokens == 12 for record in found)
    assert load_json(tmp_path)["stream"] is False


def test_two_workers_write_two_files(paced: str, tmp_path: Path) -> None:
    """With `--processes` each worker has a file of its own; the users and the requests are shared out."""
    outcome = run_load(plan(paced, duration_s=30, requests=9, locust_arguments=("--processes", "2")), tmp_path)
    files = sorted(tmp_path.glob("records-*.jsonl"))
    assert outcome.state == "finished", outcome.detail
    assert len(files) == 2
    assert all("anchor" in next(read_lines(path)) for path in files)
    assert len(records_in(tmp_path)) == 9
    assert outcome.window is None or outcome.window[0] < outcome.window[1]


def test_options_that_locust_does_not_take_are_wrong_use(tmp_path: Path) -> None:
    """Locust alone knows its options: what it refuses is the user's mistake, in its words, and the bundle says so, too."""
    with pytest.raises(UsageError, match="unrecognized arguments: --no-such-option"):
        run_load(plan("http://127.0.0.1:9", locust_arguments=("--no-such-option",)), tmp_path)
    assert load_json(tmp_path)["state"] == "failed"
    assert "--no-such-option" in load_json(tmp_path)["detail"]


def test_a_child_that_dies_fails_the_run(tmp_path: Path) -> None:
    """When Locust ends by itself, the run has failed, and says with what last words."""
    outcome = run_load(plan("http://127.0.0.1:9", locust_arguments=("--list",)), tmp_path)
    assert outcome.state == "failed"
    assert outcome.detail.startswith("Locust ended without a single request: ")
    assert "Available Users:" in outcome.detail
    assert load_json(tmp_path)["detail"] == outcome.detail


def test_a_refusing_port_gives_records_not_a_flood(tmp_path: Path) -> None:
    """Users pause after a refused connection; every attempt is a record."""
    with held_port() as port:
        outcome = run_load(plan(f"http://127.0.0.1:{port}", users=2, duration_s=2), tmp_path)
    found = records_in(tmp_path)
    assert outcome.state == "finished"
    assert {record.outcome for record in found} == {Outcome.REFUSED}
    assert 2 <= len(found) <= 8


def test_what_does_not_end_in_time_is_a_record(tmp_path: Path) -> None:
    """A request that outlasts the stop timeout is cut off and recorded as unfinished, with the tokens that came."""
    hanging = says(stream(chunk({"content": "Hi"}), end=False))
    with endpoint(hanging) as served:
        outcome = run_load(plan(served.url, users=2, duration_s=1, drain_s=1), tmp_path)
    found = records_in(tmp_path)
    assert outcome.state == "finished"
    assert [record.outcome for record in found] == [Outcome.UNFINISHED_AT_STOP] * 2
    assert all(len(record.token_times) == 1 for record in found)


def test_a_rate_limit_is_obeyed(tmp_path: Path) -> None:
    """After 429 a user waits as long as the server asked; the record says so, and the server's echo of the key is hidden."""
    limited = json_answer({"error": f"slow down, {KEY}"}, "429 Too Many Requests", retry_after="1")
    with endpoint(says(limited), says(RIGHT)) as served:
        run_load(plan(served.url, users=1, duration_s=20, requests=2), tmp_path)
    first, second = records_in(tmp_path)
    assert (first.outcome, second.outcome) == (Outcome.RATE_LIMITED, Outcome.OK)
    assert second.dispatched - first.closed >= 1_000_000
    assert first.detail.startswith("next request after 1 s; 429 Too Many Requests")
    assert KEY not in first.detail
    assert "authorization: " + KEY in served.heads[0].lower()


def says(wire: bytes) -> Answer:
    """Writes the bytes and leaves the connection open."""
    return lambda connection: connection.sendall(wire)


def start_load(served: Served, directory: Path) -> subprocess.Popen[str]:
    """`streamgauge load` as a user starts it, against a server that never ends an answer after the preflight's."""
    command = [sys.executable, "-m", "streamgauge", "load", "--base-url", served.url, "--spec", "seekr-chat"]
    options = ["--model", "m", "--users", "2", "--duration", "50s", "--output", str(directory)]
    return subprocess.Popen(
        [*command, *options],
        env=environment(STREAMGAUGE_API_KEY=KEY),
        cwd=directory.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    """A signal ends the run with its records kept; a second one does not wait for what hangs; no process stays behind."""
    hanging = says(stream(chunk({"content": "Hi"}), end=False))
    directory = tmp_path / "out"
    answers = (says(json_answer(whole())), says(RIGHT), says(RIGHT), hanging)
    with endpoint(*answers) as served, start_load(served, directory) as process:
        wait_for(lambda: len(served.bodies) >= 5, "two requests in flight", process)
        started = with_all_below(locusts(process.pid))
        process.send_signal(number)
        log = directory / "locust.log"
        wait_for(lambda: "Got SIGTERM" in log.read_text("utf-8"), "Locust drains", process)
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert load_json(directory)["state"] == "interrupted"
    outcomes = [record.outcome for record in records_in(directory)]
    assert outcomes == [Outcome.OK] * 2 + [Outcome.UNFINISHED_AT_STOP] * 2
    assert len(started) >= 2
    wait_for(lambda: have_ended(started), "the end of Locust and of the calibration's server")
    assert KEY not in said


def test_whoever_sends_sigterm_is_in_a_hurry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once is enough: after a short while what hangs is cut off, and recorded."""
    assert threading.current_thread() is threading.main_thread()
    monkeypatch.setattr(runner, "_GRACE_AFTER_SIGTERM_S", 0.3)
    asked = []

    def end(progress: Progress) -> None:
        if len(served.bodies) == 2 and not asked:
            asked.append(time.monotonic())
            signal.raise_signal(signal.SIGTERM)

    with endpoint(says(stream(chunk({"content": "Hi"}), end=False))) as served:
        outcome = run_load(plan(served.url, users=2, duration_s=50, drain_s=40), tmp_path, on_progress=end)
        assert time.monotonic() - asked[0] < 40
    assert outcome.state == "interrupted"
    assert [record.outcome for record in records_in(tmp_path)] == [Outcome.UNFINISHED_AT_STOP] * 2


def test_a_drained_interrupt_keeps_what_was_in_flight(paced: str, tmp_path: Path) -> None:
    """After one Ctrl-C the requests in flight come to their end; nothing new begins."""
    directory = tmp_path / "out"
    command = [sys.executable, "-m", "streamgauge", "load", "--base-url", paced, "--spec", "seekr-chat", "--users", "3"]
    with subprocess.Popen(
        [*command, "--duration", "50s", "--max-tokens", "60", "--output", str(directory)],
        env=environment(STREAMGAUGE_API_KEY=KEY),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: len(records_in(directory)) >= 3, "the first records", process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert {record.outcome for record in records_in(directory)} == {Outcome.OK}
    described = load_json(directory)
    assert described["state"] == "interrupted"
    assert described["window"][1] - described["window"][0] < 45
    assert "interrupted" in said


def test_the_child_ends_with_its_parent(paced: str, tmp_path: Path) -> None:
    """When the parent is killed without a chance to clean up, Locust ends by itself."""
    directory = tmp_path / "out"
    command = [sys.executable, "-m", "streamgauge", "load", "--base-url", paced, "--spec", "seekr-chat", "--users", "2"]
    with subprocess.Popen(
        [*command, "--duration", "50s", "--output", str(directory), "--", "--processes", "2"],
        env=environment(STREAMGAUGE_API_KEY=KEY),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        wait_for(lambda: len(records_in(directory)) >= 2, "the first records", process)
        started = with_all_below(locusts(process.pid))
        process.kill()
    assert len(started) >= 3
    wait_for(lambda: have_ended(started), "the end of Locust")


@pytest.mark.parametrize(("number", "state"), [(signal.SIGTERM, "interrupted"), (signal.SIGKILL, "failed")])
def test_locust_itself_is_ended(number: signal.Signals, state: str, paced: str, tmp_path: Path) -> None:
    """When somebody ends Locust under us, every record whose write had returned is kept, and load.json says what is true."""
    told: list[psutil.Process] = []

    def end(progress: Progress) -> None:
        if progress.requests >= 5 and not told:  # once: asked twice, it cuts off what is in flight
            told.extend(locusts(os.getpid()))
            for process in told:
                process.send_signal(number)

    loop = OpenLoop((Segment(50, 30, 30),), "constant")
    outcome = run_load(dataclasses.replace(plan(paced, duration_s=50), loop=loop), tmp_path, on_progress=end)
    found = records_in(tmp_path)
    described = load_json(tmp_path)
    assert described["state"] == outcome.state == state
    assert {record.outcome for record in found if record.written} == {Outcome.OK}
    assert 5 <= len(found) <= described["scheduled"] < 1500
    if number == signal.SIGTERM:
        assert len(found) == described["scheduled"]
    else:
        assert "exit code -9" in described["detail"]


def test_the_command(paced: str, tmp_path: Path) -> None:
    """A run from the command line prints its figures, and leaves a bundle; files of the user's own Locust steer nothing."""
    (tmp_path / "locust.conf").write_text("users = 99\ncsv = stray\n", encoding="utf-8")
    done = streamgauge(
        *("load", "--base-url", paced, "--spec", "seekr-chat", "--users", "2", "--requests", "6", "--max-tokens", "8"),
        *("--seed", "5", "--output", "out"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=KEY,
        HOME=str(tmp_path),
        LOCUST_CSV="stray",
    )
    passed(done)
    for word in ("6 requests: 6 ok", "Time to first token", "output tokens per second", "verdict: "):
        assert word in done.stdout
    assert load_json(tmp_path / "out")["seed"] == 5
    assert {path.name for path in tmp_path.iterdir()} == {"locust.conf", "out"}


def test_plain_locust(paced: str, tmp_path: Path) -> None:
    """The locustfile runs under the plain command from an empty folder, and leaves a bundle of its own."""
    file = streamgauge("load", "--locustfile", cwd=tmp_path).stdout.strip()
    assert Path(file).samefile(LOCUSTFILE)
    done = locust(tmp_path, file, "--host", paced, "--sg-model", MODEL, "-u", "2", "-t", "1s", "-s", "9")
    passed(done)
    (directory,) = (tmp_path / "runs").iterdir()
    assert directory.name.endswith("-locust")
    assert {record.outcome for record in records_in(directory)} == {Outcome.OK}
    assert load_json(directory)["state"] == "finished"
    meta = json.loads((directory / "meta.json").read_bytes())
    Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/meta"}).validate(meta)
    assert "POST" in done.stdout + done.stderr


@pytest.mark.parametrize(("given", "users"), [((), 3), (("-u", "2"), 2)])
def test_plain_locust_starts_the_users_of_a_scenario(
    given: tuple[str, ...], users: int, paced: str, tmp_path: Path
) -> None:
    """As many as the plan says: Locust's own default, one, does not stand in its place, but its flag does."""
    (tmp_path / "load.yaml").write_text("users: 3\nrequests: 9\nmax_tokens: 4\n", encoding="utf-8")
    settings = ("--host", paced, "--sg-model", MODEL, "--sg-scenario", "load.yaml", "--sg-output", "out")
    passed(locust(tmp_path, str(LOCUSTFILE), *settings, *given, "-r", "9", "-t", "20s"))
    assert load_json(tmp_path / "out")["users"] == users
    assert len({record.id.rpartition("-")[0] for record in records_in(tmp_path / "out")}) == users


def test_the_example(paced: str, tmp_path: Path) -> None:
    """The example's users run, and only they."""
    example = Path(__file__).parents[1] / "examples" / "locustfile.py"
    settings = ("--host", paced, "--sg-model", MODEL, "--sg-requests", "8", "--sg-output", "out")
    done = locust(tmp_path, str(example), *settings, "-u", "4", "-r", "4", "-t", "20s")
    passed(done)
    assert len(records_in(tmp_path / "out")) == 8
    assert re.search(r'"Batch": 1, "Reader": 3', done.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sg-model", "m"), "streamgauge: no target: name it by Locust's own --host"),
        (("--host", "http://127.0.0.1:9"), "streamgauge: no model: name it by --sg-model"),
        (
            ("--host", "http://127.0.0.1:9", "--sg-model", "m", "--sg-spec", "none"),
            "streamgauge: none: no such document",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Plain Locust without a host or model ends at once, with one line and the exit code of wrong use."""
    done = locust(tmp_path, str(LOCUSTFILE), *arguments, "-t", "1s")
    assert done.returncode == 2
    assert sum(line.startswith(said) for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def passed(done: subprocess.CompletedProcess[str]) -> None:
    """The run passed; on a machine that is too busy for the client to know, it says just that."""
    assert done.returncode == 0 or (done.returncode == 3 and "too slow to know" in done.stdout), done


def locust(folder: Path, file: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Plain Locust, without its web UI."""
    return subprocess.run(
        [sys.executable, "-m", "locust", "-f", file, "--headless", "--only-summary", *arguments],
        env=environment(STREAMGAUGE_API_KEY=KEY),
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
