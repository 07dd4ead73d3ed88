"""`ending.*`, and `sse.*` as far as [DONE] is concerned: how a stream ends."""

from collections.abc import Callable, Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.checks.framing import SEQUENCE, SEQUENCE_SOURCE, shown
from streamgauge.conformance.limits import judged_whole
from streamgauge.conformance.predicates import documented_stream, index_of, streamed
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.ending import StreamEnding, describe_ending, stream_ending
from streamgauge.wire.exchange import Ending, Evidence
from streamgauge.wire.sse import DONE, Event

PATIENCE_S = 10.0
"""So long may a server take, once all has been said, to end the message: engines and proxies on slow machines included."""


_INCOMPLETE = (
    "A client that receives an incomplete response message, which can occur when a connection is closed prematurely or when "
    "decoding a supposedly chunked transfer coding fails, MUST record the message as incomplete."
)
_INCOMPLETE_SOURCE = "RFC 9112, section 8"


def _streams(operation: Operation, contract: Contract) -> bool:
    return operation.streams


def _end(case: Case) -> tuple[int, int]:
    size = len(case.exchange.response.body)
    return max(size - 1, 0), size


def _unless(*endings: StreamEnding) -> Callable[[Case], bool]:
    """Streams that ended in another way, whose end was theirs."""
    return lambda case: streamed(case) and stream_ending(case.exchange) not in (*endings, StreamEnding.OUTGROWN)


@check(
    "ending.not-cut",
    Level.MUST,
    "A stream is not cut off by the end of the connection",
    requirement=_INCOMPLETE,
    source=_INCOMPLETE_SOURCE,
    applies=_unless(StreamEnding.RESET, StreamEnding.HANG, StreamEnding.BROKEN),
    concerns=_streams,
    needs=(Evidence.ENDING,),
)
def not_cut(case: Case) -> Iterator[Departure]:
    """A client that does not look for the last chunk, nor for [DONE], takes half an answer for a whole one."""
    if stream_ending(case.exchange) is StreamEnding.CLOSED:
        yield Departure(
            "[DONE], or an error event, and the message's end", describe_ending(case.exchange), span=_end(case)
        )


@check(
    "ending.no-reset",
    Level.MUST,
    "A stream is not cut off by a reset of the connection",
    requirement=_INCOMPLETE,
    source=_INCOMPLETE_SOURCE,
    applies=_unless(StreamEnding.CLOSED, StreamEnding.HANG, StreamEnding.BROKEN),
    concerns=_streams,
    needs=(Evidence.ENDING,),
)
def no_reset(case: Case) -> Iterator[Departure]:
    """A reset also takes from the client what it had not read yet."""
    if stream_ending(case.exchange) is StreamEnding.RESET:
        yield Departure(
            "[DONE], or an error event, and the message's end", describe_ending(case.exchange), span=_end(case)
        )


@check(
    "ending.no-hang",
    Level.MUST,
    "A stream comes to an end",
    requirement=(
        "A message body that uses the chunked transfer coding is incomplete if the zero-sized chunk that terminates the "
        "encoding has not been received."
    ),
    source="RFC 9112, section 8",
    applies=_unless(StreamEnding.CLOSED, StreamEnding.RESET, StreamEnding.BROKEN),
    concerns=_streams,
    needs=(Evidence.TIMES, Evidence.ENDING),
)
def no_hang(case: Case) -> Iterator[Departure]:
    """Silence in the middle, behind the finish reason or behind [DONE]: a client that reads to the end waits for ever."""
    if stream_ending(case.exchange) is not StreamEnding.HANG:
        return
    said = next(iter(case.exchange.stream.done), None) or _finished(case)
    heard = case.exchange.reads[-1].time
    # Time ran out while something still came: a slow answer may do that, one that has said everything may not.
    slow = case.exchange.ending is Ending.TIMEOUT_TOTAL and (said is None or heard - said.time < PATIENCE_S)
    yield Departure(
        "the end of the message",
        describe_ending(case.exchange) + ("; something still came" if slow else ""),
        span=_end(case),
        outcome=Outcome.INCONCLUSIVE if slow else None,
    )


