"""What the client knows about itself: how late it may have been, and what it says when it was."""

import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest
from load_client import FINISH, WAIT_S, WORD, ask
from load_endpoint import DONE, STREAM_HEAD, chunked, endpoint, held_port

from streamgauge.bundle.writer import LineWriter
from streamgauge.contract.contract import load_contracts
from streamgauge.load import connection, loopclock
from streamgauge.load.calibration import calibrate
from streamgauge.load.client import StreamClient
from streamgauge.load.loopclock import loop_clock, now_us, wall_offset_us
from streamgauge.load.pacer import running
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


class Machine:
    """
    The clocks of a machine that stands still only when it is told to: time passes as this thread computes, and by leaps.

    Stands in the place of the module `time` where its readings decide, so that no busy machine decides otherwise.
    """

    def __init__(self) -> None:
        self._leaps_ns = time.monotonic_ns() - time.thread_time_ns()
        self._next_ns = 0

    def leap(self, seconds: float) -> None:
        """So much time passes at once."""
        self._leaps_ns += round(seconds * 1e9)

    def leap_behind_the_next_look(self, seconds: float) -> None:
        """So much time passes once somebody has read the clock."""
        self._next_ns = round(seconds * 1e9)

    def monotonic_ns(self) -> int:
        """See :func:`time.monotonic_ns`."""
        now_ns = self._leaps_ns + time.thread_time_ns()
        self._leaps_ns, self._next_ns = self._leaps_ns + self._next_ns, 0
        return now_ns

    def thread_time_ns(self) -> int:
        """See :func:`time.thread_time_ns`."""
        return time.thread_time_ns()


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Such a machine, by whose clocks the loop's clock and all stamps go."""
    with pytest.MonkeyPatch.context() as patch:
        found = Machine()
        for module in (loopclock, connection):
            patch.setattr(module, "time", found)
        yield found
    gevent.sleep(0.001)  # a look at the sockets, and the loop's clock is right again


def samples(path: Path) -> list[dict[str, Any]]:
    """What was written so far."""
    return [line["sample"] for text in path.read_text("utf-8").splitlines() if "sample" in (line := json.loads(text))]


@contextlib.contextmanager
def watching(folder: Path) -> Iterator[Path]:
    """A watch that goes on meanwhile; the file that it writes."""
    path = folder / "lines"
    with LineWriter(path) as lines:
        watch = SelfWatch(lines, running=lambda: 0, dropped=lambda: 0)
        watch.start()
        yield path
        watch.stop()


def test_a_blocked_loop_shows_in_the_samples(tmp_path: Path) -> None:
    """Its lag is at least as long as it was blocked, less the timer's period and grain."""
    path = tmp_path / "lines"
    with LineWriter(path) as lines:
        watch = SelfWatch(lines, running=lambda: 3, dropped=lambda: 2)
        watch.start()
        gevent.sleep(0.02)
        block()
        gevent.sleep(0.02)
        watch.late(1500)
        watch.stop()
    found = samples(path)
    assert max(sample["loop_lag_max_us"] for sample in found) > BLOCKED_S * 1e6 - 12_000
    assert (found[-1]["running"], found[-1]["dropped"], found[-1]["late_p99_us"]) == (3, 2, 1500)
    assert found[-1]["rss_mb"] > 1


@pytest.mark.parametrize("leap_s", [0, BLOCKED_S])
def test_the_lag_is_what_goes_beyond_the_period(tmp_path: Path, machine: Machine, leap_s: float) -> None:
    """A loop that is never late has no lag, and one that is has so much."""
    with watching(tmp_path) as path:
        gevent.sleep(0.02)
        machine.leap(leap_s)
        gevent.sleep(0.02)
    (sample,) = samples(path)
    assert sample["loop_lag_max_us"] == pytest.approx(max(leap_s * 1e6 - 11_000, 0), abs=10_000)


