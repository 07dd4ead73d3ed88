"""`http.*`: the message that carries the answer."""

import math
from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import counting_for
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import answered, names_stream, outgrown, streamed, whole
from streamgauge.conformance.tokens import carries_text, limit_of
from streamgauge.contract.contract import SSE
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.ending import StreamEnding, stream_ending
from streamgauge.wire.exchange import Ending, Evidence, Exchange


def _may_still_be_written(case: Case) -> bool:
    """A whole answer comes when all of it is written; without a limit of tokens that may take longer than our patience."""
    exchange = case.exchange
    if exchange.ending not in (Ending.TIMEOUT_IDLE, Ending.TIMEOUT_TOTAL) or Evidence.REQUEST not in exchange.holds:
        return False
    sent = exchange.sent
    return isinstance(sent, dict) and not exchange.wants_stream and limit_of(sent, case.operation.properties) is None


@check(
    "http.answered",
    Level.MUST,
    "Every request gets an answer",
    requirement="A server responds to a client's request by sending one or more response messages.",
    source="RFC 9110, section 3.4",
    applies=lambda case: not _may_still_be_written(case),
    needs=(Evidence.ENDING,),
)
def answered_at_all(case: Case) -> Iterator[Departure]:
    """A reset, a silent close or a silence is no answer; `http.valid` judges what is no HTTP."""
    if not case.exchange.status and not case.exchange.response.protocol_error:
        yield Departure(
            "a status line",
            f"{case.exchange.ending}: {case.exchange.detail or 'nothing arrived'}",
            outcome=Outcome.INCONCLUSIVE if outgrown(case) else None,
        )


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
    needs=(Evidence.FRAMING,),
)
def valid_http(case: Case) -> Iterator[Departure]:
    """What an HTTP parser refuses, every client refuses."""
    problem = case.exchange.response.protocol_error
    if problem:
        yield Departure("a message by the grammar of RFC 9112", problem)


_BY_STREAM = (StreamEnding.CLOSED, StreamEnding.RESET, StreamEnding.HANG)


def _ends_as_message(case: Case) -> bool:
    """Answers but for streams that were cut off before they had said everything, or hang: these have checks of their own."""
    return answered(case) and not (streamed(case) and stream_ending(case.exchange) in _BY_STREAM)


@check(
    "http.complete",
    Level.MUST,
    "The answer ends as its framing announces",
    requirement=(
        "A message body that uses the chunked transfer coding is incomplete if the zero-sized chunk that terminates the "
        "encoding has not been received."
    ),
    source="RFC 9112, section 8",
    applies=_ends_as_message,
    needs=(Evidence.ENDING,),
)
def complete_message(case: Case) -> Iterator[Departure]:
    """Fewer bytes than Content-Length, or a missing last chunk; what cuts a stream off is told by `ending.*`."""
    response = case.exchange.response
    if response.complete or response.protocol_error:
        return
    size = len(response.body)
    if response.announced is not None:
        expected = f"{response.announced} bytes of body, as Content-Length announces"
    elif response.chunks or response.header("transfer-encoding") is not None:
        expected = "the zero-sized last chunk"
    else:
        expected = "an orderly end of the connection"
    stopped = f"; {case.exchange.detail}" if outgrown(case) else ""
    yield Departure(
        expected,
        f"{case.exchange.ending} after {size} bytes of body{stopped}",
        span=(max(size - 1, 0), size),
        outcome=Outcome.INCONCLUSIVE if outgrown(case) else None,
    )


def _holds_content(case: Case) -> bool:
    """Whether an answer to this request, with this status, has a body at all."""
    return case.exchange.request.method != "HEAD" and case.exchange.status not in (204, 304)


def _surplus(case: Case) -> bytes:
    """What follows the message; empty lines may be discarded (RFC 9112, section 9.2)."""
    return case.exchange.response.surplus.strip(b"\r\n")


