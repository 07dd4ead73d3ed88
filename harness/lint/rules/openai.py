"""Rules about chat completions and completions: where a document says less than, or other than, OpenAI's clients rely on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.media import JSON, SSE
from streamgauge.lint.grammar import Node
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Endpoint, Subject, types_of

__all__: list[str] = []


def _ours(subject: Subject) -> Iterator[tuple[Endpoint, dict[str, Node]]]:
    """The operations of the two families, with the properties of their request."""
    for endpoint in subject.endpoints:
        if endpoint.family:
            yield endpoint, subject.properties(subject.body(endpoint))


def _answers(subject: Subject, media_type: str) -> Iterator[tuple[Endpoint, Node]]:
    """The schema of the family operations' 200, of that media type."""
    for endpoint, _ in _ours(subject):
        answer = subject.followed((*endpoint.node.path, "responses", "200"), "response")
        media = subject.followed((*answer.path, "content", media_type), "media type")
        if subject.old or isinstance(media.value.get("schema"), dict):
            yield endpoint, Node("schema", (*media.path, "schema"), {})


def _property(subject: Subject, schema: Node, *names: str) -> Node | None:
    """A property of an object, and of the first form of what stands there; through lists by their items."""
    found: Node | None = schema
    for name in names:
        form = next(subject.members(found), None) if found else None
        if form is not None and form.value.get("type") == "array":
            form = next(subject.members(Node("schema", (*form.path, "items"), {})), None)
        found = subject.properties(form).get(name) if form else None
    return found


@rule(
    "model-optional",
    LintLevel.WARNING,
    "`model` may be left out",
    why="OpenAI and most servers refuse a request without `model`. Where the schema does not require it, generators send such "
    "requests as valid ones and report the refusal as a fault.",
    mend="Name `model` in `required`, and give it no null.",
    source="OpenAI API reference (model: required); fault catalogue Q6",
)
def _model(subject: Subject) -> Iterator[Place]:
    for endpoint, properties in _ours(subject):
        if "model" in properties and "model" not in subject.required(subject.body(endpoint)):
            yield Place(properties["model"].path, "`model` is not required")


@rule(
    "input-optional",
    LintLevel.WARNING,
    "the messages or the prompt may be left out",
    why="What the model continues then is not said. `{}` is a valid request, and servers refuse it.",
    mend="Name `messages` or `prompt` in `required`.",
    source="OpenAI API reference (messages, prompt: required); fault catalogue Q6",
)
def _input(subject: Subject) -> Iterator[Place]:
    for endpoint, properties in _ours(subject):
        name = "messages" if endpoint.family == "chat" else "prompt"
        if name in properties and name not in subject.required(subject.body(endpoint)):
            yield Place(properties[name].path, f"`{name}` is not required")


@dataclass(frozen=True)
class _Range:
    low: float | None
    high: float | None


RANGES = {
    "n": _Range(1, None),
    "best_of": _Range(1, None),
    "max_tokens": _Range(0, None),
    "max_completion_tokens": _Range(0, None),
    "min_tokens": _Range(0, None),
    "temperature": _Range(0, None),
    "top_p": _Range(0, 1),
    "min_p": _Range(0, 1),
    "top_logprobs": _Range(0, None),
    "presence_penalty": _Range(-2, 2),
    "frequency_penalty": _Range(-2, 2),
}
"""Property → the bounds that follow from its meaning. Source: OpenAI API reference; min_p and min_tokens: vLLM."""


@rule(
    "range-missing",
    LintLevel.WARNING,
    "a sampling parameter without the bounds that its meaning has",
    why="`n: -5` and `top_p: 1.1` are valid by the schema. Servers refuse them, or worse, take them; a tool that generates from "
    "the schema reports each refusal as a fault.",
    mend="Give `minimum` and `maximum`.",
    source="OpenAI API reference; JSON Schema 2020-12 validation, section 6.2; fault catalogue Q10",
)
def _ranges(subject: Subject) -> Iterator[Place]:
    for _, properties in _ours(subject):
        for name, bounds in RANGES.items():
            if name not in properties:
                continue
            for form in subject.members(properties[name]):
                keywords = form.value.keys()
                missing = [
                    word
                    for word, exclusive, bound in (
                        ("minimum", "exclusiveMinimum", bounds.low),
                        ("maximum", "exclusiveMaximum", bounds.high),
                    )
                    if bound is not None and not {word, exclusive, "enum", "const"} & keywords
                ]
                if missing and {"integer", "number"} & types_of(form.value):
                    yield Place(properties[name].path, f"`{name}` has no {' and no '.join(missing)}")


@rule(
    "messages-may-be-empty",
    LintLevel.WARNING,
    "an empty list of messages is valid",
    why="There is nothing to answer. Servers refuse it, and some fail with 500 (letta-ai/letta#3381).",
    mend="`minItems: 1`.",
    source="OpenAI API reference (messages); fault catalogue Q10, L28",
)
def _messages(subject: Subject) -> Iterator[Place]:
    for _, properties in _ours(subject):
        messages = properties.get("messages")
        least = subject.followed(messages.path).value.get("minItems", 0) if messages else 1
        if messages and isinstance(least, int) and least < 1:
            yield Place(messages.path, "`messages: []` is valid")


DEFAULTS: dict[str, dict[str, Any]] = {
    "chat": {
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "n": 1,
        "temperature": 1,
        "top_p": 1,
        "stream": False,
        "logprobs": False,
        "presence_penalty": 0,
        "frequency_penalty": 0,
    },
    "completions": {
        "n": 1,
        "best_of": 1,
        "echo": False,
        "max_tokens": 16,
        "temperature": 1,
        "top_p": 1,
        "stream": False,
        "presence_penalty": 0,
        "frequency_penalty": 0,
    },
}
"""Family → property → the default of OpenAI's API reference; `auto` is that of a request with tools."""


