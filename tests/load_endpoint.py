"""A loopback server that answers with exactly the bytes that a test wants, and the bytes of right answers."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "DONE",
    "STREAM_HEAD",
    "Answer",
    "Served",
    "chunk",
    "chunked",
    "data",
    "endpoint",
    "held_port",
    "json_answer",
    "stream",
    "whole",
]

Answer = Callable[[socket.socket], None]
"""Called when a request has been read; writes what it likes. Whether the connection stays open is its own business."""


@dataclass
class Served:
    """What one server has seen so far."""

    url: str
    connections: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


@contextlib.contextmanager
def endpoint(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    """Serve while the block runs: the n-th request gets the n-th answer, the last one serves for all after it."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    served = Served(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    lock = threading.Lock()

    def note(head: str, body: bytes) -> Answer:
        with lock:  # or two requests at once could both be taken for the later one
            served.heads.append(head)
            served.bodies.append(json.loads(body))
            return answers[min(len(served.bodies), len(answers)) - 1]

    def talk(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            with connection:
                while (request := _read_request(connection)) is not None:
                    head, body = request
                    if head.startswith("GET "):  # a page of counters, which this server has not
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                        continue
                    note(head, body)(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                served.connections += 1
                open_sockets.append(connection)
                threads.append(threading.Thread(target=talk, args=(connection,)))
                threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield served
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join()
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for connection in open_sockets:
            connection.close()


def _read_request(connection: socket.socket) -> tuple[str, bytes] | None:
    """The next request's head and body; None where the client has left, before or inside it."""
    wire = b""
    while b"\r\n\r\n" not in wire:
        received = connection.recv(65536)
        if not received:
            return None
        wire += received
    head, _, body = wire.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        received = connection.recv(65536)
        if not received:
            return None
        body += received
    return head.decode("latin-1"), body


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """
    A port on loopback on which nothing listens, and which nobody gets by chance while the block runs.

    Who is told of it may listen there all the same, if by SO_REUSEADDR, as ZeroMQ and gevent do: this one only holds it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def data(payload: Any) -> bytes:
    """One event with this payload."""
    return b"data: " + (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) + b"\n\n"


DONE = data(b"[DONE]")


def chunk(*deltas: dict[str, Any], finish: str | None = None, **members: Any) -> bytes:
    """One event of a chat stream, with a choice for each delta."""
    choices = [{"index": index, "delta": delta, "finish_reason": finish} for index, delta in enumerate(deltas)]
    base = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    return data({**base, **members})


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    """The pieces in the chunked transfer coding."""
    coded = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return coded + (b"0\r\n\r\n" if end else b"")


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def stream(*events: bytes, end: bool = True) -> bytes:
    """A whole streamed answer."""
    return STREAM_HEAD + chunked(*events, end=end)


def json_answer(payload: Any, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer of JSON, or of the bytes given."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    fields = {"content_type": "application/json", "content_length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def whole(content: str | None = "Hi", finish: str | None = "stop", **members: Any) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    choices = [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}]
    base = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return {**base, **members}
