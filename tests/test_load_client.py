"""The client against servers that break off, stall, hang up and lie."""

import json
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import gevent
import pytest
from load_endpoint import (
    DONE,
    STREAM_HEAD,
    Answer,
    chunk,
    chunked,
    endpoint,
    free_port,
    json_answer,
    stream,
    whole,
)

from streamgauge.contract.contract import load_contracts
from streamgauge.errors import ConfigError
from streamgauge.load.client import Sent, StreamClient, Timeouts
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Judged, Outcome, Record

(CHAT,) = load_contracts(["seekr-chat"])[0].operations
ROLE, WORD, FINISH = chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, finish="stop")
RIGHT = stream(ROLE, WORD, WORD, FINISH, DONE)
SHORT = Timeouts(connect=2, first_token=0.15, idle=0.15, total=5)


def ask(url: str, *, streamed: bool = True) -> LoadRequest:
    """A request."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "stream": streamed}
    return LoadRequest("1", "t", CHAT, url, json.dumps(body).encode(), streamed, 8)


def says(wire: bytes) -> Answer:
    """Writes the bytes and leaves the connection open."""
    return lambda connection: connection.sendall(wire)


def hangs_up(wire: bytes) -> Answer:
    """Writes the bytes and closes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(wire)
        connection.shutdown(socket.SHUT_RDWR)

    return answer


