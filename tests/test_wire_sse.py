"""The reader of server-sent events, by the paragraphs of WHATWG HTML 9.2.5 and 9.2.6."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.sse import Event, SseReader, read_events

M = "message"

# name: (bytes, the dispatched events as (type, data, last event id))
VECTORS: dict[str, tuple[bytes, list[tuple[str, str, str]]]] = {
    # 9.2.5: stream = [bom] *event; lines end in CRLF, LF or CR
    "nothing": (b"", []),
    "bom-alone": (b"\xef\xbb\xbf", []),
    "bom-skipped": (b"\xef\xbb\xbfdata: a\n\n", [(M, "a", "")]),
    "bom-only-once": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "bom-not-later": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(M, "a", "")]),
    "bom-inside-data": (b"data: \xef\xbb\xbfa\n\n", [(M, "\ufeffa", "")]),
    "half-a-bom": (b"\xef\xbbdata: a\n\n", []),
    "lf": (b"data: a\n\n", [(M, "a", "")]),
    "cr": (b"data: a\r\r", [(M, "a", "")]),
    "crlf": (b"data: a\r\n\r\n", [(M, "a", "")]),
    "lf-then-cr": (b"data: a\n\r", [(M, "a", "")]),
    "cr-then-crlf": (b"data: a\r\r\n", [(M, "a", "")]),
    "crlf-then-lf": (b"data: a\r\n\ndata: b\n\n", [(M, "a", ""), (M, "b", "")]),
    "mixed-endings-in-one-event": (b"data: a\rdata: b\ndata: c\r\n\r", [(M, "a\nb\nc", "")]),
    "lf-cr-is-two-endings": (b"data: a\n\rdata: b\n\r", [(M, "a", ""), (M, "b", "")]),
    "crcrlf-is-two-endings": (b"data: a\r\r\ndata: b\r\r\n", [(M, "a", ""), (M, "b", "")]),
    "blank-lines-first": (b"\n\r\n\rdata: a\n\n", [(M, "a", "")]),
    "blank-lines-between": (b"data: a\n\n\n\n\ndata: b\n\n", [(M, "a", ""), (M, "b", "")]),
    # characters that Python's own splitlines takes for line ends
    "u2028-is-no-ending": ("data: a\u2028b\n\n".encode(), [(M, "a\u2028b", "")]),
    "u2029-is-no-ending": ("data: a\u2029b\n\n".encode(), [(M, "a\u2029b", "")]),
    "nel-is-no-ending": ("data: a\x85b\n\n".encode(), [(M, "a\x85b", "")]),
    "vt-and-ff-are-no-endings": (b"data: a\x0bb\x0cc\n\n", [(M, "a\x0bb\x0cc", "")]),
    "separators-are-no-endings": (b"data: a\x1cb\x1dc\x1ed\n\n", [(M, "a\x1cb\x1dc\x1ed", "")]),
    # 9.2.6: a line that starts with a colon is a comment
    "comment": (b": keep-alive\n\n", []),
    "empty-comment": (b":\n\n", []),
    "comment-within-event": (b"data: a\n: hush\ndata: b\n\n", [(M, "a\nb", "")]),
    "comment-looks-like-field": (b":data: a\n\n", []),
    # a line with a colon: name before, value after, one space removed
    "no-space": (b"data:a\n\n", [(M, "a", "")]),
    "one-space-removed": (b"data:  a \n\n", [(M, " a ", "")]),
    "tab-kept": (b"data:\ta\n\n", [(M, "\ta", "")]),
    "colon-in-value": (b"data: a: b:c\n\n", [(M, "a: b:c", "")]),
    "value-is-a-colon": (b"data::\n\n", [(M, ":", "")]),
    # a line without a colon: the whole line is the name, the value is empty
    "data-without-colon": (b"data\n\n", [(M, "", "")]),
    "two-data-without-colon": (b"data\ndata\n\n", [(M, "\n", "")]),
    "data-with-empty-value": (b"data:\n\n", [(M, "", "")]),
    "data-with-one-space": (b"data: \n\n", [(M, "", "")]),
    "empty-data-between": (b"data: a\ndata\ndata: b\n\n", [(M, "a\n\nb", "")]),
    "trailing-empty-data": (b"data: a\ndata\n\n", [(M, "a\n", "")]),
    # names are compared as they are
    "case-matters": (b"Data: a\nDATA: b\n\n", []),
    "leading-space-matters": (b" data: a\n\n", []),
    "trailing-space-matters": (b"data : a\n\n", []),
    "unknown-field-ignored": (b"foo: x\ndata: a\nbar\n\n", [(M, "a", "")]),
    # event
    "event-type": (b"event: ping\ndata: a\n\n", [("ping", "a", "")]),
    "event-after-data": (b"data: a\nevent: ping\n\n", [("ping", "a", "")]),
    "event-last-wins": (b"event: x\nevent: y\ndata: a\n\n", [("y", "a", "")]),
    "event-empty-is-message": (b"event: x\nevent\ndata: a\n\n", [(M, "a", "")]),
    "event-reset-by-dispatch": (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a", ""), (M, "b", "")]),
    "event-reset-without-data": (b"event: x\n\ndata: b\n\n", [(M, "b", "")]),
    "event-without-data": (b"event: x\n\n", []),
    # id
    "id": (b"id: 7\ndata: a\n\n", [(M, "a", "7")]),
    "id-persists": (b"id: 7\ndata: a\n\ndata: b\n\n", [(M, "a", "7"), (M, "b", "7")]),
    "id-without-data-counts": (b"id: 7\n\ndata: b\n\n", [(M, "b", "7")]),
    "id-empty-resets": (b"id: 7\ndata: a\n\nid\ndata: b\n\n", [(M, "a", "7"), (M, "b", "")]),
    "id-with-nul-ignored": (b"id: 7\nid: 8\x009\ndata: a\n\n", [(M, "a", "7")]),
    "nul-in-data-kept": (b"data: a\x00b\n\n", [(M, "a\x00b", "")]),
    # the stream is decoded as UTF-8, with replacement
    "utf8": ("data: žluť 🍀\n\n".encode(), [(M, "žluť 🍀", "")]),
    "invalid-utf8": (b"data: a\xffb\n\n", [(M, "a\ufffdb", "")]),
    "truncated-utf8-at-line-end": (b"data: \xe2\x82\n\n", [(M, "\ufffd", "")]),
    "overlong-utf8": (b"data: \xc0\x8a\n\n", [(M, "\ufffd\ufffd", "")]),
    "surrogate-in-utf8": (b"data: \xed\xa0\x80\n\n", [(M, "\ufffd\ufffd\ufffd", "")]),
    # "Once the end of the file is reached, any pending data must be discarded."
    "unfinished-event": (b"data: a\n\ndata: b\n", [(M, "a", "")]),
    "unfinished-line": (b"data: a\n\ndata: b", [(M, "a", "")]),
    "unfinished-first": (b"data: a", []),
    "done": (b"data: {}\n\ndata: [DONE]\n\n", [(M, "{}", ""), (M, "[DONE]", "")]),
}

PIECES = [b"data", b": ", b":", b" ", b"a", b"\n", b"\r", b"\r\n", b"\n\n", b"event: x", b"id: 1", b"id", b"\x00"]
PIECES += [b"retry: 5", b"\xef\xbb\xbf", b"\xef", b"\xff", "\u2028".encode(), b"data: [DONE]\n\n", b": c\n"]
STREAMS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join)


def fired(events: list[Event]) -> list[tuple[str, str, str]]:
    """What a browser would see."""
    return [(event.type, event.data, event.id) for event in events if event.dispatched]


def seen(events: list[Event], reader: SseReader) -> Any:
    """Everything but the times."""
    lines = [[(line.content, line.ending, line.start) for line in event.lines] for event in events]
    facts = [(event.data, event.type, event.id, event.number, event.dispatched, event.fields) for event in events]
    rest = [(line.content, line.ending, line.start) for line in reader.unfinished]
    return lines, facts, rest, reader.bom, reader.retry


@st.composite
def cut_streams(draw: st.DrawFn) -> list[bytes]:
    """A stream in pieces, empty ones included."""
    body = draw(STREAMS)
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=8)))
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]


@pytest.mark.parametrize(("body", "expected"), VECTORS.values(), ids=VECTORS)
def test_vector_whole(body: bytes, expected: list[tuple[str, str, str]]) -> None:
    """The stream in one piece gives the events of the standard's algorithm."""
    assert fired(read_events(body)[0]) == expected


