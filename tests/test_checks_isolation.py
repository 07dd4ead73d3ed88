"""`isolation.*`, `cancel.*` and `limit.*` on hand-made exchanges: each seen passing and departing, right servers in the table."""

import dataclasses
import json
from typing import Any

import pytest
from transcripts import MODEL, chunked, chunks, contract_of, exchange, http, request, sse, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.isolation.gauges import busy_in, metrics_url
from streamgauge.conformance.isolation.nonces import nonce, nonces_in
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.probes.isolation import canary, leaving
from streamgauge.conformance.probes.laws.request_limits import digits
from streamgauge.conformance.probes.probe import Probe
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Ending, Evidence, Exchange
from streamgauge.wire.http import Read

SPEC = "seekr-chat"
CONTRACT, OPERATION = contract_of(SPEC)
OWN, OTHER = nonce(OPERATION.name, 0), nonce(OPERATION.name, 1)
SECOND = "2026-11-18T13:46:{:06.3f}Z"


def found(check: str, *exchanges: Exchange) -> Outcome:
    """What a check finds in these exchanges, each with an id of its own."""
    numbered = [dataclasses.replace(each, id=f"e{number}") for number, each in enumerate(exchanges)]
    cases = cases_of(numbered, OPERATION, CONTRACT, target="t", model=MODEL)
    return judge(CHECKS[check], cases, OPERATION, CONTRACT, "t").outcome


def asked(text: str, **changes: Any) -> dict[str, Any]:
    """A request with a text."""
    return request(OPERATION, messages=[{"role": "user", "content": text}], **changes)


def said(text: str, **changes: Any) -> bytes:
    """A whole answer with a text."""
    answer = whole_answer(OPERATION)
    answer["choices"][0]["message"]["content"] = text
    return http(200, json.dumps({**answer, **changes}).encode())


def streamed(text: str) -> bytes:
    """The text in pieces of five characters, as tokens cut it."""
    payloads = chunks(OPERATION)
    model, rest = payloads[1], payloads[3:]
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    told = [
        {**model, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces
    ]
    return chunked(sse([payloads[0], *told, *rest]))


@pytest.mark.parametrize(
    ("request_text", "wire", "expected"),
    [
        (OWN, said(f"Here it is: {OWN}"), Outcome.PASS),
        (OWN, said(f"Here it is: {OTHER}"), Outcome.FAIL),
        (OWN, said(f"{OWN} and {OTHER}"), Outcome.FAIL),
        (OWN, said("x", id=f"chatcmpl-{OTHER}"), Outcome.FAIL),
        (OWN, streamed(f"Here: {OWN}"), Outcome.PASS),
        (OWN, streamed(f"Here: {OTHER}"), Outcome.FAIL),
        (OWN, http(400, json.dumps({"error": {"message": f"no: {OTHER}"}}).encode()), Outcome.FAIL),
        ("hello", said(OTHER), Outcome.FAIL),  # of whatever operation the other one was
        (OWN, said("one two"), Outcome.NOT_RUN),  # a model need not repeat it
        (OWN, said(OWN[:-1] + ("0" if OWN[-1] != "0" else "1")), Outcome.NOT_RUN),  # a slip of the model
        (OWN, said("sg-nonce-0123456789abcdef"), Outcome.NOT_RUN),  # one that a model made up
        (OWN, http(429, OTHER.encode()), Outcome.INCONCLUSIVE),
    ],
)
def test_a_foreign_nonce_is_a_leak(request_text: str, wire: bytes, expected: Outcome) -> None:
    """RFC 9110, 3.3: only a nonce that proves itself and that the request did not hold; cut by tokens as well."""
    body = asked(request_text, stream=b"event-stream" in wire)

    assert found("isolation.foreign-nonce", exchange(OPERATION, body, wire)) is expected


def test_nonces_are_told_apart_and_prove_themselves() -> None:
    """The same in every run, another one for each request of each operation; half a nonce is none."""
    made = [nonce(name, number) for name in ("a", "b") for number in range(50)]

    assert len(set(made)) == 100
    assert nonce("a", 7) == made[7]
    assert nonces_in(f"x{made[0]} {made[1][:-1]}\n{made[2]}") == {made[0], made[2]}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((asked("a"), said("x", id="1")), (asked("b"), said("y", id="2")), Outcome.PASS),
        ((asked("a"), said("x", id="1")), (asked("b"), said("y", id="1")), Outcome.WARN),
        ((asked("a"), said("x", id="x-1")), (asked("b", stream=True), streamed("y")), Outcome.WARN),
        ((asked("a"), said("x", id="1")), (asked("a"), said("x", id="1")), Outcome.PASS),  # a cache
        ((asked("a"), said("x", id="1")), (asked("a", user="b"), said("x", id="1")), Outcome.PASS),  # as LiteLLM has it
        (
            (asked("a", request_id="r"), said("x", id="r")),
            (asked("b", request_id="r"), said("y", id="r")),
            Outcome.NOT_RUN,
        ),
        ((asked("a"), said("x", id=None)), (asked("b"), said("y", id=None)), Outcome.NOT_RUN),
        ((asked("a"), http(400, b'{"id": "1"}')), (asked("b"), http(400, b'{"id": "1"}')), Outcome.NOT_RUN),
    ],
)
def test_ids_of_different_questions_differ(
    first: tuple[Any, bytes], second: tuple[Any, bytes], expected: Outcome
) -> None:
    """That a cache repeats an answer is no fault, nor that the client chose the id."""
    assert found("isolation.ids-unique", exchange(OPERATION, *first), exchange(OPERATION, *second)) is expected