def test_a_standstill_shows_beside_work(tmp_path: Path) -> None:
    """A process that is stopped says so however much it computes otherwise."""
    with watching(tmp_path) as path:
        for step in range(20):
            compute(0.008)
            if step == 10:
                block()
            gevent.sleep(0.001)
    found = samples(path)
    assert sum(sample["cpu"] * sample["span_s"] for sample in found) > 1.5 * BLOCKED_S
    assert any(still > BLOCKED_S * 1e6 - 20_000 for sample in found for still in sample["standstills_us"])


@pytest.mark.parametrize("stopped", [True, False])
def test_to_compute_is_not_to_stand_still(tmp_path: Path, machine: Machine, stopped: bool) -> None:
    """One that computes for as long as another one is stopped is as late, and has not stood still."""
    with watching(tmp_path) as path:
        gevent.sleep(0.02)
        if stopped:
            machine.leap(BLOCKED_S)
        else:
            compute(BLOCKED_S)
        gevent.sleep(0.02)
    (sample,) = samples(path)
    assert sample["loop_lag_max_us"] > BLOCKED_S * 1e6 - 20_000
    assert [still > BLOCKED_S * 1e6 - 20_000 for still in sample["standstills_us"]] == [True] * stopped


def compute(seconds: float) -> None:
    """Use the processor for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_sample_is_written_each_second(tmp_path: Path) -> None:
    """What was measured is on disk while the run goes on, and `cpu` counts the cores that this process used."""
    path = tmp_path / "lines"
    with LineWriter(path) as lines:
        watch = SelfWatch(lines, running=lambda: 0, dropped=lambda: 0)
        before = time.process_time()
        watch.start()
        within = time.process_time()
        while not samples(path):
            sum(range(20_000))
            gevent.sleep(0)
        within = time.process_time() - within
        watch.stop()
        around = time.process_time() - before
    found = samples(path)
    assert found[0]["span_s"] >= 1
    grain = 0.005 * sum(sample["span_s"] for sample in found)  # `cpu` is told to a thousandth
    assert within - grain <= sum(sample["cpu"] * sample["span_s"] for sample in found) <= around + grain
    assert found[0]["late_p99_us"] is None


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
        "waited = lambda: int(Path('/proc/self/schedstat').read_text().split()[1])\n"
        "watch.start(); begun = waited()\n"
        "while waited() < begun + 200_000_000: sum(range(2000)); gevent.sleep(0)\n"
        "watch.stop(); os.kill(rival, 9)"
    )
    path = tmp_path / "lines"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    found = samples(path)
    assert sum(sample["core_wait_us"] for sample in found) >= 200_000
    assert any(sample["core_wait_mean_us"] > 0 for sample in found)


def test_a_late_stamp_says_how_late_it_may_be(machine: Machine) -> None:
    """A token that came while this process was busy has a lag that covers the delay."""
    go, gone = threading.Event(), threading.Event()

    def on_demand(connection: socket.socket) -> None:
        assert go.wait(WAIT_S)
        connection.sendall(STREAM_HEAD + chunked(WORD, FINISH, DONE))
        gone.set()

    with endpoint(on_demand) as served:
        client = StreamClient(served.url, {})
        client.open(1)
        greenlet = gevent.spawn(client.send, ask(served.url))
        with gevent.Timeout(WAIT_S):
            while not served.bodies:
                gevent.sleep(0.001)
        before = now_us()
        go.set()
        assert gone.wait(WAIT_S)  # nothing else runs in this thread meanwhile
        machine.leap(BLOCKED_S)
        record = greenlet.get().record
        client.close()
    assert record.outcome is Outcome.OK
    late = record.token_times[0] - before
    assert late >= BLOCKED_S * 1e6
    assert record.lag_us >= record.first_lag_us >= late


def test_what_a_waiting_poll_reports_came_just_now(machine: Machine) -> None:
    """A loop that had nothing to do cannot be late by more than it took to call us."""
    ours, theirs = socket.socketpair()
    clock, seen = loop_clock(), []
    with ours, theirs:
        watcher = gevent.get_hub().loop.io(ours.fileno(), 1)
        watcher.start(lambda: (seen.append(now_us() - clock.since), ours.recv(1)))
        gevent.sleep(0.001)
        theirs.send(b"x")
        machine.leap_behind_the_next_look(BLOCKED_S)  # that of the loop, before it waits
        gevent.sleep(0.001)
        theirs.send(b"x")
        machine.leap(BLOCKED_S)
        gevent.sleep(0.001)
        watcher.stop()
        watcher.close()
    at_once, late = seen
    assert at_once < 0.1 * BLOCKED_S * 1e6
    assert late >= BLOCKED_S * 1e6


def test_how_far_the_wall_clock_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stands still between two looks at the clocks knows it all the same, to the microsecond."""
    stands_still = itertools.cycle([True] * 5 + [False] * 2)  # the seventh reading is a good one

    class Clocks:
        now_ns = 5_000_000_000

        def monotonic_ns(self) -> int:
            self.now_ns += 100
            return self.now_ns

        def time(self) -> float:
            self.now_ns += 50_000_000 * next(stands_still)
            wall = self.now_ns / 1e9 + 1_000_000
            self.now_ns += 30_000_000 * next(stands_still)
            return wall

    monkeypatch.setattr(loopclock, "time", Clocks())
    assert wall_offset_us() == pytest.approx(1_000_000_000_000, abs=1)


