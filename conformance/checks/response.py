"""`response.*`: an answer in one piece."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.frame import far_from, names_model, not_an_integer
from streamgauge.conformance.jsonrules import INTEROPERABLE, STRICT, JsonRule
from streamgauge.conformance.limits import misshapen, text_beyond_limit
from streamgauge.conformance.predicates import (
    choices_of,
    continues_message,
    count_of_choices,
    documented,
    is_chat,
    object_answer,
    undocumented,
    valid_request,
    whole,
)
from streamgauge.conformance.reasoning import has_reasoning, misnamed, names_field
from streamgauge.conformance.shapes import OBJECT_OF_WHOLE, reference_problems
from streamgauge.conformance.unsaid import NOTHING_SAID, unsaid
from streamgauge.contract.contract import JSON
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import is_number

_SCHEMA = "/responses/200/content/application~1json/schema"


@check(
    "response.json",
    Level.MUST,
    "A whole answer is one JSON object",
    requirement="content: application/json",
    source="/responses/200/content/application~1json",
    applies=lambda case: whole(case) and case.exchange.response.complete,
    needs=(Evidence.ENDING,),
)
def json_object(case: Case) -> Iterator[Departure]:
    """Nothing before the value, nothing after it."""
    text = case.exchange.json
    if limited := text_beyond_limit(text, len(case.exchange.response.body)):
        yield limited
    elif not isinstance(text.value, dict):
        defect = text.defects[0] if text.defects else None
        start = max(defect.offset, 0) if defect else 0
        yield Departure(
            "a JSON object",
            f"{defect.kind}: {defect.detail}" if defect else type(text.value).__name__,
            span=(start, min(start + 1, len(case.exchange.response.body))),
        )


def _readable(case: Case) -> bool:
    return whole(case) and case.exchange.json.valid


def _defects(case: Case, rule: JsonRule) -> Iterator[Departure]:
    for defect in (*case.exchange.json.defects, *case.exchange.json.uneven):
        if defect.kind in rule.kinds:
            span = (defect.offset, defect.offset + 1) if defect.offset >= 0 else None
            yield Departure(rule.expected, f"{defect.kind}: {defect.detail}", span=span)
            return


@check(
    "response.strict-json",
    Level.MUST,
    "A whole answer is strict JSON",
    **STRICT.declared,
    applies=_readable,
    needs=(Evidence.BYTES,),
)
def strict_json(case: Case) -> Iterator[Departure]:
    """Lenient parsers hide it, strict ones (Go, Rust, .NET) stop."""
    return _defects(case, STRICT)


@check(
    "response.interoperable-json",
    Level.SHOULD,
    "A whole answer's JSON is read alike everywhere",
    **INTEROPERABLE.declared,
    applies=_readable,
)
def interoperable_json(case: Case) -> Iterator[Departure]:
    """Which of two values counts, what a lone surrogate becomes, and how far a number is rounded, differs by parser."""
    return _defects(case, INTEROPERABLE)


@check(
    "response.schema",
    Level.MUST,
    "A whole answer has the documented shape",
    requirement="'200': description: Successful response. content: application/json: schema",
    source=_SCHEMA,
    applies=object_answer,
    concerns=documented,
)
def schema(case: Case) -> Iterator[Departure]:
    """The document's own schema, `nullable` understood."""
    for problem in case.operation.response(200, JSON).problems(case.exchange.json.value)[:1]:
        yield misshapen(problem, "the documented shape")


@check(
    "response.reference-shape",
    Level.SHOULD,
    "A whole answer has the shape that clients expect",
    requirement="id, object, created, model, choices with index and text (or message), usage with its three counts.",
    source=CLIENTS,
    applies=object_answer,
    concerns=undocumented,
)
def reference_shape(case: Case) -> Iterator[Departure]:
    """Where the document leaves the answer open, clients still need a shape."""
    for problem in reference_problems(case.operation.family, case.exchange.json.value, streamed=False):
        yield Departure("the usual shape", problem)
        return


@check(
    "response.object",
    Level.SHOULD,
    "`object` says what the answer is",
    requirement="object: const: chat.completion (chat), text_completion (completions)",
    source=f"{_SCHEMA}/properties/object",
    applies=object_answer,
)
def object_name(case: Case) -> Iterator[Departure]:
    """The schemas allow its absence; strict clients do not."""
    expected = OBJECT_OF_WHOLE[case.operation.family]
    if case.exchange.json.value.get("object") != expected:
        yield Departure(expected, repr(case.exchange.json.value.get("object")))


@check(
    "response.id",
    Level.SHOULD,
    "An answer has an id",
    requirement="required: id",
    source=f"{_SCHEMA}/required; {CLIENTS}",
    applies=object_answer,
)
def has_id(case: Case) -> Iterator[Departure]:
    """An empty id satisfies the schema and helps nobody."""
    value = case.exchange.json.value.get("id")
    if not isinstance(value, str) or not value:
        yield Departure("a string that is not empty", repr(value))