LEAVE = next(probe.body for probe in leaving(OPERATION, MODEL) if isinstance(probe, Probe) and probe.leave_after)


def left(began: float, *, pace: float = 0.05, events: int = 8) -> Exchange:
    """A stream that the client left after so many events, one read for each, `pace` seconds apart."""
    payload = chunks(OPERATION)[1]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [b"%x\r\n%b\r\n" % (len(text), text) for text in [sse([payload], done=False)] * events]
    reads = [Read(0.01, len(head)), *(Read(0.1 + pace * number, len(part)) for number, part in enumerate(parts))]
    return dataclasses.replace(
        exchange(OPERATION, LEAVE, head + b"".join(parts), ending=Ending.LEFT),
        reads=tuple(reads),
        started=SECOND.format(began),
        holds=frozenset(Evidence) - {Evidence.ENDING},
    )


def look(began: float, running: float, generated: float | None = 0, status: int = 200) -> Exchange:
    """A look at the metrics of vLLM, in two engines."""
    text = "# HELP vllm:num_requests_running Requests.\n# TYPE vllm:num_requests_running gauge\n"
    text += f'vllm:num_requests_running{{engine="0"}} {running:.1f}\nvllm:num_requests_running{{engine="1"}} 0.0\n'
    text += f'vllm:generation_tokens_total{{engine="0"}} {generated}\n' if generated is not None else ""
    made = exchange(OPERATION, b"", http(status, text.encode(), media_type="text/plain"), method="GET")
    return dataclasses.replace(
        made,
        operation="",
        started=SECOND.format(began),
        request=dataclasses.replace(made.request, url="http://127.0.0.1/metrics"),
    )


def plain(began: float, took: float) -> Exchange:
    """A canary."""
    wire = said("x")
    made = exchange(OPERATION, canary(OPERATION, MODEL), wire)
    return dataclasses.replace(made, started=SECOND.format(began), reads=(Read(took, len(wire)),))


STREAMS = (left(10), left(10), left(10), left(10))
ALL = 4 * 256


