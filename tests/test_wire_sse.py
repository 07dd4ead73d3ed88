"""The reader of server-sent events, by the paragraphs of WHATWG HTML 9.2.5 and 9.2.6."""

import time
import tracemalloc
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.wire.lines import Line, NotUtf8
from streamgauge.wire.sse import LONGEST_EVENT, LONGEST_LINE, MOST_LINES, Event, Excess, SseReader, read_events

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

# The families of the web platform tests for `eventsource` (format-*), each written anew: what is to be fired, by section.
# The two that are not about bytes, format-mime-*, are judged by `http.stream-media-type`.
FAMILIES: dict[str, tuple[str, bytes, list[tuple[str, str, str]]]] = {
    "bom": (
        "9.2.5",
        b"\xef\xbb\xbfdata:one\n\n\xef\xbb\xbfdata:two\n\ndata:three\n\n",
        [(M, "one", ""), (M, "three", "")],
    ),
    "bom-2": ("9.2.5", b"\xef\xbb\xbf\xef\xbb\xbfdata:one\n\ndata:two\n\n", [(M, "two", "")]),
    "comments": (
        "9.2.6",
        b"data:1\r:\0\n:\r\ndata:2\n:" + b"long" * 2000 + b"\rdata:3\n:data:no\r\n\n",
        [(M, "1\n2\n3", "")],
    ),
    "data-empty": ("9.2.6", b"data:\n\ndata\ndata\n\ndata:x\n\n", [(M, "", ""), (M, "\n", ""), (M, "x", "")]),
    "data-before-final-empty-line": ("9.2.6", b"retry:1000\ndata:one\n\nid:x\ndata:two", [(M, "one", "")]),
    "field-data": ("9.2.6", b"data:\n\ndata\ndata\n\ndata:test\n\n", [(M, "", ""), (M, "\n", ""), (M, "test", "")]),
    "field-event": ("9.2.6", b"event:named\ndata:x\n\ndata:x\n\n", [("named", "x", ""), (M, "x", "")]),
    "field-event-empty": ("9.2.6", b"event: \ndata:data\n\n", [(M, "data", "")]),
    "field-id": ("9.2.6", "id: …\ndata:hello\n\ndata:again\n\n".encode(), [(M, "hello", "…"), (M, "again", "…")]),
    "field-id-2": ("9.2.6", b"id:1\n\ndata:a\n\nid\n\ndata:b\n\n", [(M, "a", "1"), (M, "b", "")]),
    "field-id-3": ("9.2.6", b"id:1\ndata:a\n\nid\ndata:b\n\ndata:c\n\n", [(M, "a", "1"), (M, "b", ""), (M, "c", "")]),
    "field-id-null": ("9.2.6", b"id:\0\nid:\0x\nid:x\0\ndata:a\n\n", [(M, "a", "")]),
    "field-parsing": (
        "9.2.6",
        b"data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n",
        [(M, "\0\n 2\n1\n3\n\n4", "")],
    ),
    "field-retry": ("9.2.6", b"retry:03000\ndata:x\n\n", [(M, "x", "")]),
    "field-retry-bogus": ("9.2.6", b"retry:3000\nretry:1000x\ndata:x\n\n", [(M, "x", "")]),
    "field-retry-empty": ("9.2.6", b"retry\ndata:test\n\n", [(M, "test", "")]),
    "field-unknown": ("9.2.6", b"data:test\n data\ndata\nfoobar:xxx\njust text\n:ok\n\n", [(M, "test\n", "")]),
    "leading-space": ("9.2.6", b"data:\ttest\rdata: \ndata:test\n\n", [(M, "\ttest\n\ntest", "")]),
    "newlines": ("9.2.5", b"data:test\r\ndata\ndata:test\r\n\r", [(M, "test\n\ntest", "")]),
    "null-character": ("9.2.6", b"data:\0\n\n\n\n", [(M, "\0", "")]),
    "utf-8": ("9.2.5", "data:ok…\n\n".encode(), [(M, "ok…", "")]),
}

PIECES = [b"data", b": ", b":", b" ", b"a", b"\n", b"\r", b"\r\n", b"\n\n", b"event: x", b"id: 1", b"id", b"\x00"]
PIECES += [b"data: {}\n\n", b"data: x\n\ndata: y\n\n", "data: ž\n\n".encode(), b"data: \xff\n\n"]
PIECES += [b"retry: 5", b"\xef\xbb\xbf", b"\xef", b"\xff", "\u2028".encode(), b"data: [DONE]\n\n", b": c\n"]
STREAMS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join)


