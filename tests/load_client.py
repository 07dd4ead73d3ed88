"""Requests of the load client, and answers of servers that break off, hang up and lie."""

import json
import socket
import struct
import threading

import gevent
import pytest
from load_endpoint import (
    DONE,
    Answer,
    chunk,
    stream,
)

from streamgauge.contract.contract import load_contracts
from streamgauge.load.attempt import Attempt
from streamgauge.load.client import StreamClient
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Record

__all__ = [
    "CHAT",
    "FINISH",
    "RIGHT",
    "ROLE",
    "WAIT_S",
    "WORD",
    "ask",
    "hangs_up",
    "note_reads",
    "resets",
    "says",
    "send_to",
    "wait_until_none_is_idle",
]

(CHAT,) = load_contracts(["seekr-chat"])[0].operations
ROLE, WORD, FINISH = chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"}), chunk({}, finish="stop")
RIGHT = stream(ROLE, WORD, WORD, FINISH, DONE)
WAIT_S = 30
"""So long something is waited for that has to come."""


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
    """Writes the bytes and resets the connection; Linux hands out what has been received before it tells of the reset."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(wire)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return answer


def send_to(url: str) -> Record:
    """One request to whoever is there."""
    return StreamClient(url, {}).send(ask(url)).record


def note_reads(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event that is set with each read of an answer, once the client has stamped it."""
    taken, take = threading.Event(), Attempt.take

    def noted(self: Attempt, data: bytes, now: int, since: int) -> None:
        take(self, data, now, since)
        taken.set()

    monkeypatch.setattr(Attempt, "take", noted)
    return taken


def wait_until_none_is_idle(client: StreamClient) -> None:
    """Return when the client has noticed that none of its kept connections can be used any more."""
    with gevent.Timeout(WAIT_S):
        while client.open(0):
            gevent.sleep(0.001)
