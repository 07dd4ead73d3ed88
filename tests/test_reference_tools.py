"""Calls of tools by the reference endpoint: forced ones are made, with arguments that their schema accepts."""

import json
import re
from typing import Any

import jsonschema
import pytest
from assembled import of_stream, of_whole, said
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_responder import CHAT, OPEN_CHAT, USER, ask

from streamgauge.reference.errors import Refusal
from streamgauge.reference.tools import calls_of
from streamgauge.wire.sse import DONE, SseReader

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "days", "unit"],
    "additionalProperties": False,
}
REQUIRED = "required"
NAMED = {"type": "function", "function": {"name": "visit"}}
SPECS = (CHAT, OPEN_CHAT)


def tool(name: str = "visit", parameters: Any = CITY) -> dict[str, Any]:
    """A tool with one function."""
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def whole(name: str, **changes: Any) -> Any:
    """The whole answer to a request that forces a call."""
    response = ask(name, **{"tools": [tool()], "tool_choice": REQUIRED, **changes})
    assert response.status == 200, response.body
    return json.loads(response.body)


def streamed(name: str, **changes: Any) -> list[dict[str, Any]]:
    """The chunks of the same answer."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    response = ask(name, **{"tools": [tool()], "tool_choice": REQUIRED, **options, **changes})
    reader = SseReader()
    events = [event.data for event in reader.feed(response.body)]
    assert events[-1] == DONE
    return [json.loads(data) for data in events[:-1]]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("choice", "finish"), [(REQUIRED, "tool_calls"), (NAMED, "stop")])
def test_whole(name: str, choice: Any, finish: str) -> None:
    """One call with arguments by the schema, no content, and OpenAI's finish reasons: `stop` where the function is named."""
    body = whole(name, tool_choice=choice, logprobs=True)
    (made,) = body["choices"]
    (call,) = made["message"]["tool_calls"]

    assert call["type"] == "function"
    assert re.fullmatch(r"call_\S+", call["id"])
    assert call["function"]["name"] == "visit"
    jsonschema.validate(json.loads(call["function"]["arguments"]), CITY)
    assert made["message"]["content"] is None
    assert made["logprobs"] is None
    assert made["finish_reason"] == finish
    assert 1 < body["usage"]["completion_tokens"] < 20


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tool_choice": NAMED},
        {"n": 3},
        {"max_tokens": 3},
        {"max_tokens": 1, "tool_choice": NAMED},
        {"reasoning_effort": "low"},
        {"reasoning_effort": "low", "max_tokens": 2},
        {"tools": [tool("visit", None)]},
        {"stop": "city"},
    ],
)
def test_both_forms_are_the_same(name: str, changes: dict[str, Any]) -> None:
    """Text, calls, finish reasons and usage, whatever cuts them; stop strings end texts, not calls."""
    one, other = of_stream(streamed(name, **changes)), of_whole(whole(name, **changes))

    assert said(one) == said(other)
    assert one.completion_tokens == other.completion_tokens


@pytest.mark.parametrize("name", SPECS)
def test_stream(name: str) -> None:
    """The role, the call's beginning with empty arguments, the arguments in pieces, the finish reason, the usage."""
    first, beginning, *pieces, finish, usage = streamed(name)
    deltas = [chunk["choices"][0]["delta"] for chunk in (beginning, *pieces)]
    (call,) = deltas[0]["tool_calls"]

    assert first["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert call == {
        "index": 0,
        "id": call["id"],
        "type": "function",
        "function": {"name": "visit", "arguments": ""},
    }
    assert all(delta["tool_calls"][0].keys() == {"index", "function"} for delta in deltas[1:])
    assert len(pieces) == usage["usage"]["completion_tokens"] > 3
    assert finish["choices"][0]["delta"] == {}
    assert finish["choices"][0]["finish_reason"] == "tool_calls"


def test_limit_cuts_the_call() -> None:
    """`max_tokens` below the call's length: finish reason `length`, and as many tokens are counted."""
    body = whole(CHAT, max_tokens=2)
    (made,) = body["choices"]

    assert made["finish_reason"] == "length"
    assert len(made["message"]["tool_calls"][0]["function"]["arguments"]) == 8
    assert body["usage"]["completion_tokens"] == 2


