"""Requests of the operation's own kind: its method, its key, its media type; and how their answers are told."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.once import of_request
from streamgauge.conformance.predicates import answered, key_refused, sends_key
from streamgauge.contract.media import is_json
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Evidence, reports_error

__all__ = [
    "admitted",
    "judged_by_body",
    "media_type_sent",
    "not_plain",
    "one_of",
    "posted",
    "said",
    "shown",
    "unknown_members",
]


def admitted(case: Case) -> bool:
    """A request with the operation's method and the right key, which was answered."""
    right_method = case.exchange.request.method == case.operation.method
    return answered(case) and sends_key(case) and not key_refused(case) and right_method


def media_type_sent(case: Case) -> str | None:
    """
    The media type that the request gives its body, without parameters; empty where it gives none, None where that is unknown.

    Of the header fields that somebody else captured, some may have been left out.
    """
    exchange = case.exchange
    fields = {name.lower(): value for name, value in exchange.request.headers}
    if "content-type" not in fields and not (fields and exchange.holds == frozenset(Evidence)):
        return None
    return fields.get("content-type", "").partition(";")[0].strip().lower()


def posted(case: Case) -> bool:
    """An admitted request whose body is called JSON: what the server says is about that body."""
    sent = media_type_sent(case)
    return admitted(case) and (sent is None or is_json(sent))


def judged_by_body(case: Case) -> bool:
    """
    A posted request whose answer can tell what the server makes of the body.

    A failure of the server (5xx) and an error that is told with 200 tell nothing: `error.no-5xx`, `error.not-in-200` and
    `error.not-in-stream` judge them.
    """
    exchange = case.exchange
    if not posted(case) or exchange.status >= 500:
        return False
    if exchange.status != 200:
        return True
    if exchange.is_stream:
        return exchange.stream.error is None
    return not reports_error(exchange.json.value)


def shown(case: Case) -> str:
    """The status line."""
    return f"{case.exchange.status} {case.exchange.response.reason}".strip()


def said(case: Case) -> str:
    """How the answer's body begins: as a rule the reason for a refusal."""
    return case.exchange.response.body[:160].decode("utf-8", "replace")


def one_of(case: Case, allowed: tuple[int, ...]) -> Iterator[Departure]:
    """The first status is the vendor's own; that one of the others passes has to be seen."""
    status = case.exchange.status
    if status not in allowed:
        yield Departure(" or ".join(map(str, allowed)), shown(case))
    elif status != allowed[0]:
        name = case.contract.profile.name
        yield Departure(str(allowed[0]), f"{status}, accepted by the profile {name} as well", outcome=Outcome.PASS)


def _within(value: Any, low: int, high: int) -> bool:
    return isinstance(value, (int, float)) and low <= value <= high


def _says_text(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
        return False
    return message.keys() == {"role", "content"} and isinstance(message["content"], str) and message["content"] != ""


_SHORT = 1000
"""Characters of a text for which no model's context is too small."""


def _is_dialogue(value: Any) -> bool:
    if not (isinstance(value, list) and value and all(map(_says_text, value))):
        return False
    return sum(len(message["content"]) for message in value) <= _SHORT


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "model": lambda value: True,
    "messages": _is_dialogue,
    "prompt": lambda value: isinstance(value, str) and 0 < len(value) <= _SHORT,
    "max_tokens": lambda value: _within(value, 1, 256),
    "max_completion_tokens": lambda value: _within(value, 1, 256),
    "temperature": lambda value: _within(value, 0, 2),
    "stream": lambda value: True,
}
"""Property of every request → whether no server could refuse its value, which is valid by the document."""


@of_request
def not_plain(case: Case) -> frozenset[str]:
    """The documented properties of a request that a server might refuse."""
    members = _documented_members(case)
    return frozenset(name for name, value in members if not (name in _PLAIN and _PLAIN[name](value)))


def _documented_members(case: Case) -> list[tuple[str, Any]]:
    known = case.operation.properties
    return [(name, value) for name, value in case.exchange.sent.items() if name in known and value is not None]


def unknown_members(case: Case) -> set[str]:
    """The members of a request's object that its document does not know."""
    return set(case.exchange.sent) - set(case.operation.properties)
