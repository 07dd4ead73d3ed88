"""What goes in and out of the responder: a request that has been read, a reply that is to be written."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.reference.answers import Answer

__all__ = ["Reply", "Request", "Write"]


@dataclass(frozen=True, slots=True)
class Request:
    """
    An HTTP request.

    Attributes:
        target: as on the request line.
        headers: names in lower case.
        http_version: `1.1` or `1.0`.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    http_version: str = "1.1"

    @property
    def path(self) -> str:
        """The target's path, of the absolute form as well (RFC 9112, 3.2.2)."""
        target = self.target.partition("?")[0]
        if target.lower().startswith(("http://", "https://")):
            target = "/" + target.partition("://")[2].partition("/")[2]
        return target

    @property
    def keeps_alive(self) -> bool:
        """Whether the client can send another request on the connection."""
        options = [option.strip() for option in self.header("connection").lower().split(",")]
        return self.http_version != "1.0" and "close" not in options

    def header(self, name: str) -> str:
        """The header's value, several joined by a comma; empty when absent."""
        return ", ".join(value for key, value in self.headers if key == name)


@dataclass(frozen=True, slots=True)
class Write:
    """
    Bytes for the socket.

    Attributes:
        due_ms: milliseconds after the answer began (see :class:`Payload`), or the request had arrived; never written before.
        tokens: generated tokens that they bring.
    """

    due_ms: float
    data: bytes
    tokens: int = 0


class End(enum.Enum):
    """What the endpoint does when everything is written."""

    FRAMED = enum.auto()
    """What the framing says: the next request, or the connection's end."""

    CLOSE = enum.auto()
    RESET = enum.auto()
    HANG = enum.auto()
    """Nothing, until the client leaves."""


@dataclass(frozen=True, slots=True)
class Reply:
    """
    A reply as it goes over the wire.

    Attributes:
        writes: in the order of their times; may be made on the fly, so to be read once.
        keep_alive: whether the connection stays open behind it.
        answer: the generation that it tells, for the metrics; None for every other reply.
        end: what follows the last write.
        goes_on: whether the answer is generated to its end although the client has left.
    """

    status: int
    writes: Iterable[Write]
    keep_alive: bool
    answer: Answer | None = None
    end: End = End.FRAMED
    goes_on: bool = False
