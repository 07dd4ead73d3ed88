"""What HTTP/1.1 keeps beside status, fields and body: chunks, trailers, interim responses, surplus (RFC 9112)."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.chunked import TransferChunk, read_chunks
from streamgauge.wire.http import HttpResponse, Interim, Read, decode_response

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def decode(wire: bytes, *, method: str = "POST", closed: bool = True) -> HttpResponse:
    """The response, read at once."""
    return decode_response(wire, [Read(1.0, len(wire))], method=method, closed=closed)


def test_chunks_are_kept() -> None:
    """Section 7.1: each chunk with its place in wire and body, its size and its extension; the last one has size 0."""
    wire = HEAD + b'3\r\nhel\r\n02;name="a;b" \t\r\nlo\r\n' + b"0" * 20 + b";end\r\n\r\n"
    first = len(HEAD)
    assert decode(wire).chunks == [
        TransferChunk(first, 3, 0, 3, ""),
        TransferChunk(first + 8, 2, 3, 5, ';name="a;b"'),
        TransferChunk(first + 29, 0, 5, 5, ";end"),
    ]


@pytest.mark.parametrize(
    ("rest", "sizes"),
    [
        (b"", []),
        (b"3", []),
        (b"3\r\n", [(3, 0)]),
        (b"3\r\nhe", [(3, 2)]),
        (b"3\r\nhel", [(3, 3)]),
        (b"3\r\nhel\r\n2", [(3, 3)]),
        (b"3\r\nhelXX2\r\nlo\r\n", [(3, 3)]),
        (b"3\r\nhel\r\nxyz\r\n", [(3, 3)]),
        (b"-1\r\n\r\n", []),
        (b"F" * 21 + b"\r\n", []),
    ],
    ids=[
        "nothing",
        "half-line",
        "no-data",
        "half-data",
        "no-end",
        "second-half-line",
        "too-long",
        "no-size",
        "negative",
        "absurd",
    ],
)
def test_chunks_of_half_a_body(rest: bytes, sizes: list[tuple[int, int]]) -> None:
    """Section 8: a body that is cut off or broken shows the chunks up to there: announced size and what arrived."""
    found = decode(HEAD + rest).chunks
    assert [(chunk.size, chunk.end - chunk.start) for chunk in found] == sizes


@st.composite
def coded(draw: st.DrawFn) -> bytes:
    """A body in the chunked coding, right, cut off, or with bytes changed."""
    wire = b""
    for data in draw(st.lists(st.binary(min_size=1, max_size=20), max_size=6)):
        extension = draw(st.sampled_from([b"", b";a", b';a="b;c"', b"; x=1 ", b"  "]))
        size = b"%x" % len(data)
        wire += draw(st.sampled_from([size, size.upper(), size.zfill(4)])) + extension + b"\r\n" + data + b"\r\n"
    wire += b"0" + draw(st.sampled_from([b"", b";last"])) + b"\r\n"
    wire += draw(st.sampled_from([b"\r\n", b"X-A: 1\r\n\r\n", b"\r\nHTTP/1.1 500 No\r\n\r\n"]))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(wire)))
        wire = wire[:place] + draw(st.binary(max_size=2)) + wire[place + draw(st.integers(0, 2)) :]
    return wire[: draw(st.integers(0, len(wire)))] if draw(st.booleans()) else wire


@given(coded(), st.integers(1, 30))
def test_the_same_chunks_as_h11(body: bytes, piece: int) -> None:
    """A differential property: bodies are cut where h11 cuts them, and together the chunks are the body that it decodes."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    data, ends = b"", []
    try:
        connection.receive_data(HEAD)
        for place in range(0, len(body), piece):
            connection.receive_data(body[place : place + piece])
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    data += event.data
                    ends += [len(data)] if event.chunk_end else []
                if isinstance(event, h11.EndOfMessage):
                    break
    except h11.RemoteProtocolError:
        pass
    found = [chunk for chunk in read_chunks(HEAD + body, len(HEAD)) if chunk.end > chunk.start]
    whole = [chunk.end for chunk in found if chunk.end - chunk.start == chunk.size]
    assert whole == ends
    assert (found[-1].end if found else 0) == len(data)
    for chunk in found:
        line, _, rest = (HEAD + body)[chunk.offset :].partition(b"\r\n")
        assert int(line.partition(b";")[0].strip(), 16) == chunk.size
        assert rest[: chunk.end - chunk.start] == data[chunk.start : chunk.end]


