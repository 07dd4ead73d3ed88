"""`sse.*`: the stream as server-sent events (WHATWG HTML, section 9.2)."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.jsonrules import INTEROPERABLE, STRICT, JsonRule
from streamgauge.conformance.limits import judged_whole
from streamgauge.conformance.predicates import complete, streamed
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import read_json
from streamgauge.wire.sse import DONE, Event

__all__ = ["SEQUENCE", "SEQUENCE_SOURCE", "shown"]

SEQUENCE = (
    "The body is a sequence of `data: ` lines separated by blank lines and terminated by `data: [DONE]`, where each is an "
    "object of the shape below."
)
SEQUENCE_SOURCE = "/responses/200/content/text~1event-stream/schema/description"


def shown(text: str, limit: int = 80) -> str:
    """The beginning of a text of the server, quoted."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def _merged(event: Event) -> bool:
    """Whether several payloads lack the blank line between them: each `data` line is a payload by itself."""
    values = [value for name, value in event.fields if name == "data"]
    return len(values) > 1 and all(value == DONE or isinstance(read_json(value).value, dict) for value in values)


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
    requirement=SEQUENCE,
    source=f"{SEQUENCE_SOURCE}; WHATWG HTML, section 9.2.6",
    applies=streamed,
    needs=(Evidence.ENDING,),
)
@judged_whole
def blank_line(case: Case) -> Iterator[Departure]:
    """Without it two payloads become one event, and the last event is never dispatched."""
    stream = case.exchange.stream
    for event in stream.events:
        if _merged(event):
            payloads = sum(name == "data" for name, _ in event.fields)
            yield Departure("a blank line after each payload", f"{payloads} payloads in one event", event=event)
            return
    cut = [line for line in stream.reader.unfinished if line.field is not None]  # a comment belongs to no event
    if cut and complete(case) and not stream.done:  # `sse.done-last` judges what stands behind [DONE]
        line = cut[0]
        yield Departure(
            "a blank line at the end of the stream",
            f"the stream ends within an event: {shown(line.content.decode('utf-8', 'replace'))}",
            span=(line.start, stream.reader.unfinished[-1].end),
        )


@check(
    "sse.data-space",
    Level.SHOULD,
    "A space follows `data:`",
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
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
                    shown(line.content[:20].decode("utf-8", "replace")),
                    span=(line.start, line.end),
                )
                return


@check(
    "sse.one-data-line",
    Level.SHOULD,
    "Each event has one `data` line",
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def one_data_line(case: Case) -> Iterator[Departure]:
    """Several lines are legal and joined by LF; clients that read line by line fail on them."""
    for event in case.exchange.stream.dispatched:
        lines = sum(name == "data" for name, _ in event.fields)
        if lines > 1 and not _merged(event):
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
            yield Departure("no `event` field", f"event: {shown(event.type)}", event=event)
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
                said = shown(line.content.decode("utf-8", "replace"))
                yield Departure(f"one of {', '.join(_FIELDS)}", said, span=(line.start, line.end))
                return


@check(
    "sse.data-empty",
    Level.MUST,
    "No event has empty data",
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
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
    requirement=SEQUENCE,
    source=SEQUENCE_SOURCE,
    applies=streamed,
)
@judged_whole
def data_json(case: Case) -> Iterator[Departure]:
    """Every client parses every payload."""
    for chunk in case.exchange.stream.chunks:
        if chunk.event.data and not isinstance(chunk.json.value, dict) and not _merged(chunk.event):
            yield Departure("a JSON object or [DONE]", shown(chunk.event.data), event=chunk.event)
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


@check(
    "sse.heartbeat-safe",
    Level.SHOULD,
    "No block without data looks like an event",
    requirement=(
        "If the data buffer is an empty string, set the data buffer and the event type buffer to the empty string and return."
    ),
    source="WHATWG HTML, section 9.2.6; openai-python dispatches such blocks (openai/openai-python#2722)",
    applies=streamed,
)
@judged_whole
def heartbeat_safe(case: Case) -> Iterator[Departure]:
    """
    A browser skips a block without data; openai-python skips it only where it has no `event` and no `retry` and no `id` came.

    Else it parses the empty data as JSON: a heartbeat, a comment included, then ends the stream.
    """
    for event in case.exchange.stream.events:
        if event.dispatched:
            continue
        names = {name for name, _ in event.fields} & {"event", "id", "retry"}
        if names:
            yield Departure(
                "a comment, if a ping is needed", f"{' and '.join(sorted(names))} without data", event=event
            )
            return
        if event.id:
            yield Departure("no `id` field, or no block without data", f"one behind `id: {event.id}`", event=event)
            return


@check(
    "sse.comments",
    Level.MAY,
    "The stream has no comments",
    requirement="Authors can include a comment line (one starting with a ':' character) every 15 seconds or so.",
    source="WHATWG HTML, section 9.2.7",
    applies=streamed,
)
@judged_whole
def comments(case: Case) -> Iterator[Departure]:
    """They keep proxies from closing a silent connection and are right; some hand-written clients fail on them."""
    lines = [line for event in case.exchange.stream.events for line in event.lines if line.content.startswith(b":")]
    if lines:
        first = lines[0]
        said = shown(first.content.decode("utf-8", "replace"))
        yield Departure(
            "none, for the plainest clients", f"{len(lines)}, beginning {said}", span=(first.start, first.end)
        )


_SEPARATORS = ("\x85", "\u2028", "\u2029")


@check(
    "sse.unicode-separators",
    Level.MAY,
    "Payloads have no raw U+0085, U+2028 or U+2029",
    requirement="stream = [ bom ] *event; event = *( comment / field ) end-of-line; end-of-line = ( cr lf / cr / lf )",
    source="WHATWG HTML, section 9.2.5; str.splitlines of Python has more line endings",
    applies=streamed,
)
@judged_whole
def unicode_separators(case: Case) -> Iterator[Departure]:
    """Legal in JSON and in an event stream; clients that split lines by Unicode's rules break the payload there."""
    for event in case.exchange.stream.dispatched:
        for separator in _SEPARATORS:
            if separator in event.data:
                yield Departure(f"\\u{ord(separator):04x}, escaped", f"a raw U+{ord(separator):04X}", event=event)
                return
