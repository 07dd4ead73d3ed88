"""`chunk.*`: the payloads of a stream, each by itself and as a sequence."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.assembly import Piece, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.frame import far_from, names_model, not_an_integer
from streamgauge.conformance.limits import misshapen
from streamgauge.conformance.predicates import (
    chunked,
    continues_message,
    count_of_choices,
    documented_stream,
    ended,
    index_of,
    is_chat,
    payloads,
    undocumented,
    valid_request,
)
from streamgauge.conformance.reasoning import has_reasoning, misnamed, names_field
from streamgauge.conformance.shapes import OBJECT_OF_CHUNK, reference_problems
from streamgauge.conformance.unsaid import NOTHING_SAID, unsaid
from streamgauge.contract.contract import CHAT, SSE
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Chunk, Evidence
from streamgauge.wire.json import is_number

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
    "chunk.created-integer",
    Level.SHOULD,
    "`created` of a chunk is written as an integer",
    requirement="created: type: integer",
    source=f"{_SCHEMA}/properties/created",
    applies=chunked,
)
def created_integer(case: Case) -> Iterator[Departure]:
    """`1.0` is an integer to JSON Schema and a float to typed clients."""
    for chunk in payloads(case):
        if lexeme := not_an_integer(chunk.json):
            yield Departure("digits alone", lexeme, event=chunk.event)
            return


@check(
    "chunk.created-seconds",
    Level.SHOULD,
    "`created` of a chunk is the moment of the answer in seconds since 1970",
    requirement="created: the Unix timestamp (in seconds) of when the completion was created.",
    source=CLIENTS,
    applies=lambda case: chunked(case) and any(is_number(chunk.object.get("created")) for chunk in payloads(case)),
    needs=(Evidence.CLOCK,),
)
def created_seconds(case: Case) -> Iterator[Departure]:
    """Milliseconds overflow 32-bit clients; zero or a start-up time misleads logs."""
    for chunk in payloads(case):
        created = chunk.object.get("created")
        if is_number(created) and (found := far_from(case.exchange.started, created)):
            yield Departure(*found, event=chunk.event)
            return


@check(
    "chunk.model",
    Level.SHOULD,
    "A stream names the model that was asked for",
    requirement="required: model",
    source=f"{_SCHEMA}/properties/model; {CLIENTS}",
    applies=lambda case: chunked(case) and valid_request(case),
    needs=(Evidence.REQUEST,),
)
def model(case: Case) -> Iterator[Departure]:
    """Another name may mean another model; that it is there and stays the same is `chunk.model-stable`."""
    for chunk in payloads(case):
        if name := chunk.object.get("model"):
            if not names_model(name, case.model):
                yield Departure(repr(case.model), repr(name), event=chunk.event)
            return


@check(
    "chunk.choices-present",
    Level.SHOULD,
    "Only the chunk that brings the usage has no choice",
    requirement="An additional chunk is streamed before [DONE]; its choices are an empty array.",
    source=CLIENTS,
    applies=chunked,
)
def choices_present(case: Case) -> Iterator[Departure]:
    """Clients take the first choice of every chunk that holds no usage without looking."""
    for chunk in payloads(case):
        if chunk.object.get("choices") == [] and not isinstance(chunk.object.get("usage"), dict):
            yield Departure("a choice, or usage", "an empty `choices` without usage", event=chunk.event)
            return


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


@check(
    "chunk.role-first",
    Level.SHOULD,
    "The first delta of each choice has the role assistant",
    requirement="delta.role: the role of the author of this message.",
    source=CLIENTS,
    applies=lambda case: chat_chunked(case) and not continues_message(case),
    concerns=is_chat,
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
    concerns=is_chat,
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
    "chunk.role-null",
    Level.MAY,
    "Later deltas leave the role out and do not set it to null",
    requirement="Chunks are deltas: what is not new is not there.",
    source=CLIENTS,
    applies=chat_chunked,
    concerns=is_chat,
)
def role_null(case: Case) -> Iterator[Departure]:
    """Clients with a strict schema (the Vercel AI SDK up to 3.3) take no null; the first delta is `chunk.role-first`'s."""
    seen: set[Any] = set()
    for chunk in payloads(case):
        for choice in chunk.choices:
            delta = choice.get("delta")
            if index_of(choice) in seen and isinstance(delta, dict) and delta.get("role", "") is None:
                yield Departure("no role", "null", event=chunk.event)
                return
            seen.add(index_of(choice))


@check(
    "chunk.no-message",
    Level.SHOULD,
    "A chunk carries a delta, not the whole message",
    requirement="required: index, delta",
    source=f"{_SCHEMA}; {CLIENTS}",
    applies=chat_chunked,
    concerns=is_chat,
)
def no_message(case: Case) -> Iterator[Departure]:
    """A growing `message` beside the delta doubles the text in clients that know both."""
    for chunk in payloads(case):
        if any(choice.get("message") is not None for choice in chunk.choices):
            yield Departure("delta only", "a message", event=chunk.event)
            return


_FEWEST_GROWING = 3


def _grow(pieces: tuple[Piece, ...]) -> bool:
    """
    Whether each piece says again what the one before it said, and more.

    Strict, since a model may repeat itself: of several tokens in one piece, each twice as long, or of tokens such as
    `-`, `--`, `---`. What is the first piece over and over again is such a repetition. A piece that says just the same as the
    one before it adds nothing to either: the last chunk, or one whose token has no text.
    """
    texts = [text for text, _ in itertools.groupby(piece.text for piece in pieces)]
    if len(texts) < _FEWEST_GROWING or (texts[0] * len(texts[-1])).startswith(texts[-1]):
        return False
    return all(len(after) > len(before) and after.startswith(before) for before, after in itertools.pairwise(texts))


@check(
    "chunk.delta-cumulative",
    Level.MUST,
    "A chunk carries what is new, not all that was said so far",
    requirement="required: index, delta (chat), text (completions)",
    source=f"{_SCHEMA} (a choice)",
    applies=lambda case: (
        chunked(case) and any(len(each.pieces) >= _FEWEST_GROWING for each in answer_in(case.exchange).choices.values())
    ),
    absent=f"no stream with {_FEWEST_GROWING} pieces of text",
)
def delta_cumulative(case: Case) -> Iterator[Departure]:
    """Clients put the pieces one behind the other."""
    for each in answer_in(case.exchange).choices.values():
        if _grow(each.pieces):
            longer = next(piece.chunk for piece in each.pieces if piece.text != each.pieces[0].text)
            yield Departure(
                "the next piece of the text", "all of the text so far", event=longer.event if longer else None
            )
            return


@check(
    "chunk.text",
    Level.SHOULD,
    "A stream says something for the tokens that it counts",
    **NOTHING_SAID,
    applies=lambda case: ended(case) and unsaid(case) is not None,
)
def text(case: Case) -> Iterator[Departure]:
    """Tokens that nobody sees are paid all the same."""
    yield from unsaid(case) or ()


@check(
    "chunk.no-empty-calls",
    Level.SHOULD,
    "A delta has `tool_calls` only where a tool is called",
    requirement="delta.tool_calls: the next pieces of tool calls",
    source=CLIENTS,
    applies=chat_chunked,
    concerns=is_chat,
)
def no_empty_calls(case: Case) -> Iterator[Departure]:
    """To some clients (Spring AI) an empty array is the beginning of a call: they lose the text that follows."""
    for chunk, delta in _deltas(case):
        if isinstance(delta, dict) and delta.get("tool_calls") == []:
            yield Departure("no tool_calls", "an empty array", event=chunk.event)
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
