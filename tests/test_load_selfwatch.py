"""What the client knows about itself: how late it may have been, and what it says when it was."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gevent
import pytest

from streamgauge.bundle.writer import LineWriter
from streamgauge.contract.contract import load_contracts
from streamgauge.load.calibration import calibrate
from streamgauge.load.client import StreamClient
from streamgauge.load.loopclock import loop_clock, now_us
from streamgauge.load.pacer import running
from streamgauge.load.request import LoadRequest
from streamgauge.load.selfwatch import SelfWatch
from streamgauge.load.turns import Turns
from streamgauge.metrics.record import Outcome

OPERATIONS = {
    name: load_contracts([name])[0].operations[0] for name in ("openai-chat", "openai-completions", "seekr-chat")
}
BLOCKED_S = 0.08


def block() -> None:
    """Hold the loop up, as long JSON or a collection of garbage would."""
    time.sleep(BLOCKED_S)


def samples(path: Path) -> list[dict[str, Any]]:
    """What was written so far."""
    return [line["sample"] for text in path.read_text("utf-8").splitlines() if "sample" in (line := json.loads(text))]


def test_a_blocked_loop_shows_in_the_samples(tmp_path: Path) -> None:
    """Its lag is at least as long as it was blocked, less the timer's period and grain; an idle one lags less."""
    found = {}
    for name, work in (("idle", lambda: None), ("blocked", block)):
        path = tmp_path / name
        with LineWriter(path) as lines:
            watch = SelfWatch(lines, running=lambda: 3, dropped=lambda: 2)
            watch.start()
            gevent.sleep(0.05)
            work()
            gevent.sleep(0.05)
            watch.late(1500)
            watch.stop()
        (found[name],) = samples(path)
    assert found["blocked"]["loop_lag_max_us"] > BLOCKED_S * 1e6 - 12_000
    assert found["blocked"]["loop_lag_max_us"] > found["idle"]["loop_lag_max_us"]
    assert (found["idle"]["running"], found["idle"]["dropped"], found["idle"]["late_p99_us"]) == (3, 2, 1500)
    assert found["idle"]["rss_mb"] > 1


@pytest.mark.parametrize("stopped", [True, False])
def test_a_standstill_shows_beside_work(tmp_path: Path, stopped: bool) -> None:
    """A process that is stopped says so however much it computes otherwise; one that computes as long has not stood still."""
    path = tmp_path / "lines"
    with LineWriter(path) as lines:
        watch = SelfWatch(lines, running=lambda: 0, dropped=lambda: 0)
        watch.start()
        for step in range(40):
            until = time.thread_time() + (BLOCKED_S if step == 20 and not stopped else 0.008)
            while time.thread_time() < until:
                pass
            if step == 20 and stopped:
                block()
            gevent.sleep(0.001)
        watch.stop()
    (sample,) = samples(path)
    assert sample["cpu"] * sample["span_s"] > 2 * BLOCKED_S
    assert any(still > BLOCKED_S * 1e6 - 20_000 for still in sample["standstills_us"]) is stopped


def test_a_sample_is_written_each_second(tmp_path: Path) -> None:
    """What was measured is on disk while the run goes on, and `cpu` counts the cores that this process used."""
    path = tmp_path / "lines"
    with LineWriter(path) as lines:
        watch = SelfWatch(lines, running=lambda: 0, dropped=lambda: 0)
        watch.start()
        while not samples(path):
            sum(range(20_000))
            gevent.sleep(0)
        watch.stop()
    first = samples(path)[0]
    assert first["span_s"] >= 1
    assert 0.1 < first["cpu"] < 2
    assert first["late_p99_us"] is None


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux says how long a process waited for a core")
def test_waiting_for_a_core_shows(tmp_path: Path) -> None:
    """A process that shares its core with a busy one waits for it, by the system's own account."""
    code = (
        "import os, sys, gevent; from pathlib import Path; from streamgauge.bundle.writer import LineWriter\n"
        "from streamgauge.load.selfwatch import SelfWatch\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "me, rival = os.getpid(), os.fork()\n"
        "while not rival: os.getppid() == me or os._exit(0)\n"
        "watch = SelfWatch(LineWriter(Path(sys.argv[1])), running=lambda: 0, dropped=lambda: 0)\n"
        "watch.start(); end = __import__('time').monotonic() + 0.6\n"
        "while __import__('time').monotonic() < end: sum(range(2000)); gevent.sleep(0)\n"
        "watch.stop(); os.kill(rival, 9)"
    )
    path = tmp_path / "lines"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    (sample,) = samples(path)
    assert sample["core_wait_us"] > 0.2 * sample["span_s"] * 1e6
    assert sample["core_wait_mean_us"] > 0


