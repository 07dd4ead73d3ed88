"""`http.*`: what goes wrong with the message that carries the answer."""

from dataclasses import replace

from streamgauge.contract.contract import JSON
from streamgauge.reference.drafts import Draft, Event
from streamgauge.reference.faults.bends import ask
from streamgauge.reference.faults.fault import Stage, fault, refusals, replies, requests, streams, wholes
from streamgauge.reference.framing import head
from streamgauge.reference.messages import End, Write


def _chunked(draft: Draft) -> bool:
    return streams(draft) and draft.request.http_version != "1.0"


def _set(draft: Draft, name: str, value: str | None) -> None:
    """Put one header field in the place of all of its name; None leaves it out."""
    others = [field for field in draft.headers if field[0] != name]
    draft.headers = others if value is None else [*others, (name, value)]


def _ask_for(draft: Draft, **changes: object) -> None:
    """Answer another request than the one that came; a change to None removes the member."""
    asked = {name: value for name, value in {**draft.asked, **changes}.items() if value is not None}
    ask(draft, asked)


@fault(
    "http.no-answer",
    "The connection is closed without an answer",
    caught_by="http.answered",
    stage=Stage.WIRE,
    concerns=replies,
)
def no_answer(draft: Draft) -> None:
    """Not a byte."""
    draft.writes, draft.end = [], End.CLOSE


@fault(
    "http.reset-at-once",
    "The connection is reset without an answer",
    caught_by="http.answered",
    stage=Stage.WIRE,
    concerns=replies,
)
def reset_at_once(draft: Draft) -> None:
    """As a process does that dies."""
    draft.writes, draft.end = [], End.RESET


@fault(
    "http.silence",
    "Nothing is ever answered",
    caught_by="http.answered",
    stage=Stage.WIRE,
    concerns=replies,
)
def silence(draft: Draft) -> None:
    """The client waits until it gives up."""
    draft.writes, draft.end = [], End.HANG


@fault(
    "http.garbage",
    "The answer is no HTTP",
    caught_by="http.valid",
    stage=Stage.WIRE,
    concerns=replies,
)
def garbage(draft: Draft) -> None:
    """Another protocol's greeting."""
    draft.writes, draft.end = [Write(0.0, b"220 ready\r\n\r\n")], End.CLOSE


@fault(
    "http.two-lengths",
    "Two Content-Length fields differ",
    caught_by="http.valid",
    stage=Stage.HEAD,
    concerns=wholes,
)
def two_lengths(draft: Draft) -> None:
    """One of them is right."""
    draft.headers.append(("Content-Length", str(len(draft.text) + 1)))


@fault(
    "http.wrong-chunk-size",
    "A chunk of the transfer coding is shorter than it says",
    caught_by="http.valid",
    stage=Stage.WIRE,
    concerns=_chunked,
)
def wrong_chunk_size(draft: Draft) -> None:
    """The first one, by a byte."""
    start, first, *others = draft.writes
    size, _, rest = first.data.partition(b"\r\n")
    draft.writes = [start, replace(first, data=b"%x\r\n%b" % (int(size, 16) + 1, rest)), *others]


@fault(
    "http.no-final-chunk",
    "The connection is closed in the place of the last chunk",
    caught_by="http.complete",
    stage=Stage.WIRE,
    concerns=_chunked,
)
def no_final_chunk(draft: Draft) -> None:
    """[DONE] is there."""
    draft.writes, draft.end = list(draft.writes)[:-1], End.CLOSE


@fault(
    "http.length-too-long",
    "Content-Length announces more than comes",
    caught_by="http.complete",
    stage=Stage.HEAD,
    concerns=wholes,
)
def length_too_long(draft: Draft) -> None:
    """The body is whole all the same."""
    _set(draft, "Content-Length", str(len(draft.text) + 5))
    draft.end = End.CLOSE


@fault(
    "http.length-never-reached",
    "Content-Length announces more than comes, and the connection stays open",
    caught_by="http.complete",
    stage=Stage.HEAD,
    concerns=wholes,
)
def length_never_reached(draft: Draft) -> None:
    """The client waits for the rest."""
    _set(draft, "Content-Length", str(len(draft.text) + 5))
    draft.end = End.HANG


@fault(
    "http.length-too-short",
    "Content-Length announces less than comes",
    caught_by="http.surplus",
    stage=Stage.HEAD,
    concerns=wholes,
)
def length_too_short(draft: Draft) -> None:
    """The rest is taken for the beginning of the next answer."""
    _set(draft, "Content-Length", str(len(draft.text) - 5))


@fault(
    "http.second-answer",
    "Another answer follows the answer",
    caught_by="http.surplus",
    stage=Stage.WIRE,
    concerns=streams,
)
def second_answer(draft: Draft) -> None:
    """As a handler writes it that fails after it has answered."""
    writes = list(draft.writes)
    draft.writes = [*writes, Write(writes[-1].due_ms, head(500, [("Content-Length", "0")]))]


