"""Whether tools are called as the request says, and how answers tell the calls: hand-made answers."""

import json
from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

SEEKR, CHAT = contract_of("seekr-chat")
OPENAI, OPENAI_CHAT = contract_of("openai-chat")

PASS, FAIL, IGNORED = Outcome.PASS, Outcome.FAIL, Outcome.IGNORED
WARN, REFUSED, NOT_RUN = Outcome.WARN, Outcome.REFUSED, Outcome.NOT_RUN
STOP, CALLS, LENGTH = "stop", "tool_calls", "length"

HUE = {
    "type": "object",
    "properties": {"hue": {"enum": ["zq7"]}},
    "required": ["hue"],
    "additionalProperties": False,
}
RIGHT = '{"hue": "zq7"}'


def tools(**members: Any) -> list[dict[str, Any]]:
    """Two functions."""
    return [{"type": "function", "function": {"name": name, "parameters": HUE, **members}} for name in ("paint", "dye")]


def named(name: str) -> dict[str, Any]:
    """A tool choice."""
    return {"type": "function", "function": {"name": name}}


def call(name: str = "paint", arguments: str = RIGHT, id_: str = "c1") -> dict[str, Any]:
    """A call as an answer tells it."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(
    *calls: dict[str, Any], finish: str = CALLS, text: str | None = None, completion: int = 8, **members: Any
) -> bytes:
    """A whole answer with these calls."""
    body = whole_answer(CHAT)
    body["usage"] = usage(completion=completion)
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **members}
    body["choices"][0].update(message=message, finish_reason=finish)
    return http(200, json.dumps(body).encode())


def asked(**changes: Any) -> dict[str, Any]:
    """A request with tools, and room for more than it gets."""
    return request(CHAT, **{"tools": tools(), "max_tokens": 64, **changes})


BOTH = (call(), call("dye", id_="c2"))

LAWS: list[tuple[str, str, dict[str, Any], bytes, Outcome]] = [
    ("choice-none", "text", {"tool_choice": "none"}, answer(finish=STOP, text="One"), PASS),
    ("choice-none", "nothing at all", {"tool_choice": "none"}, answer(finish=STOP, text=""), PASS),
    ("choice-none", "a call", {"tool_choice": "none"}, answer(call()), IGNORED),
    ("choice-none", "an empty array is judged elsewhere", {"tool_choice": "none"}, answer(tool_calls=[]), PASS),
    ("choice-none", "no tools", {"tool_choice": "none", "tools": ...}, answer(call()), NOT_RUN),
    ("none-markup", "text", {"tool_choice": "none"}, answer(finish=STOP, text="The <tool> is [here]."), PASS),
    ("none-markup", "Hermes", {"tool_choice": "none"}, answer(finish=STOP, text='<tool_call>\n{"name"'), WARN),
    ("none-markup", "Mistral", {"tool_choice": "none"}, answer(finish=STOP, text="[TOOL_CALLS] [{"), WARN),
    ("none-markup", "Llama", {"tool_choice": "none"}, answer(finish=STOP, text="<function=paint>{}"), WARN),
    ("required", "a call", {"tool_choice": "required"}, answer(call()), PASS),
    ("required", "two calls", {"tool_choice": "required"}, answer(*BOTH), PASS),
    ("required", "prose", {"tool_choice": "required"}, answer(finish=STOP, text="One"), IGNORED),
    ("required", "nothing (llama.cpp)", {"tool_choice": "required"}, answer(finish=STOP, text=""), IGNORED),
    ("required", "a refusal", {"tool_choice": "required"}, answer(finish=STOP, refusal="I cannot."), NOT_RUN),
    ("named", "a refusal", {"tool_choice": named("dye")}, answer(finish=STOP, refusal="I cannot."), NOT_RUN),
    ("required", "cut (vLLM)", {"tool_choice": "required"}, answer(finish=LENGTH, text="<tool_call>\n{"), NOT_RUN),
    ("required", "cut reasoning", {"tool_choice": "required"}, answer(finish=LENGTH, reasoning="hm"), NOT_RUN),
    ("required", "the older form", {"tool_choice": "required"}, answer(function_call=call()["function"]), PASS),
    ("named", "the one", {"tool_choice": named("dye")}, answer(call("dye"), finish=STOP), PASS),
    ("named", "the one, and OpenAI's older reason", {"tool_choice": named("dye")}, answer(call("dye")), PASS),
    ("named", "another", {"tool_choice": named("dye")}, answer(call("paint")), IGNORED),
    ("named", "prose", {"tool_choice": named("dye")}, answer(finish=STOP, text="One"), IGNORED),
    ("named", "cut", {"tool_choice": named("dye")}, answer(finish=LENGTH, text="<tool"), NOT_RUN),
    ("unknown-tool", "known", {"tool_choice": "auto"}, answer(*BOTH), PASS),
    ("unknown-tool", "unknown", {"tool_choice": "auto"}, answer(call("varnish")), FAIL),
    ("unknown-tool", "no name", {"tool_choice": "auto"}, answer(call("")), FAIL),
    ("unknown-tool", "no call", {"tool_choice": "auto"}, answer(finish=STOP, text="One"), NOT_RUN),
    ("strict", "right", {"tools": tools(strict=True), "tool_choice": "auto"}, answer(call()), PASS),
    ("strict", "wrong", {"tools": tools(strict=True), "tool_choice": "auto"}, answer(call(arguments="{}")), IGNORED),
    ("strict", "cut", {"tools": tools(strict=True)}, answer(call(arguments='{"h'), finish=LENGTH), NOT_RUN),
    ("strict", "no JSON is judged elsewhere", {"tools": tools(strict=True)}, answer(call(arguments='{"h')), NOT_RUN),
    ("strict", "not strict", {"tool_choice": "auto"}, answer(call(arguments="{}")), NOT_RUN),
    ("strict", "no schema", {"tools": tools(strict=True, parameters=None)}, answer(call(arguments="{}")), NOT_RUN),
    ("arguments-valid", "right", {"tool_choice": "required"}, answer(call()), PASS),
    ("arguments-valid", "no object (vLLM)", {"tool_choice": "required"}, answer(call(arguments="4")), WARN),
    ("arguments-valid", "of its own accord", {"tool_choice": "auto"}, answer(call(arguments="{}")), NOT_RUN),
    ("parallel-false", "one", {"tool_choice": "auto", "parallel_tool_calls": False}, answer(call()), PASS),
    ("parallel-false", "two", {"tool_choice": "auto", "parallel_tool_calls": False}, answer(*BOTH), IGNORED),
    ("parallel-false", "none", {"parallel_tool_calls": False}, answer(finish=STOP, text="One"), NOT_RUN),
    ("parallel-false", "allowed", {"parallel_tool_calls": True}, answer(*BOTH), NOT_RUN),
    ("default", "none, as Seekr's document has it", {}, answer(finish=STOP, text="One"), PASS),
    ("default", "auto, as OpenAI has it", {}, answer(call()), WARN),
    ("unmeetable", "a name that is no tool's", {"tool_choice": named("varnish")}, answer(call("varnish")), IGNORED),
    ("unmeetable", "no tools", {"tool_choice": "required", "tools": ...}, answer(finish=STOP, text="One"), IGNORED),
    ("unmeetable", "no tools in the list", {"tool_choice": "required", "tools": []}, answer(text="One"), IGNORED),
    ("unmeetable", "a tool's name", {"tool_choice": named("dye")}, answer(call("dye")), NOT_RUN),
]


@pytest.mark.parametrize(
    ("check", "name", "changes", "wire", "expected"), LAWS, ids=[f"{row[0]}: {row[1]}" for row in LAWS]
)
def test_tools_are_called_as_the_request_says(
    check: str, name: str, changes: dict[str, Any], wire: bytes, expected: Outcome
) -> None:
    """`tools`, `tool_choice`, `parallel_tool_calls`: the plain meaning of each value."""
    assert outcomes(SEEKR, CHAT, exchange(CHAT, asked(**changes), wire))[f"calls.{check}"] is expected


REFUSAL = b'{"error": {"message": "no", "type": "x", "code": 422}}'


@pytest.mark.parametrize(
    ("check", "changes", "expected"),
    [
        ("required", {"tool_choice": "required"}, REFUSED),
        ("named", {"tool_choice": named("dye")}, REFUSED),
        ("unmeetable", {"tool_choice": named("varnish")}, PASS),
        ("unknown-tool", {"tool_choice": named("varnish")}, NOT_RUN),
        ("strict", {"tool_choice": named("varnish"), "tools": tools(strict=True)}, NOT_RUN),
        ("choice-none", {"tool_choice": "none", "stop": "a"}, NOT_RUN),
    ],
)
def test_a_refusal_is_told_as_one(check: str, changes: dict[str, Any], expected: Outcome) -> None:
    """Of what nobody can meet it is right."""
    found = outcomes(SEEKR, CHAT, exchange(CHAT, asked(**changes), http(422, REFUSAL)))
    assert found[f"calls.{check}"] is expected


def test_the_default_is_the_documents() -> None:
    """OpenAI's document has another: `auto` beside tools."""
    found = outcomes(OPENAI, OPENAI_CHAT, exchange(OPENAI_CHAT, asked(), answer(call())))
    assert found["calls.default"] is Outcome.NOT_APPLICABLE


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}

