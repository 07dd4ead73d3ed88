"""Records on disk: what is written is what is read, by schema, without secrets; and what is computed from them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.bundle.reader import read_lines
from streamgauge.bundle.writer import LineWriter
from streamgauge.contract.contract import load_contracts
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.loopclock import now_us
from streamgauge.load.outcome import conclude
from streamgauge.load.plan import LoadPlan, Part
from streamgauge.load.recording import RecordFile
from streamgauge.load.tally import Tally
from streamgauge.load.window import Marks, Span, read_marks, steady_window
from streamgauge.metrics.record import Outcome, Record
from streamgauge.redaction import Redactor
from streamgauge.target import Target

SECRET = "sk-0123456789abcdef"

TIME = st.integers(0, 10**13)
STAMP = st.none() | TIME
COUNT = st.none() | st.integers(0, 10**6)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)

RECORDS = st.builds(
    Record,
    id=NAME,
    target=NAME,
    operation=NAME,
    stream=st.booleans(),
    dispatched=TIME,
    closed=TIME,
    outcome=st.sampled_from(Outcome),
    scheduled=TIME,
    connect_us=st.integers(0, 10**8),
    written=STAMP,
    headers=STAMP,
    first_byte=STAMP,
    first_event=STAMP,
    first_visible=STAMP,
    token_times=st.lists(TIME, max_size=9).map(sorted),
    finish=STAMP,
    done=STAMP,
    status=st.integers(0, 599),
    detail=TEXT,
    finish_reason=TEXT,
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    max_tokens=st.integers(0, 10**6),
    body_bytes=st.integers(0, 10**9),
)


def schema(name: str) -> Draft202012Validator:
    """The validator of one kind of line or file of a bundle."""
    return Draft202012Validator({**catalog.schema("bundle"), "$ref": f"#/$defs/{name}"})


def record(**fields: Any) -> Record:
    """A record of one second."""
    base: dict[str, Any] = {
        "id": "w-0-0",
        "target": "t",
        "operation": "o",
        "stream": True,
        "dispatched": 1_000_000,
        "closed": 2_000_000,
        "outcome": Outcome.OK,
    }
    return Record(**{**base, **fields})


@given(RECORDS)
def test_round_trip(written: Record) -> None:
    """A record's line is JSON that the bundle's schema allows, and reads back as the same record."""
    line = json.loads(json.dumps(written.line()))
    schema("record").validate(line)
    assert Record.from_line(line) == written


def test_the_file_begins_with_an_anchor(tmp_path: Path) -> None:
    """The first line ties the clock to the wall; each record is on disk as soon as it is written."""
    file = RecordFile(tmp_path / "new", "0-1", Redactor())
    file.write(record())
    anchor, line = read_lines(tmp_path / "new" / "records-0-1.jsonl")
    file.close()
    schema("anchor").validate(anchor)
    schema("record").validate(line)


@pytest.mark.parametrize("before", range(260, 320, 7))
def test_secrets_are_redacted_before_texts_are_cut(tmp_path: Path, before: int) -> None:
    """Wherever a server echoes the key, no part of it reaches the disk: cutting comes after redaction."""
    file = RecordFile(tmp_path, "0", Redactor([SECRET]))
    file.write(record(detail="x" * before + SECRET, finish_reason=SECRET))
    file.close()
    text = (tmp_path / "records-0.jsonl").read_text("utf-8")
    assert SECRET[:4] not in text
    assert len(json.loads(text.splitlines()[1])["detail"]) <= 300


CLOSED = ClosedLoop(2)


def plan(loop: ClosedLoop | OpenLoop = CLOSED, **changes: Any) -> LoadPlan:
    """A plan of ten seconds."""
    contract = load_contracts(["seekr-chat"])[0]
    target = Target("t", "http://127.0.0.1:9", contract, model="m")
    return LoadPlan(target, (Part(contract.operations[0], True),), loop=loop, **{"duration_s": 10, **changes})


OPEN = OpenLoop((Segment(4, 10, 30), Segment(6, 30, 30)))


def test_tally_follows_growing_files(tmp_path: Path) -> None:
    """Lines count once they are whole, in however many files; latencies are those of successes."""
    tally = Tally(tmp_path, plan(requests=3), tmp_path / "marks.jsonl")
    tally.poll()
    assert (tally.span.count, tally.progress(stopping=False).elapsed_s) == (0, -1)
    Marks(tmp_path / "marks.jsonl").note("start", time.time() - 2)
    first, second = (RecordFile(tmp_path, name, Redactor()) for name in ("a", "b"))
    now = now_us()
    times = {"dispatched": now - 500_000, "closed": now}
    first.write(record(**times, token_times=[now - 400_000, now - 100_000], completion_tokens=7))
    second.write(record(**times, outcome=Outcome.RESET))
    with LineWriter(tmp_path / "telemetry-a.jsonl") as lines:
        lines.write({"sample": {"time": time.time(), "running": 5, "loop_lag_p99_us": 1500}})
    with (tmp_path / "records-a.jsonl").open("a") as half:
        half.write('{"id": "')
    tally.poll()
    tally.poll()
    progress = tally.progress(stopping=False)
    assert (progress.requests, progress.planned_requests, progress.planned_s) == (2, 3, 10)
    assert progress.outcomes == {Outcome.OK: 1, Outcome.RESET: 1}
    assert (progress.ttft_ms, progress.e2e_ms) == ((100.0,), (400.0,))
    assert progress.elapsed_s >= 2
    assert progress.tokens_per_s > progress.done_per_s > 0
    assert (progress.running, progress.lag_ms, progress.asked_per_s) == (5, 1.5, None)
    first.close()
    second.close()


@pytest.mark.parametrize(("ago", "asked"), [(1, 15), (2, 20), (7, 30), (11, 0)])
def test_what_rate_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ago: float, asked: float) -> None:
    """The live view says what the schedule asks for just now, along a ramp too."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    Marks(tmp_path / "marks.jsonl").note("start", now - ago)
    tally = Tally(tmp_path, plan(OPEN), tmp_path / "marks.jsonl")
    tally.poll()
    assert tally.progress(stopping=False).asked_per_s == pytest.approx(asked)


