"""`sse.*` byte by byte: what is legal, what most clients need, and what breaks them."""

import dataclasses
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import chunked, chunks, contract_of, departures, exchange, sse, stream_request

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.http import Read

CONTRACT, CHAT = contract_of("seekr-chat")
RIGHT = sse(chunks(CHAT))
UNICODE = (
    b"data: " + json.dumps({**chunks(CHAT)[1], "x": "été 雪 🌨️ 👩‍👩‍👧 \u202e"}, ensure_ascii=False).encode() + b"\n\n"
)
FIRST = RIGHT.index(b"\n\n") + 2
WITH_UNICODE = RIGHT[:FIRST] + UNICODE + RIGHT[FIRST:]


def stream(body: bytes) -> Exchange:
    """The stream with this body, in one read."""
    return exchange(CHAT, stream_request(CHAT), chunked(body))


def test_every_byte_may_come_alone() -> None:
    """Catalogue A12: how reads cut the stream, a character of several bytes included, is nobody's fault."""
    made = stream(WITH_UNICODE)
    one_by_one = tuple(Read(0.001 * number, 1) for number in range(len(made.wire)))

    assert departures(CONTRACT, CHAT, dataclasses.replace(made, reads=one_by_one)) == set()


@given(st.lists(st.integers(1, len(chunked(WITH_UNICODE)) - 1), unique=True, max_size=12).map(sorted))
def test_reads_may_cut_anywhere(cuts: list[int]) -> None:
    """Any split over reads gives the same verdict: none."""
    made = stream(WITH_UNICODE)
    edges = [0, *cuts, len(made.wire)]
    reads = tuple(Read(0.001 * number, stop - start) for number, (start, stop) in enumerate(pairwise(edges)))

    assert departures(CONTRACT, CHAT, dataclasses.replace(made, reads=reads)) == set()


def test_chunks_of_the_transfer_coding_may_cut_a_character() -> None:
    """RFC 9112, 7.1: chunks say nothing about what is in them."""
    body = WITH_UNICODE
    wire = chunked(b"x").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    wire += b"".join(b"1\r\n%b\r\n" % body[at : at + 1] for at in range(len(body))) + b"0\r\n\r\n"

    assert departures(CONTRACT, CHAT, exchange(CHAT, stream_request(CHAT), wire)) == set()


PING, DONE = b": ping\n\n", b"data: [DONE]\n\n"

CASES: dict[str, tuple[bytes, set[str]]] = {
    # comments: right, and only reported
    "a ping before the first event": (PING + RIGHT, {"sse.comments"}),
    "a ping between events": (RIGHT.replace(b"\n\n", b"\n\n" + PING, 1), {"sse.comments"}),
    "a ping within an event": (b": ping\n" + RIGHT, {"sse.comments"}),
    "an empty comment": (b":\n\n" + RIGHT, {"sse.comments"}),
    "a ping behind [DONE]": (RIGHT + PING, {"sse.comments"}),
    "a colon in a payload": (RIGHT.replace(b"one", b": one"), set()),
    # blocks without data
    "more blank lines than needed": (RIGHT.replace(b"\n\n", b"\n\n\n"), set()),
    "ids on every event": (RIGHT.replace(b"data: ", b"id: 7\ndata: "), set()),
    "a retry beside data": (b"retry: 3000\n" + RIGHT, set()),
    "ids and pings": (
        RIGHT.replace(b"data: ", b"id: 7\ndata: ").replace(b"\n\n", b"\n\n" + PING, 1),
        {"sse.heartbeat-safe", "sse.comments"},
    ),
    "ids and more blank lines": (
        RIGHT.replace(b"data: ", b"id: 7\ndata: ").replace(b"\n\n", b"\n\n\n", 1),
        {"sse.heartbeat-safe"},
    ),
    "a ping before the first id": (PING + RIGHT.replace(b"data: ", b"id: 7\ndata: "), {"sse.comments"}),
    "an empty id and pings": (
        RIGHT.replace(b"data: ", b"id: \ndata: ").replace(b"\n\n", b"\n\n" + PING, 1),
        {"sse.comments"},
    ),
    "an event without data": (b"event: keepalive\n\n" + RIGHT, {"sse.heartbeat-safe"}),
    "an id without data": (b"id: 1\n\n" + RIGHT, {"sse.heartbeat-safe"}),
    "a retry without data": (b"retry: 3000\n\n" + RIGHT, {"sse.heartbeat-safe"}),
    # separators
    "U+2028 escaped": (RIGHT.replace(b"one", b"o\\u2028ne"), set()),
    "U+2028 raw": (RIGHT.replace(b"one", "o\u2028ne".encode()), {"sse.unicode-separators"}),
    "U+2029 raw": (RIGHT.replace(b"one", "o\u2029ne".encode()), {"sse.unicode-separators"}),
    "U+0085 raw": (RIGHT.replace(b"one", "o\x85ne".encode()), {"sse.unicode-separators"}),
    "U+2027 raw": (RIGHT.replace(b"one", "o\u2027ne".encode()), set()),
    "no-break space raw": (RIGHT.replace(b"one", "o\xa0ne".encode()), set()),
    # blank lines
    "[DONE] glued to a payload": (
        RIGHT.replace(b"\n\n" + DONE, b"\n" + DONE),
        {"sse.blank-line"},
    ),
    "[DONE] without its blank line": (RIGHT[:-1], {"sse.blank-line"}),
    "[DONE] without a line ending": (RIGHT[:-2], {"sse.blank-line"}),
    "all CRLF": (RIGHT.replace(b"\n", b"\r\n"), set()),
    "no space, no trouble otherwise": (RIGHT.replace(b"data: ", b"data:"), {"sse.data-space"}),
}


@pytest.mark.parametrize("name", CASES)
def test_each_form_has_its_verdict(name: str) -> None:
    """WHATWG HTML, 9.2.5 and 9.2.6, and the fault catalogue's A4 to A22."""
    body, expected = CASES[name]

    assert departures(CONTRACT, CHAT, stream(body)) == expected
