"""The client against servers that break off, stall, hang up and lie."""

import json
import socket
import subprocess
import sys
import threading

import gevent
import pytest
from load_client import CHAT, FINISH, RIGHT, ROLE, WAIT_S, WORD, ask, hangs_up, note_reads, resets, says
from load_endpoint import (
    DONE,
    STREAM_HEAD,
    Answer,
    chunked,
    endpoint,
    json_answer,
    stream,
    whole,
)

from streamgauge.errors import ConfigError
from streamgauge.load.client import Sent, StreamClient, Timeouts
from streamgauge.load.loopclock import now_us
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Judged, Outcome, Record

HASTY = {
    Outcome.TIMEOUT_FIRST_TOKEN: Timeouts(first_token=0.15),
    Outcome.TIMEOUT_IDLE: Timeouts(idle=0.15),
}
"""Only the limit that has to strike is short: on a machine that stands still no other one comes before it."""


def stamps(record: Record) -> list[int]:
    """The stamps that are there, in the order in which they have to come."""
    found = [
        record.dispatched,
        record.written,
        record.headers,
        record.first_byte,
        record.first_event,
        *record.token_times,
        record.finish,
        record.done,
        record.closed,
    ]
    return [stamp for stamp in found if stamp is not None]


def send(
    server: Answer, timeouts: Timeouts | None = None, *, streamed: bool = True, judged: Judged = Judged.ALL
) -> Record:
    """One request to a server with this answer."""
    with endpoint(server) as served:
        client = StreamClient(served.url, {}, timeouts=timeouts)
        try:
            return client.send(ask(served.url + "/v1", streamed=streamed), judged=judged).record
        finally:
            client.close()


CASES: list[tuple[str, Answer, Outcome]] = [
    ("right", says(RIGHT), Outcome.OK),
    ("right, then hung up", hangs_up(RIGHT), Outcome.OK),
    ("without framing", hangs_up(b"HTTP/1.1 200 OK\r\n\r\n" + ROLE + WORD + FINISH + DONE), Outcome.OK),
    ("without framing, cut", hangs_up(b"HTTP/1.1 200 OK\r\n\r\n" + ROLE + WORD), Outcome.TRUNCATED),
    ("cut inside a chunk", hangs_up(STREAM_HEAD + chunked(ROLE, WORD, end=False)[:-9]), Outcome.TRUNCATED),
    ("cut between chunks", hangs_up(stream(ROLE, WORD, FINISH, end=False)), Outcome.TRUNCATED),
    ("no answer", hangs_up(b""), Outcome.RESET),
    ("reset at once", resets(b""), Outcome.RESET),
    ("reset inside", resets(stream(ROLE, WORD, end=False)), Outcome.RESET),
    ("no HTTP", hangs_up(b"220 ready\r\n\r\n"), Outcome.TRUNCATED),
    ("429", says(json_answer({}, "429 Too Many Requests")), Outcome.RATE_LIMITED),
    ("500", says(json_answer({}, "500 Oops")), Outcome.HTTP_5XX),
    ("silence", says(b""), Outcome.TIMEOUT_FIRST_TOKEN),
    ("role, then silence", says(stream(ROLE, end=False)), Outcome.TIMEOUT_FIRST_TOKEN),
    ("token, then silence", says(stream(ROLE, WORD, end=False)), Outcome.TIMEOUT_IDLE),
    ("no end after [DONE]", says(stream(ROLE, WORD, FINISH, DONE, end=False)), Outcome.TIMEOUT_IDLE),
]


@pytest.mark.parametrize("judged", Judged)
@pytest.mark.parametrize(("server", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_outcomes(server: Answer, expected: Outcome, judged: Judged) -> None:
    """Whatever a server does becomes an outcome, never an exception, and the stamps are in order."""
    record = send(server, HASTY.get(expected), judged=judged)
    assert record.outcome is expected, record.detail
    assert stamps(record) == sorted(stamps(record))
    assert Record.from_line(record.line()) == record


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (says(json_answer(whole())), Outcome.OK),
        (hangs_up(json_answer(b'{"choi', content_length="400")), Outcome.TRUNCATED),
        (says(json_answer(b'{"choi', content_length="400")), Outcome.TIMEOUT_IDLE),
    ],
)
def test_whole_answers(server: Answer, expected: Outcome) -> None:
    """A whole answer has tokens by usage and no token times, so that TTFT has no value."""
    record = send(server, HASTY.get(expected), streamed=False)
    assert record.outcome is expected
    assert record.token_times == []
    assert record.tokens == (2 if expected is Outcome.OK else 0)


def test_a_whole_answer_may_be_silent_for_longer_than_idle() -> None:
    """Before a whole answer begins only the total limit counts: it shows nothing while it is generated."""
    never = threading.Event()

    def late(connection: socket.socket) -> None:
        never.wait(0.2)
        connection.sendall(json_answer(whole()))

    assert send(late, Timeouts(idle=0.1), streamed=False).outcome is Outcome.OK


def test_the_total_limit_strikes_a_stream_that_never_ends() -> None:
    """A server that goes on and on is left after the total limit, though it is never idle."""

    def endless(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD)
        pause = threading.Event()
        while not pause.wait(0.02):
            connection.sendall(chunked(WORD, end=False))

    record = send(endless, Timeouts(total=0.3))
    assert record.outcome is Outcome.TIMEOUT_TOTAL
    assert record.closed - record.dispatched >= 300_000


