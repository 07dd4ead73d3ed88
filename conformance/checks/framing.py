"""`sse.*`: the stream as server-sent events (WHATWG HTML, section 9.2)."""

from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.jsonrules import INTEROPERABLE, STRICT, JsonRule
from streamgauge.conformance.limits import judged_whole
from streamgauge.conformance.predicates import complete, documented_stream, outgrown, streamed
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import read_json
from streamgauge.wire.sse import DONE

_SEQUENCE = (
    "The body is a sequence of `data: ` lines separated by blank lines and terminated by `data: [DONE]`, where each is an "
    "object of the shape below."
)
_SEQUENCE_SOURCE = "/responses/200/content/text~1event-stream/schema/description"


def _shown(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")


@check(
    "sse.utf8",
    Level.MUST,
    "The stream is UTF-8",
    requirement="Event streams in this format must always be encoded as UTF-8.",
    source="WHATWG HTML, section 9.2.5",
    applies=streamed,
    needs=(Evidence.BYTES, Evidence.ENDING),
)
@judged_whole
def utf8(case: Case) -> Iterator[Departure]:
    """One bad byte turns into U+FFFD in a browser and into an exception elsewhere."""
    bad = case.exchange.stream.reader.not_utf8
    if bad is not None:
        body = case.exchange.response.body
        cut_off = bad.end == len(body) and not complete(case)
        if not cut_off:
            yield Departure("UTF-8", f"byte 0x{body[bad.start]:02x}: {bad.reason}", span=(bad.start, bad.end))


@check(
    "sse.bom",
    Level.SHOULD,
    "The stream has no byte order mark",
    requirement="The UTF-8 decode algorithm strips one leading UTF-8 Byte Order Mark (BOM), if any.",
    source="WHATWG HTML, section 9.2.6",
    applies=streamed,
    needs=(Evidence.BYTES,),
)
def bom(case: Case) -> Iterator[Departure]:
    """Legal, but many client libraries lose the first event to it."""
    if case.exchange.stream.reader.bom:
        yield Departure("`data: ` as the first bytes", "a byte order mark", span=(0, 3))


@check(
    "sse.line-ending",
    Level.SHOULD,
    "Lines end in LF or in CRLF, all alike",
    requirement="end-of-line = ( cr lf / cr / lf )",
    source="WHATWG HTML, section 9.2.5",
    applies=streamed,
    needs=(Evidence.ENDING,),
)
@judged_whole
def line_ending(case: Case) -> Iterator[Departure]:
    """All three are legal, also mixed; hand-written clients split on LF or CRLF only."""
    seen: dict[bytes, tuple[int, int]] = {}
    for event in case.exchange.stream.events:
        for line in event.lines:
            # A CR at the very end of what was cut off may be half of a CRLF.
            if line.ending != b"\r" or line.end < len(case.exchange.response.body) or complete(case):
                seen.setdefault(line.ending, (line.end - len(line.ending), line.end))
    if b"\r" in seen or len(seen) > 1:
        span = seen.get(b"\r") or list(seen.values())[-1]
        yield Departure(
            "one kind of line ending, LF or CRLF",
            " and ".join(repr(ending.decode()) for ending in seen),
            span=span,
        )


@check(
    "sse.blank-line",
    Level.MUST,
    "A blank line ends each event",
    requirement=_SEQUENCE,
    source=f"{_SEQUENCE_SOURCE}; WHATWG HTML, section 9.2.6",
    applies=streamed,
    needs=(Evidence.ENDING,),
)
@judged_whole
def blank_line(case: Case) -> Iterator[Departure]:
    """Without it two payloads become one event, and the last event is never dispatched."""
    stream = case.exchange.stream
    for event in stream.events:
        payloads = [value for name, value in event.fields if name == "data"]
        if len(payloads) > 1 and all(value == DONE or isinstance(read_json(value).value, dict) for value in payloads):
            yield Departure("a blank line after each payload", f"{len(payloads)} payloads in one event", event=event)
            return
    cut = [line for line in stream.reader.unfinished if line.field is not None]  # a comment belongs to no event
    if cut and complete(case):
        line = cut[0]
        yield Departure(
            "a blank line at the end of the stream",
            f"the stream ends within an event: {_shown(line.content.decode('utf-8', 'replace'))}",
            span=(line.start, stream.reader.unfinished[-1].end),
        )


@check(
    "sse.data-space",
    Level.SHOULD,
    "A space follows `data:`",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def data_space(case: Case) -> Iterator[Departure]:
    """WHATWG makes the space optional; clients that look for `data: ` see nothing without it."""
    for event in case.exchange.stream.events:
        for line in event.lines:
            if line.content.startswith(b"data:") and not line.content.startswith(b"data: "):
                yield Departure(
                    "`data: `",
                    _shown(line.content[:20].decode("utf-8", "replace")),
                    span=(line.start, line.end),
                )
                return


@check(
    "sse.one-data-line",
    Level.SHOULD,
    "Each event has one `data` line",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def one_data_line(case: Case) -> Iterator[Departure]:
    """Several lines are legal and joined by LF; clients that read line by line fail on them."""
    for event in case.exchange.stream.dispatched:
        lines = sum(name == "data" for name, _ in event.fields)
        if lines > 1:
            yield Departure("one data line", f"{lines} data lines", event=event)
            return


@check(
    "sse.event-name",
    Level.SHOULD,
    "Events have no name of their own",
    requirement=(
        "If the event type buffer has a value other than the empty string, change the type of the newly created event to equal "
        "the value of the event type buffer."
    ),
    source="WHATWG HTML, section 9.2.6",
    applies=streamed,
)
@judged_whole
def event_name(case: Case) -> Iterator[Departure]:
    """A named event never reaches `onmessage`."""
    for event in case.exchange.stream.dispatched:
        if event.type != "message":
            yield Departure("no `event` field", f"event: {_shown(event.type)}", event=event)
            return


_FIELDS = ("data", "event", "id", "retry")


@check(
    "sse.field-known",
    Level.SHOULD,
    "Each line is a comment or a field of an event stream",
    requirement="Otherwise: The field is ignored.",
    source="WHATWG HTML, section 9.2.6 (process the field)",
    applies=streamed,
)
@judged_whole
def field_known(case: Case) -> Iterator[Departure]:
    """A payload, or an error, that lacks its `data:` is legal, and no client ever sees it."""
    for event in case.exchange.stream.events:
        for line in event.lines:
            if line.field is not None and line.field[0] not in _FIELDS:
                shown = _shown(line.content.decode("utf-8", "replace"))
                yield Departure(f"one of {', '.join(_FIELDS)}", shown, span=(line.start, line.end))
                return


@check(
    "sse.data-empty",
    Level.MUST,
    "No event has empty data",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def data_empty(case: Case) -> Iterator[Departure]:
    """A ping written as `data:` reaches the client as an event whose JSON cannot be parsed."""
    for event in case.exchange.stream.dispatched:
        if not event.data:
            yield Departure("a comment line, if a ping is needed", "an event with empty data", event=event)
            return


@check(
    "sse.data-json",
    Level.MUST,
    "Each payload is a JSON object or [DONE]",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def data_json(case: Case) -> Iterator[Departure]:
    """Every client parses every payload."""
    for chunk in case.exchange.stream.chunks:
        if chunk.event.data and not isinstance(chunk.json.value, dict):
            yield Departure("a JSON object or [DONE]", _shown(chunk.event.data), event=chunk.event)
            return


def _defects(case: Case, rule: JsonRule) -> Iterator[Departure]:
    for chunk in case.exchange.stream.chunks:
        for defect in (*chunk.json.defects, *chunk.json.uneven):
            if chunk.json.valid and defect.kind in rule.kinds:
                yield Departure(rule.expected, f"{defect.kind}: {defect.detail}", event=chunk.event)
                return


@check(
    "sse.strict-json",
    Level.MUST,
    "The payloads' JSON is strict",
    **STRICT.declared,
    applies=streamed,
    needs=(Evidence.BYTES,),
)
@judged_whole
def strict_json(case: Case) -> Iterator[Departure]:
    """Lenient parsers hide it, strict ones (Go, Rust, .NET) stop."""
    return _defects(case, STRICT)


@check(
    "sse.interoperable-json",
    Level.SHOULD,
    "The payloads' JSON is read alike everywhere",
    **INTEROPERABLE.declared,
    applies=streamed,
)
@judged_whole
def interoperable_json(case: Case) -> Iterator[Departure]:
    """Which of two values counts, what a lone surrogate becomes, and how far a number is rounded, differs by parser."""
    return _defects(case, INTEROPERABLE)


@judged_whole
def _done(case: Case) -> Iterator[Departure]:
    stream = case.exchange.stream
    if stream.error is not None:
        return
    if not stream.done:
        size = len(case.exchange.response.body)
        last = stream.events[-1] if stream.events else None
        yield Departure(
            "`data: [DONE]` at the end",
            f"none ({case.exchange.ending}, {len(stream.dispatched)} events)",
            event=last,
            span=None if last else (max(size - 1, 0), size),
            outcome=Outcome.INCONCLUSIVE if outgrown(case) else None,
        )
    elif len(stream.done) > 1:
        yield Departure("one [DONE]", f"{len(stream.done)}", event=stream.done[1])


check(
    "sse.done",
    Level.MUST,
    "[DONE] ends the stream, once",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=streamed,
    concerns=documented_stream,
    needs=(Evidence.ENDING,),
)(_done)

check(
    "sse.done-undocumented",
    Level.SHOULD,
    "[DONE] ends the stream, once, though the document does not say so",
    requirement="Clients of the OpenAI API read until `data: [DONE]`.",
    source=CLIENTS,
    applies=streamed,
    concerns=lambda operation, contract: operation.streams and not documented_stream(operation, contract),
    needs=(Evidence.ENDING,),
)(_done)


@check(
    "sse.done-last",
    Level.MUST,
    "Nothing follows [DONE]",
    requirement=_SEQUENCE,
    source=_SEQUENCE_SOURCE,
    applies=lambda case: streamed(case) and bool(case.exchange.stream.done),
    needs=(Evidence.ENDING,),
)
@judged_whole
def done_last(case: Case) -> Iterator[Departure]:
    """Clients stop reading there, so what follows is lost."""
    stream = case.exchange.stream
    last = stream.dispatched[-1]
    if last.data != DONE:
        yield Departure("[DONE] as the last event", f"another event after it: {_shown(last.data)}", event=last)
