"""Requests of the load client, and answers of servers that break off, hang up and lie."""

import json
import socket
import struct
import threading

from load_endpoint import (
    DONE,
    Answer,
    chunk,
    stream,
)

from streamgauge.contract.contract import load_contracts
from streamgauge.load.client import StreamClient
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Record

__all__ = ["CHAT", "FINISH", "RIGHT", "ROLE", "WORD", "ask", "hangs_up", "resets", "says", "send_to"]

(CHAT,) = load_contracts(["seekr-chat"])[0].operations
ROLE, WORD, FINISH = chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, finish="stop")
RIGHT = stream(ROLE, WORD, WORD, FINISH, DONE)


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


def send_to(url: str) -> Record:
    """One request to whoever is there."""
    return StreamClient(url, {}).send(ask(url)).record
