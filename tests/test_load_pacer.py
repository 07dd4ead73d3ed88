"""The paced server: right by the strict readers, and truthful about its times."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.request import urlopen

import pytest

from streamgauge.contract.contract import CHAT, JSON, SSE, Operation, load_contracts
from streamgauge.load.pacer import pacer_command, running
from streamgauge.wire.http import HttpResponse, Read, decode_response
from streamgauge.wire.sse import DONE, read_events

DOCUMENTS = ("openai-chat", "seekr-chat", "openai-completions", "seekr-completions")
OPERATIONS = [operation for contract in load_contracts(DOCUMENTS) for operation in contract.operations]
PACE = {"ttft_ms": 20, "itl_ms": 5, "name": "this one"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that no test asks for its counters."""
    with running() as url:
        yield url


def connect(url: str) -> socket.socket:
    """A connection to it."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def request(operation: Operation, **members: Any) -> bytes:
    """A request with these members in its body."""
    chat = operation.family == CHAT
    prompt = {"messages": [{"role": "user", "content": "hello"}]} if chat else {"prompt": "hello"}
    body = json.dumps({"model": "some-model", **prompt, **members}).encode()
    path = "/v1/chat/completions" if chat else "/v1/completions"
    return b"POST %b HTTP/1.1\r\nhost: x\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


def answer(connection: socket.socket) -> HttpResponse:
    """The next answer, whole."""
    wire = connection.recv(65536)
    while not (response := decode_response(wire, [Read(0.0, len(wire))], closed=False)).complete:
        assert not response.protocol_error
        piece = connection.recv(65536)
        assert piece
        wire += piece
    assert not response.surplus
    return response


def page_of(url: str, name: str) -> Any:
    """What the server says of itself."""
    with urlopen(f"{url}/{name}") as page:
        return json.load(page)


def events(response: HttpResponse) -> list[dict[str, Any]]:
    """The payloads before the last one, which has to be [DONE]."""
    found, reader = read_events(response.body)
    assert not reader.unfinished and found[-1].data == DONE
    return [json.loads(event.data) for event in found[:-1]]


@pytest.mark.parametrize("pace", [{}, {"pace": PACE}], ids=["whole", "paced"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_stream_keeps_the_contract(url: str, operation: Operation, pace: dict[str, Any]) -> None:
    """Every chunk by its schema; role, tokens, finish, usage in its own chunk, [DONE]; one chunk of the coding for each event."""
    with connect(url) as connection:
        options = {"stream_options": {"include_usage": True}}
        connection.sendall(request(operation, stream=True, max_tokens=10, **options, **pace))
        response = answer(connection)
    told = events(response)
    assert response.media_type == SSE
    assert len(response.chunks) == len(told) + 2  # and [DONE], and the end
    assert [operation.response(200, SSE).problems(event) for event in told] == [[]] * len(told)
    assert len({event["id"] for event in told}) == 1 and {event["model"] for event in told} == {"some-model"}
    *said, usage = told
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 10
    choices = [event["choices"][0] for event in said]
    if operation.family == CHAT:
        assert choices.pop(0)["delta"]["role"] == "assistant"
    texts = [choice["delta"].get("content", "") if operation.family == CHAT else choice["text"] for choice in choices]
    assert all(texts[:-1]) and len(texts) == 11 and not texts[-1]
    assert [choice["finish_reason"] for choice in choices] == [None] * 10 + ["length"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_whole_answer_keeps_the_contract(url: str, operation: Operation) -> None:
    """Without `stream` comes one JSON body, right by its schema."""
    with connect(url) as connection:
        connection.sendall(request(operation, max_tokens=3))
        response = answer(connection)
    value = json.loads(response.body)
    assert response.media_type == JSON
    assert operation.response(200, JSON).problems(value) == []
    assert value["usage"]["completion_tokens"] == 3


def test_usage_comes_only_where_asked_for(url: str) -> None:
    """`stream_options.include_usage` decides whether there is a chunk with the usage."""
    with connect(url) as connection:
        connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=3))
        assert not any("usage" in event for event in events(answer(connection)))


def test_stamps_are_true(url: str) -> None:
    """No token is sent before it is due; stamps ascend, lie within what the client sees, and are those of `/dump`."""
    with connect(url) as connection:
        before = time.monotonic_ns()
        connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=8, pace=PACE))
        told = events(answer(connection))
        after = time.monotonic_ns()
    tokens = [event for event in told if event["choices"] and event["choices"][0]["delta"].get("content")]
    stamps = [event["t_ns"] for event in tokens]
    received = tokens[0]["t_recv_ns"]
    assert before < received < stamps[0] and stamps[-1] < after
    assert all(earlier < later for earlier, later in pairwise(stamps))
    assert all(stamp >= received + (20 + 5 * k) * 1_000_000 for k, stamp in enumerate(stamps))
    kept = [stream for stream in page_of(url, "dump")["paced"] if stream["t_recv"] == received]
    assert kept == [{"name": "this one", "tokens": 8, "blocked": 0, "t_recv": received, "t_w": stamps}]


def test_events_without_stamps_differ_in_their_text_alone(url: str) -> None:
    """As a model's do, so that what a client costs can be measured on them."""
    with connect(url) as connection:
        connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=4, pace=PACE | {"stamped": False}))
        tokens = [event for event in events(answer(connection)) if event["choices"][0]["delta"].get("content")]
    for event in tokens:
        event["choices"][0]["delta"]["content"] = ""
    assert tokens == [tokens[0]] * 4