@check(
    "http.surplus",
    Level.MUST,
    "Nothing follows the answer",
    requirement=(
        "More than one response message per request only occurs when one or more informational responses precede a final "
        "response to the same request. If a client receives data on a connection that doesn't have outstanding requests, the "
        "client MUST NOT consider that data to be a valid response."
    ),
    source="RFC 9112, section 9.2; section 6.3 for a Content-Length that is too small",
    applies=lambda case: answered(case) and case.exchange.response.complete and _holds_content(case),
    absent="no answer that was complete",
    needs=(Evidence.FRAMING,),
)
def surplus(case: Case) -> Iterator[Departure]:
    """A body longer than announced, or a second response: on a kept connection it is taken for the next answer."""
    extra = _surplus(case)
    if extra:
        response = case.exchange.response
        announced = f" {response.announced} bytes of" if response.announced is not None else ""
        yield Departure(
            f"the end after{announced} body", f"{len(response.surplus)} bytes more, beginning {extra[:40]!r}"
        )


@check(
    "http.no-content",
    Level.MUST,
    "An answer that cannot have a body has none",
    requirement=(
        "Any response to a HEAD request and any response with a 1xx (Informational), 204 (No Content), or 304 (Not Modified) "
        "status code is always terminated by the first empty line after the header fields, regardless of the header fields "
        "present in the message, and thus cannot contain a message body or trailer section."
    ),
    source="RFC 9112, section 6.3",
    applies=lambda case: answered(case) and case.exchange.response.complete and not _holds_content(case),
    absent="no answer to HEAD, and none with status 204 or 304",
    needs=(Evidence.FRAMING,),
)
def no_content(case: Case) -> Iterator[Departure]:
    """The body is taken for the beginning of the next answer."""
    extra = _surplus(case)
    if extra:
        yield Departure(
            "the end after the header section",
            f"{len(case.exchange.response.surplus)} bytes more, beginning {extra[:40]!r}",
        )


@check(
    "http.one-framing",
    Level.MUST,
    "An answer does not have both Content-Length and Transfer-Encoding",
    requirement=(
        "A sender MUST NOT send a Content-Length header field in any message that contains a Transfer-Encoding header field."
    ),
    source="RFC 9112, section 6.2",
    applies=answered,
    needs=(Evidence.FRAMING,),
)
def one_framing(case: Case) -> Iterator[Departure]:
    """Two recipients that choose differently see two different messages: the ground of response splitting."""
    response = case.exchange.response
    coding = response.header("transfer-encoding")
    if coding is not None and response.content_lengths:
        yield Departure(
            "one of the two", f"Transfer-Encoding: {coding} and Content-Length: {', '.join(response.content_lengths)}"
        )


@check(
    "http.whole-media-type",
    Level.MUST,
    "A whole answer is application/json",
    requirement="'200': description: Successful response. content: application/json",
    source="/responses/200/content/application~1json",
    applies=whole,
    needs=(Evidence.REQUEST,),
)
def whole_media_type(case: Case) -> Iterator[Departure]:
    """Clients choose their parser by Content-Type."""
    allowed = case.operation.json_types(200)
    if case.exchange.response.media_type not in allowed:
        yield Departure(" or ".join(allowed), case.exchange.response.header("content-type") or "no Content-Type")


@counting_for("stream")
@check(
    "http.stream-media-type",
    Level.MUST,
    "A streamed answer is text/event-stream",
    requirement="Sent as server-sent events.",
    source="/responses/200/content/text~1event-stream",
    applies=names_stream,
    concerns=lambda operation, contract: operation.streams,
    needs=(Evidence.REQUEST,),
)
def stream_media_type(case: Case) -> Iterator[Departure]:
    """JSON, x-ndjson or text/plain in its place breaks clients."""
    if case.exchange.response.media_type != SSE:
        outcome = None if case.exchange.is_stream else Outcome.IGNORED
        yield Departure(SSE, case.exchange.response.header("content-type") or "no Content-Type", outcome=outcome)


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
    applies=streamed,
)
def stream_cache(case: Case) -> Iterator[Departure]:
    """Without it, a proxy may hold events back."""
    value = case.exchange.response.header("cache-control") or ""
    if not any(word in value.lower() for word in ("no-cache", "no-store")):
        yield Departure("Cache-Control: no-cache or no-store", value or "no Cache-Control")


_FEWEST_EVENTS = 16
_BURST_S = 0.01
"""No engine writes that many events in this time one by one: they were held back."""

_GENERATING_S = 0.3
"""So much longer than the slowest answer of one token: then generating, not waiting, took the time."""


