"""An answer put together from its pieces is the same as the whole one, and no piece breaks it."""

import json
from typing import Any

import pytest
from assembled import Said, choice, of_stream, of_whole, said
from hypothesis import given
from hypothesis import strategies as st
from transcripts import chunked, contract_of, exchange, http, request, sse, stream_request, whole_answer

from streamgauge.conformance.assembly import Answer, Call, Token, answer_in


def chunk(*choices: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A payload with these choices."""
    return {"choices": list(choices), **members}


def delta(index: int = 0, finish: str | None = None, logprobs: Any = None, **members: Any) -> dict[str, Any]:
    """A choice of a chat's chunk."""
    return {"index": index, "delta": members, "finish_reason": finish, "logprobs": logprobs}


def call(index: int, id_: str | None = None, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    """A piece of a call."""
    return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}


def token(text: str, logprob: Any) -> dict[str, Any]:
    """Log-probabilities of one token, as a chat has them."""
    return {"content": [{"token": text, "logprob": logprob, "top_logprobs": []}]}


STREAMS = [
    pytest.param([], {}, id="nothing"),
    pytest.param(
        [
            chunk(delta(role="assistant", content="")),
            chunk(delta(content="one ")),
            chunk(delta(content="two")),
            chunk(delta(finish="stop")),
        ],
        {0: choice("one two", finish="stop")},
        id="chat",
    ),
    pytest.param(
        [chunk({"index": 0, "text": "one "}), chunk({"index": 0, "text": "two", "finish_reason": "length"})],
        {0: choice("one two", finish="length")},
        id="text completions",
    ),
    pytest.param(
        [chunk(delta(1, content="b")), chunk(delta(0, content="a"), delta(1, content="b", finish="stop"))],
        {0: choice("a"), 1: choice("bb", finish="stop")},
        id="several choices, mixed",
    ),
    pytest.param(
        [chunk(delta(reasoning="I ")), chunk(delta(reasoning_content="think")), chunk(delta(content="so"))],
        {0: choice("so", "I think")},
        id="reasoning under either name",
    ),
    pytest.param(
        [chunk(delta(reasoning="I", reasoning_content="I"))],
        {0: choice("", "I")},
        id="reasoning under both names, once",
    ),
    pytest.param(
        [
            chunk(delta(tool_calls=[call(1, "b", "g", "")])),
            chunk(delta(tool_calls=[call(0, "a", "f", '{"x"'), call(1, None, None, "{")])),
            chunk(delta(tool_calls=[call(0, arguments=": 1}"), call(1, arguments="}")])),
        ],
        {0: choice(calls=(Call("f", '{"x": 1}'), Call("g", "{}")))},
        id="tool calls by their indexes",
    ),
    pytest.param(
        [chunk(delta(tool_calls=[call(0, "a", "f", {"x": 1})]))],
        {0: choice(calls=(Call("f", '{"x": 1}'),))},
        id="arguments as an object",
    ),
    pytest.param(
        [
            chunk(delta(function_call={"name": "f", "arguments": ""})),
            chunk(delta(function_call={"arguments": "{}"})),
        ],
        {0: choice(calls=(Call("f", "{}"),))},
        id="a function call by the older name",
    ),
    pytest.param(
        [chunk({"index": 0, "message": {"content": "a"}}), chunk({"index": 0, "delta": {}, "text": "b"})],
        {0: choice("a")},
        id="a message in a chunk counts where there is no delta, a text where there is neither",
    ),
    pytest.param(
        [chunk(delta(logprobs=token("a", -1))), chunk(delta(logprobs=token("b", -2.5))), chunk(delta())],
        {0: choice(tokens=(Token("a", -1.0), Token("b", -2.5)))},
        id="log-probabilities of chat",
    ),
    pytest.param(
        [chunk({"index": 0, "text": "", "logprobs": {"tokens": ["a", "b"], "token_logprobs": [None]}})],
        {0: choice(tokens=(Token("a", None), Token("b", None)))},
        id="log-probabilities of text completions, some missing",
    ),
    pytest.param(
        [chunk(delta(finish="length")), chunk(delta(finish="stop"))],
        {0: choice(finish="length")},
        id="two finish reasons",
    ),
    pytest.param(
        [chunk({"delta": {"content": "a"}}), chunk({"index": "0", "delta": {"content": "b"}})],
        {0: choice("ab")},
        id="no index, or none that is a number: by position",
    ),
]


@pytest.mark.parametrize(("chunks", "expected"), STREAMS)
def test_stream(chunks: list[dict[str, Any]], expected: dict[int, Said]) -> None:
    """Pieces with the same indexes belong together, in the order in which they came."""
    answer = of_stream(chunks)

    assert said(answer) == expected
    assert answer.completion_tokens is None


def test_whole() -> None:
    """Message, content parts, calls, usage."""
    message = {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "reasoning": "r",
        "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g"}}],
    }
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"completion_tokens": 3}}

    answer = of_whole(body)

    assert said(answer) == {0: choice("ab", "r", (Call("f", "{}"), Call("g", "")), "stop")}
    assert answer.completion_tokens == 3