@pytest.mark.parametrize(("body", "expected"), VECTORS.values(), ids=VECTORS)
def test_vector_byte_by_byte(body: bytes, expected: list[tuple[str, str, str]]) -> None:
    """The stream byte by byte gives the same events."""
    reader = SseReader()
    events = [event for index in range(len(body)) for event in reader.feed(body[index : index + 1])]
    assert fired(events + reader.close()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"3000", 3000),
        (b"0", 0),
        (b"007", 7),
        (b"", None),
        (b"-1", None),
        (b"+1", None),
        (b"1.5", None),
        (b"1e3", None),
        (b"10 ", None),
        (b"0x10", None),
        (b"1_000", None),
        ("²".encode(), None),
        ("٣".encode(), None),
        (b"0" * 5000 + b"5", 5),
    ],
    ids=str,
)
def test_retry(value: bytes, expected: int | None) -> None:
    """`retry` counts when it consists of ASCII digits only, and no event is needed for it."""
    assert read_events(b"retry: " + value + b"\n\n")[1].retry == expected


def test_retry_of_absurd_length_does_not_raise() -> None:
    """Ten thousand digits are more than Python reads as an integer: the reader says a very long time."""
    assert (read_events(b"retry:" + b"9" * 10_000 + b"\n\n")[1].retry or 0) >= 10**18