TOLD: list[tuple[str, str, bytes, Outcome]] = [
    ("arguments-json", "an object", answer(call()), PASS),
    ("arguments-json", "JSON of another kind", answer(call(arguments="4")), PASS),
    ("arguments-json", "a brace is lost (vllm 9693)", answer(call(arguments='{"hue": "zq7"')), WARN),
    ("arguments-json", "nothing", answer(call(arguments="")), WARN),
    ("arguments-json", "cut, and told", answer(call(arguments='{"h'), finish=LENGTH), PASS),
    ("arguments-json", "cut, and not told", answer(call(arguments='{"h'), completion=64), NOT_RUN),
    ("cut-told", "cut, and not told (vllm 46303)", answer(call(arguments='{"h'), completion=64), FAIL),
    ("cut-told", "cut, and told", answer(call(arguments='{"h'), finish=LENGTH, completion=64), PASS),
    ("cut-told", "whole at the limit", answer(call(), completion=64), PASS),
    ("cut-told", "not at the limit", answer(call(arguments='{"h')), NOT_RUN),
    ("arguments-json", "a custom tool takes any text", answer(CUSTOM), PASS),
    ("arguments-json", "one beside it is JSON all the same", answer(CUSTOM, call(arguments="")), PASS),
    ("cut-told", "a custom tool takes any text", answer(CUSTOM, completion=64), PASS),
    ("ids", "two", answer(*BOTH), PASS),
    ("ids", "one for two (lmdeploy 3412)", answer(call(), call("dye")), FAIL),
    ("ids", "empty", answer(call(id_="")), FAIL),
    ("ids", "the older form has none", answer(function_call=call()["function"]), NOT_RUN),
]


