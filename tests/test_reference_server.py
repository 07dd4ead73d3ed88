import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import h11
import psutil
import pytest

from streamgauge import catalog
from streamgauge.errors import CannotTellError
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.connection import MAX_BODY
from streamgauge.reference.launch import running
from streamgauge.wire.sse import read_events

TEXT = "/v1/inference/completions"
WAIT = 60.0
FIELDS = {"Authorization": DEFAULT_KEY, "Content-Type": "application/json"}
TTFT_MS, ITL_MS = 80, 30


@pytest.fixture(scope="module")
def quick():
    """Address of an endpoint that never waits."""
    with running() as base:
        yield urlsplit(base).hostname, urlsplit(base).port


@pytest.fixture(scope="module")
def paced():
    """Address of an endpoint that answers at a pace."""
    with running(ttft_ms=TTFT_MS, itl_ms=ITL_MS) as base:
        yield urlsplit(base).hostname, urlsplit(base).port


def body_of(**changes):
    """A small request, with these members."""
    return json.dumps({"model": DEFAULT_MODEL, "prompt": "x", "max_tokens": 4, **changes}).encode()


def request_bytes(body, *, path=TEXT, method="POST", version="1.1", extra=()):
    """A request as it goes over the wire."""
    fields = [("Host", "x"), *FIELDS.items(), ("Content-Length", str(len(body))), *extra]
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode() + body


@contextlib.contextmanager
def connected(address):
    """A socket and h11's client, which reads what comes back."""
    with socket.create_connection(address, WAIT) as link:
        yield link, h11.Connection(h11.CLIENT)


def read_response(link, client, *, method="POST"):
    """The next response on the connection: status, headers, body, and when each piece of the body came."""
    client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    head, body, times = None, b"", []
    while True:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(link.recv(2**16))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
            times.append((bytes(event.data), time.monotonic()))
        elif isinstance(event, h11.EndOfMessage):
            break
    return head.status_code, {name.decode(): value.decode() for name, value in head.headers}, body, times


def metric(address, name):
    """The value of a metric now."""
    client = http.client.HTTPConnection(*address, timeout=WAIT)
    client.request("GET", "/metrics")
    page = client.getresponse().read().decode()
    client.close()
    return float(re.search(rf"^{re.escape(name)}.*? (\S+)$", page, re.MULTILINE)[1])


def eventually(condition):
    """Wait until the condition holds; asking takes a request, so this does not spin."""
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline


def test_connection_is_kept(quick):
    """Two requests, a stream and a whole answer, go over one connection."""
    with connected(quick) as (link, client):
        link.sendall(request_bytes(body_of(stream=True)))
        status, fields, body, _ = read_response(link, client)
        assert (status, fields["transfer-encoding"]) == (200, "chunked")
        assert body.endswith(b"data: [DONE]\n\n")
        client.start_next_cycle()
        link.sendall(request_bytes(body_of()))
        status, _, body, _ = read_response(link, client)
        assert (status, json.loads(body)["usage"]["completion_tokens"]) == (200, 4)


def test_pipelined_requests(quick):
    """Requests that arrive together are answered in their order."""
    with connected(quick) as (link, client):
        link.sendall(b"".join(request_bytes(body_of(max_tokens=count)) for count in (1, 2, 3)))
        for count in (1, 2, 3):
            status, _, body, _ = read_response(link, client)
            assert (status, json.loads(body)["usage"]["completion_tokens"]) == (200, count)
            client.start_next_cycle()


def test_request_in_single_bytes(quick):
    """A request may arrive byte by byte."""
    with connected(quick) as (link, client):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request_bytes(body_of()):
            link.sendall(bytes([byte]))
        assert read_response(link, client)[0] == 200


def test_chunked_request(quick):
    """A request body may be chunked."""
    body = body_of()
    start = request_bytes(b"", extra=[("Transfer-Encoding", "chunked")]).replace(b"Content-Length: 0\r\n", b"")
    with connected(quick) as (link, client):
        link.sendall(start + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        assert read_response(link, client)[0] == 200


def test_expected_continue(quick):
    """A client that waits before it sends its body is told to go on."""
    body = body_of()
    start = request_bytes(body, extra=[("Expect", "100-continue")]).removesuffix(body)
    with connected(quick) as (link, client):
        link.sendall(start)
        assert link.recv(2**16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(body)
        assert read_response(link, client)[0] == 200


def test_half_closed_client_is_answered(quick):
    """A client that ends its sending half still gets its reply."""
    with connected(quick) as (link, client):
        link.sendall(request_bytes(body_of(stream=True)))
        link.shutdown(socket.SHUT_WR)
        assert read_response(link, client)[2].endswith(b"data: [DONE]\n\n")


def test_http_1_0_is_delimited_by_the_close(quick):
    """HTTP/1.0 gets no chunks, and the connection ends with the reply."""
    with connected(quick) as (link, client):
        link.sendall(request_bytes(body_of(stream=True), version="1.0"))
        status, fields, body, _ = read_response(link, client)
        assert (status, fields.get("transfer-encoding")) == (200, None)
        assert body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 2**17 + b"\r\n\r\n", 431),
        (
            request_bytes(b"", extra=[("Content-Length", str(MAX_BODY + 1))]).replace(b"Content-Length: 0\r\n", b""),
            413,
        ),
    ],
)
def test_broken_requests(quick, data, status):
    """What is no request, or too large a one, gets an error in OpenAI's form and the end of the connection."""
    with connected(quick) as (link, client):
        link.sendall(data)
        answered, fields, body, _ = read_response(link, client)
        assert (answered, fields["connection"]) == (status, "close")
        error = json.loads(body)["error"]
        assert (set(error), error["code"]) == ({"message", "type", "param", "code"}, None)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(1) == b""