@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        ((look(9, 0), *STREAMS, look(11, 0, 40)), Outcome.PASS),
        ((look(9, 0), *STREAMS, look(11, 4, 40), look(12, 1, 60), look(14, 0, 70)), Outcome.PASS),  # it takes a while
        ((look(9, 0), *STREAMS, look(11, 0, None)), Outcome.PASS),
        ((look(9, 5), *STREAMS, look(11, 4, ALL)), Outcome.PASS),  # others are about, and the tokens theirs
        ((look(9, 0), *STREAMS, look(10.6, 0, ALL)), Outcome.PASS),  # through so soon: faster than its events told
        ((look(9, 0), *STREAMS, look(11, 4, 90), look(15, 4, 400)), Outcome.WARN),
        ((look(9, 0), *STREAMS, look(11, 4, 90), look(15, 0, ALL)), Outcome.WARN),
        ((look(9, 0), *STREAMS, look(11, 3, 90), look(15, 2, 400)), Outcome.INCONCLUSIVE),  # perhaps others' requests
        ((look(9, 0), *STREAMS, look(11, 1, 90), look(15, 6, 400)), Outcome.INCONCLUSIVE),  # surely they are
        ((look(9, 0), *STREAMS, look(11, 1, 90), look(15, 0, ALL)), Outcome.PASS),  # another's answer, and its tokens
        ((look(9, 2), *STREAMS, look(11, 6, 90), look(15, 6, 400)), Outcome.INCONCLUSIVE),
        ((look(9, 0, status=404), *STREAMS, look(11, 4, status=404)), Outcome.INCONCLUSIVE),
        ((plain(9, 0.2), *STREAMS, plain(11, 0.2)), Outcome.INCONCLUSIVE),  # it may only have had room
        ((plain(9, 0.2), *STREAMS, plain(11, 8.0)), Outcome.WARN),
        ((plain(9, 5.0), *STREAMS, plain(11, 12.0)), Outcome.INCONCLUSIVE),  # slow anyway
        ((look(9, 0), left(10, pace=0.001), look(11, 1, 256)), Outcome.NOT_RUN),
        ((look(9, 0), left(10, events=1), look(11, 1, 256)), Outcome.NOT_RUN),
        ((look(9, 0), look(11, 4, ALL)), Outcome.NOT_RUN),
    ],
)
def test_capacity_is_freed(exchanges: tuple[Exchange, ...], expected: Outcome) -> None:
    """By the count of running requests, by the tokens generated, or by how long the next request waits."""
    assert found("cancel.frees-capacity", *exchanges) is expected


def test_nothing_else_judges_what_the_client_left() -> None:
    """A stream that was left has no end, and no check blames it for that."""
    cases = cases_of([left(10)], OPERATION, CONTRACT, target="t", model=MODEL)
    departed = {
        id_
        for id_, each in CHECKS.items()
        if judge(each, cases, OPERATION, CONTRACT, "t").outcome in (Outcome.FAIL, Outcome.WARN, Outcome.ERROR)
    }

    assert departed <= {"http.stream-cache", "cancel.frees-capacity", "chunk.role-first"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('vllm:num_requests_running{model_name="a",engine="0"} 3.0\n', (3, None)),
        ('vllm:num_requests_running{a="{}"} 1\nvllm:num_requests_running{a="b"} 2\n', (3, None)),
        ("sglang:num_running_reqs 2\nsglang:generation_tokens_total 5e2\n", (2, 500)),
        ("llamacpp:requests_processing 1\nllamacpp:tokens_predicted_total 17\n", (1, 17)),
        ("tgi_batch_current_size 4 1700000000000\n", (4, None)),
        ("tgi_batch_current_size 4\ntgi_request_generated_tokens_sum 70\n", (4, 70)),
        ("http_requests_total 5\n", None),
        ("vllm:num_requests_running_total 5\n", None),
        ("", None),
    ],
)
def test_metrics_are_read(text: str, expected: tuple[float, float | None] | None) -> None:
    """Prometheus' text format, by the names of each engine, summed over models and engines."""
    made = dataclasses.replace(look(1, 0), wire=http(200, text.encode(), media_type="text/plain"))
    busy = busy_in(made)

    assert (None if busy is None else (busy.running, busy.generated)) == expected


def test_metrics_are_asked_of_the_named_host_only() -> None:
    """Of the same scheme, host and port, at the root; whatever else the URL says stays out."""
    assert metrics_url("https://h.example:8443/v1/chat/completions?api_key=x") == "https://h.example:8443/metrics"


LONG = asked(digits(300), max_tokens=1)


def error(**members: Any) -> bytes:
    """The body of an error."""
    return json.dumps({"error": {"message": "no", **members}}).encode()


def tokens(count: int, **details: int) -> bytes:
    """An answer that counts so many prompt tokens."""
    counted = {"prompt_tokens": count, "completion_tokens": 1, "total_tokens": count + 1}
    told = {"prompt_tokens_details": {f"{name}_tokens": value for name, value in details.items()}} if details else {}
    return said("x", usage={**counted, **told})


SHORT = (asked("x"), tokens(5))
"""What shows that this server counts prompts."""