def resets(wire: bytes) -> Answer:
    """Writes the bytes and, once they are read, resets the connection."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(wire)
        if wire:
            # Linux drops received bytes on a reset: give the client a sign of life first, and time to take it.
            threading.Event().wait(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return answer


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


def send_to(url: str) -> Record:
    """One request to whoever is there."""
    return StreamClient(url, {}).send(ask(url)).record


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
    record = send(server, SHORT, judged=judged)
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
    record = send(server, SHORT, streamed=False)
    assert record.outcome is expected
    assert record.token_times == []
    assert record.tokens == (2 if expected is Outcome.OK else 0)


def test_a_whole_answer_may_be_silent_for_longer_than_idle() -> None:
    """Before a whole answer begins only the total limit counts: it shows nothing while it is generated."""
    release = threading.Event()

    def late(connection: socket.socket) -> None:
        release.wait(0.4)
        connection.sendall(json_answer(whole()))

    assert send(late, SHORT, streamed=False).outcome is Outcome.OK


def test_the_total_limit_strikes_a_stream_that_never_ends() -> None:
    """A server that goes on and on is left after the total limit, though it is never idle."""

    def endless(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD)
        pause = threading.Event()
        while not pause.wait(0.02):
            connection.sendall(chunked(WORD, end=False))

    record = send(endless, Timeouts(total=0.3))
    assert record.outcome is Outcome.TIMEOUT_TOTAL
    assert len(record.token_times) > 3


def test_bytes_are_stamped_when_they_come() -> None:
    """Tokens that a server sends apart from each other are seen apart from each other."""

    def slow(connection: socket.socket) -> None:
        pause = threading.Event()
        connection.sendall(STREAM_HEAD)
        for event in (ROLE, WORD, WORD):
            connection.sendall(chunked(event, end=False))
            pause.wait(0.1)
        connection.sendall(chunked(FINISH, DONE))

    record = send(slow)
    assert record.outcome is Outcome.OK
    assert all(60_000 < gap < 400_000 for gap in record.gaps_us)
    assert record.first_event is not None
    assert record.token_times[0] - record.first_event > 60_000


def test_reads_of_one_byte_make_no_difference() -> None:
    """However the bytes are split, the same is seen."""

    def drops(connection: socket.socket) -> None:
        for byte in RIGHT:
            connection.sendall(bytes([byte]))

    assert send(drops).outcome is Outcome.OK


def test_nothing_listens() -> None:
    """A refused connection is an outcome, dispatched never and closed at once."""
    record = send_to(f"http://127.0.0.1:{free_port()}/v1")
    assert record.outcome is Outcome.REFUSED
    assert record.written is None


def test_an_unknown_host_is_no_connection() -> None:
    """A name that does not resolve counts as refused, and the detail says why."""
    record = send_to("http://host.invalid/v1")
    assert record.outcome is Outcome.REFUSED
    assert record.detail


def test_a_connection_is_kept() -> None:
    """The second request costs no connect."""
    with endpoint(says(RIGHT)) as served:
        url = served.url + "/v1?a=b"
        client = StreamClient(url, {"x-a": "b"})
        first, second = (client.send(ask(url)).record for _ in range(2))
        client.close()
        assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
        assert served.connections == 1
        assert first.connect_us > 0
        assert second.connect_us == 0
        assert served.heads[0].startswith("POST /v1?a=b HTTP/1.1\r\n")
        assert "x-a: b" in served.heads[0].split("\r\n")


@pytest.mark.parametrize("closer", [hangs_up, resets], ids=["closed", "reset"])
def test_a_stale_connection_is_replaced_once(closer: object) -> None:
    """A kept connection that is dead when it is used again costs a connect, and no failure."""
    assert callable(closer)
    with endpoint(closer(RIGHT), says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        records = [client.send(ask(served.url)).record for _ in range(2)]
        client.close()
        assert [record.outcome for record in records] == [Outcome.OK, Outcome.OK]
        assert served.connections == 2
        assert records[1].connect_us > 0
        assert not records[0].replaced


def test_a_request_that_is_sent_twice_says_so() -> None:
    """Whether the server closed the kept connection just then or dropped the request, nobody can tell: the record shows it."""

    def drops(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    with endpoint(says(RIGHT), drops, says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        records = [client.send(ask(served.url)).record for _ in range(2)]
        client.close()
    assert [(record.outcome, record.replaced) for record in records] == [(Outcome.OK, False), (Outcome.OK, True)]
    assert len(served.bodies) == 3


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
    limits = Timeouts(connect=2, first_token=20, idle=0.2, total=30)
    record = send(server, limits, streamed=streamed)
    assert record.outcome is Outcome.TIMEOUT_IDLE
    assert record.first_byte is not None
    assert 190_000 <= record.closed - record.first_byte < 5_000_000


def test_a_fresh_connection_is_not_replaced() -> None:
    """A server that never answers is asked once for each request: no silent repeat hides it."""
    with endpoint(hangs_up(b"")) as served:
        record = send_to(served.url)
        assert record.outcome is Outcome.RESET
        assert len(served.bodies) == 1


def test_what_was_answered_in_part_is_not_repeated() -> None:
    """A kept connection that breaks inside an answer is a failure: the server has done its work."""
    with endpoint(says(RIGHT), hangs_up(b"HTTP/1.1 2")) as served:
        client = StreamClient(served.url, {})
        records = [client.send(ask(served.url)).record for _ in range(2)]
        assert [record.outcome for record in records] == [Outcome.OK, Outcome.TRUNCATED]
        assert len(served.bodies) == 2


def test_retry_after_is_told() -> None:
    """What an answer asked for is told beside its record."""
    with endpoint(says(json_answer({}, "429 Slow", retry_after="3")), says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        assert client.send(ask(served.url)).retry_after == 3.0
        assert client.send(ask(served.url)).retry_after is None
        client.close()


def test_a_stop_in_flight_leaves_a_record() -> None:
    """What the end of the run cuts off is handed over as unfinished, then the greenlet ends."""
    sent: list[Sent] = []
    with endpoint(says(stream(ROLE, WORD, end=False))) as served:
        client = StreamClient(served.url, {})
        greenlet = gevent.spawn(client.send, ask(served.url), on_record=sent.append)
        while not served.bodies:
            gevent.sleep(0.01)
        assert client.running == 1
        gevent.sleep(0.1)  # the answer is on its way: what has come by the stop is in the record
        greenlet.kill()
    assert isinstance(greenlet.value, gevent.GreenletExit)
    assert [each.record.outcome for each in sent] == [Outcome.UNFINISHED_AT_STOP]
    assert len(sent[0].record.token_times) == 1
    assert client.running == 0


def test_many_requests_at_once_over_connections_opened_before() -> None:
    """Connections that were opened beforehand carry the requests: none pays for a connect, none waits for another."""
    with endpoint(says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        assert client.open(8) == 8
        greenlets = [gevent.spawn(client.send, ask(served.url)) for _ in range(8)]
        records = [greenlet.get().record for greenlet in greenlets]
        client.close()
    assert [record.outcome for record in records] == [Outcome.OK] * 8
    assert [record.connect_us for record in records] == [0] * 8
    assert served.connections == 8


def test_an_idle_connection_that_the_server_closes_is_noticed() -> None:
    """It is replaced before a request is lost on it."""
    with endpoint(hangs_up(RIGHT), says(RIGHT)) as served:
        client = StreamClient(served.url, {})
        client.send(ask(served.url))
        gevent.sleep(0.05)
        assert client.open(1) == 1
        record = client.send(ask(served.url)).record
        client.close()
    assert (record.outcome, record.connect_us) == (Outcome.OK, 0)


def test_opening_connections_to_nobody_is_no_failure() -> None:
    """Whether they are there shows when a request needs one."""
    assert StreamClient(url := f"http://127.0.0.1:{free_port()}", {}).open(3) == 0
    assert send_to(url).outcome is Outcome.REFUSED


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


def test_a_client_speaks_to_its_origin_only() -> None:
    """The key in its header fields is for one server."""
    with pytest.raises(ConfigError):
        StreamClient("http://127.0.0.1:1", {}).send(ask("http://127.0.0.1:2/v1"))


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody signed but itself, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes a certificate by the openssl command")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    make = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    key = path.with_name("key.pem")
    subprocess.run([*make, *names, "-keyout", str(key), "-out", str(path)], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


def test_tls(certificate: Path) -> None:
    """Certificates are verified by default; with the right one trusted it works, connect time included."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with endpoint(says(RIGHT), tls=context) as served:
        refused = send_to(served.url)
        client = StreamClient(served.url, {}, tls=ssl.create_default_context(cafile=certificate))
        accepted = client.send(ask(served.url)).record
        client.close()
    assert refused.outcome is Outcome.TLS
    assert "certificate" in refused.detail
    assert accepted.outcome is Outcome.OK
    assert accepted.connect_us > 0