def test_trailers_are_kept() -> None:
    """Section 7.1.2: the fields behind the last chunk, in order, repeated ones apart."""
    found = decode(HEAD + b"1\r\nx\r\n0\r\nX-Sum: 1\r\nx-sum:  2\r\n\r\n")
    assert (found.trailers, found.complete) == ([("x-sum", "1"), ("x-sum", "2")], True)


def test_interim_responses_keep_their_fields() -> None:
    """RFC 9110, section 15.2: each 1xx with reason and fields; the final response has none of them."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nlink: </b>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    found = decode(early + LENGTH)
    assert found.interim == [
        Interim(103, "Early Hints", [("link", "</a>"), ("link", "</b>")]),
        Interim(100, "Continue", []),
    ]
    assert (found.informational, found.status, found.header("link")) == ([103, 100], 200, None)


SECOND = b"HTTP/1.1 500 No\r\n\r\n"


@pytest.mark.parametrize(
    ("wire", "method", "surplus"),
    [
        (LENGTH, "POST", b""),
        (LENGTH + b"!", "POST", b"!"),
        (LENGTH + SECOND, "POST", SECOND),
        (HEAD + b"1\r\nx\r\n0\r\n\r\n", "POST", b""),
        (HEAD + b"1\r\nx\r\n0\r\nX-A: 1\r\n\r\nmore", "POST", b"more"),
        (b"HTTP/1.1 204 No\r\n\r\n", "POST", b""),
        (b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n{}", "POST", b"{}"),
        (b"HTTP/1.1 304 Same\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "GET", b"1\r\nx\r\n0\r\n\r\n"),
        (LENGTH, "HEAD", b"hello"),
        (LENGTH[:-5], "HEAD", b""),
        (b"HTTP/1.1 200 OK\r\n\r\nanything at all", "POST", b""),
        (LENGTH[:-1], "POST", b""),
    ],
    ids=[
        "length",
        "length-more",
        "length-second",
        "chunked",
        "chunked-more",
        "204",
        "204-body",
        "304-body",
        "head-body",
        "head",
        "no-framing",
        "short",
    ],
)
def test_surplus(wire: bytes, method: str, surplus: bytes) -> None:
    """Section 6.3: what follows the message's end by its own framing is no part of it; HEAD, 204 and 304 have no body."""
    reads = [Read(float(place), 1) for place in range(len(wire))]
    for found in (decode(wire, method=method), decode_response(wire, reads, method=method)):
        assert found.surplus == surplus
        assert found.head_size + sum(len(part) for part in (found.body, surplus)) <= len(wire)
    if surplus and not found.body:
        assert found.chunks == []


@pytest.mark.parametrize(
    ("fields", "written", "announced"),
    [
        ("Content-Length: 5", ["5"], 5),
        ("content-length:5 ", ["5"], 5),
        ("Content-Length: 5, 5", ["5, 5"], 5),
        ("Content-Length: 5\r\nContent-Length: 5", ["5", "5"], 5),
        ("Content-Length: 5\r\nX: 1\r\nContent-Length: 6", ["5", "6"], None),
        ("Content-Length: five", ["five"], None),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", ["5"], None),
        ("X-Content-Length: 5", [], None),
    ],
)
def test_announced_length(fields: str, written: list[str], announced: int | None) -> None:
    """Section 6.3: one length counts, Transfer-Encoding overrides it, and all that was written is kept as evidence."""
    early = "HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
    found = decode(f"{early}HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhel".encode())
    assert (found.content_lengths, found.announced) == (written, announced)


def test_announced_and_arrived() -> None:
    """Section 8: a body shorter than announced is incomplete, and both numbers are known."""
    found = decode(LENGTH[:-2])
    assert (found.complete, found.announced, len(found.body)) == (False, 5, 3)


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_long_lines_are_no_protocol_error(size: int) -> None:
    """A header section has no limit in RFC 9112: what the recorder has taken in is read, however long its lines are."""
    found = decode(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * size)
    assert (found.protocol_error, found.status) == ("", 0)
    assert decode(b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * size + b"\r\nContent-Length: 0\r\n\r\n").complete
