"""What is computed from an exchange's bytes."""

import json
from typing import Any

import pytest

from streamgauge.wire.exchange import Credential, Ending, Exchange, SentRequest
from streamgauge.wire.http import Read


def made(
    wire: bytes, *cuts: int, ending: Ending = Ending.COMPLETE, body: bytes = b"", method: str = "POST"
) -> Exchange:
    """An exchange whose answer was cut into reads at these offsets."""
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    request = SentRequest(method, "http://h/", (), body, Credential.VALID)
    reads = tuple(Read(float(number), size) for number, size in enumerate(sizes, 1) if size)
    return Exchange("1", "t", "o", "p", request, "2026-01-01T00:00:00Z", wire, reads, ending)


def streamed(*payloads: Any) -> Exchange:
    """A streamed answer with these payloads; text goes out as it is."""
    lines = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return made(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def test_stream() -> None:
    """Chunks are the events with data save `[DONE]`, each with its JSON and its objects at hand."""
    stream = streamed({"choices": [{"index": 0}, 7]}, {"choices": None}, "[DONE]", "[1]", "nonsense", "[DONE]").stream
    assert [chunk.choices for chunk in stream.chunks] == [[{"index": 0}], [], [], []]
    assert [chunk.json.valid for chunk in stream.chunks] == [True, True, True, False]
    assert [chunk.object for chunk in stream.chunks][2:] == [{}, {}]
    assert [event.number for event in stream.done] == [2, 5]
    assert stream.error is None


def test_done_is_exact() -> None:
    """Only `[DONE]` itself ends a stream."""
    assert streamed("[done]", " [DONE]", "[DONE] ").stream.done == []


@pytest.mark.parametrize("error", [{"message": "no"}, "no", {}, 0], ids=["object", "text", "empty", "number"])
def test_error_in_the_stream(error: Any) -> None:
    """The first payload with an `error` that is not null reports an error, and its event is known."""
    stream = streamed({"choices": [], "error": None}, {"error": error}, {"error": "later"}).stream
    assert stream.error is not None
    assert (stream.error.object["error"], stream.error.event.number) == (error, 1)


def test_undispatched_events_are_in_events_only() -> None:
    """Comments are among the events and not among the dispatched ones."""
    body = b": hi\n\ndata: {}\n\n"
    stream = made(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)).stream
    assert (len(stream.events), len(stream.dispatched), len(stream.chunks)) == (2, 1, 1)


def test_times_of_events() -> None:
    """An event's time is that of the read that completed it, through chunk framing."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    first, second = b"9\r\ndata: 1\n\n\r\n", b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"
    stream = made(head + first + second, len(head), len(head + first)).stream
    assert [event.time for event in stream.events] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("status", "field", "limited"),
    [
        (429, "", True),
        (429, "Retry-After: 1\r\n", True),
        (503, "Retry-After: 1\r\n", True),
        (503, "", False),
        (500, "Retry-After: 1\r\n", False),
        (200, "Retry-After: 1\r\n", False),
    ],
)
def test_rate_limited(status: int, field: str, limited: bool) -> None:
    """429, and 503 with Retry-After, say nothing about the request."""
    assert made(f"HTTP/1.1 {status} X\r\n{field}Content-Length: 0\r\n\r\n".encode()).rate_limited is limited


@pytest.mark.parametrize("ending", list(Ending))
def test_an_end_without_framing_needs_a_closed_connection(ending: Ending) -> None:
    """Only an orderly close ends a body without framing (RFC 9112, section 8): not a timeout, our own stop, or a reset."""
    found = made(b"HTTP/1.1 200 OK\r\n\r\nhello", ending=ending).response
    assert found.body == b"hello"
    not_closed = (Ending.TIMEOUT_IDLE, Ending.TIMEOUT_TOTAL, Ending.TOO_LARGE, Ending.RESET)
    assert found.complete is (ending not in not_closed)


def test_no_answer() -> None:
    """Without a byte, status is 0 and everything else is empty, without an exception."""
    found = made(b"", ending=Ending.REFUSED)
    assert (found.status, found.json.valid, found.stream.events, found.rate_limited) == (0, False, [], False)


@pytest.mark.parametrize(
    ("body", "sent", "wants"),
    [
        (b'{"stream": true}', {"stream": True}, True),
        (b'{"stream": 1}', {"stream": 1}, False),
        (b"{}", {}, False),
        (b"[true]", [True], False),
        (b"", None, False),
        (b"{", None, False),
    ],
    ids=["true", "one", "absent", "array", "empty", "broken"],
)
def test_request_json(body: bytes, sent: Any, wants: bool) -> None:
    """The request's JSON is read back; only `true` asks for a stream."""
    found = made(b"", ending=Ending.CLOSED, body=body)
    assert (found.sent, found.wants_stream) == (sent, wants)