def span(*users: list[float]) -> Span:
    """Users who dispatched at these seconds, each request taking half a second."""
    gathered = Span()
    for number, times in enumerate(users):
        for count, moment in enumerate(times):
            stamps = {"dispatched": round(moment * 1e6), "closed": round((moment + 0.5) * 1e6)}
            sent = record(id=f"w-{number}-{count}", **stamps)
            gathered.add(sent.line(), 100_000_000)
    return gathered


WINDOWS: list[tuple[str, Span, dict[str, float], dict[str, Any], tuple[float, float] | None]] = [
    ("planned end", span([1, 9], [2, 8]), {"start": 100.5, "stopping": 111}, {}, (102, 110.5)),
    ("stopped earlier", span([1, 9], [2, 8]), {"start": 100.5, "stopping": 107}, {}, (102, 107)),
    ("killed", span([1, 4], [2, 5]), {"start": 100.5}, {}, (102, 105.5)),
    ("all requests sent", span([1, 4], [2, 5]), {"start": 100.5, "stopping": 106}, {"requests": 4}, (102, 105)),
    ("not all sent", span([1, 4], [2, 5]), {"start": 100.5, "stopping": 106}, {"requests": 5}, (102, 106)),
    ("a user never came", span([1, 9]), {"start": 100.5, "stopping": 111}, {}, None),
    ("nothing between", span([1], [2]), {"start": 100.5, "stopping": 101}, {}, None),
    ("no planned end", span([1, 9], [2, 8]), {"start": 100.5, "stopping": 111}, {"duration_s": 0}, (102, 111)),
    ("nothing at all", span(), {"start": 100.5}, {}, None),
    ("never started", span([1], [2]), {}, {}, None),
]


@pytest.mark.parametrize(
    ("gathered", "marks", "changes", "expected"), [case[1:] for case in WINDOWS], ids=[case[0] for case in WINDOWS]
)
def test_steady_window(
    gathered: Span, marks: dict[str, float], changes: dict[str, Any], expected: tuple[float, float] | None
) -> None:
    """From the last user's first dispatch until the first moment when a user was to stop; the warm-up is left out."""
    assert steady_window(gathered, marks, plan(**changes)) == expected


