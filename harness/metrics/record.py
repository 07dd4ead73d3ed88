"""
The record: one request of a load run, as flat as it can be.

All times are integer microseconds on one process's monotonic clock; the first line of a record file ties that clock to
the wall (`anchor`). A stamp that never happened is absent, not 0.
"""

import enum
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter, sub
from typing import Any

__all__ = ["NOT_THE_SERVER", "NO_FAILURE", "Anchor", "Judged", "Outcome", "Record", "TokenSource"]


class Outcome(enum.StrEnum):
    """What became of a request: exactly one of these."""

    OK = "ok"
    """Status 2xx, a finish reason for each choice, and a proper end. HTTP 200 alone is not success."""

    HTTP_4XX = "http_4xx"
    RATE_LIMITED = "rate_limited"
    """429, or 503 with Retry-After."""

    HTTP_5XX = "http_5xx"
    IN_BAND_ERROR = "in_band_error"
    """Status 200, then an event that reports an error."""

    TRUNCATED = "truncated"
    """The stream or body ended without a finish reason or without its end mark."""

    MALFORMED_SSE = "malformed_sse"
    MALFORMED_JSON = "malformed_json"
    SCHEMA_VIOLATION = "schema_violation"
    EMPTY = "empty"
    """Complete, but without a single token."""

    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_TOKEN = "timeout_first_token"  # noqa: S105 - a time limit, no password
    TIMEOUT_IDLE = "timeout_idle"
    TIMEOUT_TOTAL = "timeout_total"
    REFUSED = "refused"
    RESET = "reset"
    TLS = "tls"
    CLIENT_OVERLOAD = "client_overload"
    DROPPED = "dropped"
    """Scheduled and never sent."""

    CANCELLED = "cancelled"
    UNFINISHED_AT_STOP = "unfinished_at_stop"
    """Still running when the run ended."""


NO_FAILURE = frozenset({Outcome.OK, Outcome.CANCELLED, Outcome.UNFINISHED_AT_STOP})
"""Outcomes that are no errors: what we left, or what still ran when the run ended, says nothing."""

NOT_THE_SERVER = NO_FAILURE | {Outcome.CLIENT_OVERLOAD}
"""What is no failure of the server; that this client had no room left is a reason of its own to doubt the run."""


class Judged(enum.StrEnum):
    """How closely an answer was looked at."""

    ALL = "all"
    """Every event was held against its schema."""

    ENDS = "ends"
    """
    Only what comes before and with the first token, and from the finish reason on; between, events that are like one before but
    for their text were taken for tokens, whatever the schema says of texts, so that the times of tokens are estimates.
    """


class TokenSource(enum.StrEnum):
    """Where the number of tokens comes from."""

    USAGE = "usage"
    """The server's `usage.completion_tokens`."""

    EVENTS = "events"
    """One token for each token-bearing event: an estimate."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Ties a process's monotonic clock to the wall."""

    monotonic_us: int
    wall: float
    """Seconds since 1970 at that same moment."""


@dataclass(slots=True)
class Record:
    """
    One request.

    Attributes:
        id: unique in its record file.
        target, operation: what was asked.
        stream: whether a stream was asked for.
        dispatched: when the client began to send, once connected: the start of the service latency.
        scheduled: when the schedule wanted it sent, the start of the intended latency; in a closed loop, when its user
            wanted to send it (before it had a connection).
        connect_us: how long the connection took; 0 on a kept one.
        written: `send` of the last byte returned.
        headers: the final status line and header fields had arrived.
        first_byte: first byte of the body.
        first_event: first complete event.
        first_visible: first event with visible text (content).
        token_times: times of the token-bearing events (content, reasoning or tool delta, not empty), oldest first.
        finish: event with the (last) finish reason.
        done: the `[DONE]` event.
        closed: the exchange was over, however it ended.
        prompt_tokens, completion_tokens: by the server's usage; None when it sent none.
        max_tokens: how many were asked for.
        warm_up: whether it belongs to the warm-up and counts in no figure.
        judged: how closely the answer was looked at.
        violations: how many events (or whole bodies) broke their schema; `detail` says what was wrong with the first.
        first_lag_us: the first token may have come so much earlier than its stamp says, since this client was busy.
        lag_us: the same of the token-bearing event for which it was largest.
        replaced: whether it was sent again on a new connection, since a kept one was closed without an answer.
    """

    id: str
    target: str
    operation: str
    stream: bool
    dispatched: int
    closed: int
    outcome: Outcome
    scheduled: int = 0
    connect_us: int = 0
    written: int | None = None
    headers: int | None = None
    first_byte: int | None = None
    first_event: int | None = None
    first_visible: int | None = None
    token_times: list[int] = field(default_factory=list)
    finish: int | None = None
    done: int | None = None
    status: int = 0
    detail: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    max_tokens: int = 0
    body_bytes: int = 0
    warm_up: bool = False
    judged: Judged = Judged.ALL
    violations: int = 0
    first_lag_us: int = 0
    lag_us: int = 0
    replaced: bool = False

    @property
    def tokens(self) -> int:
        """How many tokens were received."""
        return self.completion_tokens if self.completion_tokens is not None else len(self.token_times)

    @property
    def token_source(self) -> TokenSource:
        """Where `tokens` comes from."""
        return TokenSource.USAGE if self.completion_tokens is not None else TokenSource.EVENTS

    @property
    def gaps_us(self) -> list[int]:
        """Times between token-bearing events."""
        return list(map(sub, self.token_times[1:], self.token_times))

    def line(self) -> dict[str, Any]:
        """The record as a line of JSON: absent stamps left out, token times delta-coded."""
        pairs = zip(_NAMES, _values(self), strict=True)
        data = {name: value for name, value in pairs if value is not None and value != "" and value != []}
        if self.token_times:
            data["token_times"] = [self.token_times[0], *self.gaps_us]
        return data

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> "Record":
        """The inverse of :meth:`line`."""
        data = dict(line, outcome=Outcome(line["outcome"]), judged=Judged(line.get("judged", Judged.ALL)))
        if "token_times" in data:
            data["token_times"] = list(accumulate(data["token_times"]))
        return cls(**data)


_NAMES = tuple(Record.__dataclass_fields__)
_values = attrgetter(*_NAMES)