def test_reasoning_may_leave_nothing_for_the_call() -> None:
    """Thoughts count, and where they take all that is allowed there is no call."""
    (made,) = whole(CHAT, reasoning_effort="low", max_tokens=3)["choices"]

    assert "tool_calls" not in made["message"]
    assert made["finish_reason"] == "length"
    assert made["message"]["reasoning"]


def test_least_tokens() -> None:
    """`min_tokens` is kept by white space, which JSON allows behind its value."""
    body = whole(CHAT, min_tokens=30)
    arguments = body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]

    assert body["usage"]["completion_tokens"] == 30
    assert arguments.endswith("  ")
    jsonschema.validate(json.loads(arguments), CITY)


def test_ids_differ_and_answers_are_deterministic() -> None:
    """Each choice's call has an id of its own; the same question gets the same arguments, another one others."""
    made = [choice["message"]["tool_calls"][0] for choice in whole(CHAT, n=3)["choices"]]
    again = whole(CHAT)["choices"][0]["message"]["tool_calls"][0]
    other = whole(CHAT, messages=[*USER, {"role": "user", "content": "And now?"}])["choices"][0]["message"][
        "tool_calls"
    ][0]

    assert len({call["id"] for call in made}) == 3
    assert {call["function"]["arguments"] for call in made} == {again["function"]["arguments"]}
    assert other["function"]["arguments"] != again["function"]["arguments"]


def test_named_function_is_called_and_required_calls_the_first() -> None:
    """Of several tools."""
    tools = [tool("first"), tool("visit")]

    assert (
        whole(CHAT, tools=tools, tool_choice=NAMED)["choices"][0]["message"]["tool_calls"][0]["function"]["name"]
        == "visit"
    )
    assert whole(CHAT, tools=tools)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "first"


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_unforced_choice_is_answered_with_text(choice: str | None) -> None:
    """The pseudo-model calls nothing by itself."""
    (made,) = whole(CHAT, tool_choice=choice, max_tokens=4)["choices"]

    assert made["message"]["content"]
    assert "tool_calls" not in made["message"]


SATISFIED = [
    None,
    {},
    {"type": "object"},
    {"properties": {"a": {}}, "required": ["a"]},
    {"required": ["a"]},
    {"type": "object", "properties": {"a": {"const": [1, {"b": None}]}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": ["null", "string"]}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}, "required": ["a"]},
    {"type": "object", "properties": {"a": CITY, "b": {"type": "boolean"}}, "required": ["a", "b"]},
    {"const": {"a": 1}},
    {"type": "object", "properties": {"a": {"type": "string", "minLength": 50}}, "required": ["a"]},
    {"type": "object", "minProperties": 1},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$comment": "x", "type": "object"},
]
REFUSED = [
    {"type": "string"},
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"not": {}},
    {"type": "nonsense"},
    {"properties": 5},
    {"$ref": "http://127.0.0.1:9/x"},
]


def _call(parameters: Any) -> Any:
    return calls_of({"tools": [tool("f", parameters)], "tool_choice": "required"}, "seed")[0]


@pytest.mark.parametrize("parameters", SATISFIED)
def test_arguments_keep_the_schema(parameters: Any) -> None:
    """`const`, `enum`, `type`, `properties`, `required`; every other keyword is checked."""
    arguments = json.loads("".join(_call(parameters).arguments))

    assert isinstance(arguments, dict)
    jsonschema.validate(arguments, parameters or {})


@pytest.mark.parametrize("parameters", REFUSED)
def test_schema_that_cannot_be_kept_is_refused(parameters: Any) -> None:
    """By name: never a call that breaks the schema, and nothing is fetched."""
    with pytest.raises(Refusal) as refusal:
        _call(parameters)
    assert refusal.value.param == "tools"


SCHEMAS = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}, {"enum": [1, "é"]}, {"const": None}, {"minLength": 9}]
    ),
    lambda inner: st.builds(
        lambda members, required: {"type": "object", "properties": members, "required": required},
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    ),
    max_leaves=6,
)


@given(SCHEMAS)
@settings(max_examples=60)
def test_a_call_is_right_or_refused(parameters: dict[str, Any]) -> None:
    """Law: whatever the schema, the arguments keep it, or there are none."""
    try:
        call = _call(parameters)
    except Refusal:
        return
    jsonschema.validate(json.loads("".join(call.arguments)), parameters)
