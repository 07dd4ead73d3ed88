"""HTTP/1.1 responses from raw bytes (RFC 9112), whole, cut off and malformed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.http import HttpResponse, Read, decode_response, retry_after_s

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;name="a;b"\r\nlo\r\n0\r\nX-Checksum: 1\r\n\r\n'
)
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\n\r\nhello"
BARE_LF = b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"
RIGHT = {
    "content-length": LENGTH,
    "chunked": CHUNKED,
    "close-delimited": CLOSED,
    "http-1.0": OLD,
    "bare-lf": BARE_LF,
    "informational": EARLY + LENGTH,
    "informational-chunked": EARLY + CHUNKED,
}


def decode(wire: bytes, *sizes: int, method: str = "POST", closed: bool = True) -> HttpResponse:
    """The response, read in pieces of these sizes at 1 s, 2 s, ..., and the rest after that."""
    sizes = tuple(size for size in (*sizes, len(wire) - sum(sizes)) if size)
    reads = [Read(float(number), size) for number, size in enumerate(sizes, 1)]
    return decode_response(wire, reads, method=method, closed=closed)


@pytest.mark.parametrize("wire", RIGHT.values(), ids=RIGHT)
def test_right_responses(wire: bytes) -> None:
    """Every framing gives the same body, complete and without complaint."""
    found = decode(wire)
    assert (found.status, found.body, found.complete, found.protocol_error) == (200, b"hello", True, "")


@pytest.mark.parametrize("wire", RIGHT.values(), ids=RIGHT)
def test_head_size(wire: bytes) -> None:
    """The head ends where the content begins, 1xx responses included."""
    head = decode(wire).head_size
    assert wire[head:].startswith((b"hello", b"3\r\nhel"))


def test_informational_responses_are_listed() -> None:
    """1xx statuses are kept in order; the final one is the status."""
    assert decode(EARLY + LENGTH).informational == [103, 100]


def test_header_fields() -> None:
    """Names are in lower case, repeated fields are kept apart and joined on demand, values are ISO-8859-1."""
    found = decode(b"HTTP/1.1 404 Not Here\r\nX-A: 1\r\nx-a:  2 \r\nX-B: \xe9\r\nContent-Length: 0\r\n\r\n")
    assert found.headers == [("x-a", "1"), ("x-a", "2"), ("x-b", "é"), ("content-length", "0")]
    assert (found.header("X-A"), found.header("x-c"), found.reason) == ("1, 2", None, "Not Here")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", ""), ("text/event-stream", "text/event-stream"), ("Application/JSON ; charset=utf-8", "application/json")],
    ids=["none", "plain", "parameters"],
)
def test_media_type(value: str, expected: str) -> None:
    """The media type is in lower case and without its parameters."""
    assert HttpResponse(headers=[("content-type", value)] if value else []).media_type == expected


def test_head_has_no_body() -> None:
    """The answer to HEAD is complete with its head, whatever Content-Length says."""
    found = decode(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", method="HEAD")
    assert (found.body, found.complete) == (b"", True)


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_body(status: int) -> None:
    """204 and 304 have no body."""
    found = decode(f"HTTP/1.1 {status} X\r\n\r\n".encode())
    assert (found.status, found.body, found.complete) == (status, b"", True)


CUT = {
    "nothing": (b"", 0, b""),
    "in-status-line": (b"HTTP/1.1 20", 0, b""),
    "in-head": (b"HTTP/1.1 200 OK\r\nContent-", 0, b""),
    "after-informational": (EARLY, 0, b""),
    "in-body": (LENGTH[:-2], 200, b"hel"),
    "before-body": (LENGTH[:-5], 200, b""),
    "in-chunk-size": (CHUNKED[: CHUNKED.index(b"3\r\n")], 200, b""),
    "in-chunk": (CHUNKED[: CHUNKED.index(b"el\r\n")], 200, b"h"),
    "after-chunk": (CHUNKED[: CHUNKED.index(b"0\r\nX")], 200, b"hello"),
    "in-trailers": (CHUNKED[:-4], 200, b"hello"),
}


@pytest.mark.parametrize(("wire", "status", "body"), CUT.values(), ids=CUT)
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
def test_cut_off(wire: bytes, status: int, body: bytes, closed: bool) -> None:
    """What is cut off is incomplete and kept as far as it came; that alone does not make it malformed."""
    found = decode(wire, closed=closed)
    assert (found.status, found.body, found.complete, found.protocol_error) == (status, body, False, "")


def test_body_without_framing_ends_with_the_connection() -> None:
    """Without framing, a body is complete when the connection has ended, not before."""
    assert decode(CLOSED).complete
    assert not decode(CLOSED, closed=False).complete


MALFORMED = {
    "no-http": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "http-2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\r\n\r\n",
    "html": b"<html></html>\r\n\r\n",
    "status-not-a-number": b"HTTP/1.1 OK\r\n\r\n",
    "status-too-low": b"HTTP/1.1 099 Low\r\n\r\n",
    "space-before-colon": b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
    "nul-in-value": b"HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
    "length-not-a-number": b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
    "length-negative": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "length-absurd": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "unasked-upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "unknown-coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
}


@pytest.mark.parametrize("wire", MALFORMED.values(), ids=MALFORMED)
def test_malformed(wire: bytes) -> None:
    """Bytes that are no HTTP/1.1 message are named so, and never raise."""
    found = decode(wire)
    assert found.protocol_error
    assert not found.complete


@pytest.mark.parametrize("chunks", [b"xyz\r\nabc\r\n", b"-1\r\n\r\n", b"3\r\nabcX\r\n", b"F" * 30 + b"\r\n"], ids=str)
def test_malformed_chunks(chunks: bytes) -> None:
    """A broken chunk is a protocol error; status and head stay known, and so does the body before it."""
    found = decode(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n" + chunks)
    assert found.protocol_error
    assert (found.status, found.body[:2], found.complete) == (200, b"hi", False)


def test_bytes_behind_the_message_are_not_body() -> None:
    """What follows a complete message belongs to no body."""
    assert decode(LENGTH + b"HTTP/1.1 500 No\r\n\r\n").body == b"hello"


def test_times_of_segments() -> None:
    """A segment carries the time of the read that brought it."""
    found = decode(LENGTH, len(LENGTH) - 5, 2)
    assert [(segment.time, segment.start, segment.end) for segment in found.segments] == [(2.0, 0, 2), (3.0, 2, 5)]


@given(st.sampled_from(sorted(RIGHT)), st.data())
def test_splitting_is_invisible(name: str, data: st.DataObject) -> None:
    """However the bytes are cut into reads: same message, and the segments cover the body in order of time."""
    wire = RIGHT[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=10)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    found, whole = decode(wire, *sizes), decode(wire)
    for fact in ("status", "reason", "headers", "body", "complete", "informational", "head_size", "protocol_error"):
        assert getattr(found, fact) == getattr(whole, fact)
    assert [0, *(segment.end for segment in found.segments)] == [*(s.start for s in found.segments), len(found.body)]
    times = [segment.time for segment in found.segments]
    assert times == sorted(times)


@given(
    st.binary()
    | st.tuples(st.sampled_from([LENGTH, CHUNKED, EARLY]), st.integers(0, 90), st.binary(max_size=8)).map(
        lambda part: part[0][: part[1]] + part[2] + part[0][part[1] :]
    ),
    st.booleans(),
    st.sampled_from(["GET", "POST", "HEAD", "DELETE"]),
)
def test_nothing_raises(wire: bytes, closed: bool, method: str) -> None:
    """Any bytes are decoded as far as they can be."""
    found = decode(wire, method=method, closed=closed)
    assert not (found.complete and found.protocol_error)
    assert found.head_size <= len(wire)


@given(st.text(st.characters(max_codepoint=255)) | st.datetimes().map(lambda moment: f"{moment:%a, %d %b %Y %T %z}"))
def test_any_retry_after(value: str) -> None:
    """Whatever Retry-After says is a wait or no wait, never an exception and never negative."""
    found = retry_after_s(value, datetime(2026, 1, 1, tzinfo=UTC))
    assert found is None or found >= 0


@pytest.mark.parametrize("value", ["²", "1²", "Mon, 01 Jan 2024 00:00:00 +999999", "Mon, 01 Jan 99999 00:00:00 GMT"])
def test_strange_retry_after(value: str) -> None:
    """Digits of other scripts and impossible dates ask for nothing."""
    assert retry_after_s(value, datetime(2026, 1, 1, tzinfo=UTC)) is None