def test_body_that_grows_too_large(quick):
    """A chunked body without a declared length is cut off at the limit, and the reply still arrives."""
    start = request_bytes(b"", extra=[("Transfer-Encoding", "chunked")]).replace(b"Content-Length: 0\r\n", b"")
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with connected(quick) as (link, client):
        link.sendall(start + piece * (MAX_BODY // 0x10000 + 1))
        assert read_response(link, client)[0] == 413


def test_body_at_the_limit(quick):
    """A body of the greatest size is read and judged."""
    body = body_of()
    with connected(quick) as (link, client):
        link.sendall(request_bytes(body + b" " * (MAX_BODY - len(body))))
        assert read_response(link, client)[0] == 200


def test_nothing_is_early(paced):
    """Token k does not arrive before TTFT + k·ITL, and events come one by one."""
    with connected(paced) as (link, client):
        start = time.monotonic()
        link.sendall(request_bytes(body_of(stream=True)))
        _, _, body, times = read_response(link, client)
    assert len(read_events(body)[0]) == 4 + 2
    tokens = [when for data, when in times if b'"finish_reason":null' in data]
    for step, when in enumerate(tokens):
        assert when - start >= (TTFT_MS + step * ITL_MS) / 1000
    assert [when for _, when in times] == sorted(when for _, when in times)


def test_whole_answer_comes_with_its_last_token(paced):
    """An answer in one piece takes as long as the stream would."""
    with connected(paced) as (link, client):
        start = time.monotonic()
        link.sendall(request_bytes(body_of()))
        read_response(link, client)
        assert time.monotonic() - start >= (TTFT_MS + 3 * ITL_MS) / 1000


@pytest.mark.parametrize("stream", [True, False])
def test_client_that_leaves_is_noticed(paced, stream):
    """When the client goes, generation stops and is counted as aborted."""
    aborted = 'vllm:request_success_total{finished_reason="abort"'
    before = metric(paced, aborted)
    with connected(paced) as (link, _):
        link.sendall(request_bytes(body_of(stream=stream, max_tokens=8000)))
        eventually(lambda: metric(paced, "vllm:num_requests_running") == 1)
    eventually(lambda: metric(paced, "vllm:num_requests_running") == 0)
    assert metric(paced, aborted) == before + 1


@pytest.mark.parametrize("stream", [True, False])
def test_slots(stream):
    """Beyond so many answers the next one waits its turn; a client that leaves gives back its slot, or its turn, at once."""
    with running(ttft_ms=1, itl_ms=20, slots=1) as base:
        address = (urlsplit(base).hostname, urlsplit(base).port)
        running_now = lambda: metric(address, "vllm:num_requests_running")  # noqa: E731 - asked three times
        waiting = lambda: metric(address, "vllm:num_requests_waiting")  # noqa: E731 - asked four times
        with connected(address) as (first, _):
            first.sendall(request_bytes(body_of(stream=stream, max_tokens=8000)))
            eventually(lambda: running_now() == 1)
            with connected(address) as (leaving, _), connected(address) as (second, client):
                leaving.sendall(request_bytes(body_of(stream=stream)))
                eventually(lambda: waiting() == 1)
                second.sendall(request_bytes(body_of(stream=stream)))
                eventually(lambda: waiting() == 2)
                assert running_now() == 1
                leaving.close()
                eventually(lambda: waiting() == 1)
                first.close()
                assert read_response(second, client)[0] == 200
        eventually(lambda: (running_now(), waiting()) == (0, 0))


def test_fail_fast():
    """DeepInfra: "Answer 429 at once when the model has no free capacity, rather than queue"."""
    with running(ttft_ms=1, itl_ms=20, slots=1, profiles=["deepinfra"]) as base:
        address = (urlsplit(base).hostname, urlsplit(base).port)
        bearer = {"Authorization": f"Bearer {DEFAULT_KEY}", "Content-Type": "application/json"}

        def status(link):
            return link.getresponse().status

        def asked(**changes):
            link = http.client.HTTPConnection(*address, timeout=WAIT)
            link.request("POST", "/v1/completions", body_of(**changes), bearer)
            return contextlib.closing(link)

        with asked(fail_fast=True) as alone:
            assert status(alone) == 200
        with asked(max_tokens=8000, stream=True):
            eventually(lambda: metric(address, "vllm:num_requests_running") == 1)
            with asked(fail_fast=True) as refused:
                assert status(refused) == 429


def test_counters_follow_the_requests(quick):
    """What a client received is what the metrics say."""
    before = metric(quick, "vllm:generation_tokens_total")
    with connected(quick) as (link, client):
        link.sendall(request_bytes(body_of(stream=True, max_tokens=9)))
        read_response(link, client)
    eventually(lambda: metric(quick, "vllm:generation_tokens_total") == before + 9)


def test_key_and_models_are_handed_over():
    """The launcher's key and models are the endpoint's."""
    with running(key="another-key", models=["a", "b"]) as base:
        client = http.client.HTTPConnection(urlsplit(base).netloc, timeout=WAIT)
        client.request("GET", "/v1/inference/models", headers={"Authorization": "another-key"})
        listed = json.loads(client.getresponse().read())
        client.close()
    assert [model["id"] for model in listed["data"]] == ["a", "b"]


def test_endpoint_ends_with_the_block():
    """Its process, which alone listens, is gone after the block, even one that an exception left."""
    before = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt), running():
        (endpoint,) = set(psutil.Process().children()) - set(before)
        raise KeyboardInterrupt
    assert not endpoint.is_running()


def test_failed_start_says_why():
    """A server that dies before it listens is an error that quotes what it said."""
    with pytest.raises(CannotTellError) as failure, running(models=["\x07"]):
        pass
    assert "--model" in str(failure.value)


def serve(*arguments, **options):
    """`streamgauge serve` as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "streamgauge", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def outputs(process):
    """What the process has left to say once it has ended; `communicate` loses what `readline` read ahead."""
    process.wait(WAIT)
    return process.stdout.read(), process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_server_well(number):
    """Ctrl-C and SIGTERM are how one stops it: exit code 0, nothing on standard error, streams or not."""
    with serve("--itl-ms", "1000") as process:
        first = process.stdout.readline()
        port = int(re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", first)[1])
        with connected(("127.0.0.1", port)) as (link, _):
            link.sendall(request_bytes(body_of(stream=True)))
            assert link.recv(1) == b"H"
            process.send_signal(number)
            rest, errors = outputs(process)
    assert (process.returncode, errors) == (0, "")
    assert "curl" in rest


def test_client_that_leaves_before_its_refusal():
    """A client that has gone before the server looks at its nonsense leaves no trace on standard error."""
    with serve() as process:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        process.send_signal(signal.SIGSTOP)
        with connected(("127.0.0.1", port)) as (link, _):
            link.sendall(b"nonsense\r\n\r\n")
        process.send_signal(signal.SIGCONT)
        assert metric(("127.0.0.1", port), "vllm:num_requests_running") == 0  # behind it
        process.terminate()
        _, errors = outputs(process)
    assert (process.returncode, errors) == (0, "")


def test_end_of_standard_input_ends_the_server():
    """A launched server does not outlive its parent."""
    with serve("--until-stdin-closes", stdin=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdin.close()
        _, errors = outputs(process)
    assert (process.returncode, errors) == (0, "")


def test_help_does_not_show_a_private_key(tmp_path):
    """The key of a file is taken, and named only by its variable."""
    file = tmp_path / "key"
    file.write_text("private-key-1\nsecond line\n")
    with serve("--api-key-file", str(file), env={**os.environ, "STREAMGAUGE_API_KEY": "other-key-1"}) as process:
        base = process.stdout.readline().split()[-1]
        client = http.client.HTTPConnection(urlsplit(base).netloc, timeout=WAIT)
        client.request("GET", "/v1/inference/models", headers={"Authorization": "private-key-1"})
        assert client.getresponse().status == 200
        client.close()
        process.terminate()
        rest, _ = outputs(process)
    assert "private-key-1" not in rest
    assert "$STREAMGAUGE_API_KEY" in rest


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--profile", "nobody"), "nobody: no such profile"),
        (("--profile", "empty.yaml"), "--profile"),
        (("--api-key-file", "no-such-file"), "--api-key-file"),
        (("--port", "-1"), "--port"),
        (("--host", "192.0.2.1"), "192.0.2.1"),
    ],
)
def test_wrong_use(arguments, wanted, tmp_path, monkeypatch):
    """Wrong options end with exit code 2 and name the option; a profile without documents has nothing to serve."""
    text = catalog.profile_text("openai").decode().replace("[openai-chat, openai-completions]", "[]")
    (tmp_path / "empty.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with serve(*arguments) as process:
        _, errors = outputs(process)
    assert process.returncode == 2
    assert wanted in errors


def test_port_in_use(quick):
    """A port that is taken is a clear error, not a traceback."""
    with serve("--port", str(quick[1])) as process:
        _, errors = outputs(process)
    assert process.returncode == 2
    assert "in use" in errors
    assert "Traceback" not in errors
