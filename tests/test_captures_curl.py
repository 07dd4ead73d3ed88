"""`curl -i` output, read with what somebody noted beside it, and without."""

import gzip

import pytest

from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.curl import looks_like_curl, read_curl
from streamgauge.wire.exchange import Ending, Evidence, Exchange

JSON_HEAD = b"HTTP/1.1 200 OK\r\ndate: Sun, 29 Nov 2026 12:51:37 GMT\r\ncontent-type: application/json\r\n"
WHOLE = JSON_HEAD + b"content-length: 7\r\n\r\n" + b'{"a":1}'
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = CHUNKED + b"data: {}\n\ndata: [DONE]\n\n"


def _read(data: bytes) -> Capture:
    capture = read_curl(data, "a.http")
    assert isinstance(capture, Capture), capture
    return capture


def _exchange(data: bytes) -> Exchange:
    return _read(data).exchange("1", target="t", operation="o", method="POST")


@pytest.mark.parametrize(
    ("data", "body", "ending", "held"),
    [
        (WHOLE, b'{"a":1}', Ending.COMPLETE, True),
        (WHOLE + b"\n", b'{"a":1}', Ending.COMPLETE, True),
        (WHOLE[:-1], b'{"a":1', Ending.COMPLETE, False),
        (STREAM, b"data: {}\n\ndata: [DONE]\n\n", Ending.COMPLETE, False),
        (STREAM + b"[curl exit 0]\n", b"data: {}\n\ndata: [DONE]\n\n", Ending.COMPLETE, True),
        (WHOLE + b"[curl exit 0]\n", b'{"a":1}', Ending.COMPLETE, True),
        (WHOLE + b"\n[curl exit 0] \n[scenario] {}\n", b'{"a":1}', Ending.COMPLETE, True),
        (STREAM + b"\n[curl exit 0, 2015 ms in all]\n", b"data: {}\n\ndata: [DONE]\n\n\n", Ending.COMPLETE, True),
        (CHUNKED + b"data: x[curl exit 18] curl: (18) cut\n", b"data: x", Ending.CLOSED, True),
        (CHUNKED + b"data: x[curl exit 56]\n", b"data: x", Ending.RESET, True),
        (CHUNKED + b"data: x[curl exit 28]\n", b"data: x", Ending.TIMEOUT_TOTAL, False),
        (CHUNKED + b"data: x[curl exit 23]\n", b"data: x", Ending.COMPLETE, False),
        (STREAM + b"data: [curl exit 9] in a text\n\n", None, Ending.COMPLETE, False),
    ],
)
def test_end_is_what_was_noted_or_the_announced_length(
    data: bytes, body: bytes | None, ending: Ending, held: bool
) -> None:
    """Only curl's exit code or a full Content-Length (RFC 9112, 6.3) tells how a transfer ended."""
    exchange = _exchange(data)

    assert exchange.response.body == (data.partition(b"\r\n\r\n")[2] if body is None else body)
    assert (exchange.ending, Evidence.ENDING in exchange.holds) == (ending, held)
    assert exchange.response.complete == (held and ending is Ending.COMPLETE)
    assert exchange.wire.endswith(exchange.response.body)
    assert exchange.wire[exchange.response.head_size :] == exchange.response.body


@pytest.mark.parametrize("code", [6, 7, 35, 52, 56])
def test_no_answer_is_an_exchange_when_its_end_is_noted(code: int) -> None:
    """An empty reply or a refused connection leaves nothing but curl's exit code."""
    exchange = _exchange(b'[curl exit %d]\n\n[request] POST /v1/completions {"a": 1}\n' % code)

    assert (exchange.status, exchange.wire, Evidence.ENDING in exchange.holds) == (0, b"", True)
    assert exchange.ending is not Ending.COMPLETE


