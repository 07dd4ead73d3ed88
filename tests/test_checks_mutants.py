"""No answer and no request, whatever is in it, makes a check fail over it: mutants of right exchanges."""

import copy
import dataclasses
import json
import random
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
from streamgauge.contract.contract import Operation
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Ending, Exchange

SPECS = ("openai-chat", "openai-completions", "seekr-chat", "seekr-completions")
SEEDS = 12
MUTANTS = 25
"""For each document and seed."""

JUNK = (None, True, -1, 0.5, 10**30, 1e308, "", "x", "\ud800", [], [None], [[]], [{}], {}, {"index": None}, {"a": [1]})
MEMBERS = (
    "error",
    "usage",
    "choices",
    "delta",
    "message",
    "tool_calls",
    "function_call",
    "logprobs",
    "n",
    "stop",
    "metrics",
)

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
LOGPROBS: dict[str, dict[str, Any]] = {
    "chat": {"content": [{"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}], "refusal": None},
    "completions": {"tokens": ["x"], "token_logprobs": [-0.5], "top_logprobs": [{"x": -0.5}], "text_offset": [0]},
}
DETAILS = {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 1}}
ERRORS = (
    {"error": {"message": "no", "type": "t", "param": "n", "code": None}},
    {"error": "no"},
    {"detail": [{"loc": ["body", "n"], "msg": "no", "type": "t"}]},
)
FIELDS = ("", "Retry-After: soon\r\n", "Retry-After: 9999999999999999999999\r\n", "Allow:\r\n", "Content-Length: x\r\n")


def _whole(operation: Operation, n: int) -> dict[str, Any]:
    answer = copy.deepcopy(whole_answer(operation, n))
    answer["usage"] |= DETAILS
    for choice in answer["choices"]:
        choice["logprobs"] = copy.deepcopy(LOGPROBS[operation.family])
        if operation.family == "chat":
            choice["message"] |= {"tool_calls": [copy.deepcopy(CALL)], "reasoning": "hm"}
    return answer


def _chunks(operation: Operation, n: int) -> list[dict[str, Any]]:
    payloads = copy.deepcopy(chunks(operation, n))
    for payload in payloads:
        payload.setdefault("usage", None)
        for choice in payload["choices"]:
            choice["logprobs"] = copy.deepcopy(LOGPROBS[operation.family])
            if operation.family == "chat":
                choice["delta"] |= {"tool_calls": [{"index": 0, **copy.deepcopy(CALL)}], "reasoning": "hm"}
    return payloads


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with every key into it."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [(value, key) for key, _ in items] + [place for _, item in items for place in _places(item)]


def _bend(value: Any, draws: random.Random) -> Any:
    """The value with a few members dropped, replaced, doubled or added."""
    for _ in range(draws.choice((1, 1, 2, 3))):
        places = _places(value)
        if not places:
            return value
        container, key = draws.choice(places)
        way = draws.random()
        if way < 0.2:
            del container[key]
        elif way < 0.8 or (way < 0.9 and isinstance(container, list)):
            container[key] = copy.deepcopy(draws.choice(JUNK))
        elif isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            container[draws.choice(MEMBERS)] = copy.deepcopy(draws.choice(JUNK))
    return value


def _flip(data: bytes, draws: random.Random) -> bytes:
    """The bytes with one of them changed, now and then; or cut there."""
    at = draws.randrange(len(data))
    way = draws.random()
    return (
        data[:at] + bytes([draws.randrange(256)]) + data[at + 1 :] if way < 0.1 else data[:at] if way < 0.15 else data
    )


def _mutant(operation: Operation, draws: random.Random, number: int) -> Exchange:
    n = draws.choice((1, 2))
    family = {"logprobs": True if operation.family == "chat" else 1, "n": n, "stop": draws.choice((None, "x", ["x"]))}
    body = (stream_request if number % 3 else request)(operation, **family)
    if number % 3 == 0:
        wire = http(200, json.dumps(_bend(_whole(operation, n), draws)).encode())
    elif number % 3 == 1:
        wire = chunked(_flip(sse([json.dumps(each) for each in _bend(_chunks(operation, n), draws)]), draws))
    else:
        told = json.dumps(_bend(copy.deepcopy(draws.choice(ERRORS)), draws)).encode()
        wire = http(draws.choice((200, 400, 401, 405, 422, 429, 500, 503)), told, extra=draws.choice(FIELDS))
    made = exchange(
        operation,
        _bend(body, draws) if draws.random() < 0.3 else body,
        _flip(wire, draws),
        probe=str(number),
        ending=draws.choice((Ending.COMPLETE, Ending.COMPLETE, *Ending)),
        credential=draws.choice((Credential.VALID, Credential.VALID, *Credential)),
    )
    return dataclasses.replace(made, holds=frozenset(each for each in sorted(made.holds) if draws.random() < 0.9))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_check_fails_over_a_mutant(spec: str, seed: int) -> None:
    """DESIGN 7: a check that raises is our own fault; what a server sends may lack, hold and nest anything."""
    contract, operation = contract_of(spec)
    draws = random.Random(f"{spec} {seed}")
    mutants = [_mutant(operation, draws, number) for number in range(MUTANTS)]
    found = outcomes(contract, operation, *mutants)

    assert [id_ for id_, outcome in found.items() if outcome is Outcome.ERROR] == []
