"""What goes beyond a limit of our readers is judged neither right nor wrong."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from transcripts import (
    CREATED,
    MODEL,
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
from streamgauge.conformance.limits import beyond_limit
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.json import MOST_DEPTH
from streamgauge.wire.sse import LONGEST_LINE, MOST_EVENTS, MOST_LINES

CONTRACT, CHAT = contract_of("seekr-chat")
OPENAI_CONTRACT, OPENAI = contract_of("openai-chat")
DEEP = "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1)
ALMOST = "[" * (MOST_DEPTH - 1) + "]" * (MOST_DEPTH - 1)


def streamed(body: bytes) -> Exchange:
    """A streamed answer with this body."""
    return exchange(CHAT, stream_request(CHAT), chunked(body))


def with_extra(member: str) -> bytes:
    """A right stream whose third payload has one more member."""
    texts = [json.dumps(payload) for payload in chunks(CHAT)]
    texts[2] = f'{{"x": {member}, {texts[2][1:]}'
    return sse(texts)


# What goes beyond a limit, and close to each what does not.
BEYOND: dict[str, tuple[Callable[[], bytes], str]] = {
    "LONGEST_LINE": (lambda: with_extra(f'"{"x" * LONGEST_LINE}"'), "LONGEST_LINE"),
    "MOST_LINES": (lambda: b":\n" * (MOST_LINES + 1) + sse(chunks(CHAT)), "MOST_LINES"),
    "MOST_LINES, unfinished": (lambda: sse(chunks(CHAT)) + b":\n" * (MOST_LINES + 1), "MOST_LINES"),
    "MOST_EVENTS": (lambda: b"\n" * (MOST_EVENTS + 1) + sse(chunks(CHAT)), "MOST_EVENTS"),
    "MOST_DEPTH": (lambda: with_extra(DEEP), "MOST_DEPTH"),
    "MOST_DIGITS": (lambda: with_extra("1" * 5000), "MOST_DIGITS"),
}
WITHIN: dict[str, Callable[[], bytes]] = {
    "long line": lambda: with_extra(f'"{"x" * (LONGEST_LINE - 1000)}"'),
    "many lines": lambda: b":\n" * (MOST_LINES - 10) + sse(chunks(CHAT)),
    "many events": lambda: b":\n\n" * (MOST_EVENTS - 10) + sse(chunks(CHAT)),
    "deep": lambda: with_extra(ALMOST),
    "digits": lambda: with_extra("1" * 4300),
}


@pytest.mark.parametrize("name", BEYOND)
def test_stream_beyond_a_limit_is_inconclusive(name: str) -> None:
    """No check calls it right or wrong for what we did not keep; those of the stream say which limit it was."""
    body, limit = BEYOND[name]
    found = streamed(body())
    departure = beyond_limit(found.stream)
    assert departure is not None and limit in departure.actual

    by_check = outcomes(CONTRACT, CHAT, found)
    topics = ("sse.", "chunk.", "finish.", "usage.stream")
    judged = {id_: outcome for id_, outcome in by_check.items() if id_.startswith(topics)}
    assert not {Outcome.ERROR, Outcome.FAIL, Outcome.WARN} & set(by_check.values())
    assert {id_ for id_, outcome in judged.items() if outcome is Outcome.PASS} == {"sse.bom"}
    assert judged["sse.data-json"] is judged["sse.done"] is judged["sse.utf8"] is Outcome.INCONCLUSIVE
    assert by_check["error.not-in-stream"] is Outcome.INCONCLUSIVE


def test_finding_names_the_limit_as_its_reason() -> None:
    """JUnit and pytest show a finding without a verdict by its reason alone."""
    body, limit = BEYOND["LONGEST_LINE"]
    found = streamed(body())
    cases = cases_of([found], CHAT, CONTRACT, target=found.target, model=MODEL)

    finding = judge(CHECKS["sse.data-json"], cases, CHAT, CONTRACT, found.target)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert limit in finding.reason


@pytest.mark.parametrize("name", WITHIN)
def test_stream_within_the_limits_is_judged(name: str) -> None:
    """The same a little smaller is judged as ever."""
    found = streamed(WITHIN[name]())
    assert beyond_limit(found.stream) is None
    by_check = outcomes(CONTRACT, CHAT, found)
    assert {by_check[id_] for id_ in ("sse.data-json", "sse.done", "sse.utf8", "finish.stream-once")} == {Outcome.PASS}


@pytest.mark.parametrize(("member", "expected"), [(DEEP, Outcome.INCONCLUSIVE), (ALMOST, Outcome.PASS)])
def test_whole_answer_beyond_a_limit_is_inconclusive(member: str, expected: Outcome) -> None:
    """RFC 8259, section 9: a reader may set limits, but the text beyond them is not malformed."""
    text = json.dumps(whole_answer(CHAT)).removesuffix("}") + f', "x": {member}}}'
    by_check = outcomes(CONTRACT, CHAT, exchange(CHAT, request(CHAT), http(200, text.encode())))
    assert by_check["response.json"] is expected
    assert not {Outcome.ERROR, Outcome.FAIL, Outcome.WARN} & set(by_check.values())


@pytest.mark.parametrize(("status", "check"), [(400, "error.envelope"), (404, "error.envelope-undocumented")])
@pytest.mark.parametrize(("member", "expected"), [(DEEP, Outcome.INCONCLUSIVE), (ALMOST, Outcome.PASS)])
def test_error_beyond_a_limit_is_inconclusive(status: int, check: str, member: str, expected: Outcome) -> None:
    """The body of an error too."""
    error: dict[str, Any] = {"message": "no", "type": "invalid", "code": status}
    body = f'{{"error": {json.dumps(error)}, "x": {member}}}'.encode()
    by_check = outcomes(CONTRACT, CHAT, exchange(CHAT, b"{", http(status, body)))
    assert by_check[check] is expected


def test_events_beyond_the_limit_are_not_kept() -> None:
    """A body of nothing but blank lines holds as many events as bytes, each some hundred bytes in memory."""
    found = streamed(b"data: {}\n\n" * (MOST_EVENTS + 100)).stream
    assert (len(found.events), found.reader.excess.limit if found.reader.excess else "") == (MOST_EVENTS, "MOST_EVENTS")
    assert found.reader.excess is not None and found.reader.excess.offset == MOST_EVENTS * len(b"data: {}\n\n")


@pytest.mark.parametrize(
    ("number", "expected"),
    [("1e400", Outcome.INCONCLUSIVE), ("1e300", Outcome.PASS), ('"1"', Outcome.FAIL)],
)
def test_value_that_the_validators_differ_about_is_inconclusive(number: str, expected: Outcome) -> None:
    """1e400 is JSON (RFC 8259, section 6) and a number; jsonschema-rs refuses it, jsonschema does not."""
    logprobs = f'{{"content": [{{"token": "a", "logprob": {number}, "bytes": null, "top_logprobs": []}}]}}'
    payloads = chunks(OPENAI)
    payloads[1]["choices"][0]["logprobs"] = 7
    texts = [json.dumps(payload).replace('"logprobs": 7', f'"logprobs": {logprobs}') for payload in payloads]
    by_check = outcomes(OPENAI_CONTRACT, OPENAI, exchange(OPENAI, stream_request(OPENAI), chunked(sse(texts))))
    assert by_check["chunk.schema"] is expected

    answer = json.dumps({**whole_answer(OPENAI), "x": 7})
    whole = answer.replace('"finish_reason"', f'"logprobs": {logprobs}, "finish_reason"', 1)
    by_check = outcomes(OPENAI_CONTRACT, OPENAI, exchange(OPENAI, request(OPENAI), http(200, whole.encode())))
    assert by_check["response.schema"] is expected


HOSTILE: dict[str, tuple[str, str]] = {
    "surrogate in a name": ('"id"', '"\\ud83d": 1, "id"'),
    "index that is a list": ('"index": 0', '"index": [0]'),
    "index that is an object": ('"index": 0', '"index": {}'),
    "created beyond any float": (f'"created": {CREATED}', f'"created": {"9" * 400}'),
    "choices that are a number": ('"choices": [', '"choices": 7, "x": ['),
    "choices that are an object": ('"choices": [', '"choices": {}, "x": ['),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_answer_makes_the_harness_fail(name: str) -> None:
    """`error` is our own fault, and no answer, however odd, may bring it about."""
    right, odd = HOSTILE[name]
    texts = [json.dumps(payload).replace(right, odd) for payload in chunks(CHAT)]
    whole = json.dumps(whole_answer(CHAT)).replace(right, odd).encode()
    asked = request(CHAT, n=2, logprobs=True)
    for found in (
        streamed(sse(texts)),
        exchange(CHAT, request(CHAT), http(200, whole)),
        exchange(CHAT, asked, http(200, whole)),
    ):
        assert Outcome.ERROR not in outcomes(CONTRACT, CHAT, found).values()