@pytest.mark.parametrize(
    ("head", "version", "status", "interim"),
    [
        (b"HTTP/2 200 \r\nx: 1\r\n\r\n", "2", 200, []),
        (b"HTTP/1.0 200 OK\r\nx: 1\r\n\r\n", "1.0", 200, []),
        (b"HTTP/1.1 200 OK\nx: 1\n\n", "1.1", 200, []),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: 1\r\n\r\n", "1.1", 200, [100]),
        (b"HTTP/2 103 \r\nlink: y\r\n\r\nHTTP/2 200 \r\nx: 1\r\n\r\n", "2", 200, [103]),
        (b"HTTP/1.1 307 Moved\r\nlocation: /b\r\ncontent-length: 0\r\n\r\nHTTP/1.1 404 No\r\n\r\n", "1.1", 404, []),
        (b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 503 No\r\nx: 1\r\n\r\n", "1.1", 503, []),
    ],
)
def test_last_head_is_the_answers(head: bytes, version: str, status: int, interim: list[int]) -> None:
    """1xx answers stay with theirs (RFC 9110, 15.2); redirects and a proxy's CONNECT reply are other answers."""
    response = _exchange(head + b"body").response

    assert (response.http_version, response.status, response.informational) == (version, status, interim)
    assert response.body == b"body"


LONG = b'{"model": "m", "prompt": "' + b"x" * 600


@pytest.mark.parametrize(
    ("note", "path", "body"),
    [
        (b'[request] POST /v1/chat/completions {"a": 1}\n', "/v1/chat/completions", b'{"a": 1}'),
        (b'[request] POST /v1/completions {"a":\n 1}\n', "/v1/completions", b'{"a":\n 1}'),
        (b'[request] POST /v1/completions {"a": \n', "/v1/completions", b'{"a": '),
        (b"[request] POST /v1/completions \n", "/v1/completions", None),
        (b"[request] GET /v1/completions\n", "/v1/completions", b""),
        (b"[request] POST /v1/completions [1,2]\n", "/v1/completions", b"[1,2]"),
        (b"[request] POST /v1/completions\n", "/v1/completions", None),
        (b"[request] POST /v1/completions with a message of 60,000 characters\n", "/v1/completions", None),
        (b"[request] POST /v1/completions " + LONG + b"\n", "/v1/completions", None),
        (b"[request] POST /v1/completions " + LONG + b'"}\n', "/v1/completions", LONG + b'"}'),
        (b"[request] POST https://a.example/v1/completions {}\n[scenario] {}\n", "/v1/completions", b"{}"),
    ],
)
def test_request_is_held_only_when_its_body_is_whole(note: bytes, path: str, body: bytes | None) -> None:
    """A body in prose, or cut at 600 bytes, is unknown; method and path are known all the same."""
    capture = _read(WHOLE + b"[curl exit 0]\n\n" + note)

    assert (capture.path, Evidence.REQUEST in capture.holds) == (path, body is not None)
    assert capture.body == (body or b"")


def test_an_empty_body_was_sent_only_where_it_was_refused() -> None:
    """A variable that was not set leaves a note without a body: nothing cannot have been completed with 200."""
    refused = (
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}[curl exit 0]\n\n[request] POST /v1/completions \n"
    )

    assert (_read(refused).body, Evidence.REQUEST in _read(refused).holds) == (b"", True)


@pytest.mark.parametrize(
    ("head", "body", "whole"),
    [
        (JSON_HEAD + b"content-length: 7\r\n\r\n", b'{"a":1}', True),
        (JSON_HEAD + b"content-length: 7\r\n\r\n", b'{"a":\r\n 1}', False),
        (JSON_HEAD + b"content-length: 7\r\n\r\n", b'{"a"...', True),
        (JSON_HEAD + b"content-length: 70\r\n\r\n", b'{"a"...', False),
        (JSON_HEAD + b"content-length: 27\r\ncontent-encoding: gzip\r\n\r\n", b'{"a":1}', True),
    ],
)
def test_body_that_was_changed_afterwards_holds_no_bytes(head: bytes, body: bytes, whole: bool) -> None:
    """Where a body lacks its announced length (RFC 9112, 6.3) curl ends with 18: under a 0, somebody edited the file."""
    held = _read(head + body + b"[curl exit 0]\n").holds

    assert (Evidence.BYTES in held, Evidence.ENDING in held) == (whole, whole)


