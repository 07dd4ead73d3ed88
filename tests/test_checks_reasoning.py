"""Thoughts stay out of the text: right answers that look odd pass, wrong ones depart."""

import copy
import json
from typing import Any

import pytest
from transcripts import (
    chunked,
    chunks,
    contract_of,
    exchange,
    http,
    outcomes,
    request,
    sse,
    stream_request,
    whole_answer,
)

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange


def whole(text: Any, **changes: Any) -> Exchange:
    """A chat's answer that says this."""
    operation = contract_of("openai-chat")[1]
    answer = copy.deepcopy(whole_answer(operation))
    answer["choices"][0]["message"]["content"] = text
    return exchange(operation, request(operation, **changes), http(200, json.dumps(answer).encode()))


def stream(*texts: str) -> Exchange:
    """A chat's stream that says this in two pieces."""
    operation = contract_of("openai-chat")[1]
    payloads = copy.deepcopy(chunks(operation))
    for payload, text in zip(payloads[1:3], texts, strict=True):
        payload["choices"][0]["delta"]["content"] = text
    return exchange(operation, stream_request(operation), chunked(sse(payloads)))


def outcome(each: Exchange) -> Outcome:
    """What `reasoning.tag` finds."""
    return outcomes(*contract_of("openai-chat"), each)["reasoning.tag"]


TAGS = [
    "<think>\nhm\n</think>\n\nYes.",
    "hm</think>Yes.",
    "<think>hm, and the limit cut it",
    "<thinking>hm</thinking>",
    "<mm:think>hm</mm:think>",
    "<seed:think>hm</seed:think>",
    "<thought>hm</thought>",
    "<reasoning>hm</reasoning>",
    "[THINK]hm[/THINK]",
    "◁think▷hm◁/think▷",
    "<|channel|>analysis<|message|>hm",
    "<|START_THINKING|>hm<|END_THINKING|>",
    "<|begin_of_thought|>hm<|end_of_thought|>",
]
INNOCENT = [
    "I think so.",
    "a < think > b",
    "<thinker>",
    "<b>bold</b>",
    "[think]",
    "<|channel|>final",
    "if (a<think&&think>b)",
    "",
    None,
]


@pytest.mark.parametrize("text", TAGS)
def test_tags_in_the_text_are_found(text: str) -> None:
    """What models write around their reasoning, whole or the end alone (vllm 45687, litellm 20246)."""
    half = len(text) // 2

    assert outcome(whole(text)) is Outcome.WARN
    assert outcome(stream(text[:half], text[half:])) is Outcome.WARN


@pytest.mark.parametrize("text", INNOCENT)
def test_other_text_passes(text: str | None) -> None:
    """Words, markup of other kinds and no text at all."""
    assert outcome(whole(text)) in (Outcome.PASS, Outcome.NOT_RUN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DeepSeek writes `<think>` before it answers.", Outcome.PASS),
        ("Between `<think>` and `</think>` stands the reasoning.", Outcome.PASS),
        ("<think>use `x` here</think>It is `y`.", Outcome.WARN),
        ("use `x` here</think>It is `y`.", Outcome.WARN),
        ("an odd ` in it\n</think>It is `y`.", Outcome.WARN),
    ],
)
def test_a_tag_that_is_quoted_as_code_is_spoken_of(text: str, expected: Outcome) -> None:
    """A right answer about models names their tags in backticks; one that thinks does not."""
    assert outcome(whole(text)) is expected


def test_an_answer_about_tags_is_asked_for() -> None:
    """Where the request holds a tag, so may the answer."""
    asked = [{"role": "user", "content": "What does <think> mean?"}]

    assert outcome(whole("<think> begins the reasoning.", messages=asked)) is Outcome.NOT_RUN


def test_text_completions_are_free_to_write_tags() -> None:
    """They have no place for reasoning: the text is all that the model says."""
    contract, operation = contract_of("openai-completions")
    answer = whole_answer(operation)
    answer["choices"][0]["text"] = "<think>hm</think>"
    each = exchange(operation, request(operation), http(200, json.dumps(answer).encode()))

    assert outcomes(contract, operation, each)["reasoning.tag"] is Outcome.NOT_APPLICABLE


def test_the_finding_shows_the_event_that_completes_the_tag() -> None:
    """A tag may come in several pieces."""
    contract, operation = contract_of("openai-chat")
    cases = cases_of([stream("<thi", "nk>hm")], operation, contract, target="t", model="tiny")

    finding = judge(CHECKS["reasoning.tag"], cases, operation, contract, "t")

    assert [example["event"] for example in finding.examples] == [2]
