"""How a stream ended: one word for each way, whatever its bytes."""

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, sse, stream_request

from streamgauge.wire.ending import StreamEnding, describe_ending, stream_ending
from streamgauge.wire.exchange import Ending, Exchange

OPERATION = contract_of("seekr-chat")[1]
LAST_CHUNK = b"0\r\n\r\n"
ERROR = b'data: {"error": {"message": "no"}}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = sse(chunks(OPERATION), done=False)


def ended(body: bytes, ending: Ending, *, whole: bool) -> Exchange:
    """A stream with this body, with or without its last chunk."""
    wire = chunked(body)
    return exchange(OPERATION, stream_request(OPERATION), wire if whole else wire[: -len(LAST_CHUNK)], ending=ending)


@pytest.mark.parametrize(
    ("body", "ending", "whole", "expected"),
    [
        (BODY + DONE, Ending.COMPLETE, True, StreamEnding.DONE),
        (BODY + DONE, Ending.CLOSED, False, StreamEnding.DONE),
        (BODY + DONE, Ending.RESET, False, StreamEnding.DONE),
        (BODY + DONE, Ending.TIMEOUT_IDLE, False, StreamEnding.HANG),
        (BODY + ERROR, Ending.COMPLETE, True, StreamEnding.ERROR_EVENT),
        (BODY + ERROR + DONE, Ending.COMPLETE, True, StreamEnding.ERROR_EVENT),
        (BODY + ERROR, Ending.CLOSED, False, StreamEnding.ERROR_EVENT),
        (BODY + ERROR, Ending.TIMEOUT_IDLE, False, StreamEnding.HANG),
        (BODY, Ending.COMPLETE, True, StreamEnding.EOF),
        (BODY, Ending.CLOSED, False, StreamEnding.CLOSED),
        (BODY, Ending.RESET, False, StreamEnding.RESET),
        (BODY, Ending.TIMEOUT_IDLE, False, StreamEnding.HANG),
        (BODY, Ending.TIMEOUT_TOTAL, False, StreamEnding.HANG),
        (BODY, Ending.MALFORMED_HTTP, False, StreamEnding.BROKEN),
        (BODY, Ending.TLS, False, StreamEnding.BROKEN),
        (BODY, Ending.TOO_LARGE, False, StreamEnding.OUTGROWN),
        (BODY + DONE, Ending.TOO_LARGE, False, StreamEnding.DONE),
        (b": ping\n\n", Ending.CLOSED, False, StreamEnding.CLOSED),
    ],
)
def test_each_way_has_its_word(body: bytes, ending: Ending, whole: bool, expected: StreamEnding) -> None:
    """What the stream says comes before what the connection does; a hang comes before both."""
    made = ended(body, ending, whole=whole)

    assert stream_ending(made) is expected
    assert describe_ending(made).startswith(str(expected))


def test_close_ends_a_body_without_framing() -> None:
    """RFC 9112, 6.3, rule 8: there an orderly close is the message's end, a reset is not."""
    head = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    closed = exchange(OPERATION, stream_request(OPERATION), head + BODY, ending=Ending.COMPLETE)
    reset = exchange(OPERATION, stream_request(OPERATION), head + BODY, ending=Ending.RESET)

    assert stream_ending(closed) is StreamEnding.EOF
    assert stream_ending(reset) is StreamEnding.RESET


def test_description_counts_what_came() -> None:
    """Events, choices with a finish reason, [DONE], and whether the cut is within an event."""
    cut = ended(BODY[: BODY.index(b"two") + 1], Ending.CLOSED, whole=False)
    whole = ended(sse(chunks(OPERATION, 2)), Ending.TIMEOUT_IDLE, whole=False)

    assert describe_ending(cut) == "closed after 2 events, a finish reason for 0 of 1 choices, within an event"
    assert describe_ending(whole) == ("hang (timeout-idle) after 10 events, a finish reason for 2 of 2 choices, [DONE]")
    assert describe_ending(exchange(OPERATION, stream_request(OPERATION), http(200, b""), ending=Ending.COMPLETE)) == (
        "eof after 0 events"
    )


def test_choices_of_any_shape_are_counted() -> None:
    """An index may be what a broken server makes of it."""
    odd = [{"choices": [{"index": [1], "finish_reason": "stop"}, {"index": {}}, {}]}]
    made = ended(sse(odd, done=False), Ending.COMPLETE, whole=True)

    assert describe_ending(made) == "eof after 1 events, a finish reason for 1 of 3 choices"
