"""`sse.*`: what goes wrong between the payloads of a stream, byte by byte."""

from collections.abc import Callable
from dataclasses import replace

from streamgauge.reference.drafts import Draft, Event
from streamgauge.reference.faults.fault import Stage, fault, streams

_DONE = ("sse.done", "sse.done-undocumented")

Change = Callable[[list[Event]], list[Event]]


def _bytes(name: str, title: str, check: str | tuple[str, ...], change: Change, *seen: str) -> None:
    """Declare a fault that changes the events' bytes."""

    def bend(draft: Draft) -> None:
        draft.events = change(list(draft.events))

    fault(name, title, caught_by=check, stage=Stage.TEXT, concerns=streams, seen=seen)(bend)


def _each(change: Callable[[bytes], bytes]) -> Change:
    return lambda events: [replace(event, data=change(event.data)) for event in events]


def _first(change: Callable[[bytes], bytes]) -> Change:
    return lambda events: [replace(events[0], data=change(events[0].data)), *events[1:]]


def _last(change: Callable[[bytes], bytes]) -> Change:
    return lambda events: [*events[:-1], replace(events[-1], data=change(events[-1].data))]


def _before_each(data: bytes) -> Change:
    """Something of its own before every event, at the same time."""
    return lambda events: [each for event in events for each in (Event(event.due_ms, data), event)]


def _at_once(data: bytes) -> Change:
    """Something of its own before the first event, while the client waits for it."""
    return lambda events: [Event(0.0, data), *events]


def _member(data: bytes) -> Callable[[bytes], bytes]:
    """One more member in the payload, which every document allows."""
    return lambda event: event.replace(b"data: {", b"data: {" + data + b",", 1)


_bytes(
    "sse.not-utf8",
    "A stream is ISO-8859-1",
    "sse.utf8",
    _each(_member(b'"x":"caf\xe9"')),
)
_bytes("sse.bom", "A stream begins with a byte order mark", "sse.bom", _first(lambda data: b"\xef\xbb\xbf" + data))
_bytes("sse.cr-only", "Lines end in a bare CR", "sse.line-ending", _each(lambda data: data.replace(b"\n", b"\r")))
_bytes(
    "sse.mixed-line-endings",
    "Some lines end in LF, others in CRLF",
    "sse.line-ending",
    _last(lambda data: data.replace(b"\n", b"\r\n")),
)
_bytes(
    "sse.merged-events",
    "Two events have no blank line between them",
    "sse.blank-line",
    _first(lambda data: data[:-1]),
    "ggml-org/llama.cpp#14268",
)
_bytes(
    "sse.no-blank-line",
    "No event has a blank line behind it",
    "sse.blank-line",
    _each(lambda data: data[:-1]),
    "open-webui/open-webui#7726",
)
_bytes(
    "sse.last-event-unfinished",
    "The last event has no blank line behind it",
    "sse.blank-line",
    _last(lambda data: data[:-1]),
)
_bytes(
    "sse.no-space",
    "No space follows `data:`",
    "sse.data-space",
    _each(lambda data: data.replace(b"data: ", b"data:", 1)),
    "huggingface/text-generation-inference#2019",
)
_bytes(
    "sse.split-payload",
    "A payload stretches over several data lines",
    "sse.one-data-line",
    _each(lambda data: data.replace(b",", b",\ndata: ", 1)),
)
_bytes(
    "sse.named-event",
    "Events have a name",
    "sse.event-name",
    _each(lambda data: b"event: chunk\n" + data),
    "mudler/LocalAI#340",
)
_bytes(
    "sse.payload-without-field",
    "A payload lacks its `data:`",
    "sse.field-known",
    lambda events: [Event(0.0, b'{"status":"queued"}\n\n'), *events],
)
_bytes(
    "sse.empty-data",
    "A ping is an event with empty data",
    "sse.data-empty",
    _at_once(b"data: \n\n"),
    "caozhiyuan/copilot-api#88",
)
_bytes("sse.ping-as-data", "A ping is an event whose data is no JSON", "sse.data-json", _at_once(b"data: ping\n\n"))
_bytes(
    "sse.comment-as-data",
    "A comment is written as data",
    "sse.data-json",
    _at_once(b"data: : PROCESSING\n\n"),
    "mnfst/llm-gateway#2053",
)
_bytes(
    "sse.quoted-ping",
    "A ping is an event whose data is an empty JSON string",
    "sse.data-json",
    _at_once(b'data: ""\n\n'),
    "caozhiyuan/copilot-api#88",
)
_bytes(
    "sse.nan",
    "A payload has a NaN, which is no JSON",
    "sse.strict-json",
    _each(_member(b'"x":NaN')),
)
_bytes(
    "sse.duplicate-key",
    "A payload names a member twice",
    "sse.interoperable-json",
    _each(_member(b'"x":1,"x":2')),
)
_bytes(
    "sse.bare-event",
    "A heartbeat is an `event` field without data",
    "sse.heartbeat-safe",
    _at_once(b"event: keepalive\n\n"),
    "diegosouzapw/OmniRoute#1146",
)
_bytes(
    "sse.bare-retry",
    "A `retry` field stands without data",
    "sse.heartbeat-safe",
    _at_once(b"retry: 3000\n\n"),
)
_bytes(
    "sse.comment-behind-id",
    "Events have ids, and comments come between them",
    "sse.heartbeat-safe",
    lambda events: [
        each
        for event in events
        for each in (replace(event, data=b"id: 1\n" + event.data), Event(event.due_ms, b": ping\n\n"))
    ],
    "theopenco/llmgateway#2334",
    "openai/openai-python#2722",
)
_bytes(
    "sse.keep-alive",
    "Comments come while the client waits, as they may",
    "sse.comments",
    _at_once(b": keep-alive\n\n"),
    "ggml-org/llama.cpp#24013",
    "coder/coder#28185",
    "openai/openai-go#227",
)
_bytes(
    "sse.unicode-separator",
    "A payload has a raw U+2028, as it may",
    "sse.unicode-separators",
    _each(_member('"x":"\u2028"'.encode())),
    "florimondmanca/httpx-sse#34",
)
_bytes(
    "sse.no-done",
    "The stream ends without [DONE]",
    _DONE,
    lambda events: events[:-1],
    "vllm-project/vllm#52852",
    "perplexityai/api-discussion#209",
)
_bytes("sse.done-twice", "[DONE] comes twice", _DONE, lambda events: [*events, events[-1]])
_bytes(
    "sse.done-quoted",
    "[DONE] is a JSON string",
    "sse.data-json",
    _last(lambda data: data.replace(b"[DONE]", b'"[DONE]"')),
)
_bytes(
    "sse.event-after-done",
    "An event follows [DONE]",
    "sse.done-last",
    lambda events: [*events, events[-2]],
)
_bytes(
    "sse.bytes-after-done",
    "Bytes that are no event follow [DONE]",
    "sse.done-last",
    _last(lambda data: data + b"bye"),
)
