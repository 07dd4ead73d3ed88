"""Text beyond ASCII in streams: what is broken there departs, what the model itself says does not."""

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
from streamgauge.wire.exchange import Exchange

ID = "utf8.replacement-character"
BROKEN = "caf\ufffd\ufffd au lait"


def _whole(spec: str, text: str, **asked: Any) -> Exchange:
    _, operation = contract_of(spec)
    body = whole_answer(operation)
    part = body["choices"][0]
    (part["message"] if operation.family == "chat" else part)["content" if operation.family == "chat" else "text"] = (
        text
    )
    return exchange(operation, request(operation, **asked), http(200, json.dumps(body).encode()), probe="whole")


def _streamed(spec: str, text: str, *, done: bool = True, raw: bytes = b"", **asked: Any) -> Exchange:
    _, operation = contract_of(spec)
    payloads = chunks(operation)
    for payload in payloads:
        for choice in payload["choices"]:
            part = choice["delta"] if operation.family == "chat" else choice
            name = "content" if operation.family == "chat" else "text"
            if part.get(name) == "one":
                part[name] = text
            elif part.get(name) == " two":
                part[name] = ""
    body = sse(payloads, done=done).replace(b"RAW", raw)
    return exchange(operation, stream_request(operation, **asked), chunked(body), probe="stream")


CASES = {
    "the same characters": ("café", "café", {}, Outcome.PASS),
    "an emoji": ("café \U0001f642", "café \U0001f642", {}, Outcome.PASS),
    "no character beyond ASCII": ("cafe", "cafe", {}, Outcome.PASS),
    "U+FFFD in the middle of a stream": ("café au lait", BROKEN, {}, Outcome.FAIL),
    "U+FFFD in both forms: the model said it": (BROKEN, BROKEN, {}, Outcome.NOT_RUN),
    "U+FFFD in another text: the model said that": ("café au lait", "tea \ufffd\ufffd milk", {}, Outcome.NOT_RUN),
    "U+FFFD, and white space that only one form has": ("café au lait", f" {BROKEN}", {}, Outcome.FAIL),
    "U+FFFD at the end: the limit cut a character": ("cafe", "caf\ufffd", {}, Outcome.PASS),
    "U+FFFD, with sampling": ("café au lait", BROKEN, {"temperature": 1}, Outcome.NOT_RUN),
    "U+FFFD, with a seed": ("café au lait", BROKEN, {"temperature": 1, "seed": 1}, Outcome.FAIL),
}


@pytest.mark.parametrize("spec", ["openai-chat", "seekr-completions", "deepinfra-completions"])
@pytest.mark.parametrize(("whole", "streamed", "asked", "expected"), CASES.values(), ids=CASES)
def test_replacement_character(spec: str, whole: str, streamed: str, asked: dict[str, Any], expected: Outcome) -> None:
    """U+FFFD in a stream whose whole form has none breaks a MUST (vllm-project/vllm#931), also where it is escaped."""
    contract, operation = contract_of(spec)
    exchanges = [_whole(spec, whole, **asked), _streamed(spec, streamed, **asked)]

    assert outcomes(contract, operation, *exchanges)[ID] is expected


@pytest.mark.parametrize(
    "exchanges",
    [
        pytest.param([_streamed("openai-chat", BROKEN)], id="no whole form"),
        pytest.param([_whole("openai-chat", "a"), _streamed("openai-chat", BROKEN, done=False)], id="cut"),
        pytest.param(
            [_whole("openai-chat", "a"), _streamed("openai-chat", "xRAWx", raw=b"\xff")], id="broken UTF-8: `sse.utf8`"
        ),
    ],
)
def test_replacement_character_is_not_judged(exchanges: list[Exchange]) -> None:
    """Without the other form, without an end, and where our own reader put the character in."""
    contract, operation = contract_of("openai-chat")

    assert outcomes(contract, operation, *exchanges)[ID] is Outcome.NOT_RUN


def test_raw_replacement_character() -> None:
    """As UTF-8 in place of an escape."""
    contract, operation = contract_of("openai-chat")
    exchanges = [_whole("openai-chat", "xäx"), _streamed("openai-chat", "xRAWx", raw="\ufffd".encode())]

    assert outcomes(contract, operation, *exchanges)[ID] is Outcome.FAIL
