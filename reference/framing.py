"""HTTP/1.1 messages as bytes, written by hand (RFC 9112)."""

from collections.abc import Iterable
from http import HTTPStatus

__all__ = ["DONE_EVENT", "LAST_CHUNK", "chunk", "event", "head"]

LAST_CHUNK = b"0\r\n\r\n"
"""Ends a chunked body that has no trailer fields."""


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """Status line and header fields, with the empty line behind them."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def event(payload: bytes) -> bytes:
    """A server-sent event with this payload."""
    return b"data: " + payload + b"\n\n"


DONE_EVENT = event(b"[DONE]")
"""Ends a stream of chunks."""


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; `data` must not be empty, since that would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