def test_what_nobody_asked_for_ends_a_kept_tls_connection(certificate: Path) -> None:
    """Bytes behind an answer would be taken for the beginning of the next one, encrypted or not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    said = threading.Event()

    def talks_on(connection: socket.socket) -> None:
        connection.sendall(RIGHT)
        said.wait(20)
        connection.sendall(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n")

    with endpoint(talks_on, says(RIGHT), tls=context) as served:
        client = StreamClient(served.url, {}, tls=ssl.create_default_context(cafile=certificate))
        first = client.send(ask(served.url)).record
        said.set()
        gevent.sleep(0.1)
        second = client.send(ask(served.url)).record
        client.close()
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
    assert second.connect_us > 0


def test_plain_http_behind_https_is_a_tls_failure() -> None:
    """A server that does not speak TLS is named so."""
    with endpoint(says(RIGHT)) as served:
        url = served.url.replace("http:", "https:")
        record = StreamClient(url, {}, timeouts=Timeouts(connect=0.5)).send(ask(url)).record
    assert record.outcome in (Outcome.TLS, Outcome.TIMEOUT_CONNECT)


def test_connections_to_a_black_hole_are_given_up() -> None:
    """Opening many beforehand takes no longer than the limit of one, however many come after it."""
    with socket.create_server(
        ("127.0.0.1", 0), backlog=512
    ) as silent:  # takes connections, and never says a word of TLS
        client = StreamClient(f"https://127.0.0.1:{silent.getsockname()[1]}/", {}, timeouts=Timeouts(connect=0.3))
        started = time.monotonic()
        assert client.open(400) == 0  # 64 at a time
        assert 0.25 < time.monotonic() - started < 1.2


def test_no_locust_here() -> None:
    """What runs in the user's own process imports neither Locust nor gevent: they patch the sockets of everybody."""
    modules = "child command standby judge live measure plan reading response runner tally verdict window workload"
    imports = "; ".join(f"import streamgauge.load.{name}" for name in modules.split())
    heavy = "[n for n in ('locust', 'gevent', 'requests') if n in sys.modules]"
    code = f"import sys; import streamgauge.cli.load; {imports}; sys.exit(str({heavy}) if {heavy} else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
