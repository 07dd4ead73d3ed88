"""Several processes that serve one port: even shares, counters summed, and never an orphan."""

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
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running

WAIT = 60.0


@contextlib.contextmanager
def fleet(*arguments: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """`streamgauge serve --processes 2`, and where it listens."""
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", "0", "--processes", "2", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes, **options) as process:
        try:
            assert process.stdout
            said = process.stdout.readline()
            found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", said)
            assert found, said
            yield process, ("127.0.0.1", int(found[1]))
        finally:
            process.kill()


def get(address: tuple[str, int], path: str, **members: object) -> bytes:
    """One answer over a connection of its own; a POST if there are members."""
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=WAIT)) as link:
        fields = {"Authorization": f"Bearer {DEFAULT_KEY}", "Content-Type": "application/json"}
        body = json.dumps({"model": DEFAULT_MODEL, "prompt": "x", **members}) if members else None
        link.request("POST" if members else "GET", path, body, fields)
        return link.getresponse().read()


def address_of(url: str) -> tuple[str, int]:
    """Its host and port."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    return parts.hostname, parts.port


SUMS = (
    'vllm:generation_tokens_total{model_name="streamgauge-reference"} 15',
    'vllm:request_success_total{finished_reason="length",model_name="streamgauge-reference"} 5',
    'vllm:e2e_request_latency_seconds_bucket{le="+Inf",model_name="streamgauge-reference"} 5',
)


def test_counters_are_summed() -> None:
    """Whichever process shows the page, it tells of all requests."""
    with running(processes=2, profiles=["openai"]) as url:
        for count in range(1, 6):
            get(address_of(url), "/v1/completions", max_tokens=count)
        # An answer is counted behind its last write: its client may be here first.
        deadline = time.monotonic() + WAIT
        pages = [""]
        while not all(line in page.splitlines() for page in pages for line in SUMS):
            assert time.monotonic() < deadline
            pages = [get(address_of(url), "/metrics").decode() for _ in range(4)]


def test_connections_go_round() -> None:
    """Each process spares one request, as it was told: so of one process the second would get no answer, here the third."""
    with running(processes=2, profiles=["openai"], faults=["http.no-answer,after=1"]) as url:
        for _ in range(2):
            assert b"choices" in get(address_of(url), "/v1/completions", max_tokens=1)
        for _ in range(2):
            with pytest.raises(http.client.RemoteDisconnected):
                get(address_of(url), "/v1/completions", max_tokens=1)


@contextlib.contextmanager
def open_streams(address: tuple[str, int]) -> Iterator[list[socket.socket]]:
    """A slow stream of each process."""
    body = json.dumps({"model": DEFAULT_MODEL, "prompt": "x", "stream": True, "max_tokens": 4000}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {DEFAULT_KEY}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(socket.create_connection(address, WAIT)) for _ in range(2)]
        for link in links:
            link.sendall(head.encode() + body)
            assert link.recv(4)
        yield links


def serving(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes to which the first one hands its connections."""
    found = psutil.Process(process.pid).children()
    assert len(found) == 2
    return found


def gone(processes: list[psutil.Process]) -> bool:
    """Whether they have ended, now that the one that listened has."""
    return not psutil.wait_procs(processes, WAIT)[1]


def drained(link: socket.socket) -> bool:
    """Whether the connection comes to its end: nobody holds the other one any more."""
    with contextlib.suppress(ConnectionError):
        while link.recv(2**16):
            pass
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_them_all(number: int) -> None:
    """Ctrl-C, which reaches every process of the terminal, and SIGTERM, which reaches the first: exit code 0, no word."""
    with (
        fleet("--profile", "openai", "--itl-ms", "50", start_new_session=True) as (process, address),
        open_streams(address) as links,
    ):
        brothers = serving(process)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        assert process.wait(WAIT) == 0
        assert all(drained(link) for link in links)
        assert process.stderr
        assert process.stderr.read() == ""
        assert gone(brothers)


def test_end_of_standard_input_ends_them_all() -> None:
    """A launched fleet does not outlive whoever launched it."""
    with (
        fleet("--profile", "openai", "--itl-ms", "50", "--until-stdin-closes", stdin=subprocess.PIPE) as (
            process,
            address,
        ),
        open_streams(address) as links,
    ):
        assert process.stdin
        process.stdin.close()
        assert process.wait(WAIT) == 0
        assert all(drained(link) for link in links)


def test_no_orphans() -> None:
    """Even if the first process is killed, the others end: their connections do."""
    with (
        fleet("--profile", "openai", "--itl-ms", "50") as (process, address),
        open_streams(address) as links,
    ):
        process.kill()
        assert all(drained(link) for link in links)


def test_a_death_ends_them_all() -> None:
    """A process that dies is told of, exit code 3, and the others do not go on with half of the connections."""
    with fleet("--profile", "openai") as (process, _):
        brothers = serving(process)
        brothers[1].kill()
        assert process.wait(WAIT) == 3
        assert process.stderr
        assert "ended by itself" in process.stderr.read()
        assert gone(brothers)


def test_a_death_with_connections_unread_ends_them_all() -> None:
    """A process that dies before it has taken up what was handed to it is no other death: the same words, no traceback."""
    with fleet("--profile", "openai") as (process, address):
        brothers = serving(process)
        brothers[1].suspend()
        with contextlib.ExitStack() as stack:
            for _ in range(2):  # one for each
                stack.enter_context(socket.create_connection(address, WAIT))
            assert get(address, "/v1/models")  # behind them, and the first one's turn again
            brothers[1].kill()
            assert process.wait(WAIT) == 3
        assert process.stderr
        said = process.stderr.read()
        assert "ended by itself" in said
        assert "Traceback" not in said
        assert gone(brothers)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--processes", "2", "--slots", "1"), "--processes 2: several processes share no slots"),
        (("--processes", "2", "--queue", "0"), "--processes 2"),
        (("--processes", "2", "--kv-tokens", "9"), "--processes 2"),
        (("--processes", "2", "--step-ms", "1"), "--processes 2"),
        (("--processes", "0"), "--processes"),
        (("--step-ms", "1", "--itl-ms", "1"), "the pace is either fixed or that of a simulated accelerator"),
        (("--prefill-tokens-per-s", "1", "--ttft-ms", "1"), "the pace"),
        (("--processes", "2", "--host", "192.0.2.1"), "192.0.2.1"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], wanted: str) -> None:
    """What contradicts itself, or cannot be listened on, ends with exit code 2 and names the option."""
    command = [sys.executable, "-m", "streamgauge", "serve", "--port", "0", *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert process.returncode == 2
    assert wanted in process.stderr
    assert "Traceback" not in process.stderr