def _finished(case: Case) -> Event | None:
    """The event by which every choice that the stream knows has its finish reason; None where one lacks it."""
    open_: set[object] = set()
    last: Event | None = None
    for chunk in case.exchange.stream.chunks:
        for choice in chunk.choices:
            if choice.get("finish_reason") is None:
                open_.add(index_of(choice))
            else:
                open_.discard(index_of(choice))
                last = chunk.event
    return None if open_ else last


@check(
    "ending.prompt",
    Level.SHOULD,
    "Once all has been said, the stream ends soon",
    requirement="Clients of the OpenAI API show an answer as unfinished until `data: [DONE]` and the end of the message.",
    source=CLIENTS,
    applies=lambda case: (
        streamed(case)
        and case.exchange.response.complete
        and stream_ending(case.exchange) in (StreamEnding.DONE, StreamEnding.EOF)
    ),
    concerns=_streams,
    needs=(Evidence.TIMES, Evidence.ENDING),
)
@judged_whole
def prompt(case: Case) -> Iterator[Departure]:
    """A connection that stays open behind the answer keeps the user waiting, and a slot busy."""
    finished, done = _finished(case), next(iter(case.exchange.stream.done), None)
    heard = case.exchange.reads[-1].time
    steps = [
        ("the finish reason", finished, "[DONE]" if done else "the end", done.time if done else heard),
        ("[DONE]", done, "the end of the message", heard),
    ]
    for before, event, behind, time in steps:
        if event is not None and time - event.time > PATIENCE_S:
            waited = f"{time - event.time:.1f} s from {before} to {behind}"
            yield Departure(f"{behind} within {PATIENCE_S:g} s of {before}", waited, event=event)
            return


def _told_done(case: Case) -> bool:
    """Whether [DONE] came, were it without its blank line or behind a payload: `sse.blank-line` judges that."""
    stream = case.exchange.stream
    lines = [line.field for line in stream.reader.unfinished]
    return bool(stream.done) or ("data", DONE) in lines or any(("data", DONE) in each.fields for each in stream.events)


def _in_good_order(case: Case) -> bool:
    """Streams with [DONE], and those that could have had it: what was cut off, failed or hangs is judged elsewhere."""
    if not streamed(case):
        return False
    ending = stream_ending(case.exchange)
    return _told_done(case) or ending in (StreamEnding.EOF, StreamEnding.ERROR_EVENT, StreamEnding.OUTGROWN)


@judged_whole
def _done(case: Case) -> Iterator[Departure]:
    stream = case.exchange.stream
    if stream.error is not None:
        return
    if not _told_done(case):
        ending = stream_ending(case.exchange)
        last = stream.events[-1] if stream.events else None
        yield Departure(
            "`data: [DONE]` at the end",
            describe_ending(case.exchange),
            event=last,
            span=None if last else _end(case),
            outcome=Outcome.INCONCLUSIVE if ending is StreamEnding.OUTGROWN else None,
        )
    elif len(stream.done) > 1:
        yield Departure("one [DONE]", f"{len(stream.done)}", event=stream.done[1])


check(
    "sse.done",
    Level.MUST,
    "[DONE] ends the stream, once",
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
    applies=_in_good_order,
    concerns=documented_stream,
    needs=(Evidence.ENDING,),
)(_done)

check(
    "sse.done-undocumented",
    Level.SHOULD,
    "[DONE] ends the stream, once, though the document does not say so",
    requirement="Clients of the OpenAI API read until `data: [DONE]`.",
    source=CLIENTS,
    applies=_in_good_order,
    concerns=lambda operation, contract: operation.streams and not documented_stream(operation, contract),
    needs=(Evidence.ENDING,),
)(_done)


@check(
    "sse.done-last",
    Level.MUST,
    "Nothing follows [DONE]",
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
    applies=lambda case: streamed(case) and bool(case.exchange.stream.done),
    needs=(Evidence.ENDING,),
)
@judged_whole
def done_last(case: Case) -> Iterator[Departure]:
    """Clients stop reading there, so what follows is lost. Comments and blank lines say nothing and may follow."""
    stream = case.exchange.stream
    lines = [line for event in stream.events for line in event.lines] + stream.reader.unfinished
    behind = [line for line in lines if line.start >= stream.done[-1].end and line.field is not None]
    if behind:
        said = behind[0].content.decode("utf-8", "replace")
        yield Departure("[DONE] as the last event", f"behind it: {shown(said)}", span=(behind[0].start, behind[-1].end))
