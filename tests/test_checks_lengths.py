"""Limits of prompt and answer: what is right on any server passes or is not judged, what is wrong departs."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import contract_of, exchange, http, outcomes, request, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.law import Law
from streamgauge.conformance.repeating import Detection, detection_of
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

PASS, NOT_RUN, IGNORED, FAIL, WARN = Outcome.PASS, Outcome.NOT_RUN, Outcome.IGNORED, Outcome.FAIL, Outcome.WARN


def answer(
    spec: str,
    *,
    spent: int | None = 8,
    read: int = 9,
    finish: str = "length",
    n: int = 1,
    told: dict[str, Any] | None = None,
    beside: dict[str, Any] | None = None,
    **changes: Any,
) -> Exchange:
    """A whole answer; `told` are members of its choices, `beside` those of the answer."""
    operation = contract_of(spec)[1]
    body = whole_answer(operation, n) | (beside or {})
    for choice in body["choices"]:
        choice |= {"finish_reason": finish, **(told or {})}
    if spent is None:
        del body["usage"]
    else:
        body["usage"] = usage(read, spent)
    changes = {**({"n": n} if n > 1 else {}), **changes}
    return exchange(operation, request(operation, **changes), http(200, json.dumps(body).encode()))


def refused(spec: str, status: int = 400, **changes: Any) -> Exchange:
    """A refusal."""
    operation = contract_of(spec)[1]
    body = json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode()
    return exchange(operation, request(operation, **changes), http(status, body))


def found(check: str, spec: str, *exchanges: Exchange) -> Outcome:
    """What one check finds."""
    return outcomes(*contract_of(spec), *exchanges)[check]


@pytest.mark.parametrize("spec", ["openai-chat", "seekr-chat"])
@pytest.mark.parametrize(
    ("changes", "spent", "expected"),
    [
        ({"max_completion_tokens": 4, "max_tokens": ...}, 4, PASS),
        ({"max_completion_tokens": 4, "max_tokens": ...}, 3, PASS),
        ({"max_completion_tokens": 4, "max_tokens": ...}, 5, IGNORED),
        ({"max_completion_tokens": 4, "max_tokens": ..., "reasoning_effort": "low"}, 7, IGNORED),
        ({"max_completion_tokens": 4, "max_tokens": ..., "n": 2}, 8, PASS),
        ({"max_completion_tokens": 4, "max_tokens": ..., "n": 2}, 9, IGNORED),
        ({"max_completion_tokens": 4, "max_tokens": ...}, None, NOT_RUN),
        ({"max_completion_tokens": 4, "max_tokens": None}, 5, IGNORED),  # null and absent mean the same
        ({"max_completion_tokens": 4, "max_tokens": 16}, 16, NOT_RUN),  # nobody says which one wins
    ],
)
def test_max_completion_tokens_limits_what_is_generated(
    spec: str, changes: dict[str, Any], spent: int | None, expected: Outcome
) -> None:
    """OpenAI: the most tokens to generate, reasoning included."""
    assert found("lengths.max-completion-tokens", spec, answer(spec, spent=spent, **changes)) is expected


@pytest.mark.parametrize(
    ("spec", "changes", "spent", "expected"),
    [
        ("openai-completions", {"max_tokens": ...}, 16, PASS),
        ("openai-completions", {"max_tokens": ...}, 17, FAIL),
        ("openai-completions", {"max_tokens": None}, 17, NOT_RUN),  # vLLM takes null for no limit
        ("seekr-completions", {"max_tokens": ..., "n": 2}, 32, PASS),
        ("seekr-completions", {"max_tokens": ...}, 64, FAIL),
        ("seekr-completions", {"max_tokens": 64}, 64, NOT_RUN),
        ("openai-completions", {"max_tokens": ..., "best_of": 2}, 32, NOT_RUN),
        ("seekr-completions", {"max_tokens": ...}, None, NOT_RUN),
        ("seekr-chat", {"max_tokens": ...}, 64, Outcome.NOT_APPLICABLE),
        ("deepinfra-completions", {"max_tokens": ...}, 64, Outcome.NOT_APPLICABLE),
    ],
)
def test_the_default_limit_holds(spec: str, changes: dict[str, Any], spent: int | None, expected: Outcome) -> None:
    """`max_tokens: default: 16` is a promise; documents without a default promise nothing."""
    assert found("lengths.default-limit", spec, answer(spec, spent=spent, **changes)) is expected


@pytest.mark.parametrize(
    ("changes", "spent", "finish", "expected"),
    [
        ({"min_tokens": 4}, 4, "stop", PASS),
        ({"min_tokens": 4}, 3, "stop", IGNORED),
        ({"min_tokens": 4}, None, "stop", NOT_RUN),
        ({"min_tokens": 4}, 3, "content_filter", NOT_RUN),
        ({"min_tokens": 0}, 1, "stop", NOT_RUN),
        ({"min_tokens": 4, "n": 2}, 7, "stop", IGNORED),
        ({"min_tokens": 4, "stop": "x"}, 2, "stop", IGNORED),
        ({"min_tokens": 4, "stop": "x"}, 3, "stop", PASS),  # what is left out of the text may not be counted
        ({"min_tokens": 4, "stop_token_ids": [3]}, 2, "stop", IGNORED),
        ({"min_tokens": 4, "stop_token_ids": [3]}, 3, "stop", PASS),
        ({"min_tokens": 4}, 3, "length", NOT_RUN),  # the context ended it
        ({"min_tokens": 9}, 8, "length", NOT_RUN),  # the limit is lower
        ({"min_tokens": 9}, 5, "stop", NOT_RUN),
        ({"min_tokens": 4, "tools": [{"type": "function", "function": {"name": "f"}}]}, 3, "tool_calls", NOT_RUN),
    ],
)
def test_min_tokens_is_a_least_number(
    changes: dict[str, Any], spent: int | None, finish: str, expected: Outcome
) -> None:
    """No stop string, stop token or end of the text comes before; tool calls may be short."""
    short = answer("seekr-chat", spent=2, finish="stop", **{**changes, "min_tokens": ...})

    assert found(
        "lengths.min-tokens", "seekr-chat", short, answer("seekr-chat", spent=spent, finish=finish, **changes)
    ) is (expected)


def test_min_tokens_that_would_have_come_anyway_prove_nothing() -> None:
    """The answer is as long without it."""
    long = answer("seekr-chat", spent=8)

    assert found("lengths.min-tokens", "seekr-chat", long, answer("seekr-chat", spent=8, min_tokens=4)) is NOT_RUN


@pytest.mark.parametrize("spec", ["seekr-chat", "deepinfra-completions"])
@pytest.mark.parametrize(
    ("changes", "finish", "bare", "expected"),
    [
        ({}, "length", 3, PASS),
        ({}, "length", 8, NOT_RUN),  # it would have gone on anyway
        ({}, "stop", 3, IGNORED),
        ({}, "content_filter", 3, NOT_RUN),
        ({"stop": "x"}, "stop", 3, NOT_RUN),  # the stop string ended it
        ({"max_tokens": ...}, "length", 3, NOT_RUN),
    ],
)
def test_ignore_eos_goes_on_to_the_limit(
    spec: str, changes: dict[str, Any], finish: str, bare: int, expected: Outcome
) -> None:
    """DeepInfra: "Only models with the allow_ignore_eos flag heed it": there it is never wrong to end."""
    short = answer(spec, spent=bare, finish="stop" if bare < 8 else "length", **changes)
    long = answer(spec, finish=finish, spent=5 if finish == "stop" else 8, ignore_eos=True, **changes)

    if spec == "deepinfra-completions" and expected is IGNORED:
        expected = NOT_RUN
    assert found("lengths.ignore-eos", spec, short, long) is expected


@pytest.mark.parametrize("spent", [8, None])
def test_a_finish_reason_alone_does_not_prove_that_the_end_was_heeded(spent: int | None) -> None:
    """With all tokens of its limit the answer went on; that it says `stop` is `finish.length`'s."""
    long = answer("seekr-chat", finish="stop", spent=spent, ignore_eos=True)

    assert found("lengths.ignore-eos", "seekr-chat", answer("seekr-chat", spent=3), long) is NOT_RUN