@check(
    "response.created-integer",
    Level.SHOULD,
    "`created` is written as an integer",
    requirement="created: type: integer",
    source=f"{_SCHEMA}/properties/created",
    applies=object_answer,
)
def created_integer(case: Case) -> Iterator[Departure]:
    """`1.0` is an integer to JSON Schema and a float to typed clients."""
    if lexeme := not_an_integer(case.exchange.json):
        yield Departure("digits alone", lexeme)


@check(
    "response.created-seconds",
    Level.SHOULD,
    "`created` is the moment of the answer in seconds since 1970",
    requirement="created: the Unix timestamp (in seconds) of when the completion was created.",
    source=CLIENTS,
    applies=lambda case: object_answer(case) and is_number(case.exchange.json.value.get("created")),
    needs=(Evidence.CLOCK,),
)
def created_seconds(case: Case) -> Iterator[Departure]:
    """Milliseconds overflow 32-bit clients; zero or a start-up time misleads logs."""
    if found := far_from(case.exchange.started, case.exchange.json.value["created"]):
        yield Departure(*found)


@check(
    "response.model",
    Level.SHOULD,
    "An answer names the model that was asked for",
    requirement="required: model",
    source=f"{_SCHEMA}/properties/model; {CLIENTS}",
    applies=lambda case: object_answer(case) and valid_request(case),
    needs=(Evidence.REQUEST,),
)
def model(case: Case) -> Iterator[Departure]:
    """Another name may mean another model."""
    value = case.exchange.json.value.get("model")
    if not names_model(value, case.model):
        yield Departure(repr(case.model), repr(value))


@check(
    "response.choices",
    Level.MUST,
    "An answer has every choice that was asked for, under its own index",
    requirement="n: how many choices to return; a choice's index is required.",
    source="/requestBody/content/application~1json/schema/properties/n",
    applies=lambda case: object_answer(case) and valid_request(case),
    needs=(Evidence.REQUEST,),
)
def choices(case: Case) -> Iterator[Departure]:
    """`n` accepted and not honoured costs its caller an exception."""
    wanted = count_of_choices(case)
    given = case.exchange.json.value.get("choices")
    if wanted is None or not isinstance(given, list):
        return
    indexes = [choice.get("index") if isinstance(choice, dict) else None for choice in given]
    if len(indexes) != wanted or any(index not in indexes for index in range(wanted)):  # in whatever order
        yield Departure(f"indexes 0 to {wanted - 1}", ", ".join(map(repr, indexes)) or "no choice at all")


def _messages(case: Case) -> list[Any]:
    return [choice.get("message") for choice in choices_of(case)]


@check(
    "response.role",
    Level.SHOULD,
    "The message of a whole answer has the role assistant",
    requirement="message.role: the role of the author of this message.",
    source=CLIENTS,
    applies=lambda case: (
        object_answer(case)
        and not continues_message(case)
        and any(isinstance(message, dict) for message in _messages(case))
    ),
    concerns=is_chat,
)
def role(case: Case) -> Iterator[Departure]:
    """Clients send the message back in the next request, where another role means another speaker."""
    for message in _messages(case):
        if isinstance(message, dict) and message.get("role") != "assistant":
            yield Departure("role assistant", repr(message.get("role")))
            return


@check(
    "response.text",
    Level.SHOULD,
    "A whole answer says something for the tokens that it counts",
    **NOTHING_SAID,
    applies=lambda case: object_answer(case) and unsaid(case) is not None,
)
def text(case: Case) -> Iterator[Departure]:
    """Tokens that nobody sees are paid all the same."""
    yield from unsaid(case) or ()


@check(
    "response.no-empty-calls",
    Level.SHOULD,
    "A message has `tool_calls` only where a tool is called",
    requirement="message.tool_calls: the tools that the model calls",
    source=CLIENTS,
    applies=lambda case: object_answer(case) and any(isinstance(message, dict) for message in _messages(case)),
    concerns=is_chat,
)
def no_empty_calls(case: Case) -> Iterator[Departure]:
    """Clients that send the message back are refused: OpenAI takes no empty array (`empty_array`)."""
    if any(isinstance(message, dict) and message.get("tool_calls") == [] for message in _messages(case)):
        yield Departure("no tool_calls", "an empty array")


@check(
    "response.reasoning-field",
    Level.SHOULD,
    "A whole answer's reasoning has the name that the profile says",
    requirement="message.reasoning: string or null (Seekr, vLLM); message.reasoning_content (DeepSeek, SGLang).",
    source=f"{CLIENTS}; the profile's `dialect.reasoning_field`",
    applies=lambda case: object_answer(case) and any(map(has_reasoning, _messages(case))),
    concerns=names_field,
    absent="no whole answer with reasoning",
)
def reasoning_field(case: Case) -> Iterator[Departure]:
    """Under another name the thoughts are silently lost."""
    for message in _messages(case):
        if name := misnamed(case, message):
            yield Departure(case.contract.profile.dialect.reasoning_field, name)
            return