def fired(events: list[Event]) -> list[tuple[str, str, str]]:
    """What a browser would see."""
    return [(event.type, event.data, event.id) for event in events if event.dispatched]


def cut(body: bytes, size: int) -> Iterable[bytes]:
    """The body in pieces of this size."""
    return (body[start : start + size] for start in range(0, len(body), size))


def seen(events: list[Event], reader: SseReader) -> Any:
    """Everything but the times."""
    facts: list[Any]
    lines = [[(line.content, line.ending, line.start, line.lost) for line in event.lines] for event in events]
    facts = [(event.data, event.type, event.id, event.number, event.dispatched, event.fields) for event in events]
    facts += [(event.start, event.end, event.lost, event.excess, event.not_utf8) for event in events]
    facts += [(reader.excess, reader.not_utf8)]
    rest = [(line.content, line.ending, line.start, line.lost) for line in reader.unfinished]
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
    reader.close()
    assert fired(events) == expected


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [10_000, 7, 1])
def test_family_of_the_web_platform_tests(family: str, size: int) -> None:
    """Each `format-*` family gives what a browser fires (9.2.5 and 9.2.6 as named in the table), in pieces of any size."""
    _, body, expected = FAMILIES[family]
    reader = SseReader()
    events = [event for piece in cut(body, size) for event in reader.feed(piece)]
    reader.close()
    assert fired(events) == expected


@pytest.mark.parametrize(
    ("family", "expected"), [("field-retry", 3000), ("field-retry-bogus", 3000), ("field-retry-empty", None)]
)
def test_retry_of_the_web_platform_tests(family: str, expected: int | None) -> None:
    """Only a value of digits alone sets the time (9.2.6)."""
    assert read_events(FAMILIES[family][1])[1].retry == expected


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


@example([b"data: a\r\r", b"data: b\n\n", b"\n"])
@given(cut_streams())
def test_chunking_is_invisible(pieces: list[bytes]) -> None:
    """However the bytes are cut into reads: same events, same lines, same offsets."""
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    reader.close()
    assert seen(events, reader) == seen(*read_events(b"".join(pieces)))


@given(cut_streams())
def test_nothing_is_lost(pieces: list[bytes]) -> None:
    """The lines with their endings, put together, are the stream without its byte order mark."""
    reader = SseReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    reader.close()
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
    reader.close(float(len(pieces)))
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


# --- UTF-8, by byte ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "number", "start", "end"),
    [
        (b"data: a\n\ndata: b\xffc\n\n", 1, 16, 17),
        (b"\xef\xbb\xbfdata: a\n\n: \xe2\x82\n\n", 1, 14, 16),
        (b"data: \xc0\x8a\n\n", 0, 6, 7),
        (b"\xff: x\r\rdata: a\n\n", 0, 0, 1),
    ],
    ids=["data", "comment-behind-bom", "overlong", "field-name"],
)
def test_bytes_that_are_not_utf8_have_an_offset(body: bytes, number: int, start: int, end: int) -> None:
    """Streams must be UTF-8 (9.2.5): the event and the reader name the first bytes that are not."""
    events, reader = read_events(body)
    assert reader.not_utf8 is not None and reader.not_utf8[:2] == (start, end)
    assert [event.not_utf8 for event in events] == [
        reader.not_utf8 if place == number else None for place in range(len(events))
    ]


def test_bad_bytes_of_the_unfinished_rest_are_known() -> None:
    """A character cut in two by the end of the stream is named as such, so that a check can tell a cut from a fault."""
    reader = read_events(b"data: a\n\ndata: \xe2\x82")[1]
    assert reader.not_utf8 == NotUtf8(15, 17, "unexpected end of data")


@given(cut_streams())
def test_first_bad_byte_is_that_of_the_whole_body(pieces: list[bytes]) -> None:
    """Reading line by line finds the same first bad bytes as decoding the whole body at once."""
    reader = SseReader()
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    body = b"".join(pieces)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as problem:
        assert reader.not_utf8 is not None and reader.not_utf8.start == problem.start
    else:
        assert reader.not_utf8 is None


# --- limits -----------------------------------------------------------------------------------------------------------


def test_long_line_keeps_its_beginning_and_its_size() -> None:
    """Of a line beyond the limit the beginning is kept, the rest counted: offsets behind it stay true."""
    body = b"data: a\n\ndata: " + b"x" * 100 + b"\r\n\r\ndata: b\n\n"
    reader = SseReader(longest_line=20)
    events = [event for piece in cut(body, 7) for event in reader.feed(piece)]
    line = events[1].lines[0]
    assert line == Line(b"data: " + b"x" * 14, b"\r\n", 9, 0.0, lost=86)
    assert (line.size, body[line.start : line.end]) == (106, b"data: " + b"x" * 100 + b"\r\n")
    assert [body[event.start : event.end][:7] for event in events] == [b"data: a", b"data: x", b"data: b"]
    assert reader.excess == events[1].excess == Excess("LONGEST_LINE", 20, 29)
    assert [event.excess for event in events if event is not events[1]] == [None, None]


