"""
The paced server: completions whose times are known, to hold a client against.

One thread, loopback only; it starts in some 50 ms, prints its port and ends with standard input.

A request is answered with as many tokens as it asks for, one in each event. With a *pace* (`"pace": {"ttft_ms": 200, "itl_ms":
20}` in the body of a request for a stream, or by option) token k is due at t_recv + ttft + k itl: absolute times, so that
lateness never adds up. Every event says when it was sent (`t_ns`), the first token's also when the request had arrived
(`t_recv_ns`), both in nanoseconds of CLOCK_MONOTONIC, which `time.monotonic_ns` and, on Linux, `time.perf_counter_ns` read
too. So a client on this machine knows how wrong its own stamps are, however late this server is. `"stamped": false` in the pace
leaves both out: then events differ in nothing but their text, as a model's do. Without a pace the whole answer is one write.

`GET /stats` gives counters and the server's own lateness, `GET /dump` what became of each paced stream (`name` is `pace.name`)
and when the request for each other one had arrived, `POST /reset` forgets both.
"""

import argparse
import gc
import heapq
import itertools
import json
import os
import resource
import select
import selectors
import socket
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.load.paced_answers import PacedStream, error, json_response, whole_answer, whole_stream

__all__ = ["pacer_command", "running"]

_clock = time.monotonic_ns
_READ = 1 << 18
_SEND_BUFFER = 1 << 20
_FEW = 8
"""So many due events are sent before new requests are looked for, whose arrival is stamped when they are read."""

_SPIN_NS = 1_000_000
_MOST_TOKENS = 200_000
_HEAD_END = b"\r\n\r\n"


class _Connection:
    """One client; at most one paced stream is under way on it."""

    def __init__(self, peer: socket.socket) -> None:
        self.socket = peer
        self.received = b""
        self.t_recv = 0
        self.unsent = bytearray()
        self.stream: PacedStream | None = None
        self.closing = False
        self.gone = False