def test_bad_retry_keeps_the_good_one() -> None:
    """A value that is ignored does not undo the one before."""
    assert read_events(b"retry: 5\nretry: soon\n\n")[1].retry == 5


def test_undispatched_events_are_kept() -> None:
    """What a browser drops is still there for the checks: comments, unknown fields and lines."""
    events, reader = read_events(b": hello\n\nfoo: 1\n\ndata: a\n\nevent: x\ndata: b")
    assert [(event.dispatched, event.number) for event in events] == [(False, -1), (False, -1), (True, 0)]
    assert events[0].lines[0].content == b": hello"
    assert events[1].fields == [("foo", "1")]
    assert [line.content for line in reader.unfinished] == [b"event: x", b"data: b"]
    assert [line.ending for line in reader.unfinished] == [b"\n", b""]


def test_offsets_of_events() -> None:
    """An event spans from its first line's first byte to behind its blank line."""
    body = b"\xef\xbb\xbfdata: a\r\n\r\n: c\ndata: b\n\n"
    events, _ = read_events(body)
    assert [body[event.start : event.end] for event in events] == [b"data: a\r\n\r\n", b": c\ndata: b\n\n"]


def test_time_is_that_of_the_completing_read() -> None:
    """Lines and events carry the time of the read in which they ended."""
    reader = SseReader()
    events = reader.feed(b"data: a\nda", 1.0) + reader.feed(b"ta: b\n", 2.0) + reader.feed(b"\ndata: c\n\n", 3.0)
    assert [[line.time for line in event.lines] for event in events] == [[1.0, 2.0, 3.0], [3.0, 3.0]]
    assert [event.time for event in events] == [3.0, 3.0]


def test_bare_cr_ends_the_event_at_once() -> None:
    """An event closed by CR is delivered with the CR; a later LF joins that ending and makes no blank line."""
    reader = SseReader()
    (event,) = reader.feed(b"data: a\r\r", 1.0)
    assert event.time == 1.0
    (second,) = reader.feed(b"\ndata: b\n\n", 2.0)
    assert (event.lines[-1].ending, second.start, second.data) == (b"\r\n", event.end, "b")


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
def test_reading_is_linear(ending: bytes) -> None:
    """Two hundred thousand short lines take seconds at most, whatever ends them (a quadratic reader takes many minutes)."""
    start = time.process_time()
    events, _ = read_events(b"data" + ending + ending * 200_000)
    assert len(events) == 200_000
    assert time.process_time() - start < 30


@given(cut_streams())
def test_chunking_is_invisible(pieces: list[bytes]) -> None:
    """However the bytes are cut into reads: same events, same lines, same offsets."""
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.close()
    assert seen(events, reader) == seen(*read_events(b"".join(pieces)))


@given(cut_streams())
def test_nothing_is_lost(pieces: list[bytes]) -> None:
    """The lines with their endings, put together, are the stream without its byte order mark."""
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.close()
    lines = [line for event in events for line in event.lines] + reader.unfinished
    body = b"".join(pieces)
    assert b"".join(line.content + line.ending for line in lines) == body[3 if reader.bom else 0 :]
    for line in lines:
        assert body[line.start : line.end] == line.content + line.ending


@given(cut_streams())
def test_times_are_those_of_the_reads(pieces: list[bytes]) -> None:
    """A line has the time of the read that held its end, a CRLF's CR being enough."""
    reader = SseReader()
    events = [event for number, piece in enumerate(pieces) for event in reader.feed(piece, float(number))]
    events += reader.close(float(len(pieces)))
    ends = [sum(map(len, pieces[: number + 1])) for number in range(len(pieces))]
    for line in [line for event in events for line in event.lines]:
        last = line.start + len(line.content)  # the ending's first byte
        assert line.time == next(number for number, end in enumerate(ends) if last < end)
    for line in reader.unfinished:
        if not line.ending:
            assert line.time == float(len(pieces))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), min_size=1))
def test_written_data_is_read_back(lines: list[str]) -> None:
    """Data written line by line comes back joined by LF."""
    body = "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
    (event,), _ = read_events(body)
    assert event.data == "\n".join(lines)
