"""
Decodes a response whose body is stored without its framing: `curl -i` output, HAR files.

Such tools remove the transfer coding and keep the header fields, so that `transfer-encoding: chunked` stands above a body without
chunks, and an HTTP/2 response has a status line of its own making. Nothing about framing can be judged from these bytes.
"""

import re
from collections.abc import Iterable, Iterator

from streamgauge.wire.http import HttpResponse, Interim, Read, Segment

__all__ = ["Head", "decode_unframed", "heads"]

_HEAD = re.compile(rb"HTTP/(\d(?:\.\d)?) +(\d{3})(?: ([^\r\n]*))?\r?\n((?:[^\r\n]+\r?\n)*)\r?\n")
"""A status line, with or without a minor version and a reason, header fields, and the empty line."""


class Head:
    """One status line with its header fields, `[start, end)` in the bytes."""

    def __init__(self, match: re.Match[bytes]) -> None:
        version, status, reason, fields = match.groups()
        self.start, self.end = match.span()
        self.version = version.decode("ascii")
        self.status = int(status)
        self.reason = (reason or b"").decode("latin-1").strip()
        self.headers = list(_fields(fields))

    @property
    def informational(self) -> bool:
        """Whether another response has to follow (RFC 9110, section 15.2)."""
        return self.status // 100 == 1


def heads(data: bytes) -> Iterator[Head]:
    """The heads at the start of `data` that follow each other without a body in between."""
    position = 0
    while match := _HEAD.match(data, position):
        yield Head(match)
        position = match.end()


def decode_unframed(wire: bytes, reads: Iterable[Read], *, complete: bool) -> HttpResponse:
    """
    Decode the response that `wire` holds: its head, 1xx responses before it, and all that follows as the body.

    Args:
        wire: head and body.
        reads: how the bytes were split over time; only the time of the last one counts.
        complete: whether the body is known to be all there.
    """
    response = HttpResponse(head_size=len(wire))
    for head in heads(wire):
        if head.informational:
            response.interim.append(Interim(head.status, head.reason, head.headers))
            continue
        response.status, response.reason, response.http_version = head.status, head.reason, head.version
        response.headers, response.head_size = head.headers, head.end
        response.content_lengths = [value for name, value in head.headers if name == "content-length"]
        response.body = wire[head.end :]
        response.complete = complete
        break
    if response.body:
        time = max((read.time for read in reads), default=0.0)
        response.segments.append(Segment(time, 0, len(response.body)))
    return response


def _fields(raw: bytes) -> Iterator[tuple[str, str]]:
    for line in raw.splitlines():
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            yield name.strip().lower(), value.strip()