@pytest.mark.parametrize(
    ("changes", "read", "expected"),
    [
        ({"truncate_prompt_tokens": 4}, 4, PASS),
        ({"truncate_prompt_tokens": 4}, 3, PASS),
        ({"truncate_prompt_tokens": 4}, 9, IGNORED),
        ({"truncate_prompt_tokens": 4, "truncation_side": "left"}, 5, FAIL),  # truncated, but not as far
        ({"truncate_prompt_tokens": -1}, 9, NOT_RUN),  # as many as the context holds
        ({"truncate_prompt_tokens": 9}, 9, NOT_RUN),  # the prompt is no longer than that
        ({"truncate_prompt_tokens": 4, "prompt": ["a", "b"]}, 8, NOT_RUN),  # the sum of two prompts
    ],
)
def test_a_truncated_prompt_is_short(changes: dict[str, Any], read: int, expected: Outcome) -> None:
    """The usage counts what was read."""
    bare = {name: value for name, value in changes.items() if name == "prompt"}
    exchanges = [answer("seekr-completions", **bare), answer("seekr-completions", read=read, **changes)]

    assert found("lengths.truncate-prompt", "seekr-completions", *exchanges) is expected


PROMPT = [1, 10, 11, 12, 13, 14]


@pytest.mark.parametrize("spec", ["seekr-chat", "seekr-completions"])
@pytest.mark.parametrize(
    ("side", "read", "expected"),
    [
        ("right", [1, 10, 11], PASS),
        ("left", [12, 13, 14], PASS),
        ("left", [1, 13, 14], PASS),  # the tokenizer begins every text with the token 1
        ("right", [12, 13, 14], IGNORED),
        ("left", [1, 10, 11], IGNORED),
        ("right", [1, 12, 14], FAIL),
        ("right", PROMPT, NOT_RUN),  # not truncated at all: `lengths.truncate-prompt` tells it
        ("right", None, NOT_RUN),
    ],
)
def test_the_side_of_a_truncated_prompt_that_is_kept(
    spec: str, side: str, read: list[int] | None, expected: Outcome
) -> None:
    """Seekr: "'right' keeps the first N tokens. 'left' keeps the last N tokens."."""

    def told(ids: list[int] | None) -> dict[str, Any]:
        return {"beside" if spec == "seekr-chat" else "told": {"prompt_token_ids": ids}}

    bare = answer(spec, read=6, return_token_ids=True, **told(PROMPT))
    cut = {"truncate_prompt_tokens": 3, "truncation_side": side, "return_token_ids": True}

    assert found("lengths.truncation-side", spec, bare, answer(spec, read=3, **told(read), **cut)) is expected


