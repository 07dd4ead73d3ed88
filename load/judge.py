"""What became of a request: exactly one outcome, from how the transfer ended, the status and what the body showed."""

import enum
from collections.abc import Mapping

from streamgauge.load.facts import Facts
from streamgauge.metrics.record import Outcome

__all__ = ["End", "judge"]


class End(enum.Enum):
    """How the transfer ended, as the client saw it."""

    COMPLETE = enum.auto()
    """As the message's framing announced."""

    CUT = enum.auto()
    """The server closed the connection inside the message."""

    NOT_HTTP = enum.auto()
    """What came is no HTTP/1.1 message."""

    RESET = enum.auto()
    """Connection reset, or closed before any byte of an answer."""

    REFUSED = enum.auto()
    """No connection: refused, no route, unknown host name."""

    TLS = enum.auto()
    TIMEOUT_CONNECT = enum.auto()
    TIMEOUT_FIRST_TOKEN = enum.auto()
    TIMEOUT_IDLE = enum.auto()
    TIMEOUT_TOTAL = enum.auto()
    OVERLOAD = enum.auto()
    """This machine has no more files, ports or buffers."""

    STOPPED = enum.auto()
    """The run ended first."""


_OF_END: dict[End, Outcome] = {
    End.CUT: Outcome.TRUNCATED,
    End.NOT_HTTP: Outcome.TRUNCATED,
    End.RESET: Outcome.RESET,
    End.REFUSED: Outcome.REFUSED,
    End.TLS: Outcome.TLS,
    End.TIMEOUT_CONNECT: Outcome.TIMEOUT_CONNECT,
    End.TIMEOUT_FIRST_TOKEN: Outcome.TIMEOUT_FIRST_TOKEN,
    End.TIMEOUT_IDLE: Outcome.TIMEOUT_IDLE,
    End.TIMEOUT_TOTAL: Outcome.TIMEOUT_TOTAL,
    End.OVERLOAD: Outcome.CLIENT_OVERLOAD,
    End.STOPPED: Outcome.UNFINISHED_AT_STOP,
}

_PRECEDENCE: tuple[Outcome, ...] = (
    Outcome.UNFINISHED_AT_STOP,
    Outcome.IN_BAND_ERROR,
    Outcome.CLIENT_OVERLOAD,
    Outcome.REFUSED,
    Outcome.TLS,
    Outcome.TIMEOUT_CONNECT,
    Outcome.TIMEOUT_FIRST_TOKEN,
    Outcome.TIMEOUT_IDLE,
    Outcome.TIMEOUT_TOTAL,
    Outcome.RESET,
    Outcome.MALFORMED_SSE,
    Outcome.MALFORMED_JSON,
    Outcome.TRUNCATED,
    Outcome.SCHEMA_VIOLATION,
    Outcome.EMPTY,
)
"""
Which failure names the request when several apply.

The server's own word comes first, then what stopped the transfer, then what is wrong with what was transferred, from
the unreadable to the merely unlawful.
"""


def judge(
    end: End, said: str, *, status: int, reason: str, headers: Mapping[str, str], facts: Facts, max_tokens: int = 0
) -> tuple[Outcome, str]:
    """
    The outcome and its detail in words; the detail of `ok` is empty.

    A status other than 2xx decides by itself, however the rest of that answer ended. 3xx counts as 4xx: the request was
    not served, and the client follows no redirects.

    Args:
        end: how the transfer ended.
        said: what the network stack or the HTTP reader said about it.
        status: of the final response; 0 when there was none.
        reason: its reason phrase.
        headers: its fields, names in lower case.
        facts: what the body showed.
        max_tokens: how many tokens were asked for.
    """
    if status and not 200 <= status < 300 and end is not End.STOPPED:
        excerpt = facts.excerpt.decode("utf-8", "replace").strip()
        detail = f"{status} {reason}".strip() + (f": {excerpt}" if excerpt else "")
        if status == 429 or (status == 503 and "retry-after" in headers):
            return Outcome.RATE_LIMITED, detail
        return (Outcome.HTTP_5XX if status >= 500 else Outcome.HTTP_4XX), detail
    found = dict(facts.defects)
    if max_tokens == facts.completion_tokens == 1:
        found.pop(Outcome.EMPTY, None)  # a single token may be half a character, or the end
    if end is End.COMPLETE and not found:
        return Outcome.OK, ""
    if end is not End.COMPLETE:
        found = {_OF_END[end]: said, **found}
    return next((outcome, found[outcome]) for outcome in _PRECEDENCE if outcome in found)
