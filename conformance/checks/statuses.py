"""`error.*`: the status of a refusal, and what a limited rate says."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.errorbodies import documented
from streamgauge.conformance.limits import misshapen, text_beyond_limit
from streamgauge.conformance.posting import media_type_sent, posted, shown
from streamgauge.conformance.predicates import answered, complete
from streamgauge.contract.contract import JSON
from streamgauge.contract.media import is_json
from streamgauge.contract.widening import key_needed
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.http import retry_after_s

_RESPONSES = "/responses"


def _known(case: Case) -> bool:
    """Whether document or profile knows the status."""
    return case.contract.allows_status(case.operation, case.exchange.status)


def _unknown(case: Case, expected: str) -> Iterator[Departure]:
    """The status that nobody knows; or the one that passes because the profile allows it, which has to be seen."""
    status, profile = case.exchange.status, case.contract.profile.name
    if case.operation.documents_status(status):
        return
    if _known(case):
        told = f"{status}, allowed by the profile {profile}, not listed by the document"
        yield Departure(expected, told, outcome=Outcome.PASS)
    else:
        yield Departure(expected, shown(case))


@check(
    "error.no-5xx",
    Level.MUST,
    "No request makes the server fail",
    requirement="responses: 502 (backend disconnected) and 503 (no healthy backend) are the only documented failures.",
    source=_RESPONSES,
    applies=answered,
)
def no_5xx(case: Case) -> Iterator[Departure]:
    """Whatever a request holds, a 500 is the server's own fault."""
    if case.exchange.status >= 500:
        yield from _unknown(case, "2xx or a documented 4xx")


def _as_documented(case: Case) -> bool:
    """A request of which the document speaks: by its own method, with its media type."""
    sent = media_type_sent(case)
    return case.exchange.request.method == case.operation.method and (sent is None or is_json(sent))


@check(
    "error.status-documented",
    Level.MUST,
    "Each status is one that the document lists",
    requirement="responses: the statuses that a caller has to expect.",
    source=_RESPONSES,
    applies=lambda case: answered(case) and case.exchange.status < 500,
)
def status_documented(case: Case) -> Iterator[Departure]:
    """
    A caller cannot handle what nobody told him of. Statuses about the transport (404, 405, 413, ...) are allowed.

    Of other methods and media types the document says nothing: `request.method` and `request.media-type` judge these.
    """
    status, expected = case.exchange.status, f"one of {', '.join(map(str, case.operation.statuses))}"
    if status == 401 and key_needed(case.operation, case.contract) and not _known(case):
        told = f"401, which the profile {case.contract.profile.name} demands, not listed by the document"
        yield Departure(expected, told, outcome=Outcome.PASS)
    elif _known(case) or _as_documented(case):
        yield from _unknown(case, expected)


@check(
    "error.status-fits",
    Level.SHOULD,
    "A refusal of what the body asks for does not blame the method or the media type",
    requirement=(
        "The 405 (Method Not Allowed) status code indicates that the method received in the request-line is known by the "
        "origin server but not supported by the target resource."
    ),
    source="RFC 9110, sections 15.5.6 and 15.5.16",
    applies=lambda case: posted(case) and 400 <= case.exchange.status < 500,
    needs=(Evidence.REQUEST,),
)
def status_fits(case: Case) -> Iterator[Departure]:
    """An unsupported feature told as 405 sends the caller to look for another path."""
    if case.exchange.status == 405:
        yield Departure("400, 422 or another status about the body", f"{shown(case)} to {case.operation.method}")
    elif case.exchange.status == 415 and media_type_sent(case):
        yield Departure("400, 422 or another status about the body", f"{shown(case)} to {media_type_sent(case)}")


@check(
    "error.retry-after",
    Level.SHOULD,
    "A limited rate says when to come back",
    requirement=(
        "The response representations ... MAY include a Retry-After header indicating how long to wait before making a new "
        "request."
    ),
    source="RFC 6585, section 4",
    applies=lambda case: case.exchange.status == 429,
    absent="the rate was never limited",
)
def retry_after(case: Case) -> Iterator[Departure]:
    """Without it, callers guess, mostly too short."""
    if case.exchange.response.header("retry-after") is None:
        yield Departure("Retry-After", "none")


_HTTP_DATE = re.compile(
    r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT"
    r"|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}"
)
"""HTTP-date: IMF-fixdate, and the two obsolete forms that every recipient has to read (RFC 9110, 5.6.7); all are in GMT."""


@check(
    "error.retry-after-form",
    Level.MUST,
    "Retry-After is a number of seconds or a date",
    requirement="Retry-After = HTTP-date / delay-seconds; delay-seconds = 1*DIGIT",
    source="RFC 9110, section 10.2.3",
    applies=lambda case: case.exchange.response.header("retry-after") is not None,
    absent="no answer had a Retry-After",
)
def retry_after_form(case: Case) -> Iterator[Departure]:
    """Clients that cannot read it come back at once."""
    told = case.exchange.response.header("retry-after") or ""
    form = told.isdigit() or _HTTP_DATE.fullmatch(told)
    if not form or retry_after_s(told, datetime.fromtimestamp(0, UTC)) is None:
        yield Departure("seconds or a date", repr(told))


@check(
    "error.limit-envelope",
    Level.MUST,
    "A limited rate answers in the documented shape",
    requirement="'429': description: Rate limit exceeded. content: application/json",
    source=f"{_RESPONSES}/429",
    applies=lambda case: case.exchange.status == 429 and complete(case) and documented(case.operation, case.exchange),
    concerns=lambda operation, contract: operation.documents_body(429, JSON),
    absent="the rate was never limited",
    needs=(Evidence.ENDING,),
)
def limit_envelope(case: Case) -> Iterator[Departure]:
    """A gateway's own page is what callers get exactly when they most need the message."""
    text = case.exchange.json
    if limited := text_beyond_limit(text, len(case.exchange.response.body)):
        yield limited
        return
    if not text.valid:
        yield Departure("a JSON error body", "no JSON")
        return
    for problem in case.operation.response(429, JSON).problems(text.value)[:1]:
        yield misshapen(problem, "the documented error body")
