"""Conversations: what grows with them passes, what does not departs, and what cannot show it is not judged."""

import copy
import json
from typing import Any

import pytest
from transcripts import contract_of, exchange, http, outcomes, request, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

SPEC = "seekr-chat"
LONG = "word " * 60
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def answered(
    number: int, messages: list[dict[str, Any]], prompt: int | None, content: str = "ok", **more: Any
) -> Exchange:
    """A whole answer that counts so many prompt tokens; None for an answer without usage."""
    operation = contract_of(SPEC)[1]
    answer = copy.deepcopy(whole_answer(operation))
    answer["choices"][0]["message"]["content"] = content
    answer["usage"] = usage(prompt=prompt) if prompt is not None else {}
    body = request(operation, messages=messages, **more)
    return exchange(operation, body, http(200, json.dumps(answer).encode()), probe=str(number))


def user(content: Any, **more: Any) -> list[dict[str, Any]]:
    """A conversation of one message."""
    return [{"role": "user", "content": content, **more}]


def part(text: str) -> list[dict[str, str]]:
    """A content of one part."""
    return [{"type": "text", "text": text}]


def called(name: str, arguments: str) -> list[dict[str, Any]]:
    """A conversation with a call in it."""
    call = {**CALL, "function": {"name": name, "arguments": arguments}}
    return [*user("go"), {"role": "assistant", "content": None, "tool_calls": [call]}]


READ = {
    "messages.content-read": (user("hi"), user(LONG)),
    "messages.part-read": (user(part("hi")), user(part(LONG))),
    "messages.name-read": (user("hi", name="ada"), user("hi", name="ada" * 70)),
    "messages.call-read": (called("f", "{}"), called("f", json.dumps({"text": LONG}))),
    "messages.call-name-read": (called("f", "{}"), called("f" * 200, "{}")),
}
"""Check → the same conversation with a short and with a long text."""


@pytest.mark.parametrize("check", READ)
@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        (5, 60, Outcome.PASS),
        (5, 6, Outcome.PASS),
        (5, 5, Outcome.IGNORED),
        (5, 4, Outcome.IGNORED),
        (5, None, Outcome.NOT_RUN),
    ],
)
def test_longer_texts_make_longer_prompts(check: str, short: int, long: int | None, expected: Outcome) -> None:
    """Of one conversation with a text that is short and the same with a long one, the second costs more."""
    first, second = READ[check]
    other = answered(3, user("something else"), 9)
    found = outcomes(*contract_of(SPEC), answered(1, first, short), answered(2, second, long), other)
    assert found[check] is expected


@pytest.mark.parametrize("check", READ)
def test_counts_that_show_nothing(check: str) -> None:
    """A server that always says the same counts nothing; one may leave out what it had cached, or count each choice."""
    first, second = READ[check]
    contract, other = contract_of(SPEC), [*user("x"), *user("y")]
    constant = outcomes(*contract, answered(1, first, 5), answered(2, second, 5), answered(3, user("x"), 5))
    cached = outcomes(*contract, answered(1, first, 5), answered(2, second, 60), answered(3, second, 4))
    choices = outcomes(*contract, answered(1, first, 20, n=4), answered(2, second, 15), answered(3, other, 5))

    assert (constant[check], cached[check], choices[check]) == (Outcome.NOT_RUN, Outcome.PASS, Outcome.NOT_RUN)


@pytest.mark.parametrize("check", READ)
def test_other_differences_show_nothing(check: str) -> None:
    """Conversations that differ in more than this text are not compared, nor such as differ little."""
    first, second = READ[check]
    alone = outcomes(*contract_of(SPEC), answered(1, second, 5))
    longer = outcomes(*contract_of(SPEC), answered(1, [*first, *user("and more")], 50), answered(2, second, 5))
    assert alone[check] is longer[check] is Outcome.NOT_RUN


CUT = called("f", '{"city": "Os')
FAILS = json.dumps({"error": {"message": "no JSON", "type": "server_error", "code": 500}}).encode()


