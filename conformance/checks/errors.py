"""`error.*`: the body of a refusal."""

from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.errorbodies import (
    ENVELOPE_SENTENCE,
    ENVELOPES,
    described,
    documented,
    documented_error,
    form_of,
    has_own_form,
    spoken_error,
)
from streamgauge.conformance.limits import misshapen, text_beyond_limit
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import complete, refused
from streamgauge.contract.contract import JSON
from streamgauge.contract.profile import ANY
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence, Exchange

_RESPONSES = "/responses"


@check(
    "error.media-type",
    Level.MUST,
    "A documented error is application/json",
    requirement="content: application/json",
    source=f"{_RESPONSES}/<status>/content",
    applies=lambda case: documented_error(case) and case.exchange.response.body != b"",
    needs=(Evidence.ENDING,),
)
def media_type(case: Case) -> Iterator[Departure]:
    """A proxy's HTML page is no error of the API."""
    allowed = case.operation.json_types(case.exchange.status)
    if case.exchange.response.media_type not in allowed:
        yield Departure(" or ".join(allowed), case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "error.envelope",
    Level.MUST,
    "A documented error has the documented shape",
    requirement=ENVELOPE_SENTENCE,
    source=f"{_RESPONSES}/<status>/content/application~1json/schema",
    applies=documented_error,
    needs=(Evidence.ENDING,),
)
def envelope(case: Case) -> Iterator[Departure]:
    """Callers show its message and switch on its code."""
    text = case.exchange.json
    if limited := text_beyond_limit(text, len(case.exchange.response.body)):
        yield limited
        return
    if not text.valid:
        yield Departure("a JSON error body", text.defects[0].detail if text.defects else "no JSON")
        return
    for problem in case.operation.response(case.exchange.status, JSON).problems(text.value)[:1]:
        yield misshapen(problem, "the documented error body")


@check(
    "error.body",
    Level.SHOULD,
    "An error comes with a body",
    requirement=(
        "Except when responding to a HEAD request, the server SHOULD send a representation containing an explanation of the "
        "error situation, and whether it is a temporary or permanent condition."
    ),
    source="RFC 9110, sections 15.5 and 15.6",
    applies=spoken_error,
    needs=(Evidence.ENDING,),
)
def body(case: Case) -> Iterator[Departure]:
    """A status alone tells its reader what kind of mistake it is, not which one. Of documented bodies: `error.envelope`."""
    if case.exchange.response.body == b"":
        yield Departure("a body that says what is wrong", "an empty body")


@check(
    "error.envelope-undocumented",
    Level.SHOULD,
    "An error whose body is not documented looks like the others",
    requirement=ENVELOPE_SENTENCE,
    source=CLIENTS,
    applies=lambda case: spoken_error(case) and case.exchange.response.body != b"",
    concerns=lambda operation, contract: contract.profile.dialect.error_envelope != ANY,
    needs=(Evidence.ENDING,),
)
def envelope_undocumented(case: Case) -> Iterator[Departure]:
    """One parser for all errors: in the profile's form, or in that of the errors that the document describes."""
    if limited := text_beyond_limit(case.exchange.json, len(case.exchange.response.body)):
        yield limited
        return
    expected, holds = ENVELOPES[case.contract.profile.dialect.error_envelope]
    found = case.exchange.json.value if case.exchange.json.valid else None
    if not (isinstance(found, dict) and (holds(found) or described(case.operation, found))):
        yield Departure(expected, repr(case.exchange.response.body[:60].decode("utf-8", "replace")))


@once
def _first_error(case: Case, described: bool) -> Exchange | None:
    """The operation's first error in a form of its own, of those whose body is documented, or of the others."""
    alike = (each for each in case.others if documented(case.operation, each) is described)
    return next((each for each in alike if has_own_form(case, each)), None)


@check(
    "error.one-envelope",
    Level.SHOULD,
    "All errors have one form",
    requirement="One parser for all errors of an endpoint: malformed body, missing property, unknown model, wrong key.",
    source=CLIENTS,
    applies=lambda case: refused(case) and complete(case) and has_own_form(case, case.exchange),
    absent="no error in a form that its document or profile takes",
    needs=(Evidence.ENDING,),
)
def one_envelope(case: Case) -> Iterator[Departure]:
    """
    Several forms may be right, one at a time. What is documented and what is not are compared apart.

    Where the document itself gives this status another form than that of the first error, there was nothing to choose.
    """
    own = documented(case.operation, case.exchange)
    first = _first_error(case, own) or case.exchange
    expected, actual = form_of(first.json.value), form_of(case.exchange.json.value)
    free = not own or case.operation.response(case.exchange.status, JSON).accepts(first.json.value)
    if actual != expected and free:
        yield Departure(f"{expected}, as in the first error", actual)
