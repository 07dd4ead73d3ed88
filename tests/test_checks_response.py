"""What a whole answer holds: right answers that look odd pass, wrong ones depart."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from transcripts import CREATED, MODEL, contract_of, exchange, http, outcomes, request, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome

IDS = (
    "response.created-integer",
    "response.created-seconds",
    "response.model",
    "response.no-empty-calls",
    "response.role",
    "response.text",
)

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def departed(spec: str, change: Callable[[dict[str, Any]], Any], **changes: Any) -> set[str]:
    """The checks above that depart for one whole answer."""
    contract, operation = contract_of(spec)
    answer = copy.deepcopy(whole_answer(operation, n=changes.get("n", 1)))
    change(answer)
    each = exchange(operation, request(operation, **changes), http(200, json.dumps(answer).encode()))
    every = outcomes(contract, operation, each)
    return {id_ for id_ in IDS if every[id_] in (Outcome.FAIL, Outcome.WARN)}


def _message(**members: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda answer: answer["choices"][0].update(message={"role": "assistant", **members})


def _said(message: Any, **others: Any) -> Callable[[dict[str, Any]], Any]:
    """That message, and other members of the answer."""

    def change(answer: dict[str, Any]) -> None:
        answer["choices"][0]["message"] = message
        answer.update(others)

    return change


SILENT = {"role": "assistant", "content": ""}

CASES: dict[str, tuple[Callable[[dict[str, Any]], Any], dict[str, Any], set[str]]] = {
    "an ordinary answer": (lambda answer: None, {}, set()),
    "no text": (_said(SILENT), {}, {"response.text"}),
    "null content": (_said({"role": "assistant", "content": None}), {}, {"response.text"}),
    "no text of the model's own end": (_said(SILENT, usage=usage(completion=1)), {}, set()),
    "no text of control tokens": (_said(SILENT, usage=usage(completion=3)), {}, set()),
    "hidden reasoning that is counted": (
        _said(SILENT, usage=usage() | {"completion_tokens_details": {"reasoning_tokens": 8}}),
        {},
        set(),
    ),
    "hidden reasoning that was asked for": (_said(SILENT), {"include_reasoning": False}, set()),
    "reasoning that takes all tokens": (_message(content=None, reasoning="hm"), {}, set()),
    "content in parts": (_message(content=[{"type": "text", "text": "one"}]), {}, set()),
    "a refusal": (_message(content=None, refusal="no"), {}, set()),
    "a call": (_message(content=None, tool_calls=[CALL]), {}, set()),
    "an empty array of calls": (_message(content="x", tool_calls=[]), {}, {"response.no-empty-calls"}),
    "null calls": (_message(content="x", tool_calls=None), {}, set()),
    "another speaker": (_said({"role": "user", "content": "x"}), {}, {"response.role"}),
    "no speaker": (_said({"content": "x"}), {}, {"response.role"}),
    "the user's message continued": (_said({"role": "user", "content": "x"}), {"add_generation_prompt": False}, set()),
    "another speaker in a message of its own": (
        _said({"role": "user", "content": "x"}),
        {"add_generation_prompt": True},
        {"response.role"},
    ),
    "a dated version of the model": (lambda answer: answer.update(model=f"{MODEL}-2024-08-06"), {}, set()),
    "an older version of the model": (lambda answer: answer.update(model=f"{MODEL}-0613"), {}, set()),
    "a smaller model": (lambda answer: answer.update(model=f"{MODEL}-mini"), {}, {"response.model"}),
    "no model": (lambda answer: answer.pop("model"), {}, {"response.model"}),
    "no time": (lambda answer: answer.pop("created"), {}, {"response.created-integer"}),
    "an immense time": (lambda answer: answer.update(created=10**400), {}, {"response.created-seconds"}),
    "a slow clock": (lambda answer: answer.update(created=CREATED - 3600), {}, set()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_whole_answer_holds(case: str) -> None:
    """Text, reasoning or a call for the tokens; the assistant's role; no empty array; the model; the time."""
    change, changes, expected = CASES[case]

    assert departed("seekr-chat", change, **changes) == expected


def test_a_text_completion_may_be_silent_for_a_stop_string_only() -> None:
    """The text that a stop string took away is none that is missing."""

    def stopped(answer: dict[str, Any]) -> None:
        answer["choices"][0].update(text="", finish_reason="stop")

    assert departed("openai-completions", stopped, stop=["one"]) == set()
    assert departed("openai-completions", stopped) == {"response.text"}


def test_one_choice_that_speaks_is_enough() -> None:
    """The count is over all choices: which of them the tokens went to is not told."""
    assert departed("seekr-chat", _said(SILENT), n=2) == set()


def test_a_choice_that_is_missing_is_not_silent() -> None:
    """`response.choices` judges it."""
    assert departed("seekr-chat", lambda answer: answer.update(choices=[])) == set()
