"""How much of an answer is read, and what becomes of bytes that nobody asked for, on real sockets."""

import asyncio
import dataclasses
import functools
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from impatience import lose_patience
from scripted import CLOSE, HOLD, Answer, answer, scripted

from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

LIMIT = 300_000
QUICK = Limits(connect=30, idle=30, total=60, size=LIMIT)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@functools.cache
def contract() -> Contract:
    """The compiled contract of chat completions."""
    return load_contracts(["seekr-chat"])[0]


def ask(url: str, *, times: int = 1, limits: Limits = QUICK) -> list[Exchange]:
    """Send plain requests there, one after another."""
    target = Target("t", url, contract(), model="m", key="sk-5ecret-0123456789")

    async def run() -> list[Exchange]:
        outgoing = Outgoing(target.url(contract().operations[0]), b"{}", target.credential)
        async with Recorder(target, limits=limits) as recorder:
            return [await recorder.send(outgoing) for _ in range(times)]

    return asyncio.run(run())


@contextmanager
def endless(head: bytes, piece: bytes) -> Iterator[str]:
    """A server that sends the head, then the piece again and again, until the client hangs up."""

    def serve(listener: socket.socket) -> None:
        link, _ = listener.accept()
        with link:
            link.recv(65536)
            try:
                link.sendall(head)
                while True:
                    link.sendall(piece)
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(30)
        assert not thread.is_alive()


EVENT = b'data: {"choices": []}\n\n'
ENDLESS = {
    "chunks": (CHUNKED, b"%x\r\n%b\r\n" % (len(EVENT), EVENT)),
    "one-line": (CHUNKED + b"40000000\r\ndata: ", b"a" * 65536),
    "no-framing": (PLAIN, b" " * 65536),
    "content-length": (b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", b"a" * 65536),
    "interim": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
}


@pytest.mark.parametrize(("head", "piece"), ENDLESS.values(), ids=ENDLESS)
def test_endless_answers_are_cut(head: bytes, piece: bytes) -> None:
    """An endless body, a line of 1 GiB: just the limit is kept, the ending says that we stopped, nothing is complete."""
    with endless(head, piece) as url:
        (found,) = ask(url)
    assert found.ending is Ending.TOO_LARGE
    assert len(found.wire) == LIMIT == sum(read.size for read in found.reads)
    assert found.wire.startswith(head + piece[:100])
    assert (found.response.complete, found.response.protocol_error) == (False, "")
    assert str(LIMIT) in found.detail


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 65536),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: 1\r\n" * 5000),
        (CHUNKED + b"1;", b"a" * 65536),
    ],
    ids=["field", "fields", "chunk-extension"],
)
def test_endless_lines_are_cut(head: bytes, piece: bytes) -> None:
    """A header section or chunk extension without an end is our stop as well: the server has closed nothing."""
    with endless(head, piece) as url:
        (found,) = ask(url)
    assert found.ending is Ending.TOO_LARGE
    assert found.response.protocol_error == ""
    assert "bytes" in found.detail


def test_memory_is_bounded() -> None:
    """Of an answer that announces 1 GiB no more than a few times the limit is ever held."""
    limits = dataclasses.replace(QUICK, size=4 << 20)
    with endless(*ENDLESS["content-length"]) as url:
        tracemalloc.start()
        try:
            (found,) = ask(url, limits=limits)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (found.ending, len(found.wire)) == (Ending.TOO_LARGE, 4 << 20)
    assert peak < 8 * limits.size


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_limit_is_exact(more: int) -> None:
    """An answer of just the limit is whole; one byte more is too much."""
    whole = b"".join(part for part in answer(200, b"x" * 1000) if isinstance(part, bytes))
    with scripted(answer(200, b"x" * 1000)) as server:
        (found,) = ask(server.url, limits=dataclasses.replace(QUICK, size=len(whole) - more))
    assert found.ending is (Ending.TOO_LARGE if more > 0 else Ending.COMPLETE)
    assert found.response.complete is (more <= 0)


def test_after_a_cut_the_next_request_has_its_own_connection() -> None:
    """What is left of a cut answer is never taken for the next one."""
    with scripted(answer(200, b"x" * 400_000), answer(201)) as server:
        found = ask(server.url, times=2)
        assert server.connections == 2
    assert [each.ending for each in found] == [Ending.TOO_LARGE, Ending.COMPLETE]
    assert [each.status for each in found] == [200, 201]


# -- bytes behind the message ------------------------------------------------------------------------------------------

SECOND = b"HTTP/1.1 500 Not Asked For\r\nContent-Length: 0\r\n\r\n"
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("wire", "surplus"),
    [
        (BODY + b"more", b"more"),
        (BODY + SECOND, SECOND),
        (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n" + SECOND, SECOND),
        (b"HTTP/1.1 204 No\r\n\r\n" + SECOND, SECOND),
    ],
    ids=["longer-body", "second-answer", "after-chunks", "after-204"],
)
def test_surplus_is_kept_and_never_the_next_answer(wire: bytes, surplus: bytes) -> None:
    """RFC 9112, section 9.2: such bytes are no answer to the next request; the connection is closed."""
    with scripted([wire], answer(201)) as server:
        first, second = ask(server.url, times=2)
        assert (server.connections, len(server.requests)) == (2, 2)
    assert (first.ending, first.response.surplus) == (Ending.COMPLETE, surplus)
    assert (second.ending, second.status, second.response.surplus) == (Ending.COMPLETE, 201, b"")


SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"
ENDS: dict[str, tuple[Answer, Ending]] = {
    "short-closed": ([SHORT, CLOSE], Ending.CLOSED),
    "short-silent": ([SHORT, HOLD], Ending.TIMEOUT_IDLE),
}


@pytest.mark.parametrize(("script", "ending"), ENDS.values(), ids=ENDS)
def test_short_bodies_are_told_apart(script: Answer, ending: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9112, section 8: fewer bytes than announced, with both numbers, and whether the server closed or fell silent."""
    if ending is Ending.TIMEOUT_IDLE:
        lose_patience(monkeypatch)
    with scripted(script) as server:
        (found,) = ask(server.url)
    assert (found.ending, found.response.complete) == (ending, False)
    assert (found.response.announced, len(found.response.body)) == (9, 2)


def test_everything_that_http_hides_is_recorded() -> None:
    """Interim responses with their fields, chunk extensions and trailers come from a real socket into the exchange."""
    wire = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + CHUNKED + b"2;x=1\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"
    with scripted([wire]) as server:
        (found,) = ask(server.url)
    response = found.response
    assert [(early.status, early.headers) for early in response.interim] == [(103, [("link", "</a>")])]
    assert [(chunk.size, chunk.extension) for chunk in response.chunks] == [(2, ";x=1"), (0, "")]
    assert (response.trailers, response.surplus) == ([("x-sum", "1")], b"")