def test_long_event_keeps_its_first_lines_and_its_end() -> None:
    """Lines beyond the event's limit are counted; the blank line that ends it is kept, and so is the next event."""
    body = b"data: 1\n" * 10 + b"\ndata: b\n\n"
    reader = SseReader(longest_event=30)
    events = reader.feed(body)
    assert (len(events[0].lines), events[0].lost, events[0].end) == (5, 6, 81)
    assert (events[0].data, reader.excess) == ("1\n1\n1\n1", Excess("LONGEST_EVENT", 30, 32))
    assert (events[1].data, events[1].excess) == ("b", None)


def test_many_lines_are_counted_not_kept() -> None:
    """An event of very many short lines keeps as many as the limit says, and the blank one."""
    reader = SseReader(most_lines=3)
    (event,) = reader.feed(b":\n" * 5 + b"\n")
    assert ([line.content for line in event.lines], event.lost) == ([b":", b":", b":", b""], 2)
    assert event.excess == Excess("MOST_LINES", 3, 6)
    assert str(event.excess) == "not kept from byte 6 on: more than MOST_LINES (3)"


def test_limits_count_for_the_unfinished_rest() -> None:
    """What no blank line closed is bounded too, and says so."""
    reader = SseReader(longest_line=4)
    reader.feed(b"data: a")
    reader.close()
    assert [(line.content, line.lost, line.end) for line in reader.unfinished] == [(b"data", 3, 7)]
    assert reader.excess == Excess("LONGEST_LINE", 4, 4)


def test_character_cut_by_a_limit_is_no_fault_of_the_stream() -> None:
    """Where our limit falls within a character, the bytes before it are not called bad."""
    reader = SseReader(longest_line=7)
    (event,) = reader.feed("data: …\n\n".encode())
    assert (event.not_utf8, reader.not_utf8, event.lines[0].lost) == (None, None, 2)


def test_id_and_retry_of_a_cut_line_do_not_count() -> None:
    """Nobody can tell what the whole of them would have said."""
    reader = SseReader(longest_line=8)
    (event,) = reader.feed(b"id: 12345678\nretry: 12345678\ndata: a\n\n")
    assert (event.id, reader.retry, event.data) == ("", None, "a")


@example([b"data: x\n\ndata: y\n\n", b"data: z\n\n"], 9, 1, 1)
@given(cut_streams(), st.integers(1, 9), st.integers(1, 20), st.integers(1, 3))
def test_limits_do_not_depend_on_the_chunking(pieces: list[bytes], line: int, event: int, lines: int) -> None:
    """Under any limits: chunking is invisible, offsets are true, nothing raises, and what is missing is said."""

    def read(parts: list[bytes]) -> tuple[list[Event], SseReader]:
        reader = SseReader(longest_line=line, longest_event=event, most_lines=lines)
        events = [found for part in parts for found in reader.feed(part)]
        reader.close()
        return events, reader

    body = b"".join(pieces)
    events, reader = read(pieces)
    assert seen(events, reader) == seen(*read([body]))
    kept = [found for one in events for found in one.lines] + reader.unfinished
    for found in kept:
        assert body[found.start :].startswith(found.content)
        assert body[found.end - len(found.ending) : found.end] == found.ending
        assert len(found.content) <= line
    whole = read_events(body)[1]
    complete = sum(found.end - found.start for found in kept) + 3 * reader.bom == len(body)
    assert (reader.excess is None) == (complete and not any(found.lost for found in kept))
    assert (whole.bom, whole.excess) == (reader.bom, None)


