"""Ids and scheduling classes that a request names and an answer tells."""

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
from streamgauge.outcomes import Outcome


def verdicts(spec: str, check: str, asked: dict[str, Any], told: dict[str, Any]) -> set[Outcome]:
    """What the check finds in the whole answer and in the stream that tell this."""
    contract, operation = contract_of(spec)
    answer = {**copy.deepcopy(whole_answer(operation)), **told}
    payloads = [{**payload, **told} for payload in chunks(operation)]
    whole = exchange(operation, request(operation, **asked), http(200, json.dumps(answer).encode()))
    stream = exchange(operation, stream_request(operation, **asked), chunked(sse(payloads)))
    return {outcomes(contract, operation, each)[check] for each in (whole, stream)}


@pytest.mark.parametrize(
    ("spec", "asked", "told", "expected"),
    [
        ("seekr-chat", {"request_id": "mine"}, {"id": "chatcmpl-mine"}, Outcome.PASS),
        ("seekr-chat", {"request_id": "mine"}, {"id": "mine"}, Outcome.PASS),
        ("seekr-chat", {"request_id": "mine"}, {"id": "chatcmpl-theirs"}, Outcome.IGNORED),
        ("seekr-chat", {}, {"id": "chatcmpl-theirs"}, Outcome.NOT_RUN),
        # Seekr's text completions do not say that the id is told.
        ("seekr-completions", {"request_id": "mine"}, {"id": "cmpl-theirs"}, Outcome.NOT_APPLICABLE),
    ],
)
def test_request_id(spec: str, asked: dict[str, Any], told: dict[str, Any], expected: Outcome) -> None:
    """Seekr: this id is used throughout the inference process and returned in the response."""
    assert verdicts(spec, "bookkeeping.request-id", asked, told) == {expected}


@pytest.mark.parametrize(
    ("asked", "told", "expected"),
    [
        ({"service_tier": "flex"}, {"service_tier": "flex"}, Outcome.PASS),
        ({"service_tier": "flex"}, {"service_tier": "default"}, Outcome.PASS),
        ({"service_tier": "flex"}, {"service_tier": None}, Outcome.IGNORED),
        ({"service_tier": "flex"}, {}, Outcome.IGNORED),
        ({}, {}, Outcome.NOT_RUN),
    ],
)
def test_service_tier(asked: dict[str, Any], told: dict[str, Any], expected: Outcome) -> None:
    """OpenAI: the scheduling class that the answer was made in, which may be another."""
    assert verdicts("openai-chat", "bookkeeping.service-tier", asked, told) == {expected}