def test_usage_is_the_last_one() -> None:
    """Continuous usage grows; `null` and other things are none."""
    chunks = [
        chunk(usage={"completion_tokens": 1}),
        chunk(usage={"completion_tokens": 2}),
        chunk(usage=None),
        chunk(usage=5),
    ]

    assert of_stream(chunks).completion_tokens == 2
    assert of_stream([chunk(usage={"completion_tokens": True})]).completion_tokens is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": ', '{"a":', False),
        ("", "", True),
        ("[" * 10**5, "[" * 10**5, True),
    ],
)
def test_arguments_are_compared_as_json(one: str, other: str, same: bool) -> None:
    """Order and white space mean nothing; what is no JSON is compared as text."""
    assert (Call("f", one).plain == Call("f", other).plain) is same


NAMES = (
    *("choices", "index", "delta", "message", "text", "content", "reasoning", "tool_calls", "function", "name", "id"),
    *("arguments", "logprobs", "token", "tokens", "token_logprobs", "logprob", "finish_reason", "usage"),
)

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage"]), ODD), max_size=3))
def test_no_shape_breaks_it(chunks: list[dict[str, Any]]) -> None:
    """Whatever JSON comes, an answer is made of it, the whole way and the other; it can be compared."""
    for answer in (of_stream(chunks), *map(of_whole, chunks)):
        assert all(isinstance(each.generated, str) for each in answer.choices.values())
        assert all(call.plain for each in answer.choices.values() for call in each.calls)
        assert answer == answer


@given(st.lists(st.text(max_size=5), max_size=6))
def test_cutting_is_invisible(pieces: list[str]) -> None:
    """Law: a text in pieces is the text."""
    cut = of_stream([chunk(delta(content=piece)) for piece in [*pieces, ""]])
    whole = of_whole({"choices": [{"index": 0, "message": {"content": "".join(pieces)}}]})

    assert said(cut) == said(whole)
    assert [piece.text for piece in cut.choices[0].pieces] == [piece for piece in pieces if piece]


def test_ends_and_speech_are_kept_with_their_chunks() -> None:
    """Every finish reason is there, whatever it is, with the chunk that brought it; so is who spoke at all."""
    payloads = [
        chunk(delta(), delta(1, refusal="no")),
        chunk(delta(finish="length"), delta(1, finish="stop")),
        chunk({"index": 0, "delta": {}, "finish_reason": ["odd"]}),
        {"error": {"message": "broken"}, "choices": [delta(content="never")]},
    ]
    _, operation = contract_of("openai-chat")
    answer = answer_in(exchange(operation, stream_request(operation), chunked(sse(payloads))))
    first, second = answer.choices.values()

    assert (first.reasons, second.reasons) == (["length", ["odd"]], ["stop"])
    assert [end.event.number for _, end in first.ends if end] == [1, 2]
    assert (first.speaks, second.speaks) == (False, True)


def test_an_answer_is_found_in_an_exchange_of_either_form() -> None:
    """A whole answer's pieces have no chunk; what is no JSON object says nothing. Each is put together once."""
    _, operation = contract_of("openai-chat")
    right = exchange(operation, request(operation), http(200, json.dumps(whole_answer(operation)).encode()))
    empty = exchange(operation, request(operation), http(200, b"[1]"))
    answer = answer_in(right)

    assert [(piece.text, piece.chunk) for piece in answer.choices[0].pieces] == [("one two", None)]
    assert answer.completion_tokens == 8
    assert answer_in(right) is answer
    assert answer_in(empty) == Answer({}, None)