@pytest.mark.parametrize("count", [0, 10, 300])
def test_a_poll_that_was_busy_itself_has_not_waited(machine: Machine, count: int) -> None:
    """What came while this process was busy is late, however long the loop takes to tell the system of new sockets."""
    ours, theirs = socket.socketpair()
    loop, clock, seen = gevent.get_hub().loop, loop_clock(), []
    pairs = [socket.socketpair() for _ in range(count)]
    others = [loop.io(one.fileno(), 1) for one, _ in pairs]
    with ours, theirs:
        watcher = loop.io(ours.fileno(), 1)
        watcher.start(lambda: (seen.append(now_us() - clock.since), ours.recv(1)))
        gevent.sleep(0.001)
        theirs.send(b"x")
        machine.leap(BLOCKED_S)
        for other in others:
            other.start(lambda: None)
        gevent.sleep(0.001)
        for each in (watcher, *others):
            each.stop()
            each.close()
    for one, other_end in pairs:
        one.close()
        other_end.close()
    (late,) = seen
    assert late >= BLOCKED_S * 1e6


_MANY_AT_ONCE = """
import socket, sys, time, gevent
from streamgauge.load import loopclock
from streamgauge.load.loopclock import loop_clock, make_room, now_us
class Machine:  # see above
    leaps_ns = 0
    def monotonic_ns(self): return time.thread_time_ns() + self.leaps_ns
    thread_time_ns = time.thread_time_ns
loopclock.time = Machine()
if sys.argv[1] == "room": make_room()
clock, loop, late = loop_clock(), gevent.get_hub().loop, []
pairs = [socket.socketpair() for _ in range(400)]
def look(ours): late.append(now_us() - clock.since); ours.recv(1)
watchers = [loop.io(ours.fileno(), 1) for ours, _ in pairs]
for watcher, (ours, _) in zip(watchers, pairs): watcher.start(look, ours)
gevent.sleep(0.02)
for _, theirs in pairs: theirs.send(b"x")
loopclock.time.leaps_ns += 80_000_000
gevent.sleep(0.02)
print(len(late), sum(each < 80_000 for each in late))
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
    with held_port() as port:
        url = f"http://127.0.0.1:{port}"
        line = calibrate(url, OPERATIONS["openai-chat"], streams=2, phase="after")["calibration"]
    assert line["ttft_error_us"] == {"n": 0, "p50": None, "p90": None, "p99": None, "max": None}


def test_calibration_shows_a_slow_client() -> None:
    """A client that is held up all the time reports the error that this makes, in first tokens or between tokens."""

    def hold_up() -> None:
        while True:
            block()
            gevent.sleep(0.001)

    with running() as url:
        blocker = gevent.spawn(hold_up)
        line = calibrate(url, OPERATIONS["openai-chat"], streams=4, phase="before")["calibration"]
        blocker.kill()
    assert max(line["ttft_error_us"]["max"], line["gap_error_us"]["max"]) > BLOCKED_S * 1e6 / 4
