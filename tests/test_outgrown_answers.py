"""No check blames a server for what is missing because we stopped reading: cut anywhere, nothing departs."""

import json
from typing import Any

import pytest
from transcripts import (
    chunked,
    chunks,
    contract_of,
    departures,
    exchange,
    http,
    outcomes,
    request,
    sse,
    stream_request,
    whole_answer,
)

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS, Case
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Ending, Exchange

SPECS = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat")
ERROR = json.dumps({"error": {"message": "no", "type": "invalid", "code": 400}}).encode()


def answers(operation: Any) -> dict[str, tuple[Any, bytes]]:
    """Right answers of every kind: request and wire."""
    crlf = sse(chunks(operation)).replace(b"\n", b"\r\n")
    refusal = http(400, ERROR)
    return {
        "stream": (stream_request(operation), chunked(sse(chunks(operation)))),
        "stream-n2": (stream_request(operation, n=2), chunked(sse(chunks(operation, 2)))),
        "stream-crlf": (stream_request(operation), chunked(crlf)),
        "stream-unicode": (
            stream_request(operation),
            chunked(sse(chunks(operation)).replace(b"one", "één€😀".encode())),
        ),
        "whole": (request(operation), http(200, json.dumps(whole_answer(operation)).encode())),
        "whole-n2": (request(operation, n=2), http(200, json.dumps(whole_answer(operation, 2)).encode())),
        "refusal": (b"{", refusal),
        "limited": (b"{", http(429, ERROR.replace(b"400", b"429"), extra="Retry-After: 1\r\n")),
        "refusal-elsewhere": (b"{", http(404, ERROR.replace(b"400", b"404"))),
        "refusal-without-framing": (b"{", refusal.replace(b"Content-Length: %d\r\n" % len(ERROR), b"")),
    }


def cut(body: Any, operation: Any, wire: bytes, size: int) -> Exchange:
    """The answer as a recorder keeps it that reads so many bytes."""
    made = exchange(operation, body, wire[:size], ending=Ending.TOO_LARGE)
    return Exchange(**{**vars(made), "detail": f"larger than {size} bytes; reading stopped there"})


KINDS = ["stream", "stream-n2", "stream-crlf", "stream-unicode", "whole", "whole-n2"]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        *((spec, kind) for spec in SPECS for kind in KINDS),
        *(("seekr-chat", kind) for kind in ("refusal", "limited")),
    ],
)
def test_cut_by_us_nothing_departs(spec: str, kind: str) -> None:
    """Whatever the place of the cut, no finding but those without a verdict (DESIGN 3: evidence)."""
    contract, operation = contract_of(spec)
    body, wire = answers(operation)[kind]
    step = 37 if spec != "seekr-chat" else 3 if kind in ("stream", "stream-n2") else 1
    for size in range(1, len(wire), step):
        found = departures(contract, operation, cut(body, operation, wire, size))
        assert found == set(), (size, wire[max(size - 60, 0) : size])


@pytest.mark.parametrize("kind", ["stream", "whole", "refusal", "refusal-without-framing"])
def test_it_is_said_that_the_end_is_not_known(kind: str) -> None:
    """The end is inconclusive, and the limit is named; what was there is judged as ever."""
    contract, operation = contract_of("seekr-chat")
    body, wire = answers(operation)[kind]
    found = outcomes(contract, operation, cut(body, operation, wire, len(wire) - 6))
    assert found["http.complete"] is Outcome.INCONCLUSIVE
    assert found["http.answered"] is Outcome.PASS
    assert Outcome.ERROR not in found.values()
    if kind == "stream":
        assert (found["sse.done"], found["http.stream-media-type"]) == (Outcome.PASS, Outcome.PASS)
        shorter = outcomes(contract, operation, cut(body, operation, wire, len(wire) // 2))
        assert shorter["sse.done"] is Outcome.INCONCLUSIVE


def test_a_head_without_end_is_no_verdict() -> None:
    """An answer whose header section outgrew the limit is neither an answer nor none."""
    contract, operation = contract_of("seekr-chat")
    found = outcomes(contract, operation, cut(request(operation), operation, b"HTTP/1.1 200 OK\r\nX: aaaa", 24))
    assert found["http.answered"] is Outcome.INCONCLUSIVE


def test_an_error_without_a_documented_body_is_left_alone_when_cut() -> None:
    """Only the status, which is wrong by itself, is blamed: not the half body."""
    contract, operation = contract_of("seekr-chat")
    body, wire = answers(operation)["refusal-elsewhere"]
    whole = departures(contract, operation, exchange(operation, body, wire))
    for size in range(wire.index(b"\r\n\r\n") + 4, len(wire)):
        assert departures(contract, operation, cut(body, operation, wire, size)) <= whole


def test_both_lengths_are_told() -> None:
    """A body shorter than announced is told with what was announced and what arrived."""
    contract, operation = contract_of("seekr-chat")
    body, wire = answers(operation)["whole"]
    short = exchange(operation, body, wire[:-5], ending=Ending.CLOSED)
    (told,) = CHECKS["http.complete"].judge(Case(short, operation, contract, "tiny"))
    size = short.response.announced
    assert size is not None
    assert str(size) in told.expected
    assert str(size - 5) in told.actual


@pytest.mark.parametrize(
    ("ending", "check"),
    [
        (Ending.CLOSED, "ending.not-cut"),
        (Ending.RESET, "ending.no-reset"),
        (Ending.TIMEOUT_IDLE, "ending.no-hang"),
    ],
)
def test_cut_by_the_server_it_departs(ending: Ending, check: str) -> None:
    """The same bytes with another ending are the server's fault, and each ending has its own verdict."""
    contract, operation = contract_of("seekr-chat")
    body, wire = answers(operation)["stream"]
    made = exchange(operation, body, wire[: len(wire) // 2], ending=ending)
    assert departures(contract, operation, made) == {check}