GO = [7] * 16
PERIOD = [7, 8] * 8


@pytest.mark.parametrize(
    ("detection", "full", "ids", "finish", "expected"),
    [
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:4], "stop", PASS),
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:4], "repetition", PASS),
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:5], "stop", PASS),  # noticed one step later
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:8], "stop", PASS),  # a step brought four tokens at once
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO, "length", IGNORED),
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:2], "stop", FAIL),
        ({"max_pattern_size": 3, "min_pattern_size": 3, "min_count": 2}, GO, GO[:6], "stop", PASS),
        ({"max_pattern_size": 3, "min_pattern_size": 3, "min_count": 2}, GO, GO[:2], "stop", FAIL),
        ({"max_pattern_size": 1, "min_count": 2}, PERIOD, PERIOD, "length", NOT_RUN),  # nothing of one token repeats
        ({"max_pattern_size": 2, "min_count": 3}, PERIOD, PERIOD[:6], "stop", PASS),
        ({"max_pattern_size": 2, "min_count": 3}, PERIOD, PERIOD, "length", IGNORED),
        ({"max_pattern_size": 0, "min_count": 0}, GO, GO, "length", PASS),
        ({"max_pattern_size": 0}, GO, GO[:3], "stop", FAIL),
        ({"max_pattern_size": 1, "min_count": 4}, GO, [3, 4], "stop", NOT_RUN),  # the model said something else
        ({"max_pattern_size": 1, "min_count": 4}, GO, GO[:3], "length", NOT_RUN),  # another limit
        ({"max_pattern_size": 1, "min_count": 4}, None, GO[:2], "stop", NOT_RUN),
        ({"max_pattern_size": 1, "min_count": 4}, GO, None, "stop", NOT_RUN),
        ({"max_pattern_size": 1, "min_count": 1}, GO, GO, "length", NOT_RUN),  # contradicts the document
    ],
)
def test_repetition_is_detected_where_it_is_long_enough(
    detection: dict[str, int], full: list[int] | None, ids: list[int] | None, finish: str, expected: Outcome
) -> None:
    """Seekr: "If such repetition is detected, generation ends early.", and not before."""
    bare = [answer("seekr-chat", told={"token_ids": full}, return_token_ids=True)] * (2 if full else 0)
    told = answer(
        "seekr-chat", told={"token_ids": ids}, finish=finish, return_token_ids=True, repetition_detection=detection
    )

    assert found("lengths.repetition-detection", "seekr-chat", *bare, told) is expected


