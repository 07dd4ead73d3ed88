"""`error.*`: errors that are told with a 200."""

from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.errorbodies import ENVELOPE_SENTENCE, error_schemas
from streamgauge.conformance.limits import judged_whole, misshapen
from streamgauge.conformance.predicates import streamed, whole
from streamgauge.contract.validator import Validator
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import reports_error
from streamgauge.wire.sse import DONE

_RESPONSES = "/responses"
_NO_ERROR = "no stream reported an error"


def _schemas(case: Case) -> list[Validator]:
    """Validators of what an error within a stream may be: that of a refused request, say, has no `error`."""
    return error_schemas(case.operation, "error")


def _failed(case: Case) -> bool:
    return streamed(case) and case.exchange.stream.error is not None


@check(
    "error.not-in-200",
    Level.MUST,
    "A 200 answer reports no error",
    requirement="'200': description: Successful response.",
    source=f"{_RESPONSES}/200",
    applies=lambda case: whole(case) and isinstance(case.exchange.json.value, dict),
)
def not_in_200(case: Case) -> Iterator[Departure]:
    """Whoever looks at the status only takes it for an answer."""
    if reports_error(case.exchange.json.value):
        yield Departure("a 4xx or 5xx status", "200 with an error body")


@check(
    "error.not-in-stream",
    Level.MUST,
    "A 200 stream reports no error in place of its answer",
    requirement="'502': description: Backend disconnected before sending a response. (the status tells what happened)",
    source=_RESPONSES,
    applies=streamed,
)
@judged_whole
def not_in_stream(case: Case) -> Iterator[Departure]:
    """Once the status is out, many clients never look for an error again."""
    failed = case.exchange.stream.error
    if failed is not None:
        yield Departure("an answer, or an error status before it", failed.event.data[:120], event=failed.event)


@check(
    "error.stream-shape",
    Level.MUST,
    "An error within a stream has the documented error shape",
    requirement=ENVELOPE_SENTENCE,
    source=f"{_RESPONSES}/<status>/content/application~1json/schema",
    applies=lambda case: _failed(case) and bool(_schemas(case)),
    absent=_NO_ERROR,
)
def stream_shape(case: Case) -> Iterator[Departure]:
    """The same parser reads both. Which of several documented shapes is meant, no status tells."""
    failed = case.exchange.stream.error
    if failed is not None:
        found = [validator.problems(failed.object) for validator in _schemas(case)]
        if all(found):
            yield misshapen(found[0][0], "a documented error body", failed.event)


@check(
    "error.stream-last",
    Level.SHOULD,
    "Nothing but [DONE] follows an error within a stream",
    requirement="An error ends the answer: clients raise it and read no further.",
    source=CLIENTS,
    applies=_failed,
    absent=_NO_ERROR,
)
@judged_whole
def stream_last(case: Case) -> Iterator[Departure]:
    """What comes behind it, some callers have and others have not."""
    stream = case.exchange.stream
    failed = stream.error
    for event in stream.dispatched:
        if failed is not None and event.start > failed.event.start and event.data != DONE:
            yield Departure("[DONE] or the end", event.data[:120], event=event)
            return