def test_a_late_stamp_says_how_late_it_may_be() -> None:
    """A token that came while this process was busy has a lag that covers the delay, by the server's own clock."""
    chat = OPERATIONS["openai-chat"]
    with running() as url:
        address = url + "/v1/chat/completions"
        pace = {"ttft_ms": 60, "itl_ms": 1}
        body = {"model": "m", "messages": [], "stream": True, "max_tokens": 1, "pace": pace}
        request = LoadRequest("1", "t", chat, address, json.dumps(body).encode(), True, 1)
        client = StreamClient(address, {})
        client.open(1)
        greenlet = gevent.spawn(client.send, request)
        gevent.sleep(0.03)
        block()
        sent = greenlet.get()
        prompt = client.send(request)
        client.close()
    late = sent.record.token_times[0] - int(sent.reads[0][2].rpartition(b'"t_ns":')[2].partition(b"}")[0]) // 1000
    assert sent.record.outcome is Outcome.OK
    assert late > 30_000  # blocked from 30 to 110 ms, sent after 60 ms
    assert sent.record.first_lag_us >= late
    assert sent.record.lag_us >= sent.record.first_lag_us
    assert prompt.record.first_lag_us < sent.record.first_lag_us


def test_what_a_waiting_poll_reports_came_just_now() -> None:
    """A loop that had nothing to do cannot be late by more than it took to call us."""
    ours, theirs = socket.socketpair()
    clock, seen = loop_clock(), []
    with ours, theirs:
        watcher = gevent.get_hub().loop.io(ours.fileno(), 1)
        watcher.start(lambda: (seen.append(now_us() - clock.since), ours.recv(1)))
        gevent.sleep(0.02)
        gevent.spawn_later(0.02, theirs.send, b"x")
        gevent.sleep(0.05)
        theirs.send(b"x")
        block()
        gevent.sleep(0.01)
        watcher.stop()
        watcher.close()
    at_once, late = seen
    assert at_once < late
    assert late >= BLOCKED_S * 1e6 * 0.9


@pytest.mark.parametrize("count", [0, 10, 300])
def test_a_poll_that_was_busy_itself_has_not_waited(count: int) -> None:
    """What came while this process was busy is late, however long the loop takes to tell the system of new sockets."""
    ours, theirs = socket.socketpair()
    loop, clock, seen = gevent.get_hub().loop, loop_clock(), []
    pairs = [socket.socketpair() for _ in range(count)]
    others = [loop.io(one.fileno(), 1) for one, _ in pairs]
    with ours, theirs:
        watcher = loop.io(ours.fileno(), 1)
        watcher.start(lambda: (seen.append(now_us() - clock.since), ours.recv(1)))
        gevent.sleep(0.02)
        theirs.send(b"x")
        block()
        for other in others:
            other.start(lambda: None)
        gevent.sleep(0.01)
        for each in (watcher, *others):
            each.stop()
            each.close()
    for one, other_end in pairs:
        one.close()
        other_end.close()
    (late,) = seen
    assert late >= BLOCKED_S * 1e6 * 0.9