@pytest.mark.parametrize(
    ("check", "messages", "expected"),
    [
        ("messages.call-read", CUT, Outcome.WARN),
        ("messages.content-read", CUT, Outcome.NOT_RUN),
        ("messages.call-name-read", CUT, Outcome.NOT_RUN),
        ("messages.content-read", called("f", "{}"), Outcome.FAIL),
        ("messages.call-name-read", called("f", "{}"), Outcome.WARN),
    ],
)
def test_failing_at_cut_arguments_is_about_the_arguments(
    check: str, messages: list[dict[str, Any]], expected: Outcome
) -> None:
    """The model does not always generate valid JSON (OpenAI, tool calls: arguments); the texts beside it are not to blame."""
    operation = contract_of(SPEC)[1]
    fails = exchange(operation, request(operation, messages=messages), http(500, FAILS), probe="2")
    assert outcomes(*contract_of(SPEC), answered(1, user("hi"), 5), fails)[check] is expected


@pytest.mark.parametrize(("with_part", "expected"), [(5, Outcome.PASS), (9, Outcome.WARN), (3, Outcome.WARN)])
def test_a_part_costs_what_its_text_costs(with_part: int, expected: Outcome) -> None:
    """A list printed into the prompt is longer, one that is lost is shorter."""
    found = outcomes(*contract_of(SPEC), answered(1, user("hi"), 5), answered(2, user(part("hi")), with_part))
    assert found["messages.part-as-string"] is expected


def test_a_part_costs_what_the_string_ever_cost() -> None:
    """The string may have been counted with and without what was cached of it."""
    strings = (answered(1, user("hi"), 5), answered(2, user("hi"), 1))
    found = outcomes(*contract_of(SPEC), *strings, answered(3, user(part("hi")), 5))
    assert found["messages.part-as-string"] is Outcome.PASS


def test_several_parts_are_no_string() -> None:
    """Servers join them with a line break, a space or nothing."""
    found = outcomes(*contract_of(SPEC), answered(1, user("hi"), 5), answered(2, user(part("h") + part("i")), 7))
    assert found["messages.part-as-string"] is Outcome.NOT_RUN


@pytest.mark.parametrize(
    ("messages", "content", "expected"),
    [
        ([*user("go"), {"role": "assistant", "content": "One,"}], "One, two", Outcome.PASS),
        ([*user("go"), {"role": "assistant", "content": "One,"}], "two", Outcome.IGNORED),
        (user("go"), "two", Outcome.NOT_RUN),
    ],
)
def test_echo(messages: list[dict[str, Any]], content: str, expected: Outcome) -> None:
    """Seekr: the new message will be prepended with the last message if they belong to the same role."""
    found = outcomes(*contract_of(SPEC), answered(1, messages, 5, content, echo=True))
    assert found["messages.echo"] is expected


SILENT = {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    ("messages", "status", "changes", "expected"),
    [
        ([*user("a"), SILENT, *user("b")], 200, {}, Outcome.PASS),
        ([*user("a"), SILENT, *user("b")], 400, {}, Outcome.WARN),  # vllm 21089
        ([*user("a"), SILENT, *user("b")], 500, {}, Outcome.NOT_RUN),  # error.no-5xx
        ([*user("a"), SILENT, *user("b")], 401, {}, Outcome.NOT_RUN),
        ([*user("a"), SILENT, *user("b")], 413, {}, Outcome.NOT_RUN),
        ([*user("a"), SILENT, *user("b")], 400, {"stop": ["x"]}, Outcome.NOT_RUN),  # that may be the reason
        ([*user("a"), SILENT, *user("b", name="ada")], 400, {}, Outcome.NOT_RUN),
        ([*user("a"), SILENT, *user("b" * 5000)], 400, {}, Outcome.NOT_RUN),
        ([*user("a"), *user("b")], 400, {}, Outcome.NOT_RUN),
    ],
)
def test_an_assistant_may_have_said_nothing(
    messages: list[dict[str, Any]], status: int, changes: dict[str, Any], expected: Outcome
) -> None:
    """Clients send back what they got, and models do say nothing."""
    contract, operation = contract_of(SPEC)
    error = {"error": {"message": "no", "type": "x", "code": status}}
    told = whole_answer(operation) if status == 200 else error
    sent = exchange(
        operation, request(operation, messages=messages, **changes), http(status, json.dumps(told).encode())
    )

    assert outcomes(contract, operation, sent)["messages.empty-accepted"] is expected
