"""Connections of the client: opened, kept, replaced, encrypted, refused."""

import contextlib
import socket
import ssl
import threading

import gevent
import pytest
import trustme
from load_client import RIGHT, WAIT_S, ask, hangs_up, resets, says, send_to, wait_until_none_is_idle
from load_endpoint import endpoint, held_port

from streamgauge.errors import ConfigError
from streamgauge.load.client import StreamClient, Timeouts
from streamgauge.metrics.record import Outcome


def test_nothing_listens() -> None:
    """A refused connection is an outcome, dispatched never and closed at once."""
    with held_port() as port:
        record = send_to(f"http://127.0.0.1:{port}/v1")
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
        wait_until_none_is_idle(client)
        assert client.open(1) == 1
        record = client.send(ask(served.url)).record
        client.close()
    assert (record.outcome, record.connect_us) == (Outcome.OK, 0)


def test_opening_connections_to_nobody_is_no_failure() -> None:
    """Whether they are there shows when a request needs one."""
    with held_port() as port:
        assert StreamClient(url := f"http://127.0.0.1:{port}", {}).open(3) == 0
        assert send_to(url).outcome is Outcome.REFUSED


def test_a_client_speaks_to_its_origin_only() -> None:
    """The key in its header fields is for one server."""
    with pytest.raises(ConfigError):
        StreamClient("http://127.0.0.1:1", {}).send(ask("http://127.0.0.1:2/v1"))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Nobody knows it; it vouches for servers at 127.0.0.1."""
    return trustme.CA()


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of such a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def trust_in(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of a client that trusts it."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_tls(authority: trustme.CA) -> None:
    """Certificates are verified by default; with the right one trusted it works, connect time included."""
    with endpoint(says(RIGHT), tls=tls_of(authority)) as served:
        refused = send_to(served.url)
        client = StreamClient(served.url, {}, tls=trust_in(authority))
        accepted = client.send(ask(served.url)).record
        client.close()
    assert refused.outcome is Outcome.TLS
    assert "certificate" in refused.detail
    assert accepted.outcome is Outcome.OK
    assert accepted.connect_us > 0


def test_what_nobody_asked_for_ends_a_kept_tls_connection(authority: trustme.CA) -> None:
    """Bytes behind an answer would be taken for the beginning of the next one, encrypted or not."""
    said = threading.Event()

    def talks_on(connection: socket.socket) -> None:
        connection.sendall(RIGHT)
        said.wait(WAIT_S)
        connection.sendall(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n")

    with endpoint(talks_on, says(RIGHT), tls=tls_of(authority)) as served:
        client = StreamClient(served.url, {}, tls=trust_in(authority))
        first = client.send(ask(served.url)).record
        said.set()
        wait_until_none_is_idle(client)
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
    """Opening many beforehand takes no longer than the limit of one: of 400, 64 at a time, no second 64 are tried."""
    with socket.create_server(
        ("127.0.0.1", 0), backlog=512
    ) as silent:  # takes connections, and never says a word of TLS
        client = StreamClient(f"https://127.0.0.1:{silent.getsockname()[1]}/", {}, timeouts=Timeouts(connect=0.3))
        assert client.open(400) == 0
        silent.setblocking(False)
        tried = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                tried += 1
    assert tried <= 64
