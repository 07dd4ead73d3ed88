"""`chunk.*`: the payloads of a stream, each by itself and as a sequence."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.limits import misshapen
from streamgauge.conformance.predicates import (
    chunked,
    count_of_choices,
    documented_stream,
    ended,
    index_of,
    payloads,
    undocumented,
)
from streamgauge.conformance.reasoning import has_reasoning, misnamed, names_field
from streamgauge.conformance.shapes import OBJECT_OF_CHUNK, reference_problems
from streamgauge.contract.contract import CHAT, SSE
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk, Evidence

_SCHEMA = "/responses/200/content/text~1event-stream/schema"


@check(
    "chunk.schema",
    Level.MUST,
    "Each payload has the documented shape",
    requirement="Sent as server-sent events ... where each is an object of the shape below.",
    source=_SCHEMA,
    applies=chunked,
    concerns=documented_stream,
)
def schema(case: Case) -> Iterator[Departure]:
    """The document's own schema, `nullable` understood."""
    validator = case.operation.response(200, SSE)
    for chunk in payloads(case):
        for problem in validator.problems(chunk.object):
            yield misshapen(problem, "the documented shape", chunk.event)
            return


@check(
    "chunk.reference-shape",
    Level.SHOULD,
    "Each payload has the shape that clients expect",
    requirement="id, object, created, model and choices, each choice with index and text (or delta).",
    source=CLIENTS,
    applies=chunked,
    concerns=undocumented,
)
def reference_shape(case: Case) -> Iterator[Departure]:
    """Where the document leaves the answer open, clients still need a shape."""
    for chunk in payloads(case):
        for problem in reference_problems(case.operation.family, chunk.object, streamed=True):
            yield Departure("the usual shape", problem, event=chunk.event)
            return


@check(
    "chunk.object",
    Level.SHOULD,
    "`object` says what the payload is",
    requirement="object: const: chat.completion.chunk (chat); default: text_completion (completions)",
    source=f"{_SCHEMA}/properties/object",
    applies=chunked,
)
def object_name(case: Case) -> Iterator[Departure]:
    """The schemas allow its absence; strict clients do not."""
    expected = OBJECT_OF_CHUNK[case.operation.family]
    for chunk in payloads(case):
        if chunk.object.get("object") != expected:
            yield Departure(expected, repr(chunk.object.get("object")), event=chunk.event)
            return


def _stable(name: str, breaks: str) -> Callable[[Case], Iterator[Departure]]:
    def judge(case: Case) -> Iterator[Departure]:
        first: Any = None
        for number, chunk in enumerate(payloads(case)):
            value = chunk.object.get(name)
            if number == 0:
                first = value
                if value in (None, ""):
                    yield Departure(f"a {name} from the first chunk on", repr(value), event=chunk.event)
                    return
            elif value != first:
                yield Departure(f"{name} {first!r} throughout", repr(value), event=chunk.event)
                return

    judge.__doc__ = breaks
    return judge


for _name, _why in (
    ("id", "Clients put chunks together by their id."),
    ("created", "The moment of creation is one moment; caches and logs compare it."),
    ("model", "One answer comes from one model."),
):
    check(
        f"chunk.{_name}-stable",
        Level.SHOULD,
        f"`{_name}` is the same in all chunks of an answer",
        requirement=f"required: {_name}",
        source=f"{_SCHEMA}/required; {CLIENTS}",
        applies=chunked,
    )(_stable(_name, _why))


@check(
    "chunk.choice-indexes",
    Level.MUST,
    "Each choice that was asked for is streamed under its own index",
    requirement="n: how many choices to return; a choice's index is required.",
    source="/requestBody/content/application~1json/schema/properties/n",
    applies=ended,
    needs=(Evidence.REQUEST,),
)
def choice_indexes(case: Case) -> Iterator[Departure]:
    """Two choices under one index become one garbled text."""
    wanted = count_of_choices(case)
    if wanted is None:
        return
    seen: dict[Any, Chunk] = {}
    for chunk in payloads(case):
        for choice in chunk.choices:
            seen.setdefault(index_of(choice), chunk)
    if len(seen) != wanted or any(index not in seen for index in range(wanted)):
        odd = next((chunk for index, chunk in seen.items() if type(index) is not int or not 0 <= index < wanted), None)
        yield Departure(
            f"indexes 0 to {wanted - 1}",
            ", ".join(map(repr, seen)) or "no choice at all",
            event=odd.event if odd else None,
        )


def chat_chunked(case: Case) -> bool:
    """A chat stream with at least one payload."""
    return chunked(case) and case.operation.family == CHAT


def _is_chat(operation: Any, contract: Any) -> bool:
    return bool(operation.family == CHAT)


@check(
    "chunk.role-first",
    Level.SHOULD,
    "The first delta of each choice has the role assistant",
    requirement="delta.role: the role of the author of this message.",
    source=CLIENTS,
    applies=chat_chunked,
    concerns=_is_chat,
)
def role_first(case: Case) -> Iterator[Departure]:
    """Clients open the message with it."""
    seen: set[Any] = set()
    for chunk in payloads(case):
        for choice in chunk.choices:
            if index_of(choice) in seen:
                continue
            seen.add(index_of(choice))
            delta = choice.get("delta")
            role = delta.get("role") if isinstance(delta, dict) else None
            if role != "assistant":
                yield Departure("role assistant", repr(role), event=chunk.event)
                return


@check(
    "chunk.role-once",
    Level.SHOULD,
    "Later deltas do not repeat the role",
    requirement="Chunks are deltas: what was said is not said again.",
    source=CLIENTS,
    applies=chat_chunked,
    concerns=_is_chat,
)
def role_once(case: Case) -> Iterator[Departure]:
    """Some clients join the strings of a delta: the role becomes `assistantassistant`."""
    seen: set[Any] = set()
    for chunk in payloads(case):
        for choice in chunk.choices:
            delta = choice.get("delta")
            if index_of(choice) in seen and isinstance(delta, dict) and delta.get("role"):
                yield Departure("no role", repr(delta["role"]), event=chunk.event)
                return
            seen.add(index_of(choice))


@check(
    "chunk.no-message",
    Level.SHOULD,
    "A chunk carries a delta, not the whole message",
    requirement="required: index, delta",
    source=f"{_SCHEMA}; {CLIENTS}",
    applies=chat_chunked,
    concerns=_is_chat,
)
def no_message(case: Case) -> Iterator[Departure]:
    """A growing `message` beside the delta doubles the text in clients that know both."""
    for chunk in payloads(case):
        if any(choice.get("message") is not None for choice in chunk.choices):
            yield Departure("delta only", "a message", event=chunk.event)
            return


def _deltas(case: Case) -> Iterator[tuple[Chunk, Any]]:
    for chunk in payloads(case):
        for choice in chunk.choices:
            yield chunk, choice.get("delta")


@check(
    "chunk.reasoning-field",
    Level.SHOULD,
    "Streamed reasoning has the name that the profile says",
    requirement="delta.reasoning: string or null (Seekr, vLLM); delta.reasoning_content (DeepSeek, SGLang).",
    source=f"{CLIENTS}; the profile's `dialect.reasoning_field`",
    applies=lambda case: chat_chunked(case) and any(has_reasoning(delta) for _, delta in _deltas(case)),
    concerns=names_field,
    absent="no stream with reasoning",
)
def reasoning_field(case: Case) -> Iterator[Departure]:
    """Under another name the thoughts are silently lost."""
    for chunk, delta in _deltas(case):
        if name := misnamed(case, delta):
            yield Departure(case.contract.profile.dialect.reasoning_field, name, event=chunk.event)
            return
