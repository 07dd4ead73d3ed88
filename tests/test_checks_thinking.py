"""Reasoning: as much as was asked for, less, more, hidden; a model that does not reason breaks nothing."""

import copy
import json
from typing import Any

import pytest
from transcripts import contract_of, exchange, http, outcomes, request, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome

NONE = {"reasoning_effort": "none"}
HIDDEN = {"reasoning_effort": "low", "include_reasoning": False}
BUDGET = {"reasoning_effort": "high", "thinking_token_budget": 4}


def verdict(check: str, asked: dict[str, Any], reasoning: str, counted: int | None = None) -> Outcome:
    """What the check finds in an answer with this reasoning, of which so many tokens are counted."""
    contract, operation = contract_of("seekr-chat")
    answer = copy.deepcopy(whole_answer(operation))
    answer["choices"][0]["message"]["reasoning"] = reasoning
    details = {"completion_tokens_details": {"reasoning_tokens": counted}} if counted is not None else {}
    answer["usage"] = {**usage(completion=200), **details}
    sent = exchange(operation, request(operation, **asked), http(200, json.dumps(answer).encode()))
    return outcomes(contract, operation, sent)[check]


@pytest.mark.parametrize(
    ("check", "asked", "reasoning", "counted", "expected"),
    [
        ("thinking.none", NONE, "", None, Outcome.INCONCLUSIVE),
        ("thinking.none", NONE, " \n", None, Outcome.INCONCLUSIVE),
        ("thinking.none", NONE, "", 9, Outcome.PASS),  # nothing of it is told
        ("thinking.none", NONE, "hm", None, Outcome.IGNORED),
        ("thinking.none", {}, "hm", None, Outcome.NOT_RUN),
        ("thinking.effort", {"reasoning_effort": "low"}, "hm", None, Outcome.PASS),
        ("thinking.effort", {"reasoning_effort": "low"}, "", 9, Outcome.PASS),
        ("thinking.effort", {"reasoning_effort": "low"}, "", None, Outcome.INCONCLUSIVE),
        ("thinking.hidden", HIDDEN, "", 9, Outcome.PASS),
        ("thinking.hidden", HIDDEN, "", None, Outcome.INCONCLUSIVE),
        ("thinking.budget", BUDGET, "", None, Outcome.INCONCLUSIVE),
        ("thinking.hidden", HIDDEN, "hm", 9, Outcome.IGNORED),
        ("thinking.budget", BUDGET, "hm", 4, Outcome.PASS),
        ("thinking.budget", BUDGET, "hm", 30, Outcome.PASS),
        ("thinking.budget", BUDGET, "hm", 37, Outcome.IGNORED),
        ("thinking.budget", BUDGET, "hm " * 37, None, Outcome.IGNORED),
        ("thinking.budget", BUDGET, "hm " * 36, None, Outcome.PASS),
        ("thinking.budget", {**BUDGET, "thinking_token_budget": -1}, "hm", 99, Outcome.NOT_RUN),
    ],
)
def test_reasoning(check: str, asked: dict[str, Any], reasoning: str, counted: int | None, expected: Outcome) -> None:
    """An engine may end reasoning beyond its budget in words of its own: 32 tokens are left for them."""
    assert verdict(check, asked, reasoning, counted) is expected