@rule(
    "default-contradicts-openai",
    LintLevel.WARNING,
    "a default other than OpenAI's",
    why="A client that leaves the parameter out expects OpenAI's behaviour. With `tool_choice: none` as default, tools that are "
    "given are never called.",
    mend="Use OpenAI's default, or tell clients to send the parameter.",
    source="OpenAI API reference; fault catalogue Q5",
)
def _defaults(subject: Subject) -> Iterator[Place]:
    for endpoint, properties in _ours(subject):
        for name, expected in DEFAULTS[endpoint.family].items():
            value = properties[name].value.get("default") if name in properties else None
            if value is None or (value == expected and isinstance(value, bool) is isinstance(expected, bool)):
                continue
            if name == "tool_choice" and "tools" not in properties:
                continue
            given, wanted = (str(each).lower() if isinstance(each, bool) else each for each in (value, expected))
            when = " when tools are given" if name == "tool_choice" else ""
            yield Place((*properties[name].path, "default"), f"`{name}` is {given} by default; OpenAI: {wanted}{when}")


OBJECTS = {
    ("chat", JSON): "chat.completion",
    ("chat", SSE): "chat.completion.chunk",
    ("completions", JSON): "text_completion",
    ("completions", SSE): "text_completion",
}


@rule(
    "object-weak",
    LintLevel.WARNING,
    "the answer's `object` is not required or not fixed",
    why="It is what tells an answer from an error object or from the other route's answer; by this schema any of them may "
    "pass.",
    mend="`const`, and name `object` in `required`.",
    source="OpenAI API reference (object); fault catalogue Q7",
)
def _object(subject: Subject) -> Iterator[Place]:
    for media_type in (JSON, SSE):
        for endpoint, schema in _answers(subject, media_type):
            found = _property(subject, schema, "object")
            if found is None:
                continue
            value = subject.followed(found.path).value
            lacks = [] if {"const", "enum"} & value.keys() else ["fixed"]
            form = next(subject.members(schema), schema)
            lacks += [] if "object" in subject.required(form) else ["required"]
            if lacks:
                wanted = OBJECTS[endpoint.family, media_type]
                yield Place(found.path, f"`object` is not {' and not '.join(lacks)} (`{wanted}`)")


@rule(
    "usage-empty",
    LintLevel.WARNING,
    "`usage: {}` is valid",
    why="Nobody is told what an answer cost, and clients that add up `usage.total_tokens` break.",
    mend="Name prompt_tokens, completion_tokens and total_tokens in `required`.",
    source="OpenAI API reference (usage); fault catalogue Q7",
)
def _usage(subject: Subject) -> Iterator[Place]:
    for _, schema in _answers(subject, JSON):
        usage = _property(subject, schema, "usage")
        form = next(subject.members(usage), None) if usage else None
        if form is not None and subject.properties(form) and not subject.required(form):
            yield Place(form.path, "`usage` requires nothing of itself")


VALUES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("chat", JSON, ("choices", "finish_reason")),
    ("chat", JSON, ("choices", "message", "role")),
    ("chat", SSE, ("choices", "finish_reason")),
    ("chat", SSE, ("choices", "delta", "role")),
    ("completions", JSON, ("choices", "finish_reason")),
    ("completions", SSE, ("choices", "finish_reason")),
)


@rule(
    "values-open",
    LintLevel.WARNING,
    "a free string where clients know a few values",
    why="SDKs turn finish_reason and role into enumerations and fail, or stop reading, on another value. By this schema any text "
    "is right, so no validator sees `eos`, `STOP` or an empty string.",
    mend="List the values in an `enum`, null among them where it may be null.",
    source="OpenAI API reference (finish_reason, role); fault catalogue 2.D and Q7",
)
def _values(subject: Subject) -> Iterator[Place]:
    for family, media_type, names in VALUES:
        for endpoint, schema in _answers(subject, media_type):
            found = _property(subject, schema, *names) if endpoint.family == family else None
            for form in subject.members(found) if found else ():
                if "string" in types_of(form.value) and not {"enum", "const", "pattern"} & form.value.keys():
                    yield Place(found.path if found else form.path, f"`{'.'.join(names)}` may be any text")


@rule(
    "error-code-integer",
    LintLevel.WARNING,
    "`error.code` is an integer only",
    why="OpenAI's is a word or null. OpenAI's Java SDK and older Python ones fail in their error handling on a number, and the "
    "reason is lost; a server that sends OpenAI's words breaks this document.",
    mend="`type: [string, 'null']`; put the status into the status line only.",
    source="fault catalogue J7, J8, J9 (sgl-project/sglang#32808, openai/openai-python#3531)",
)
def _code(subject: Subject) -> Iterator[Place]:
    for endpoint, _ in _ours(subject):
        for status, answer in subject.answers(endpoint):
            if status[:1] not in ("4", "5"):
                continue
            media = subject.followed((*answer.path, "content", JSON), "media type")
            for form in subject.members(Node("schema", (*media.path, "schema"), {})) if "schema" in media.value else ():
                code = _property(subject, form, "error", "code")
                kinds = [kind for each in subject.members(code) for kind in types_of(each.value)] if code else []
                if code and kinds and set(kinds) <= {"integer", "number"}:
                    yield Place(code.path, "`error.code` is an integer only")
