"""`http.*` about time and browsers: whether a stream arrives while it is generated, and what a page may read."""

import dataclasses
import json
from typing import Any

import pytest
from transcripts import (
    chunked,
    chunks,
    contract_of,
    departures,
    exchange,
    http,
    outcomes,
    request,
    sse,
    stream_request,
    whole_answer,
)

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Ending, Evidence, Exchange
from streamgauge.wire.http import Read

CONTRACT, CHAT = contract_of("seekr-chat")
CHECK = "http.stream-incremental"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"


def paced(first: float, step: float, *, tokens: int = 32) -> Exchange:
    """A right stream of so many tokens, the first at `first` and `step` from one to the next; the head came at once."""
    payloads = chunks(CHAT)
    opening, one, finish, usage = payloads[0], payloads[1], payloads[-2], payloads[-1]
    usage = {**usage, "usage": {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}}
    last = first + step * (tokens - 1)
    parts = [(first, sse([opening], done=False)), *((first + step * n, sse([one], done=False)) for n in range(tokens))]
    parts += [(last, sse([finish, usage]))]
    wire = [(0.0, HEAD), *((time, b"%x\r\n%b\r\n" % (len(part), part)) for time, part in parts), (last, b"0\r\n\r\n")]
    made = exchange(CHAT, stream_request(CHAT, max_tokens=tokens), b"".join(part for _, part in wire), probe="long")
    return dataclasses.replace(made, reads=tuple(Read(time, len(part)) for time, part in wire))


def with_heartbeat(stream: Exchange, time: float) -> Exchange:
    """The stream with a comment in a chunk of its own at this time, which is before its first token."""
    comment = b"e\r\n: keep-alive\n\n\r\n"
    head, *rest = stream.reads
    wire = stream.wire[: head.size] + comment + stream.wire[head.size :]
    return dataclasses.replace(stream, wire=wire, reads=(head, Read(time, len(comment)), *rest))


def one_token(time: float, **changes: Any) -> Exchange:
    """A whole answer of one token that came at this time."""
    answer = whole_answer(CHAT)
    answer["id"] = "x-2"
    answer["usage"] = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    wire = http(200, json.dumps(answer).encode())
    made = exchange(CHAT, request(CHAT, max_tokens=1), wire, probe="one")
    return dataclasses.replace(made, reads=(Read(time, len(wire)),), **changes)


@pytest.mark.parametrize(
    ("stream", "others", "expected"),
    [
        pytest.param(paced(0.2, 0.02), [one_token(0.2)], Outcome.PASS, id="arrives as it is generated"),
        pytest.param(paced(0.82, 0.0), [one_token(0.2)], Outcome.WARN, id="all at the end"),
        pytest.param(paced(0.82, 0.0001), [one_token(0.2)], Outcome.WARN, id="written at once, read in pieces"),
        pytest.param(paced(0.82, 0.0), [one_token(0.2), one_token(0.4)], Outcome.WARN, id="two answers of one token"),
        pytest.param(paced(0.2, 0.0), [one_token(0.2)], Outcome.NOT_RUN, id="a fast engine"),
        pytest.param(paced(0.3, 0.0005), [one_token(0.2)], Outcome.NOT_RUN, id="a very fast engine"),
        pytest.param(paced(5.0, 0.0), [one_token(5.0)], Outcome.NOT_RUN, id="a long wait, then a fast engine"),
        pytest.param(paced(0.82, 0.0), [one_token(0.2), one_token(0.8)], Outcome.NOT_RUN, id="one answer waited, too"),
        pytest.param(
            paced(5.0, 0.001), [one_token(0.2)], Outcome.PASS, id="waited in a queue, then 1000 tokens a second"
        ),
        pytest.param(
            with_heartbeat(paced(6.4, 0.0), 1.0), [one_token(0.2)], Outcome.PASS, id="a queue that sends heartbeats"
        ),
        pytest.param(
            with_heartbeat(paced(6.4, 0.0), 6.4), [one_token(0.2)], Outcome.WARN, id="held back with its heartbeats"
        ),
        pytest.param(
            paced(6.4, 0.0), [one_token(0.2), paced(0.2, 0.02)], Outcome.PASS, id="another stream came bit by bit"
        ),
        pytest.param(
            paced(0.82, 0.0),
            [one_token(0.2), paced(0.25, 0.0)],
            Outcome.NOT_RUN,
            id="another stream did not have to wait",
        ),
        pytest.param(
            paced(0.82, 0.0, tokens=48), [one_token(0.2), paced(0.25, 0.0)], Outcome.NOT_RUN, id="nor did a shorter one"
        ),
        pytest.param(
            paced(1.5, 0.0, tokens=64), [one_token(0.2), paced(0.82, 0.0)], Outcome.WARN, id="held back, long and short"
        ),
        pytest.param(paced(0.82, 0.0, tokens=15), [one_token(0.2)], Outcome.NOT_RUN, id="few events"),
        pytest.param(paced(0.82, 0.0), [], Outcome.NOT_RUN, id="nothing to compare with"),
        pytest.param(
            paced(0.82, 0.0), [one_token(0.2, ending=Ending.CLOSED)], Outcome.NOT_RUN, id="compared with what was cut"
        ),
        pytest.param(
            paced(0.82, 0.0),
            [one_token(0.2, holds=frozenset(Evidence) - {Evidence.TIMES})],
            Outcome.NOT_RUN,
            id="compared with what has no times",
        ),
    ],
)
def test_a_burst_at_the_end_is_told_from_speed(stream: Exchange, others: list[Exchange], expected: Outcome) -> None:
    """Catalogue B9: judged only where generating took clearly longer than the slowest answer of one token did."""
    assert outcomes(CONTRACT, CHAT, stream, *others)[CHECK] is expected