@pytest.mark.parametrize(
    ("piece", "limit"),
    [
        (b"x" * 2**16, "LONGEST_LINE"),
        (b"data: " + b"x" * 2**12 + b"\n", "LONGEST_EVENT"),
        (b":\n" * 2**12, "MOST_LINES"),
    ],
    ids=["one-line", "long-event", "short-lines"],
)
def test_endless_event_takes_bounded_memory(piece: bytes, limit: str) -> None:
    """64 MiB that never end an event leave less than 1 MiB behind when the limits are small (512 KiB of the shortest lines)."""
    reader = SseReader(longest_line=2**16 - 1, longest_event=2**17, most_lines=2**10)
    size = 2**19 if limit == "MOST_LINES" else 2**26
    tracemalloc.start()
    try:
        for _ in range(size // len(piece)):
            assert reader.feed(piece) == []
        reader.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.excess is not None and reader.excess.limit == limit
    assert peak < 2**20
    assert sum(len(line.content) for line in reader.unfinished) <= 2**17


def test_default_limits_bound_the_memory() -> None:
    """The default limits hold for a line of four times the limit: little more than the limit is ever in memory."""
    reader = SseReader()
    piece = b"x" * 2**20
    tracemalloc.start()
    try:
        for _ in range(4 * LONGEST_LINE // len(piece)):
            reader.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (event,) = reader.feed(b"\n\n")
    assert (event.lines[0].size, len(event.lines[0].content)) == (4 * LONGEST_LINE, LONGEST_LINE)
    assert peak < 2 * LONGEST_LINE
    assert LONGEST_LINE < LONGEST_EVENT and MOST_LINES < LONGEST_EVENT


# --- beside httpx-sse -------------------------------------------------------------------------------------------------


class _Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Any:
        return iter(self._pieces)


def by_httpx_sse(pieces: list[bytes]) -> list[tuple[str, str, str]]:
    """The events that httpx-sse reads from the pieces."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Pieces(pieces))
    return [(event.event, event.data, event.id) for event in EventSource(response).iter_sse()]


# Without what it is known to get wrong (see the table below): a BOM at the start, and events without data.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=6)
FIELDS = st.one_of(
    TEXT.map(lambda text: f"data: {text}"),
    TEXT.map(lambda text: f"data:{text}"),
    TEXT.map(lambda text: f": {text}"),
    TEXT.map(lambda text: f"event: {text}"),
    TEXT.map(lambda text: f"id:{text}"),
    st.integers(0, 9999).map(lambda time: f"retry: {time}"),
    st.sampled_from(["data", "event", "id", "retry", "Data: x", " data: y", "data : z", "x: y"]),
)


@st.composite
def right_for_both(draw: st.DrawFn) -> list[bytes]:
    """Pieces of a stream that httpx-sse reads rightly: each event has data, and ends as its lines do."""
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        ending = draw(st.sampled_from(["\n", "\r\n", "\r"]))
        lines = [*draw(st.lists(FIELDS, max_size=3)), "data: " + draw(TEXT), *draw(st.lists(FIELDS, max_size=2)), ""]
        parts += [line + ending for line in lines]
    body = "".join(parts).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=6)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    return [piece for piece in pieces if piece]


@given(right_for_both())
def test_same_events_as_httpx_sse(pieces: list[bytes]) -> None:
    """Where httpx-sse is right, both readers see the same events, in whatever pieces the stream comes."""
    reader = SseReader()
    ours = fired([event for piece in pieces for event in reader.feed(piece)])
    assert ours == by_httpx_sse(pieces)


# What httpx-sse 0.4.3 makes of it, where that is not what WHATWG HTML says.
DIFFERENT: dict[str, tuple[bytes, list[tuple[str, str, str]]]] = {
    "a BOM becomes part of the first field's name": (b"\xef\xbb\xbfdata: a\n\n", []),
    "an event type without data is dispatched": (b"event: x\n\ndata: a\n\n", [("x", "", ""), (M, "a", "")]),
    "an id without data is dispatched": (b"id: 1\n\ndata: a\n\n", [(M, "", "1"), (M, "a", "1")]),
    "a retry without data is dispatched": (b"retry: 5\n\ndata: a\n\n", [(M, "", ""), (M, "a", "")]),
    "after an id, each blank line dispatches": (b"id: 1\ndata: a\n\n\n\n", [(M, "a", "1"), (M, "", "1"), (M, "", "1")]),
    "after an id, a comment dispatches": (b"id: 1\ndata: a\n\n: ping\n\n", [(M, "a", "1"), (M, "", "1")]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_known_differences_from_httpx_sse(name: str) -> None:
    """The streams that the law above leaves out: httpx-sse departs from the standard, each time in a known way."""
    body, theirs = DIFFERENT[name]
    assert by_httpx_sse([body]) == theirs
    assert fired(read_events(body)[0]) != theirs


@pytest.mark.parametrize("value", ["+1", "-1", "1_000", "٣", " 5 "])
def test_httpx_sse_takes_more_for_a_retry(value: str) -> None:
    """httpx-sse reads whatever Python's int() reads; 9.2.6 wants ASCII digits only."""
    body = f"retry: {value}\ndata: a\n\n".encode()
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    assert [event.retry for event in EventSource(response).iter_sse()] == [int(value)]
    assert read_events(body)[1].retry is None