@fault(
    "http.two-framings",
    "An answer has both Content-Length and Transfer-Encoding",
    caught_by="http.one-framing",
    stage=Stage.HEAD,
    concerns=_chunked,
)
def two_framings(draft: Draft) -> None:
    """The chunks are right."""
    draft.headers.append(("Content-Length", "7"))


@fault(
    "http.no-content",
    "An answer of status 204 stands in the place of the model's",
    caught_by="error.status-documented",
    stage=Stage.HEAD,
    concerns=wholes,
)
def no_content(draft: Draft) -> None:
    """Right as a message: it has neither a body nor a length."""
    draft.status, draft.text = 204, b""
    _set(draft, "Content-Length", None)


@fault(
    "http.body-behind-204",
    "An answer of status 204 has a body",
    caught_by="http.no-content",
    stage=Stage.HEAD,
    concerns=wholes,
)
def body_behind_204(draft: Draft) -> None:
    """The next answer on the connection begins with it."""
    draft.status = 204


@fault(
    "http.whole-as-html",
    "A whole answer is called text/html",
    caught_by="http.whole-media-type",
    stage=Stage.HEAD,
    concerns=wholes,
)
def whole_as_html(draft: Draft) -> None:
    """It is JSON."""
    _set(draft, "Content-Type", "text/html")


@fault(
    "http.whole-as-stream",
    "Who asks for a whole answer gets a stream",
    caught_by="http.whole-media-type",
    stage=Stage.REQUEST,
    concerns=lambda draft: requests(draft) and "stream" not in draft.asked,
)
def whole_as_stream(draft: Draft) -> None:
    """Whatever `stream` says."""
    _ask_for(draft, stream=True)


@fault(
    "http.stream-as-whole",
    "Who asks for a stream gets a whole answer",
    caught_by="http.stream-media-type",
    stage=Stage.REQUEST,
    concerns=lambda draft: requests(draft) and draft.asked.get("stream") is True,
    seen=("microsoft/foundry-dev-tools#195",),
)
def stream_as_whole(draft: Draft) -> None:
    """`stream` is ignored."""
    _ask_for(draft, stream=None, stream_options=None)


def _called(name: str, title: str, media_type: str | None, check: str, *seen: str) -> None:
    def bend(draft: Draft) -> None:
        _set(draft, "Content-Type", media_type)

    fault(name, title, caught_by=check, stage=Stage.HEAD, concerns=streams, seen=seen)(bend)


_called(
    "http.stream-as-json",
    "A stream is called application/json",
    JSON,
    "http.stream-media-type",
    "ollama/ollama#8991",
)
_called("http.text-plain", "A stream is called text/plain", "text/plain", "http.stream-media-type", "54xzh/FLIT#71")
_called("http.no-media-type", "A stream has no Content-Type", None, "http.stream-media-type")
_called(
    "http.latin1-charset",
    "A stream names a charset that is not UTF-8",
    "text/event-stream; charset=iso-8859-1",
    "http.stream-charset",
)


@fault(
    "http.ndjson",
    "A stream is JSON lines in the place of events",
    caught_by="http.stream-media-type",
    stage=Stage.TEXT,
    concerns=streams,
    seen=("Lightning-AI/LitServe#359",),
)
def ndjson(draft: Draft) -> None:
    """As some engines stream by themselves."""
    draft.media_type = "application/x-ndjson"
    draft.events = [replace(each, data=each.data.removeprefix(b"data: ").removesuffix(b"\n")) for each in draft.events]


@fault(
    "http.stream-cached",
    "A stream does not forbid caches to keep it",
    caught_by="http.stream-cache",
    stage=Stage.HEAD,
    concerns=streams,
)
def stream_cached(draft: Draft) -> None:
    """No Cache-Control."""
    _set(draft, "Cache-Control", None)


@fault(
    "http.buffered",
    "A stream is held back to its end",
    caught_by="http.stream-incremental",
    stage=Stage.TEXT,
    concerns=streams,
    seen=("nginx/nginx#1505",),
)
def buffered(draft: Draft) -> None:
    """As a proxy does that buffers: all events come at once."""
    events = list(draft.events)
    draft.events = [Event(events[-1].due_ms, each.data, each.tokens) for each in events]


@fault(
    "http.retry-after-hidden",
    "A page that may read a refusal may not read its Retry-After",
    caught_by="http.retry-after-exposed",
    stage=Stage.HEAD,
    concerns=refusals,
    seen=("Azure/azure-rest-api-specs#24904",),
)
def retry_after_hidden(draft: Draft) -> None:
    """Access-Control-Expose-Headers does not name it."""
    draft.headers += [("Retry-After", "1"), ("Access-Control-Allow-Origin", "*")]
