"""Reads the pixels of a PNG file: 8-bit RGB or RGBA, not interlaced, which is what Chromium's screenshots are."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Picture", "read_png"]

_CHANNELS = {2: 3, 6: 4}


class Picture(NamedTuple):
    """Decoded pixels."""

    width: int
    height: int
    channels: int
    rows: list[bytes]
    """Each `width * channels` bytes."""


def read_png(path: Path) -> Picture:
    """Decode a screenshot; asserts that it is of the kind that this reader knows."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    position, packed, header = 8, b"", b""
    while position < len(data):
        (size,) = struct.unpack(">I", data[position : position + 4])
        kind, content = data[position + 4 : position + 8], data[position + 8 : position + 8 + size]
        header = content if kind == b"IHDR" else header
        packed += content if kind == b"IDAT" else b""
        position += 12 + size
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    assert (depth, interlaced) == (8, 0)
    channels = _CHANNELS[colour]
    raw, stride = zlib.decompress(packed), width * channels
    rows: list[bytes] = []
    above = bytes(stride)
    for y in range(height):
        start = y * (stride + 1)
        above = _unfilter(raw[start], raw[start + 1 : start + 1 + stride], above, channels)
        rows.append(above)
    return Picture(width, height, channels, rows)


def _unfilter(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    """Undo one row's filter (PNG specification, section 9)."""
    if kind == 0:
        return line
    if kind == 2:
        return bytes((value + up) & 255 for value, up in zip(line, above, strict=True))
    predict: Callable[[int, int, int], int] = {1: _left, 3: _average, 4: _paeth}[kind]
    row = bytearray(line)
    for index, value in enumerate(line):
        before = row[index - channels] if index >= channels else 0
        corner = above[index - channels] if index >= channels else 0
        row[index] = (value + predict(before, above[index], corner)) & 255
    return bytes(row)


def _left(before: int, _up: int, _corner: int) -> int:
    return before


def _average(before: int, up: int, _corner: int) -> int:
    return (before + up) // 2


def _paeth(before: int, up: int, corner: int) -> int:
    estimate = before + up - corner
    distances = [abs(estimate - candidate) for candidate in (before, up, corner)]
    return (before, up, corner)[distances.index(min(distances))]
