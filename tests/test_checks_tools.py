"""How a stream counts its tool calls."""

from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, outcomes, sse, stream_request

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome

CONTRACT, CHAT = contract_of("seekr-chat")
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]


def _pieces(name: str, **members: Any) -> list[dict[str, Any]]:
    """One call in two pieces: its beginning, and its arguments."""
    first = {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": ""}}
    return [{**members, **first}, {**members, "function": {"arguments": "{}"}}]


F, G = (lambda **members: _pieces("f", **members)), (lambda **members: _pieces("g", **members))

CASES: dict[str, tuple[list[dict[str, Any]], Outcome]] = {
    "one": (F(index=0), Outcome.PASS),
    "two": ([*F(index=0), *G(index=1)], Outcome.PASS),
    "two, the second one first": ([*G(index=1), *F(index=0)], Outcome.PASS),
    "two at once": ([each for pair in zip(F(index=0), G(index=1), strict=True) for each in pair], Outcome.PASS),
    "the id in each piece": ([{**each, "id": "call-f"} for each in F(index=0)], Outcome.PASS),
    "no index: the schema's": (F(), Outcome.PASS),
    "two under one index": ([*F(index=0), *G(index=0)], Outcome.FAIL),
    "counted from 1": (F(index=1), Outcome.FAIL),
    "two counted from 1": ([*F(index=1), *G(index=2)], Outcome.FAIL),
    "a gap": ([*F(index=0), *G(index=2)], Outcome.FAIL),
    "a negative one": (F(index=-1), Outcome.FAIL),
}


@pytest.mark.parametrize("name", CASES)
def test_each_call_has_its_index(name: str) -> None:
    """`index`: which of the calls a piece continues, counted from 0 (vercel/ai 14277, lmdeploy 3412)."""
    pieces, expected = CASES[name]
    first, *_, last, counted = chunks(CHAT)
    said = [
        {**first, "choices": [{"index": 0, "delta": {"tool_calls": [piece]}, "finish_reason": None}]}
        for piece in pieces
    ]
    last["choices"][0]["finish_reason"] = "tool_calls"
    stream = chunked(sse([first, *said, last, counted]))

    found = outcomes(CONTRACT, CHAT, exchange(CHAT, stream_request(CHAT, tools=TOOLS), stream))

    assert found["tools.stream-index"] is expected


def test_each_choice_counts_its_own_calls() -> None:
    """Of two choices each begins at 0."""
    payloads = chunks(CHAT, 2)
    for payload in payloads[2:4]:
        index = payload["choices"][0]["index"]
        payload["choices"][0]["delta"] = {"tool_calls": F(index=0)[:1] if index == 0 else G(index=0)[:1]}
    answer = exchange(CHAT, stream_request(CHAT, n=2, tools=TOOLS), chunked(sse(payloads)))

    assert outcomes(CONTRACT, CHAT, answer)["tools.stream-index"] is Outcome.PASS
