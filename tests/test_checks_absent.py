"""Nulls and defaults: the same answer as without them passes, another departs, and where nobody can tell nothing is judged."""

import copy
import json
from typing import Any

import pytest
from transcripts import contract_of, exchange, http, outcomes, request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

SPECS = ("seekr-chat", "seekr-completions", "openai-chat", "openai-completions")
ZERO = {"temperature": 0}
NULLS = {"stop": None, "top_p": None}
DEFAULTS = {"presence_penalty": 0, "n": 1}


def answered(spec: str, text: str, number: int, **asked: Any) -> Exchange:
    """A whole answer with this text."""
    operation = contract_of(spec)[1]
    answer = copy.deepcopy(whole_answer(operation))
    choice = answer["choices"][0]
    if operation.family == "chat":
        choice["message"]["content"] = text
    else:
        choice["text"] = text
    return exchange(operation, request(operation, **asked), http(200, json.dumps(answer).encode()), probe=str(number))


def verdict(spec: str, texts: list[tuple[str, dict[str, Any]]]) -> tuple[Outcome, Outcome]:
    """What `absent.null` and `absent.default` find."""
    found = outcomes(
        *contract_of(spec), *(answered(spec, text, number, **asked) for number, (text, asked) in enumerate(texts))
    )
    return found["absent.null"], found["absent.default"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([("a", ZERO), ("a", ZERO), ("a", {**ZERO, **NULLS})], ("pass", "not-run")),
        ([("a", ZERO), ("a", ZERO), ("b", {**ZERO, **NULLS})], ("warn", "not-run")),
        ([("a", ZERO), ("a", ZERO), ("a", {**ZERO, **DEFAULTS})], ("not-run", "pass")),
        ([("a", ZERO), ("a", ZERO), ("b", {**ZERO, **DEFAULTS})], ("not-run", "warn")),
        # A model that says one thing now and another then shows nothing, nor does one that was asked once, nor one that samples.
        ([("a", ZERO), ("b", ZERO), ("c", {**ZERO, **NULLS}), ("c", {**ZERO, **DEFAULTS})], ("not-run", "not-run")),
        ([("a", ZERO), ("c", {**ZERO, **NULLS})], ("not-run", "not-run")),
        (
            [("a", {"temperature": 1}), ("a", {"temperature": 1}), ("c", {"temperature": 1, **NULLS})],
            ("not-run", "not-run"),
        ),
        # What is said otherwise than by null or default is another question.
        ([("a", ZERO), ("a", ZERO), ("c", {**ZERO, **NULLS, "n": 2})], ("not-run", "not-run")),
        # Nulls and defaults at once: nobody knows which of them it was.
        ([("a", ZERO), ("a", ZERO), ("c", {**ZERO, **NULLS, **DEFAULTS})], ("not-run", "not-run")),
    ],
)
def test_null_and_default(spec: str, texts: list[tuple[str, dict[str, Any]]], expected: tuple[str, str]) -> None:
    """A schema's default is what is assumed where nothing is said (OpenAPI 3.0.3, Schema Object)."""
    assert verdict(spec, texts) == expected