def test_due_events_go_out_in_order() -> None:
    """Of several streams, each event goes before those that are due after it."""
    with running() as url, connect(url) as slow, connect(url) as quick:
        slow.sendall(
            request(OPERATIONS[0], stream=True, max_tokens=2, pace={"ttft_ms": 120, "itl_ms": 60, "name": "slow"})
        )
        quick.sendall(
            request(OPERATIONS[0], stream=True, max_tokens=4, pace={"ttft_ms": 30, "itl_ms": 7, "name": "quick"})
        )
        answer(quick), answer(slow)
        streams, stats = page_of(url, "dump")["paced"], page_of(url, "stats")
    pace = {"slow": (120, 60), "quick": (30, 7)}
    sent = [
        (stamp, stream["t_recv"] + round((pace[stream["name"]][0] + k * pace[stream["name"]][1]) * 1e6))
        for stream in streams
        for k, stamp in enumerate(stream["t_w"])
    ]
    assert [due for _, due in sorted(sent)] == sorted(due for _, due in sent)
    assert (stats["requests"], stats["events"], stats["late_us"]["n"]) == (2, 6, 6)


def test_a_client_that_leaves_takes_nobody_with_it(url: str) -> None:
    """The stream of a client that has gone ends; others, and requests that come behind one another, are answered."""
    with connect(url) as stays:
        with connect(url) as leaves:
            leaves.sendall(request(OPERATIONS[0], stream=True, max_tokens=1000, pace={"ttft_ms": 0, "itl_ms": 5}))
            assert leaves.recv(10)
        for _ in range(2):
            stays.sendall(request(OPERATIONS[0], stream=True, max_tokens=3, pace=PACE))
            assert len(events(answer(stays))) == 5


@pytest.mark.parametrize(
    "pace", [{}, {"pace": {"ttft_ms": 0, "itl_ms": 0, "name": "too much"}}], ids=["whole", "paced"]
)
def test_nothing_is_lost_on_a_slow_reader(pace: dict[str, Any]) -> None:
    """What does not fit into the socket waits its turn; a paced stream then says that its stamps are worth nothing."""
    with running() as url, connect(url) as connection:
        connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=30_000, **pace))
        while page_of(url, "stats")["events"] < 30_000:  # some megabytes, of which nothing has been read
            pass
        pieces = []
        while not pieces or not pieces[-1].endswith(b"\r\n0\r\n\r\n"):
            pieces.append(connection.recv(1 << 20))
            assert pieces[-1]
        streams = page_of(url, "dump")["paced"]
    assert b"".join(pieces).count(b'"finish_reason":null') == 30_001
    assert [stream["blocked"] > 0 for stream in streams] == [True] * len(pace)


def test_reset_forgets(url: str) -> None:
    """After `POST /reset` nothing is counted or kept."""
    with connect(url) as connection:
        for pace in ({}, {"pace": PACE}):
            connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=1, **pace))
            answer(connection)
        connection.sendall(b"POST /reset HTTP/1.1\r\n\r\n")
        answer(connection)
        connection.sendall(b"GET /dump HTTP/1.1\r\n\r\n")
        assert json.loads(answer(connection).body) == {"paced": [], "whole": []}


def test_wrong_requests_are_refused(url: str) -> None:
    """What is no JSON is answered by 400, what lies nowhere by 404; the connection is kept."""
    with connect(url) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\ncontent-length: 1\r\n\r\n{")
        assert answer(connection).status == 400
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert answer(connection).status == 404


def test_ends_with_standard_input() -> None:
    """It ends by itself when its parent closes the pipe, or is gone, also while a stream is under way."""
    with subprocess.Popen(pacer_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        with connect(f"http://127.0.0.1:{int(process.stdout.readline())}") as connection:
            connection.sendall(request(OPERATIONS[0], stream=True, max_tokens=1000, pace=PACE))
            assert connection.recv(10)
            process.stdin.close()
            assert process.wait(30) == 0
