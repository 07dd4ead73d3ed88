"""
The chunked transfer coding (RFC 9112, section 7.1), as it lies in the wire: what a decoder takes away.

Sans-I/O. h11 decodes; this says where each chunk began and what was written beside its size.
"""

import re
from typing import NamedTuple

__all__ = ["TransferChunk", "read_chunks"]

_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,20})(;[^\n]*?)?[ \t]*\r\n")


class TransferChunk(NamedTuple):
    """One chunk; the last one of a whole message has size 0."""

    offset: int
    """Where its size begins in the wire."""

    size: int
    """How many bytes it announces."""

    start: int
    end: int
    """Its data in the decoded body; fewer bytes than announced where the wire ends inside of it."""

    extension: str
    """What follows the size, from the semicolon on; empty when nothing does."""


def read_chunks(wire: bytes, position: int) -> list[TransferChunk]:
    """
    The chunks that begin at `position`, up to the last one, the end of the wire, or what is no chunk.

    Args:
        wire: the bytes of a response.
        position: where its body begins.
    """
    chunks: list[TransferChunk] = []
    decoded = 0
    while line := _CHUNK_LINE.match(wire, position):
        size = int(line[1], 16)
        arrived = min(size, len(wire) - line.end())
        extension = (line[2] or b"").decode("latin-1")
        chunks.append(TransferChunk(position, size, decoded, decoded + arrived, extension))
        decoded += arrived
        position = line.end() + size + 2
        if size == 0 or wire[position - 2 : position] != b"\r\n":
            break
    return chunks
