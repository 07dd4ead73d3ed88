"""Prompts as the answer tells them: built as the request says, or not, or not told."""

import copy
import json
from typing import Any

import pytest
from transcripts import contract_of, exchange, http, outcomes, request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

SPEC = "seekr-chat"
TALK = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "One,"}]


def answered(number: int, prompt_text: str | None, **asked: Any) -> Exchange:
    """A whole answer that tells its prompt."""
    operation = contract_of(SPEC)[1]
    answer = {**copy.deepcopy(whole_answer(operation)), "prompt_text": prompt_text}
    body = request(operation, return_prompt_text=True, **asked)
    return exchange(operation, body, http(200, json.dumps(answer).encode()), probe=str(number))


OPEN = {"messages": TALK, "continue_final_message": True, "add_generation_prompt": False}
OWN = {"chat_template": "Just this."}
ARGUMENTS = {"chat_template": "Say {{ it }}.", "chat_template_kwargs": {"it": "silver"}}


@pytest.mark.parametrize(
    ("check", "asked", "text", "expected"),
    [
        ("template.continued", OPEN, "<u>go<a>One,", Outcome.PASS),
        ("template.continued", OPEN, "<u>go<a>One, \n", Outcome.PASS),
        ("template.continued", OPEN, "<u>go<a>One,</s><a>", Outcome.IGNORED),
        ("template.continued", OPEN, None, Outcome.INCONCLUSIVE),
        ("template.continued", {"messages": TALK}, "<u>go<a>One,</s><a>", Outcome.NOT_RUN),
        ("template.own", OWN, "Just this.", Outcome.PASS),
        ("template.own", OWN, "<s>Just this.", Outcome.PASS),
        ("template.own", {"chat_template": "Just this.\n"}, "Just this.", Outcome.PASS),  # Jinja drops it
        ("template.own", OWN, "<u>go<a>", Outcome.IGNORED),
        ("template.own", OWN, None, Outcome.INCONCLUSIVE),
        ("template.own", {"chat_template": "{{ messages }}"}, "<u>go<a>", Outcome.NOT_RUN),
        ("template.arguments", ARGUMENTS, "Say silver.", Outcome.PASS),
        ("template.arguments", ARGUMENTS, "Say .", Outcome.IGNORED),
        ("template.arguments", ARGUMENTS, None, Outcome.INCONCLUSIVE),
        ("template.arguments", {"chat_template_kwargs": {"it": "silver"}}, "Say .", Outcome.NOT_RUN),
    ],
)
def test_prompts(check: str, asked: dict[str, Any], text: str | None, expected: Outcome) -> None:
    """Seekr: `prompt_text` contains the prompt string produced by chat templating."""
    assert outcomes(*contract_of(SPEC), answered(1, text, **asked))[check] is expected


@pytest.mark.parametrize(
    ("usual", "without", "expected"),
    [
        ("<u>go<a>", "<u>go", Outcome.PASS),
        ("<u>go<a>", "<u>go<a>", Outcome.IGNORED),
        ("<u>go<a>", None, Outcome.INCONCLUSIVE),
        (None, "<u>go", Outcome.NOT_RUN),
    ],
)
def test_generation_prompt(usual: str | None, without: str | None, expected: Outcome) -> None:
    """Compared with the prompt of the same conversation, and of no other."""
    other = answered(3, "<d>document<u>go<a>", documents=[{"title": "t", "text": "x"}])
    found = outcomes(*contract_of(SPEC), answered(1, usual), answered(2, without, add_generation_prompt=False), other)
    assert found["template.generation-prompt"] is expected


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        (True, 400, Outcome.PASS),
        (True, 422, Outcome.PASS),
        (True, 200, Outcome.IGNORED),
        # By default it is true, so that to leave it out would contradict as well: nobody means that.
        (..., 200, Outcome.NOT_RUN),
        (False, 200, Outcome.NOT_RUN),
        (True, 401, Outcome.NOT_RUN),
        (True, 500, Outcome.NOT_RUN),
    ],
)
def test_contradiction(said: Any, status: int, expected: Outcome) -> None:
    """Seekr: continue_final_message cannot be used at the same time as `add_generation_prompt`."""
    contract, operation = contract_of(SPEC)
    asked = request(operation, messages=TALK, continue_final_message=True, add_generation_prompt=said)
    body = whole_answer(operation) if status == 200 else {"error": {"message": "no", "type": "t", "code": status}}
    sent = exchange(operation, asked, http(status, json.dumps(body).encode()))
    assert outcomes(contract, operation, sent)["template.exclusive"] is expected
