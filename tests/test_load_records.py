"""Records on disk: what is written is what is read, by schema, without secrets; and what is computed from them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.bundle.reader import read_lines
from streamgauge.load.recording import RecordFile
from streamgauge.load.tally import Tally
from streamgauge.load.window import Marks, Span, read_marks, steady_window
from streamgauge.metrics.record import Outcome, Record
from streamgauge.redaction import Redactor

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


def test_tally_follows_growing_files(tmp_path: Path) -> None:
    """Lines count once they are whole, in however many files; latencies are those of successes."""
    tally = Tally(tmp_path)
    tally.poll()
    assert tally.span.count == 0
    first, second = (RecordFile(tmp_path, name, Redactor()) for name in ("a", "b"))
    first.write(record(token_times=[1_100_000, 1_500_000], completion_tokens=7))
    second.write(record(outcome=Outcome.RESET))
    with (tmp_path / "records-a.jsonl").open("a") as half:
        half.write('{"id": "')
    tally.poll()
    tally.poll()
    progress = tally.progress(planned_s=9, planned_requests=3, stopping=False)
    assert (progress.requests, progress.planned_requests, progress.planned_s) == (2, 3, 9)
    assert progress.outcomes == {Outcome.OK: 1, Outcome.RESET: 1}
    assert (progress.ttft_ms, progress.e2e_ms) == ((100.0,), (500.0,))
    assert progress.tokens_per_s > 0
    first.close()
    second.close()


def span(*users: list[float]) -> Span:
    """Users who dispatched at these seconds, each request taking half a second."""
    gathered = Span()
    for number, times in enumerate(users):
        for count, time in enumerate(times):
            sent = record(id=f"w-{number}-{count}", dispatched=round(time * 1e6), closed=round((time + 0.5) * 1e6))
            gathered.add(sent, 100_000_000)
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
    """From the last user's first dispatch until the first moment when a user was to stop."""
    plan: dict[str, Any] = {"users": 2, "duration_s": 10, "requests": None, **changes}
    assert steady_window(gathered, marks, **plan) == expected


def test_marks_keep_the_first_time(tmp_path: Path) -> None:
    """Locust may say twice that it stops; the first time is when it began to."""
    marks = Marks(tmp_path / "marks.jsonl")
    for name, time in (("start", 1.0), ("stopping", 2.0), ("stopping", 3.0)):
        marks.note(name, time)
    assert marks.times == read_marks(tmp_path / "marks.jsonl") == {"start": 1.0, "stopping": 2.0}
    assert read_marks(tmp_path / "none") == {}