def test_the_long_streams_trip_nothing_else() -> None:
    """What a burst breaks is that check alone."""
    assert departures(CONTRACT, CHAT, paced(0.82, 0.0), one_token(0.2)) == {CHECK}
    assert departures(CONTRACT, CHAT, paced(0.2, 0.02), one_token(0.2)) == set()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("", Outcome.NOT_RUN),
        ("Access-Control-Allow-Origin: *\r\n", Outcome.NOT_RUN),
        ("Retry-After: 1\r\n", Outcome.PASS),
        ("Retry-After: 1\r\nAccess-Control-Allow-Origin: *\r\n", Outcome.WARN),
        (
            "Retry-After: 1\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: x-request-id\r\n",
            Outcome.WARN,
        ),
        (
            "Retry-After: 1\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: X-A, Retry-After\r\n",
            Outcome.PASS,
        ),
        ("Retry-After: 1\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *\r\n", Outcome.PASS),
    ],
)
def test_page_may_read_how_long_to_wait(fields: str, expected: Outcome) -> None:
    """WHATWG Fetch, 3.3.3: a page sees Retry-After only where it is exposed; without CORS no page sees anything."""
    error = b'{"error": {"message": "slow down", "type": "rate_limit_error", "code": 422}}'
    made = exchange(CHAT, request(CHAT), http(422, error, extra=fields))

    assert outcomes(CONTRACT, CHAT, made)["http.retry-after-exposed"] is expected


def test_what_is_no_http_has_one_verdict() -> None:
    """`http.answered` is about silence; what came and is no message is `http.valid`'s."""
    garbage = exchange(CHAT, request(CHAT), b"220 ready\r\n\r\n", ending=Ending.MALFORMED_HTTP)
    nothing = exchange(CHAT, request(CHAT), b"", ending=Ending.CLOSED)

    assert departures(CONTRACT, CHAT, garbage) == {"http.valid"}
    assert departures(CONTRACT, CHAT, nothing) == {"http.answered"}


@pytest.mark.parametrize(
    ("changes", "ending", "expected"),
    [
        ({}, Ending.TIMEOUT_IDLE, Outcome.FAIL),
        ({"max_tokens": ...}, Ending.TIMEOUT_IDLE, Outcome.NOT_RUN),
        ({"max_tokens": -1}, Ending.TIMEOUT_TOTAL, Outcome.NOT_RUN),
        ({"max_tokens": ...}, Ending.CLOSED, Outcome.FAIL),
        ({"max_tokens": ..., "stream": True}, Ending.TIMEOUT_IDLE, Outcome.FAIL),
    ],
)
def test_an_answer_without_a_limit_may_take_longer_than_we_wait(
    changes: dict[str, Any], ending: Ending, expected: Outcome
) -> None:
    """llama.cpp writes until the context is full, and a whole answer comes when all of it is written."""
    silent = exchange(CHAT, request(CHAT, **changes), b"", ending=ending)

    assert outcomes(CONTRACT, CHAT, silent)["http.answered"] is expected


def test_a_broken_chunk_is_told_once() -> None:
    """A stream whose transfer coding is wrong is not also cut off, nor without [DONE]."""
    wire = chunked(sse(chunks(CHAT))).replace(b"\r\n0\r\n\r\n", b"xx\r\n0\r\n\r\n")
    broken = exchange(CHAT, stream_request(CHAT), wire, ending=Ending.MALFORMED_HTTP)

    assert departures(CONTRACT, CHAT, broken) == {"http.valid"}
