"""`http.*`: the message that carries the answer."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.predicates import answered, names_stream, whole
from streamgauge.contract.contract import JSON, SSE
from streamgauge.outcomes import Level


@check(
    "http.answered",
    Level.MUST,
    "Every request gets an answer",
    requirement="A server responds to a client's request by sending one or more response messages.",
    source="RFC 9110, section 3.4",
    applies=lambda case: True,
)
def answered_at_all(case: Case) -> Iterator[Departure]:
    """A reset, a silent close or a silence is no answer."""
    if not case.exchange.status:
        yield Departure("a status line", f"{case.exchange.ending}: {case.exchange.detail or 'nothing arrived'}")


@check(
    "http.valid",
    Level.MUST,
    "The answer is an HTTP/1.1 message",
    requirement=(
        "An HTTP/1.1 message consists of a start-line followed by a CRLF and a sequence of octets in a format similar to the "
        "Internet Message Format."
    ),
    source="RFC 9112, section 2.1",
    applies=lambda case: bool(case.exchange.wire),
)
def valid_http(case: Case) -> Iterator[Departure]:
    """What an HTTP parser refuses, every client refuses."""
    problem = case.exchange.response.protocol_error
    if problem:
        yield Departure("a message by the grammar of RFC 9112", problem)


@check(
    "http.complete",
    Level.MUST,
    "The answer ends as its framing announces",
    requirement=(
        "A message body that uses the chunked transfer coding is incomplete if the zero-sized chunk that terminates the "
        "encoding has not been received."
    ),
    source="RFC 9112, section 8",
    applies=answered,
)
def complete_message(case: Case) -> Iterator[Departure]:
    """Fewer bytes than Content-Length, a missing last chunk, or a stream that just stops."""
    response = case.exchange.response
    if not response.complete and not response.protocol_error:
        size = len(response.body)
        yield Departure(
            f"an end after Content-Length {response.header('content-length')}"
            if response.header("content-length")
            else "the zero-sized last chunk",
            f"{case.exchange.ending} after {size} bytes of body",
            span=(max(size - 1, 0), size),
        )


@check(
    "http.whole-media-type",
    Level.MUST,
    "A whole answer is application/json",
    requirement="'200': description: Successful response. content: application/json",
    source="/responses/200/content/application~1json",
    applies=whole,
)
def whole_media_type(case: Case) -> Iterator[Departure]:
    """Clients choose their parser by Content-Type."""
    if case.exchange.response.media_type != JSON:
        yield Departure(JSON, case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "http.stream-media-type",
    Level.MUST,
    "A streamed answer is text/event-stream",
    requirement="Sent as server-sent events.",
    source="/responses/200/content/text~1event-stream",
    applies=names_stream,
    concerns=lambda operation, contract: operation.streams,
)
def stream_media_type(case: Case) -> Iterator[Departure]:
    """JSON, x-ndjson or text/plain in its place breaks clients."""
    if case.exchange.response.media_type != SSE:
        yield Departure(SSE, case.exchange.response.header("content-type") or "no Content-Type")


@check(
    "http.stream-charset",
    Level.MUST,
    "A stream names no charset but UTF-8",
    requirement='The charset parameter may be provided. The parameter\'s value must be "utf-8".',
    source="WHATWG HTML, registration of text/event-stream",
    applies=lambda case: names_stream(case) and case.exchange.response.media_type == SSE,
)
def stream_charset(case: Case) -> Iterator[Departure]:
    """Another charset would be ignored by a browser and believed by other clients."""
    content_type = case.exchange.response.header("content-type") or ""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower() != "utf-8":
            yield Departure("charset=utf-8 or none", content_type)


@check(
    "http.stream-cache",
    Level.MAY,
    "A stream forbids caches to keep it",
    requirement="Intermediaries that buffer or cache a stream delay its events.",
    source="common practice of reverse proxies",
    applies=names_stream,
)
def stream_cache(case: Case) -> Iterator[Departure]:
    """Without it, a proxy may hold events back."""
    value = case.exchange.response.header("cache-control") or ""
    if not any(word in value.lower() for word in ("no-cache", "no-store")):
        yield Departure("Cache-Control: no-cache or no-store", value or "no Cache-Control")
