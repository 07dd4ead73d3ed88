"""Responses whose bodies are stored without their framing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.http import Read, decode_response
from streamgauge.wire.unframed import decode_unframed, heads

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"


@given(st.binary().filter(lambda body: not body.startswith(b"HTTP/")), st.booleans())
def test_all_behind_the_head_is_body(body: bytes, complete: bool) -> None:
    """Whatever the head says of framing (RFC 9112, section 7.1), nothing is taken off the body."""
    response = decode_unframed(HEAD + body, [Read(1.5, len(HEAD + body))], complete=complete)

    assert (response.status, response.body, response.head_size, response.complete) == (200, body, len(HEAD), complete)
    assert b"".join(response.body[s.start : s.end] for s in response.segments) == body
    assert all(segment.time == 1.5 for segment in response.segments)


@given(st.binary(min_size=1))
def test_head_is_read_as_the_strict_decoder_reads_it(body: bytes) -> None:
    """Status, reason and header fields are the same with and without framing."""
    framed = HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    strict = decode_response(framed, [Read(0.0, len(framed))])
    ours = decode_unframed(HEAD + body, [Read(0.0, 1)], complete=True)

    assert (ours.status, ours.reason, ours.headers) == (strict.status, strict.reason, strict.headers)
    assert (ours.body, ours.head_size) == (strict.body, strict.head_size)


@pytest.mark.parametrize("wire", [b"", b"HTTP/1.1 200 OK\r\n", b"<html>\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_no_final_head_is_no_answer(wire: bytes) -> None:
    """A status of 0 says that no final answer is there."""
    response = decode_unframed(wire, [], complete=True)

    assert (response.status, response.body, response.complete, response.head_size) == (0, b"", False, len(wire))


def test_heads_stop_at_the_body() -> None:
    """Heads that follow each other are told apart; one within a body is body."""
    wire = b"HTTP/2 103 \r\nlink: a\r\n\r\nHTTP/2 200 \r\nx: 1\r\n\r\nbody HTTP/1.1 404 No\r\n\r\n"

    assert [(head.status, head.version, head.headers) for head in heads(wire)] == [
        (103, "2", [("link", "a")]),
        (200, "2", [("x", "1")]),
    ]


@pytest.mark.parametrize(
    ("length", "expected"), [("5", 5), ("x", None), ("5\x13", None), ("\xb2", None), ("9" * 5000, None)]
)
def test_announced_length_may_be_no_number(length: str, expected: int | None) -> None:
    """Nobody has read the field by its grammar (RFC 9110, 8.6): what is no number announces nothing."""
    wire = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello".encode("latin-1", "replace")

    assert decode_unframed(wire, (), complete=False).announced == expected