@pytest.mark.parametrize(
    ("detection", "breaks"),
    [
        ({"max_pattern_size": 1, "min_pattern_size": 2, "min_count": 2}, True),
        ({"max_pattern_size": 1, "min_count": 1}, True),
        ({"max_pattern_size": 1}, True),
        ({"min_pattern_size": 1}, False),  # 0 turns it off, and a least size of 0 is 1
        ({"max_pattern_size": 0, "min_count": 0}, False),
        ({}, False),
        ({"max_pattern_size": 1, "min_count": 2}, False),
    ],
)
def test_contradictory_parameters_are_refused(detection: dict[str, int], breaks: bool) -> None:
    """Seekr: "Must be <= max_pattern_size.", "Must be >= 2.", "Must be used together with min_count."."""
    taken = answer("seekr-completions", repetition_detection=detection)
    turned_away = refused("seekr-completions", 422, repetition_detection=detection)

    check = "lengths.repetition-rules"
    assert found(check, "seekr-completions", taken) is (IGNORED if breaks else NOT_RUN)
    assert found(check, "seekr-completions", turned_away) is (PASS if breaks else NOT_RUN)


@given(st.lists(st.integers(0, 1), max_size=12), st.integers(1, 3), st.integers(1, 3), st.integers(2, 4))
def test_a_repetition_is_due_with_the_token_that_completes_it(
    tokens: Sequence[int], smallest: int, largest: int, times: int
) -> None:
    """No shorter beginning of the tokens ends with a block so often in a row; the one that is due does."""
    due = Detection(smallest, largest, times).due(tokens)

    def repeats(end: int) -> bool:
        blocks = (tokens[end - size : end] for size in range(smallest, largest + 1) if size * times <= end)
        return any(list(tokens[end - len(block) * times : end]) == list(block) * times for block in blocks)

    assert [end for end in range(1, len(tokens) + 1) if repeats(end)][:1] == ([] if due is None else [due])


@pytest.mark.parametrize("value", [None, "on", [], {"min_count": "2"}, {"min_count": True}, {"max_pattern_size": -1}])
def test_parameters_that_are_no_numbers_say_nothing(value: Any) -> None:
    """What a document's schema refuses is judged elsewhere."""
    assert detection_of({"repetition_detection": value}) is None


def test_which_properties_the_laws_are_about() -> None:
    """Each property of the topic has a row in the honour table, the nested ones too."""
    laws = [
        each
        for each in CHECKS.values()
        if isinstance(each, Law) and (each.topic == "lengths" or each.id == "usage.limit")
    ]

    assert {path for law in laws for path in law.properties} == {
        "ignore_eos",
        "max_completion_tokens",
        "max_tokens",
        "min_tokens",
        "repetition_detection",
        "repetition_detection.max_pattern_size",
        "repetition_detection.min_count",
        "repetition_detection.min_pattern_size",
        "truncate_prompt_tokens",
        "truncation_side",
    }
