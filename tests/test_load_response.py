"""The lean HTTP reader: right on its own, and equal to the strict one on whatever both accept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.load.response import ResponseReader
from streamgauge.wire.http import Read, decode_response

OK = b"HTTP/1.1 200 OK\r\n"


def read(wire: bytes, *, closed: bool = False, size: int = 1 << 20) -> tuple[ResponseReader, bytes]:
    """What the reader makes of bytes that come `size` at a time."""
    reader = ResponseReader()
    body = b"".join(reader.feed(wire[start : start + size]) for start in range(0, len(wire), size))
    if closed:
        reader.close()
    return reader, body


GOOD = {
    "length": (OK + b"content-length: 5\r\n\r\nhello", b"hello", True),
    "chunked": (OK + b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", b"hello", True),
    "trailers": (OK + b"Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\na: b\r\n\r\n", b"hello", True),
    "100 first": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length: 5\r\n\r\nhello", b"hello", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "no reason phrase": (b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello", b"hello", True),
    "same length twice": (OK + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello", b"hello", True),
    "close asked for": (OK + b"connection: Close\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello", False),
    "more than announced": (OK + b"content-length: 5\r\n\r\nhelloX", b"hello", False),
}


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("name", GOOD)
def test_good_messages_are_complete(name: str, size: int) -> None:
    """However the bytes are cut, the body is whole, and the connection reusable only where nothing speaks against it."""
    wire, body, reusable = GOOD[name]
    reader, got = read(wire, size=size)
    assert (got, reader.complete, reader.error) == (body, True, "")
    assert reader.reusable is reusable or (name == "more than announced" and size == 1)


def test_the_end_of_the_connection_ends_an_unframed_body() -> None:
    """Without framing the body goes on until the connection ends, which is then no cut."""
    wire = OK + b"content-type: Text/Event-Stream; charset=utf-8\r\n\r\nhello"
    assert not read(wire)[0].complete
    reader, body = read(wire, closed=True)
    assert (reader.complete, reader.reusable, body, reader.media_type) == (True, False, b"hello", "text/event-stream")


@pytest.mark.parametrize(
    "wire",
    [
        OK + b"content-length: 5\r\n\r\nhel",
        OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhel",
        OK + b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
        OK + b"content-le",
    ],
)
def test_cut_messages_stay_incomplete(wire: bytes) -> None:
    """A connection that ends inside a framed message does not complete it."""
    reader, _ = read(wire, closed=True)
    assert not reader.complete
    assert not reader.error


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"name : value\r\n\r\n",
        OK + b"content-length: five\r\n\r\n",
        OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n3\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a" * 300_000,
        OK + b"transfer-encoding: chunked\r\n\r\n" + b"1" * 20_000,
    ],
)
def test_what_is_no_http_is_said_to_be_none(wire: bytes) -> None:
    """Bytes that break the grammar leave an error in words, and nothing more is read after it."""
    reader, _ = read(wire)
    assert reader.error
    assert reader.feed(b"more") == b""
    assert not reader.reusable


NAMES = st.from_regex(r"x-[a-z]{1,8}", fullmatch=True)
VALUES = st.from_regex(r"[!-~]{0,12}", fullmatch=True)
CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@given(
    status=st.sampled_from([200, 404, 500, 204]),
    headers=st.dictionaries(NAMES, VALUES, max_size=4),
    pieces=st.lists(st.binary(min_size=1, max_size=20), max_size=5),
    framing=st.sampled_from(["chunked", "length", "close"]),
    lost=st.integers(0, 12),
    cuts=CUTS,
)
def test_equal_to_the_strict_reader(
    status: int, headers: dict[str, str], pieces: list[bytes], framing: str, lost: int, cuts: list[int]
) -> None:
    """Whole or cut off, in any split, it sees the status, fields, body and completeness that the strict reader sees."""
    body = b"" if status == 204 else b"".join(pieces)
    fields = dict(headers)
    if framing == "length":
        fields["content-length"] = str(len(body))
    elif framing == "chunked" and status != 204:
        fields["transfer-encoding"] = "chunked"
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = f"HTTP/1.1 {status} Reason\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    wire = head.encode() + b"\r\n" + body
    wire = wire[: len(wire) - lost]
    reader, got, position = ResponseReader(), b"", 0
    reads = []
    while position < len(wire):
        size = cuts[len(reads) % len(cuts)]
        got += reader.feed(wire[position : position + size])
        reads.append(Read(0.0, len(wire[position : position + size])))
        position += size
    reader.close()
    strict = decode_response(wire, reads)
    assert (reader.status, got, reader.complete) == (strict.status, strict.body, strict.complete)
    assert reader.headers == {name: strict.header(name) for name, _ in strict.headers}