def arrivals(*moments: float) -> Span:
    """Requests of an open loop that were dispatched at these seconds."""
    gathered = Span()
    for number, moment in enumerate(moments):
        sent = record(id=str(number), dispatched=round(moment * 1e6), closed=round((moment + 0.5) * 1e6))
        gathered.add(sent.line(), 100_000_000)
    return gathered


OPEN_WINDOWS: list[tuple[str, Span, dict[str, float], dict[str, Any], tuple[float, float] | None]] = [
    ("to the end of the schedule", arrivals(1, 5, 9.9), {"start": 100.5, "stopping": 112}, {}, (101, 110.5)),
    ("warm-up", arrivals(1, 5, 9.9), {"start": 100.5, "stopping": 112}, {"warm_up_s": 3}, (103.5, 110.5)),
    ("interrupted", arrivals(1, 5), {"start": 100.5, "stopping": 106}, {}, (101, 106)),
    ("all warm-up", arrivals(1, 2), {"start": 100.5, "stopping": 103}, {"warm_up_s": 3}, None),
    ("so many requests", arrivals(1, 5), {"start": 100.5, "stopping": 107}, {"requests": 2}, (101, 105)),
]


@pytest.mark.parametrize(
    ("gathered", "marks", "changes", "expected"),
    [case[1:] for case in OPEN_WINDOWS],
    ids=[case[0] for case in OPEN_WINDOWS],
)
def test_steady_window_of_a_schedule(
    gathered: Span, marks: dict[str, float], changes: dict[str, Any], expected: tuple[float, float] | None
) -> None:
    """An open loop is on in full from its first request on, the warm-up left out, until its schedule ends."""
    assert steady_window(gathered, marks, plan(OPEN, **changes)) == expected


def test_marks_keep_the_first_time(tmp_path: Path) -> None:
    """Locust may say twice that it stops; the first time is when it began to."""
    marks = Marks(tmp_path / "marks.jsonl")
    for name, moment in (("start", 1.0), ("stopping", 2.0), ("stopping", 3.0)):
        marks.note(name, moment)
    assert marks.noted == read_marks(tmp_path / "marks.jsonl") == {"start": 1.0, "stopping": 2.0}
    assert read_marks(tmp_path / "none") == {}


CONCLUDED: list[tuple[dict[str, Any], dict[str, Any], tuple[str, int | None]]] = [
    ({"scheduled": 2}, {}, ("finished", 2)),
    ({"scheduled": 2}, {"interrupted": True}, ("interrupted", 2)),
    ({"scheduled": 2, "aborted": "errors>5%"}, {}, ("aborted", 2)),
    ({"scheduled": 2, "spent": True}, {}, ("finished", 2)),
    ({"scheduled": 3}, {}, ("failed", 3)),
    ({"scheduled": 2, "lost": 1}, {}, ("failed", 2)),
    ({"scheduled": 2}, {"failed": "Locust ended"}, ("failed", 2)),
    ({"stopping": 99.0}, {"failed": "Locust ended"}, ("failed", 0)),
]


@pytest.mark.parametrize(("marks", "known", "expected"), CONCLUDED)
def test_how_a_run_went(marks: dict[str, Any], known: dict[str, Any], expected: tuple[str, int | None]) -> None:
    """An interruption stands above a failure, that above a rule's; what is in no record is a failure of the run."""
    outcome = conclude(plan(OPEN, budget_tokens=7), arrivals(1, 2), {"start": 100.5, **marks}, **known)
    assert (outcome.state, outcome.scheduled) == expected
    assert (outcome.requests, outcome.start) == (2, 100.5)
    assert bool(outcome.detail) == (outcome.state not in ("finished", "interrupted") or "spent" in marks)


def test_a_closed_loop_has_no_schedule() -> None:
    """Nothing can be missing where the answers decide when the next request is sent."""
    outcome = conclude(plan(), span([1, 9], [2, 8]), {"start": 100.5})
    assert (outcome.state, outcome.scheduled) == ("finished", None)


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    """What a server says may hold what UTF-8 cannot: the line is JSON all the same, and says the same."""
    file = RecordFile(tmp_path, "0", Redactor())
    file.write(record(detail="so \ud800 it says", finish_reason="\udfff"))
    file.close()
    _, line = read_lines(tmp_path / "records-0.jsonl")
    assert (line["detail"], line["finish_reason"]) == ("so \ud800 it says", "\udfff")