REFUSED = error(type="invalid_request_error", code=400)
TOO_LONG = error(type="context_length_exceeded", code=400)


@pytest.mark.parametrize(
    ("check", "exchanges", "expected"),
    [
        ("limit.context-status", [(LONG, http(400, TOO_LONG))] * 2, Outcome.PASS),
        ("limit.context-status", [(LONG, http(400, TOO_LONG)), (LONG, http(500, TOO_LONG))], Outcome.FAIL),
        ("limit.context-status", [(LONG, http(400, TOO_LONG)), (LONG, http(413, TOO_LONG))], Outcome.FAIL),
        ("limit.context-status", [(LONG, http(400, TOO_LONG)), (LONG, tokens(300))], Outcome.FAIL),
        ("limit.context-status", [(LONG, http(500, b""))] * 2, Outcome.FAIL),
        ("limit.context-status", [(LONG, tokens(300))] * 2, Outcome.NOT_RUN),  # it has more room than it says
        ("limit.context-status", [(LONG, http(400, TOO_LONG)), (LONG, http(429, b""))], Outcome.PASS),
        ("limit.silent-truncation", [(LONG, http(400, TOO_LONG))], Outcome.PASS),
        ("limit.silent-truncation", [SHORT, (LONG, tokens(600))], Outcome.PASS),
        ("limit.silent-truncation", [SHORT, (LONG, tokens(100))], Outcome.FAIL),
        ("limit.silent-truncation", [SHORT, (LONG, tokens(151))], Outcome.PASS),  # four characters a token, guessed
        (
            "limit.silent-truncation",
            [(LONG, tokens(0)), (asked("x"), tokens(0))],
            Outcome.NOT_RUN,
        ),  # nothing is counted
        ("limit.silent-truncation", [SHORT, (LONG, tokens(12, cached=288))], Outcome.PASS),  # less what it had cached
        ("limit.silent-truncation", [({**LONG, "truncate_prompt_tokens": 50}, tokens(50))], Outcome.NOT_RUN),
        ("limit.silent-truncation", [(LONG, said("x", usage=None))], Outcome.NOT_RUN),
        ("limit.silent-truncation", [(asked("x " * 300), tokens(5))], Outcome.NOT_RUN),  # who knows its tokens
        ("limit.context-code", [(LONG, http(400, TOO_LONG)), ({"model": "y"}, http(400, REFUSED))], Outcome.PASS),
        ("limit.context-code", [(LONG, http(400, REFUSED)), ({"model": "y"}, http(400, REFUSED))], Outcome.WARN),
        ("limit.context-code", [(LONG, http(413, REFUSED)), ({"model": "y"}, http(400, REFUSED))], Outcome.PASS),
        ("limit.context-code", [(LONG, http(400, b'{"detail": "no"}'))], Outcome.NOT_RUN),
        # Too many tokens are asked for: the same trouble, told alike.
        (
            "limit.context-code",
            [(LONG, http(400, TOO_LONG)), (asked("x", max_tokens=10**6), http(400, TOO_LONG))],
            Outcome.PASS,
        ),
    ],
)
def test_prompts_beyond_the_context(check: str, exchanges: list[tuple[Any, bytes]], expected: Outcome) -> None:
    """Refused alike, told as what it is, and never cut without a word; the digits give a least number of tokens."""
    assert found(check, *(exchange(OPERATION, body, wire) for body, wire in exchanges)) is expected


LARGE = {**request(OPERATION), "model": "none", "x_padding": "x" * 2**20}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (http(404, REFUSED), Outcome.PASS),
        (http(413, b"<html>", media_type="text/html"), Outcome.PASS),  # the body of an error is judged elsewhere
        (http(400, REFUSED), Outcome.WARN),
        (
            http(200, b"{}"),
            Outcome.NOT_RUN,
        ),  # not too large for it; that it takes any model, `request.model-unknown` says
        (http(502, b""), Outcome.NOT_RUN),  # a failure is another check's
    ],
)
def test_large_bodies(wire: bytes, expected: Outcome) -> None:
    """RFC 9110, 15.5.14: 413, or what a small body gets that names the same model."""
    small = exchange(OPERATION, {**request(OPERATION), "model": "none"}, http(404, REFUSED))

    assert found("limit.body-status", small, exchange(OPERATION, LARGE, wire)) is expected