def test_compressed_body_is_not_judged() -> None:
    """What a content coding left (RFC 9110, 8.4.1.3) is no text yet."""
    data = JSON_HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b'{"a":1}') + b"[curl exit 0]\n"
    found = read_curl(data, "a.http")

    assert isinstance(found, NotJudged) and "compressed" in found.reason


def test_note_of_the_request_takes_no_byte_of_the_body() -> None:
    """The blank line behind `[DONE]` belongs to the event (WHATWG HTML, 9.2.6), not to the note that follows at once."""
    exchange = _exchange(STREAM + b"[request] POST /v1/completions {}\n")

    assert exchange.response.body == STREAM.partition(b"\r\n\r\n")[2]
    assert exchange.stream.done


def test_redirect_makes_the_request_unknown() -> None:
    """A client may turn POST into GET on a 301 or 302 (RFC 9110, 15.4): what was sent last is not known."""
    moved = b"HTTP/1.1 302 Found\r\nlocation: /b\r\n\r\n"

    assert Evidence.REQUEST not in _read(moved + WHOLE + b"\n[request] POST /v1/completions {}\n").holds


@pytest.mark.parametrize(
    "data",
    [b"", b"no answer\n", b"text\n[curl exit 0]\n", b"[...]\nHTTP/1.1 200 OK\r\n\r\n{}"],
)
def test_what_is_no_answer_is_not_judged(data: bytes) -> None:
    """Other files have a reason in place of a verdict."""
    assert isinstance(read_curl(data, "a.txt"), NotJudged)


@pytest.mark.parametrize("mark", [b"[...]", b"[...cut here...]", "[… 3 chunks …]".encode()])
def test_excerpt_is_judged_up_to_its_gap(mark: bytes) -> None:
    """What somebody left out is no fault of the server: bytes before the gap count, and the end is unknown."""
    capture = _read(
        STREAM[:-20] + b"\n" + mark + b"\n: x\n\ndata: [DONE]\n\n[curl exit 0]\n\n[request] GET /v1/models\n"
    )

    assert capture.wire == STREAM[:-20] + b"\n"
    assert Evidence.ENDING not in capture.holds
    assert capture.path == "/v1/models"


def test_date_is_the_time_of_day() -> None:
    """The server's own clock (RFC 9110, 6.6.1) is what `created` can be compared with."""
    assert (_read(WHOLE).started, Evidence.CLOCK in _read(WHOLE).holds) == ("2026-11-29T12:51:37Z", True)
    assert (_read(STREAM).started, Evidence.CLOCK in _read(STREAM).holds) == ("", False)


def test_secrets_stay_out() -> None:
    """A cookie of the answer, and keys in the noted request, are blotted out at the same length."""
    data = (
        JSON_HEAD
        + b'set-cookie: sid=very-secret-cookie; Path=/\r\n\r\n{"echo":"very-secret-cookie my-query-key my-body-key"}'
        + b'[curl exit 0]\n\n[request] POST /v1/completions?api_key=my-query-key {"api_key": "my-body-key"}\n'
    )
    exchange = _exchange(data)

    for secret in (b"very-secret", b"my-query-key", b"my-body-key"):
        assert secret not in exchange.wire + exchange.request.url.encode() + exchange.request.body
    assert len(exchange.wire) == data.index(b"[curl exit")
    assert exchange.redacted


def test_looks_like_curl() -> None:
    """A status line, or the note that there was none, begins a capture."""
    assert looks_like_curl(b"HTTP/2 200")
    assert looks_like_curl(b"[curl exit 7]\n")
    assert not looks_like_curl(b'{"log": {}}')