_MANY_AT_ONCE = """
import socket, sys, time, gevent
from streamgauge.load.loopclock import loop_clock, make_room, now_us
if sys.argv[1] == "room": make_room()
clock, loop, late = loop_clock(), gevent.get_hub().loop, []
pairs = [socket.socketpair() for _ in range(400)]
def look(ours): late.append(now_us() - clock.since); ours.recv(1)
watchers = [loop.io(ours.fileno(), 1) for ours, _ in pairs]
for watcher, (ours, _) in zip(watchers, pairs): watcher.start(look, ours)
gevent.sleep(0.02)
for _, theirs in pairs: theirs.send(b"x")
time.sleep(0.08)
gevent.sleep(0.02)
print(len(late), sum(each < 72_000 for each in late))
"""


@pytest.mark.parametrize("room", ["room", "none"])
def test_all_that_came_while_it_was_busy_is_late(room: str) -> None:
    """However many sockets are ready at once. Without room for them the loop sees 64; the others seem to be in time."""
    done = subprocess.run(
        [sys.executable, "-c", _MANY_AT_ONCE, room], check=True, capture_output=True, text=True, timeout=60
    )
    seen, in_time = map(int, done.stdout.split())
    assert seen == 400
    assert (in_time == 0) is (room == "room")


def test_turns_are_given_in_order_with_a_look_at_the_sockets_between() -> None:
    """Three greenlets have work to do; what arrives after the first is seen before the third."""
    ours, theirs = socket.socketpair()
    seen: list[str] = []
    with ours, theirs:
        watcher = gevent.get_hub().loop.io(ours.fileno(), 1)
        watcher.start(lambda: (seen.append("arrival"), ours.recv(1)))
        turns = Turns()

        def work(name: str) -> None:
            turns.wait()
            seen.append(name)
            theirs.send(b"x")

        gevent.joinall([gevent.spawn(work, name) for name in "abc"])
        gevent.sleep(0.01)
        watcher.stop()
        watcher.close()
    assert seen == ["a", "arrival", "b", "arrival", "c", "arrival"]


def test_who_is_killed_gives_up_its_turn() -> None:
    """The others go on."""
    turns = Turns()
    greenlets = [gevent.spawn(turns.wait) for _ in range(3)]
    gevent.sleep(0)
    greenlets[1].kill()
    gevent.joinall([greenlets[0], greenlets[2]], timeout=5, raise_error=True)
    assert all(greenlet.ready() for greenlet in greenlets)


@pytest.mark.parametrize("name", OPERATIONS)
def test_calibration(name: str) -> None:
    """Streams of known times are read whole, and every stamp of theirs is compared: late ones, never early ones."""
    with running() as url:
        line = calibrate(url, OPERATIONS[name], streams=40, phase="before")["calibration"]
    assert (line["phase"], line["streams"], line["events"]) == ("before", 40, 360)
    assert (line["ttft_error_us"]["n"], line["gap_error_us"]["n"]) == (40, 320)
    assert 0 <= line["ttft_error_us"]["p50"] <= line["ttft_error_us"]["p99"] <= line["ttft_error_us"]["max"]


def test_calibration_against_nobody() -> None:
    """Without a single whole stream nothing is known, and nothing is claimed."""
    with running() as url:
        pass
    line = calibrate(url, OPERATIONS["openai-chat"], streams=2, phase="after")["calibration"]
    assert line["ttft_error_us"] == {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}


def test_calibration_shows_a_slow_client() -> None:
    """A client that is held up reports the error that this makes."""
    with running() as url:
        blocker = gevent.spawn(lambda: [(block(), gevent.sleep(0.001)) for _ in range(8)])
        line = calibrate(url, OPERATIONS["openai-chat"], streams=4, phase="before")["calibration"]
        blocker.kill()
    assert line["gap_error_us"]["max"] > BLOCKED_S * 1e6 / 4