class _Pacer:
    """
    The server.

    Args:
        ttft_ms, itl_ms: pace of streams whose requests name none; both None for none.
        tokens: length of answers to requests that name none.
        model: name where a request names none.
        spin: whether to busy-wait the last millisecond before an event is due.
    """

    def __init__(self, *, ttft_ms: float | None, itl_ms: float | None, tokens: int, model: str, spin: bool) -> None:
        self._pace = None if ttft_ms is None and itl_ms is None else {"ttft_ms": ttft_ms or 0, "itl_ms": itl_ms or 0}
        self._tokens = tokens
        self._model = model
        self._spin_ns = _SPIN_NS if spin else 0
        # The selector comes first: `select` takes low file descriptors only.
        self._selector = selectors.DefaultSelector()
        self._numbers = itertools.count(1)
        self._due: list[tuple[int, int, _Connection, PacedStream]] = []
        self._running = True
        self._forget()
        self._pages: dict[str, Callable[[], bytes]] = {
            "/stats": self._stats,
            "/dump": self._dump,
            "/reset": self._reset,
            "/v1/models": self._models,
            "/health": lambda: json_response({}),
        }
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listener.setblocking(False)
        self.port: int = listener.getsockname()[1]
        self._selector.register(listener, selectors.EVENT_READ, partial(self._accept, listener))

    def end_with(self, fd: int) -> None:
        """End once this file descriptor has been closed at its other end."""

        def look() -> None:
            if not os.read(fd, 4096):
                self._running = False
                self._selector.unregister(fd)

        with suppress(PermissionError):  # what can be read at any time, such as /dev/null, is not waited for
            self._selector.register(fd, selectors.EVENT_READ, look)

    def serve(self) -> None:
        """Until that end."""
        while self._running:
            self._wait()
            self._look()
            self._send_due()

    def _forget(self) -> None:
        self._kept: list[PacedStream] = []
        self._late_us = array("q")
        self._requests: int = 0
        self._events: int = 0
        self._connections: int = 0
        self._most_running: int = 0
        self._whole_ns = array("q")
        self._cpu_s = time.process_time()

    def _wait(self) -> None:
        """Until something arrives or is due. A selector counts in milliseconds, `select` in microseconds."""
        left = None if not self._due else (self._due[0][0] - _clock() - self._spin_ns) / 1e9
        if left is None or left > 0:
            select.select([self._selector.fileno()], [], [], left)  # epoll or kqueue

    def _look(self) -> None:
        """Take what has arrived: whatever is there is stamped before anything is answered."""
        ready: list[_Connection] = []
        while arrived := self._selector.select(0):
            for key, events in arrived:
                if not isinstance(key.data, _Connection):
                    key.data()
                elif events & selectors.EVENT_WRITE:
                    self._flush(key.data)
                elif self._receive(key.data):
                    ready.append(key.data)
        for connection in ready:
            self._read_requests(connection)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                peer, _ = listener.accept()
                peer.setblocking(False)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
                self._selector.register(peer, selectors.EVENT_READ, _Connection(peer))
                self._connections += 1

    def _receive(self, connection: _Connection) -> bool:
        try:
            data = connection.socket.recv(_READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        connection.t_recv = _clock()
        if data:
            connection.received += data
        else:
            self._close(connection)
        return bool(data)

    def _close(self, connection: _Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()
        connection.closing = connection.gone = True
        connection.stream = None
        connection.unsent.clear()

    def _read_requests(self, connection: _Connection) -> None:
        """Answer what has arrived whole, one after the other."""
        while connection.received and connection.stream is None and not connection.closing:
            data = connection.received
            end = data.find(_HEAD_END)
            if end < 0:
                return
            head = data[:end].lower()
            place = head.find(b"\ncontent-length:")
            size = int(head[place + 16 :].split(b"\r", 1)[0]) if place >= 0 else 0
            end += len(_HEAD_END)
            if len(data) < end + size:
                return
            connection.received = data[end + size :]
            connection.closing = b"\nconnection: close" in head
            path = data.split(b" ", 2)[1].decode("latin-1")
            answered = self._respond(connection, path, data[end : end + size])
            if answered:
                self._write(connection, answered)

    def _respond(self, connection: _Connection, path: str, body: bytes) -> bytes:
        """The answer; nothing where it comes event by event."""
        if path in self._pages:
            return self._pages[path]()
        if not path.endswith("/completions"):
            return error("404 Not Found", f"nothing lies at {path}")
        try:
            asked = json.loads(body)
        except ValueError as problem:
            return error("400 Bad Request", str(problem))
        return self._complete(connection, asked, body.count(b" ") + 1, chat=path.endswith("/chat/completions"))

    def _complete(self, connection: _Connection, asked: dict[str, Any], prompt_tokens: int, *, chat: bool) -> bytes:
        model = asked.get("model") or self._model
        tokens = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or self._tokens)
        tokens = min(max(tokens, 1), _MOST_TOKENS)
        pace = asked.get("pace") or self._pace
        self._requests += 1
        if not asked.get("stream"):
            return whole_answer(chat, model, tokens, prompt_tokens)
        told = prompt_tokens if (asked.get("stream_options") or {}).get("include_usage") else None
        if not pace:
            self._events += tokens
            self._whole_ns.append(connection.t_recv)
            return whole_stream(chat, model, tokens, told)
        stream = PacedStream(next(self._numbers), chat, model, tokens, told, pace, connection.t_recv)
        connection.stream = stream
        self._kept.append(stream)
        heapq.heappush(self._due, (stream.due, stream.number, connection, stream))
        self._most_running = max(self._most_running, len(self._due))
        return b""

    def _send_due(self) -> None:
        """A few of the events whose time has come."""
        for _ in range(_FEW):
            if not self._due or (now := _clock()) < self._due[0][0]:
                return
            due, number, connection, stream = self._due[0]
            if connection.stream is not stream:  # its client has gone
                heapq.heappop(self._due)
                continue
            self._late_us.append((now - due) // 1000)
            self._events += 1
            stream.blocked += bool(connection.unsent)
            data = stream.event(now)
            if stream.over:
                heapq.heappop(self._due)
                connection.stream = None
                self._write(connection, data)
                self._read_requests(connection)
            else:
                heapq.heapreplace(self._due, (stream.due, number, connection, stream))
                self._write(connection, data)

    def _write(self, connection: _Connection, data: bytes) -> None:
        """Send, and keep what does not fit."""
        if connection.unsent:
            connection.unsent += data
            return
        sent = self._send(connection, data)
        if sent < len(data):
            connection.unsent += data[sent:]
            self._selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
        self._close_if_wanted(connection)

    def _flush(self, connection: _Connection) -> None:
        """Send what was kept."""
        del connection.unsent[: self._send(connection, connection.unsent[:_SEND_BUFFER])]
        if not connection.unsent and not connection.gone:
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)
        self._close_if_wanted(connection)

    def _send(self, connection: _Connection, data: bytes | bytearray) -> int:
        try:
            return connection.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._close(connection)
            return len(data)

    def _close_if_wanted(self, connection: _Connection) -> None:
        if connection.closing and not connection.unsent and connection.stream is None and not connection.gone:
            self._close(connection)

    def _stats(self) -> bytes:
        late = sorted(self._late_us)

        def quantile(p: float) -> int | None:
            return late[min(int(p * len(late)), len(late) - 1)] if late else None

        late_us = {"n": len(late), "p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1.0)}
        return json_response(
            {
                "requests": self._requests,
                "events": self._events,
                "connections": self._connections,
                "most_running": self._most_running,
                "late_us": late_us,
                "cpu_s": time.process_time() - self._cpu_s,
            }
        )

    def _dump(self) -> bytes:
        return json_response({"paced": [stream.told() for stream in self._kept], "whole": list(self._whole_ns)})

    def _reset(self) -> bytes:
        self._forget()
        return json_response({})

    def _models(self) -> bytes:
        return json_response({"object": "list", "data": [{"id": self._model, "object": "model", "owned_by": "pacer"}]})


def pacer_command(*options: str) -> list[str]:
    """The command line of the server; it prints its port, and ends with its standard input."""
    return [sys.executable, "-P", "-m", "streamgauge.load.pacer", *options]


@contextmanager
def running(*options: str) -> Iterator[str]:
    """The base URL of a server in a process of its own, while the block runs."""
    import subprocess  # the server itself has no use for it, and starts the sooner

    with subprocess.Popen(
        pacer_command(*options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal is not meant for it
    ) as process:
        assert process.stdin and process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="pacer", description="Completions whose times are known, on loopback.")
    parser.add_argument("--ttft-ms", type=float, help="time to the first token of streams whose requests name no pace")
    parser.add_argument("--itl-ms", type=float, help="time between their tokens")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of requests that name no number")
    parser.add_argument("--model", default="paced", help="model of requests that name none")
    parser.add_argument("--spin", action="store_true", help="busy-wait the last millisecond; wants a core of its own")
    pacer = _Pacer(**vars(parser.parse_args()))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError, ValueError):  # where there is no hard limit, some systems want a number
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with suppress(OSError):  # Linux alone: a timer's usual slack is 50 microseconds
        Path("/proc/self/timerslack_ns").write_text("1")
    gc.disable()  # no pauses; there are no cycles
    pacer.end_with(sys.stdin.fileno())
    sys.stdout.write(f"{pacer.port}\n")
    sys.stdout.flush()
    pacer.serve()


if __name__ == "__main__":
    main()