def _token_times(exchange: Exchange) -> list[float]:
    return [chunk.event.time for chunk in exchange.stream.chunks if any(map(carries_text, chunk.choices))]


def _way_is_open(case: Case, first_token: float) -> bool:
    """
    Whether this or another stream shows that nobody holds back what is written.

    The request may have waited in a queue for a fast engine: then a heartbeat came early, or other streams came bit by bit.
    """
    heartbeats = [event.time for event in case.exchange.stream.events if not event.dispatched]
    if any(time < first_token - _BURST_S for time in heartbeats):
        return True
    return _some_stream_flows(case)


@once
def _some_stream_flows(case: Case) -> bool:
    others = (_token_times(other) for other in case.others if other.is_stream and Evidence.TIMES in other.holds)
    return any(len(times) >= _FEWEST_EVENTS and times[-1] - times[0] > _BURST_S for times in others)


@once
def _longest_wait(case: Case) -> float | None:
    """Seconds that the slowest answer of one token took; None where there is no such answer."""
    ones = [
        other.reads[-1].time
        for other in case.others
        if {Evidence.TIMES, Evidence.ENDING, Evidence.REQUEST} <= other.holds
        and (other.status, other.ending) == (200, Ending.COMPLETE)
        and isinstance(other.sent, dict)
        and limit_of(other.sent, case.operation.properties) == 1
    ]
    return max(ones, default=None)


@once
def _quickest_pace(case: Case) -> float:
    """Seconds for each event, waiting included, of the stream of many events that was quickest; infinite without any."""
    streams = (_token_times(other) for other in case.others if other.is_stream and Evidence.TIMES in other.holds)
    return min((times[-1] / len(times) for times in streams if len(times) >= _FEWEST_EVENTS), default=math.inf)


def _shows_pace(case: Case) -> bool:
    """
    A stream of many events that took clearly longer than every answer of one token.

    Where as many events would have come sooner at the pace of another stream, it was waiting that took the time: in a queue,
    or for a client or server that stood still for a moment. Who buffers holds back every stream.
    """
    if not (streamed(case) and stream_ending(case.exchange) in (StreamEnding.DONE, StreamEnding.EOF)):
        return False
    times, wait = _token_times(case.exchange), _longest_wait(case)
    if len(times) < _FEWEST_EVENTS or wait is None:
        return False
    return min(times[-1], len(times) * _quickest_pace(case)) - wait >= _GENERATING_S


@check(
    "http.stream-incremental",
    Level.SHOULD,
    "A stream arrives while it is generated",
    requirement="Clients of the OpenAI API show each token when it arrives.",
    source=CLIENTS,
    applies=_shows_pace,
    absent="no stream that was long and slow enough to tell generating from waiting",
    needs=(Evidence.TIMES, Evidence.ENDING, Evidence.REQUEST),
)
def stream_incremental(case: Case) -> Iterator[Departure]:
    """A proxy that buffers (nginx without `X-Accel-Buffering: no`) makes a stream as slow as a whole answer."""
    times = _token_times(case.exchange)
    if times[-1] - times[0] <= _BURST_S and not _way_is_open(case, times[0]):
        yield Departure(
            "events as they are generated",
            f"{len(times)} events within {(times[-1] - times[0]) * 1000:.0f} ms, {times[-1]:.2f} s after the request",
        )


@check(
    "http.retry-after-exposed",
    Level.MAY,
    "A page that may read the answer may read its Retry-After",
    requirement=(
        "A response to a CORS request can also include: Access-Control-Expose-Headers: indicates which headers can be exposed as "
        "part of the response by listing their names."
    ),
    source="WHATWG Fetch, section 3.3.3",
    applies=lambda case: case.exchange.response.header("retry-after") is not None,
    absent="no answer with Retry-After",
)
def retry_after_exposed(case: Case) -> Iterator[Departure]:
    """Without it, a client in a browser sees the refusal, but not how long to wait."""
    response = case.exchange.response
    exposed = response.header("access-control-expose-headers") or ""
    names = {name.strip().lower() for name in exposed.split(",")}
    if response.header("access-control-allow-origin") is not None and not names & {"retry-after", "*"}:
        yield Departure("Access-Control-Expose-Headers: Retry-After", exposed or "no Access-Control-Expose-Headers")