def test_bytes_are_stamped_when_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event's stamp lies between the moment when a server sent it and that when it heard that it was read."""
    taken = note_reads(monkeypatch)
    sent: list[tuple[int, int]] = []

    def slow(connection: socket.socket) -> None:
        head = STREAM_HEAD
        for event in (ROLE, WORD, WORD):
            taken.clear()
            before = now_us()
            connection.sendall(head + chunked(event, end=False))
            assert taken.wait(WAIT_S)
            sent.append((before, now_us()))
            head = b""
        connection.sendall(chunked(FINISH, DONE))

    record = send(slow)
    assert record.outcome is Outcome.OK
    assert record.first_event is not None
    seen = [record.first_event, *record.token_times]
    assert [before <= stamp <= after for stamp, (before, after) in zip(seen, sent, strict=True)] == [True] * 3


def test_reads_of_one_byte_make_no_difference() -> None:
    """However the bytes are split, the same is seen."""

    def drops(connection: socket.socket) -> None:
        for byte in RIGHT:
            connection.sendall(bytes([byte]))

    assert send(drops).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("server", "streamed"),
    [
        (says(stream(ROLE, WORD, end=False)), True),
        (says(STREAM_HEAD + chunked(ROLE + WORD, end=False)), True),
        (says(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + ROLE + WORD), True),
        (says(json_answer(b'{"choi', content_length="400")), False),
    ],
    ids=["stream", "one read", "until close", "whole"],
)
def test_silence_is_noticed_when_the_idle_limit_is_over(server: Answer, streamed: bool) -> None:
    """Not when the limit is over that applied before something came: that one is far longer."""
    limits = Timeouts(first_token=100, idle=0.2, total=100)
    record = send(server, limits, streamed=streamed)
    assert record.outcome is Outcome.TIMEOUT_IDLE
    assert record.first_byte is not None
    assert 200_000 <= record.closed - record.first_byte < 50_000_000


def test_retry_after_is_told() -> None:
    """What an answer asked for is told beside its record."""
    with endpoint(says(json_answer({}, "429 Slow", retry_after="3")), says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        assert client.send(ask(served.url)).retry_after == 3.0
        assert client.send(ask(served.url)).retry_after is None
        client.close()


def test_a_stop_in_flight_leaves_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the end of the run cuts off is handed over as unfinished, with what had come; then the greenlet ends."""
    taken = note_reads(monkeypatch)
    sent: list[Sent] = []
    with endpoint(says(stream(ROLE, WORD, end=False))) as served:
        client = StreamClient(served.url, {})
        greenlet = gevent.spawn(client.send, ask(served.url), on_record=sent.append)
        with gevent.Timeout(WAIT_S):
            while not taken.is_set():
                gevent.sleep(0.001)
        assert client.running == 1
        greenlet.kill()
    assert isinstance(greenlet.value, gevent.GreenletExit)
    assert [each.record.outcome for each in sent] == [Outcome.UNFINISHED_AT_STOP]
    assert len(sent[0].record.token_times) == 1
    assert client.running == 0


def test_a_body_larger_than_the_socket_takes_at_once_arrives_whole() -> None:
    """What the system does not take at once is sent when it does, and `written` is stamped then."""
    with endpoint(says(RIGHT)) as served:
        body = json.dumps({"prompt": "x" * 8_000_000}).encode()
        request = LoadRequest("1", "t", CHAT, served.url, body, True, 8)
        record = StreamClient(served.url, {}).send(request).record
    assert record.outcome is Outcome.OK
    assert len(served.bodies[0]["prompt"]) == 8_000_000
    assert record.written is not None
    assert record.headers is not None
    assert record.dispatched < record.written


def test_the_raw_answer_is_kept_for_whoever_wants_to_show_it() -> None:
    """Every read with its time and its bytes; of a very long answer nothing."""
    with endpoint(says(RIGHT), says(stream(*[WORD] * 12_000, FINISH, DONE))) as served:
        client = StreamClient(served.url, {})
        short, long = (client.send(ask(served.url)) for _ in range(2))
        client.close()
    assert short.reads is not None
    assert b"".join(data for _, _, data in short.reads) == RIGHT
    assert (long.record.outcome, long.reads) == (Outcome.OK, None)
    assert len(long.record.token_times) == 12_000


@pytest.mark.parametrize("value", ["a\r\nb: c", "\u20ac"])
def test_a_header_that_cannot_be_sent_is_refused(value: str) -> None:
    """A line break would smuggle a field in; what is no ISO-8859-1 cannot travel."""
    with pytest.raises(ConfigError):
        StreamClient("http://127.0.0.1/v1", {"x-a": value})


def test_no_locust_here() -> None:
    """What runs in the user's own process imports neither Locust nor gevent: they patch the sockets of everybody."""
    modules = "child command standby judge live measure plan reading response runner tally verdict window workload"
    imports = "; ".join(f"import streamgauge.load.{name}" for name in modules.split())
    heavy = "[n for n in ('locust', 'gevent', 'requests') if n in sys.modules]"
    code = f"import sys; import streamgauge.cli.load; {imports}; sys.exit(str({heavy}) if {heavy} else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
