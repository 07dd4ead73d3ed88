"""One process's part of a run, without Locust: what it sends, writes, and when it is over."""

import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import gevent
import pytest
from load_endpoint import DONE, chunk, endpoint, json_answer, stream

from streamgauge.bundle.layout import META
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.bundle.writer import write_whole
from streamgauge.contract.contract import load_contracts
from streamgauge.load.abort import AbortRule
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.dispatch import Share
from streamgauge.load.examples import EXAMPLES
from streamgauge.load.plan import LoadPlan, Part
from streamgauge.load.sender import Sender
from streamgauge.metrics.record import Judged, Record
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending

KEY = "a-key-of-these-tests-0123"
RIGHT = stream(chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, finish="stop"), DONE)
OPEN = OpenLoop((Segment(0.1, 400, 400),), "constant")
NOBODY = "http://127.0.0.1:1"
"""Nothing is sent there."""


class Noted:
    """A sender, and what it told."""

    def __init__(self, url: str, directory: Path, loop: ClosedLoop | OpenLoop, **changes: Any) -> None:
        contract = load_contracts(["seekr-chat"])[0]
        target = Target("t", url, contract, model="m", key=KEY)
        share, drain_s = changes.pop("share", Share()), changes.pop("drain_s", 5.0)
        plan = LoadPlan(target, (Part(contract.operations[0], True),), loop=loop, **{"seed": 3, **changes})
        self.told: list[Record] = []
        self.given_up = 0
        self.directory = directory
        self.sender = Sender(
            plan,
            share,
            directory,
            drain_s=drain_s,
            on_record=lambda record, context: self.told.append(record),
            on_given_up=self._note,
        )

    def _note(self) -> None:
        self.given_up += 1

    def run(self) -> list[dict[str, Any]]:
        """From now to its end; the lines of the records."""
        self.sender.begin(time.time())
        assert self.sender.over.wait(30)
        return self.lines

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What is on disk."""
        (path,) = self.directory.glob("records-*.jsonl")
        return [line for line in read_lines(path) if "anchor" not in line]


def says(wire: bytes) -> Any:
    """Writes the bytes and leaves the connection open."""
    return lambda connection: connection.sendall(wire)


def test_warm_up_by_schedule(tmp_path: Path) -> None:
    """What was to be sent within the warm-up belongs to it, however late it was sent."""
    with endpoint(says(RIGHT)) as served:
        noted = Noted(served.url, tmp_path, OPEN, warm_up_s=0.05)
        lines = noted.run()
    assert [line["id"] for line in sorted(lines, key=lambda line: line["scheduled"])] == [
        str(n) for n in range(len(lines))
    ]
    schedule = noted.sender.plan.arrivals
    assert len(lines) == len(schedule) == noted.sender.due == len(noted.told)
    assert all(line.get("warm_up", False) == (schedule[int(line["id"])] < 0.05) for line in lines)
    assert {line["warm_up"] for line in lines} == {True, False}


@pytest.mark.parametrize(("judge", "expected"), [(1.0, {"all"}), (0.0, {"ends"}), (0.5, {"all", "ends"})])
def test_which_answers_are_judged(judge: float, expected: set[str], tmp_path: Path) -> None:
    """The share is drawn by seed and id: another process with the same requests looks at the same ones."""
    with endpoint(says(RIGHT)) as served:
        first = Noted(served.url, tmp_path / "a", OPEN, judge=judge).run()
        halves = [Noted(served.url, tmp_path / str(n), OPEN, judge=judge, share=Share(n, 2)).run() for n in (0, 1)]
    how = {line["id"]: Judged(line.get("judged", "all")) for line in first}
    assert set(how.values()) == expected
    assert {line["id"]: line.get("judged", "all") for half in halves for line in half} == how


def test_stopped_before_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is over at once, nothing has been due, and who waits for a request gets none: on a machine that stands still, too."""
    moments = count(time.time(), 0.25)
    monkeypatch.setattr(time, "time", lambda: next(moments))
    noted = Noted(NOBODY, tmp_path, OPEN)
    asked = gevent.spawn(noted.sender.next_request, "0-0-0")
    noted.sender.stop()
    assert noted.sender.over.wait(10)
    assert (noted.lines, noted.sender.due, asked.get(timeout=5)) == ([], 0, None)


def test_a_share_of_nothing(tmp_path: Path) -> None:
    """A process whose share of the planned requests is none is over at once."""
    noted = Noted(NOBODY, tmp_path, ClosedLoop(2), requests=1, duration_s=600.0, share=Share(0, 2))
    assert noted.run() == []


def test_cut_off(tmp_path: Path) -> None:
    """What outlasts the patience is recorded as unfinished, and nobody is told that it was completed."""
    with endpoint(says(stream(chunk({"content": "Hi"}), end=False))) as served:
        noted = Noted(served.url, tmp_path, OpenLoop((Segment(0.1, 50, 50),), "constant"), drain_s=0.2)
        lines = noted.run()
    assert Counter(line["outcome"] for line in lines) == {"unfinished_at_stop": noted.sender.due}
    assert noted.told == []
    assert noted.sender.running == 0


def test_given_up_once(tmp_path: Path) -> None:
    """The rule that is met ends the run, and is told once, however many requests fail after it."""
    long = OpenLoop((Segment(120, 80, 80),), "constant")
    with endpoint(says(json_answer({"error": "no"}, "503 Service Unavailable"))) as served:
        noted = Noted(served.url, tmp_path, long, abort_on=(AbortRule("consecutive", 5),))
        lines = noted.run()
    assert 5 <= len(lines) == noted.sender.due < len(noted.sender.plan.arrivals)
    assert (noted.given_up, noted.sender.aborted[:14]) == (1, "consecutive>=5")


FAILURES = [
    (json_answer({"error": KEY}, "429 Too Many Requests"), "rate_limited", Ending.COMPLETE),
    (stream(chunk({"content": "Hi"}), chunk({"content": KEY})), "truncated", Ending.COMPLETE),
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 900\r\n\r\ndata: {",
        "truncated",
        Ending.CLOSED,
    ),
    (b"no HTTP at all\r\n\r\n", "truncated", Ending.MALFORMED_HTTP),
    (b"", "reset", Ending.RESET),
]


@pytest.mark.parametrize(("wire", "outcome", "ending"), FAILURES)
def test_examples_of_failures(wire: bytes, outcome: str, ending: Ending, tmp_path: Path) -> None:
    """The first failures of a kind are kept whole, as exchanges without secrets; how they ended is in them."""
    with endpoint(lambda connection: (connection.sendall(wire), connection.close())) as served:
        noted = Noted(served.url, tmp_path, OpenLoop((Segment(0.2, 40, 40),), "constant"))
        lines = noted.run()
    assert {line["outcome"] for line in lines} == {outcome}
    write_whole(tmp_path / META, {"version": 1})
    exchanges = list(Bundle(tmp_path).exchanges.values())
    assert len(exchanges) == EXAMPLES
    for exchange in exchanges:
        assert (exchange.ending, len(exchange.wire)) == (ending, len(wire))
        assert exchange.request.json["model"] == "m"
        assert exchange.operation == "seekr-chat"
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes()