@pytest.mark.parametrize(("check", "name", "wire", "expected"), TOLD, ids=[f"{row[0]}: {row[1]}" for row in TOLD])
def test_calls_are_told(check: str, name: str, wire: bytes, expected: Outcome) -> None:
    """Whatever the request said of tools."""
    found = outcomes(SEEKR, CHAT, exchange(CHAT, asked(tool_choice="auto"), wire))
    assert found[f"calls.{check}"] is expected


def streamed(*ids: str | None) -> bytes:
    """A stream of calls, each in two pieces."""
    first, *_, last, counted = chunks(CHAT)
    pieces = []
    for index, id_ in enumerate(ids):
        begun = {"index": index, **({} if id_ is None else {"id": id_}), "type": "function"}
        pieces.append({**begun, "function": {"name": "paint", "arguments": RIGHT[:5]}})
        pieces.append({"index": index, "function": {"arguments": RIGHT[5:]}})
    said = [
        {**first, "choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}
        for piece in pieces
    ]
    last["choices"][0]["finish_reason"] = CALLS
    return chunked(sse([first, *said, last, counted]))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(("a", "b"), PASS), (("a", "a"), FAIL), (("a", None), PASS), (("",), PASS)],
    ids=["two", "one for two", "one left out: tools.stream-first-delta's", "empty: tools.stream-first-delta's"],
)
def test_calls_of_a_stream_are_told(ids: tuple[str | None, ...], expected: Outcome) -> None:
    """The pieces of one call have one id, told in the first."""
    sent = asked(tool_choice="required", stream=True, stream_options={"include_usage": True})
    found = outcomes(SEEKR, CHAT, exchange(CHAT, sent, streamed(*ids)))

    assert found["calls.ids"] is expected
    assert found["calls.required"] is found["calls.arguments-json"] is PASS


def turn(made: dict[str, Any], *results: str, **changes: Any) -> dict[str, Any]:
    """The request that sends a call back with its results."""
    messages = [
        {"role": "user", "content": "Paint."},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        *({"role": "tool", "tool_call_id": id_, "content": "done"} for id_ in results),
    ]
    return asked(messages=messages, **changes)


@pytest.mark.parametrize(
    ("second", "status", "expected"),
    [
        (turn(call(), "c1"), 200, PASS),
        (turn(call(), "c1"), 400, FAIL),
        (turn(call(), "c1"), 500, NOT_RUN),  # error.no-5xx
        (turn(call(), "c1"), 403, NOT_RUN),  # whom it lets in is another matter
        (turn(call(), "c1"), 408, NOT_RUN),
        (turn(call(), "c1"), 429, Outcome.INCONCLUSIVE),
        (turn(call(id_="c9"), "c9"), 400, NOT_RUN),  # not this server's call
        (turn(call(), "c2"), 400, NOT_RUN),  # the result of another
        (turn(call()), 400, NOT_RUN),  # no result
        (turn(call(arguments='{"h'), "c1"), 400, NOT_RUN),  # not as it was made
        (turn(call(), "c1", stop=["a"]), 400, NOT_RUN),  # that may be the reason
    ],
)
def test_a_call_can_be_sent_back(second: dict[str, Any], status: int, expected: Outcome) -> None:
    """What a server made itself it has to take back (vllm 47734, langchain4j 1958)."""
    made: Exchange = exchange(CHAT, asked(tool_choice="required"), answer(call()), probe="first")
    wire = answer(finish=STOP, text="Done.") if status == 200 else http(status, REFUSAL)

    found = outcomes(SEEKR, CHAT, made, exchange(CHAT, second, wire, probe="second"))

    assert found["calls.round-trip"] is expected
