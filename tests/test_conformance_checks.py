"""Every check passes on right bytes and fails, alone, on its own wrong ones. One table, hence one long file."""

import copy
import dataclasses
import json
from collections.abc import Callable
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
    usage,
    whole_answer,
)

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Ending, Exchange

SPECS = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")

DONE = b"data: [DONE]\n\n"
ERROR = json.dumps({"error": {"message": "no", "type": "invalid", "code": 400}}).encode()


def _error(code: int) -> bytes:
    return json.dumps({"error": {"message": "no", "type": "invalid", "code": code}}).encode()


def right(operation: Any) -> list[Exchange]:
    """Exchanges of every kind, all right."""
    detail = json.dumps({"detail": [{"loc": ["body"], "msg": "no", "type": "value"}]}).encode()
    refuse = not operation.name.startswith("deepinfra")

    def no(status: int, body: bytes = b"") -> bytes:
        return http(status, body or (_error(status) if refuse else detail if status == 422 else _worded_error()))

    bad = 400 if refuse else 422
    unknown = 404 if operation.name.startswith("openai") else 422
    extra = {"x_unknown": 1}
    return [
        exchange(operation, request(operation), http(200, _dump(whole_answer(operation))), probe="whole"),
        exchange(operation, request(operation, n=2), http(200, _dump(whole_answer(operation, 2))), probe="n2"),
        exchange(operation, request(operation, **extra), http(200, _dump(whole_answer(operation))), probe="extra"),
        _with_logprobs(operation),
        exchange(operation, stream_request(operation), chunked(sse(chunks(operation))), probe="stream"),
        exchange(operation, stream_request(operation, n=2), chunked(sse(chunks(operation, 2))), probe="stream-n2"),
        exchange(
            operation,
            stream_request(operation, stream_options=...),
            chunked(sse(chunks(operation, with_usage=False))),
            probe="no-usage",
        ),
        exchange(operation, b"{", no(bad), probe="malformed"),
        exchange(operation, request(operation, model=...), no(bad), probe="no-model"),
        exchange(operation, request(operation, model="other"), no(unknown), probe="unknown"),
        exchange(operation, stream_request(operation, model="other"), no(unknown), probe="unknown-stream"),
        exchange(operation, request(operation, n="two"), no(bad), probe="n-text"),
        exchange(operation, request(operation), no(401), credential=Credential.NONE, probe="none"),
        exchange(operation, request(operation), no(401), credential=Credential.WRONG, probe="wrong"),
        exchange(operation, b"{", no(401), credential=Credential.NONE, probe="none-malformed"),
        exchange(operation, b"", _not_allowed(no(405)), method="GET", probe="get"),
        exchange(operation, b"", http(405, b"", extra="Allow: POST\r\n"), method="HEAD", probe="head"),
        exchange(
            operation,
            request(operation),
            http(200, _dump(whole_answer(operation))) + b"\r\n",  # RFC 9112, section 9.2: may be discarded
            probe="empty-line-behind",
        ),
        *_with_reasoning(operation),
    ]


def _worded_error() -> bytes:
    return json.dumps({"error": {"message": "no", "type": "invalid", "code": "not_here"}}).encode()


def _not_allowed(wire: bytes) -> bytes:
    return wire.replace(b"Content-Length", b"Allow: POST\r\nContent-Length", 1)


def _with_reasoning(operation: Any, name: str = "reasoning") -> list[Exchange]:
    """A whole and a streamed answer of a chat that thinks first; nothing for text completions, which cannot."""
    if operation.family != "chat":
        return []
    answer, payloads = whole_answer(operation), copy.deepcopy(chunks(operation))
    answer["choices"][0]["message"][name] = "hm"
    payloads[1]["choices"][0]["delta"] = {name: "hm"}
    body, stream = request(operation, reasoning_effort="low"), stream_request(operation, reasoning_effort="low")
    return [
        exchange(operation, body, http(200, _dump(answer)), probe="reasoning"),
        exchange(operation, stream, chunked(sse(payloads)), probe="reasoning-stream"),
    ]


_TOKENS = [*"one two", ""]
"""Eight tokens, as many as the usage counts."""


def _with_logprobs(operation: Any) -> Exchange:
    chat = operation.family == "chat"
    parallel = {
        "tokens": _TOKENS,
        "token_logprobs": [-1.0] * 8,
        "top_logprobs": [{token: -1.0} for token in _TOKENS],
        "text_offset": [*range(7), 7],
    }
    answer = whole_answer(operation)
    answer["choices"][0]["logprobs"] = (
        {"content": [{"token": token, "logprob": -1.0, "top_logprobs": []} for token in _TOKENS]} if chat else parallel
    )
    body = request(operation, logprobs=True if chat else 1)
    return exchange(operation, body, http(200, _dump(answer)), probe="logprobs")


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("spec", SPECS)
def test_right_exchanges_trip_no_check(spec: str) -> None:
    """A right server draws no finding but passes, whatever the document."""
    contract, operation = contract_of(spec)

    assert departures(contract, operation, *map(_with_own_id, right(operation), range(256))) == set()


def _with_own_id(made: Exchange, number: int) -> Exchange:
    """The exchange with an answer's id that no other has, of the same length."""
    return dataclasses.replace(made, wire=made.wire.replace(b'"x-1"', b'"%03x"' % number))


# --- the matrix: name → (exchange that is wrong in one way, the checks that have to say so) -----------------------------

Wrong = Callable[[Any], Exchange]
MATRIX: dict[str, tuple[Wrong, set[str]]] = {}


def wrong(*ids: str) -> Callable[[Wrong], Wrong]:
    """Enter a wrong exchange of seekr-chat into the matrix, with exactly the checks that find it."""

    def enter(make: Wrong) -> Wrong:
        MATRIX[make.__name__.strip("_")] = (make, set(ids))
        return make

    return enter


def _stream(operation: Any, change: Callable[[list[Any]], Any], **changes: Any) -> Exchange:
    payloads: list[Any] = copy.deepcopy(chunks(operation))
    change(payloads)
    return exchange(operation, stream_request(operation, **changes), chunked(sse(payloads)))


def _body(operation: Any, change: Callable[[bytes], bytes]) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(change(sse(chunks(operation)))))


def _whole(operation: Any, change: Callable[[dict[str, Any]], Any], **changes: Any) -> Exchange:
    answer: dict[str, Any] = copy.deepcopy(whole_answer(operation))
    change(answer)
    return exchange(operation, request(operation, **changes), http(200, _dump(answer)))


@wrong("http.answered")
def _reset(operation: Any) -> Exchange:
    return exchange(operation, request(operation), b"", ending=Ending.RESET)


@wrong("http.valid")
def _no_http(operation: Any) -> Exchange:
    return exchange(operation, request(operation), b"ICY 200 OK\r\n\r\n", ending=Ending.MALFORMED_HTTP)


@wrong("ending.not-cut")
def _cut_stream(operation: Any) -> Exchange:
    body = sse(chunks(operation), done=False)
    wire = chunked(body).removesuffix(b"0\r\n\r\n")
    return exchange(operation, stream_request(operation), wire, ending=Ending.CLOSED)


@wrong("http.complete")
def _short_body(operation: Any) -> Exchange:
    wire = http(200, _dump(whole_answer(operation)))[:-5]
    return exchange(operation, request(operation), wire, ending=Ending.CLOSED)


@wrong("http.complete")
def _reset_without_framing(operation: Any) -> Exchange:
    body = _dump(whole_answer(operation))
    wire = http(200, body).replace(b"Content-Length: %d\r\n" % len(body), b"")
    return exchange(operation, request(operation), wire, ending=Ending.RESET)


@wrong("http.surplus")
def _longer_than_announced(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(200, _dump(whole_answer(operation))) + b"more")


@wrong("http.surplus")
def _second_response(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(sse(chunks(operation))) + http(500, b"{}"))


@wrong("http.no-content", "request.allow")
def _head_with_body(operation: Any) -> Exchange:
    return exchange(operation, b"", http(405, _error(405)), method="HEAD")


@wrong("http.no-content", "error.status-documented")
def _no_content_with_body(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(204, b"{}"))


@wrong("http.one-framing")
def _two_framings(operation: Any) -> Exchange:
    wire = chunked(sse(chunks(operation)), extra="Cache-Control: no-cache\r\nContent-Length: 7\r\n")
    return exchange(operation, stream_request(operation), wire)


@wrong("http.valid")
def _two_lengths(operation: Any) -> Exchange:
    wire = http(200, _dump(whole_answer(operation)), extra="Content-Length: 7\r\n")
    return exchange(operation, request(operation), wire, ending=Ending.MALFORMED_HTTP)


@wrong("http.whole-media-type")
def _whole_as_text(operation: Any) -> Exchange:
    wire = http(200, _dump(whole_answer(operation)), media_type="text/plain")
    return exchange(operation, request(operation), wire)


@wrong("http.stream-media-type")
def _stream_as_json(operation: Any) -> Exchange:
    wire = chunked(sse(chunks(operation)), media_type="application/json")
    return exchange(operation, stream_request(operation), wire)


@wrong("http.stream-charset")
def _latin1(operation: Any) -> Exchange:
    wire = chunked(sse(chunks(operation)), media_type="text/event-stream; charset=iso-8859-1")
    return exchange(operation, stream_request(operation), wire)


@wrong("http.stream-cache")
def _cached(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(sse(chunks(operation)), extra=""))


@wrong("sse.utf8")
def _bad_utf8(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b"one", b"on\xe9", 1))


@wrong("sse.bom")
def _bom(operation: Any) -> Exchange:
    return _body(operation, lambda body: b"\xef\xbb\xbf" + body)


@wrong("sse.line-ending")
def _bare_cr(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b"\n", b"\r"))


@wrong("sse.line-ending")
def _mixed_endings(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b"\n\n", b"\r\n\r\n", 1))


@wrong("sse.blank-line", "chunk.role-first")
def _merged_events(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b"\n\n", b"\n", 1))


@wrong("sse.blank-line")
def _no_last_blank_line(operation: Any) -> Exchange:
    return _body(operation, lambda body: body[:-1])


@wrong("sse.data-space")
def _no_space(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b"data: ", b"data:"))


@wrong("sse.one-data-line")
def _two_data_lines(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b'data: {"id": "x-1", ', b'data: {"id": "x-1",\ndata: ', 1))


@wrong("sse.event-name")
def _named_event(operation: Any) -> Exchange:
    return _body(operation, lambda body: b"event: chunk\n" + body)


@wrong("sse.field-known")
def _error_without_its_field(operation: Any) -> Exchange:
    texts = [json.dumps(payload) for payload in chunks(operation)]
    return exchange(
        operation, stream_request(operation), chunked(sse(texts[:2]).replace(DONE, ERROR + b"\n\n") + sse(texts[2:]))
    )


@wrong("sse.data-empty")
def _empty_data(operation: Any) -> Exchange:
    return _body(operation, lambda body: b"data: \n\n" + body)


@wrong("sse.data-json")
def _ping_as_data(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.insert(1, ": ping"))


@wrong("sse.strict-json")
def _nan(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[1].update(x=float("nan")))


@wrong("sse.interoperable-json")
def _duplicate_key_in_chunk(operation: Any) -> Exchange:
    return _body(operation, lambda body: body.replace(b'{"id"', b'{"id": "x-1", "id"', 1))


@wrong("sse.interoperable-json")
def _rounded_integer_in_chunk(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[1].update(x=[-(2**53)]))


@wrong("response.strict-json")
def _infinity(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(x=float("inf")))


@wrong("sse.done")
def _no_done(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(sse(chunks(operation), done=False)))


@wrong("sse.done")
def _done_twice(operation: Any) -> Exchange:
    return _body(operation, lambda body: body + b"data: [DONE]\n\n")


@wrong("sse.done-last", "chunk.choices-present", "usage.stream-place")
def _after_done(operation: Any) -> Exchange:
    last = chunks(operation)[-1] | {"usage": None}
    return _body(operation, lambda body: body + sse([last], done=False))


@wrong("chunk.schema")
def _null_tool_calls(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[1]["choices"][0]["delta"].update(tool_calls=None))


@wrong("chunk.schema", "chunk.object")
def _other_object(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: [payload.update(object="chat.completion") for payload in payloads])


@wrong("chunk.object")
def _no_object(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: [payload.pop("object") for payload in payloads])


@wrong("chunk.id-stable")
def _moving_id(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[2].update(id="x-2"))


@wrong("chunk.created-stable")
def _moving_created(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[2].update(created=payloads[2]["created"] + 1))


@wrong("chunk.model-stable")
def _moving_model(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[2].update(model="other"))


@wrong("chunk.choice-indexes", "finish.stream-once", "chunk.role-once")
def _one_index_for_two(operation: Any) -> Exchange:
    payloads = chunks(operation, 2)
    for payload in payloads:
        for choice in payload["choices"]:
            choice["index"] = 0
    return exchange(operation, stream_request(operation, n=2), chunked(sse(payloads)))


@wrong("chunk.role-first")
def _no_role(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.pop(0))


@wrong("chunk.role-once")
def _role_again(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[1]["choices"][0]["delta"].update(role="assistant"))


@wrong("chunk.no-message")
def _message_in_chunk(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[1]["choices"][0].update(message={"content": "one"}))


@wrong("response.json")
def _two_values(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(200, _dump(whole_answer(operation)) + b"{}"))


@wrong("response.interoperable-json")
def _duplicate_key(operation: Any) -> Exchange:
    body = _dump(whole_answer(operation)).replace(b'{"id"', b'{"id": "y", "id"', 1)
    return exchange(operation, request(operation), http(200, body))


@wrong("response.interoperable-json")
def _rounded_integer(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(x=2**53))


@wrong("response.interoperable-json")
def _beyond_a_double(operation: Any) -> Exchange:
    body = _dump(whole_answer(operation)).replace(b'{"id"', b'{"x": 1E400, "id"', 1)
    return exchange(operation, request(operation), http(200, body))


@wrong()
def _greatest_numbers_that_are_read_alike(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(x=[2**53 - 1, 1 - 2**53, 1e308, 0.1]))


@wrong("response.schema")
def _usage_missing(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.pop("usage"))


@wrong("response.object")
def _whole_without_object(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.pop("object"))


@wrong("response.id")
def _empty_id(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(id=""))


@wrong("response.created-integer")
def _float_created(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(created=float(answer["created"])))


@wrong("response.created-seconds")
def _milliseconds(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(created=answer["created"] * 1000))


@wrong("response.model")
def _other_model(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(model="other"))


@wrong("response.choices", "sampling.n")
def _one_choice_of_two(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: None, n=2)


@wrong("logprobs.given")
def _logprobs_ignored(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: None, logprobs=True)


@wrong("logprobs.shape")
def _logprobs_of_the_other_family(operation: Any) -> Exchange:
    logprobs = {
        "tokens": _TOKENS,
        "token_logprobs": [-1.0] * 8,
        "top_logprobs": [None] * 8,
        "text_offset": [*range(7), 7],
    }
    return _whole(operation, lambda answer: answer["choices"][0].update(logprobs=logprobs), logprobs=True)


@wrong("finish.stream-once")
def _no_finish(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.pop(-2))


@wrong("finish.stream-once")
def _finish_twice(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.insert(-2, payloads[-2]))


@wrong("finish.nothing-after")
def _text_after_finish(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.insert(2, payloads.pop(-2)))


@wrong("finish.stream-reason")
def _odd_stream_reason(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[-2]["choices"][0].update(finish_reason="eos"))


@wrong("finish.whole")
def _odd_whole_reason(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer["choices"][0].update(finish_reason="eos_token"))


@wrong("usage.sum")
def _wrong_sum(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer["usage"].update(total_tokens=99))


@wrong("usage.limit")
def _over_limit(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: answer.update(usage=usage(completion=9)))


@wrong("usage.all-choices")
def _one_choice_counted(operation: Any) -> Exchange:
    answer = whole_answer(operation, 2) | {"usage": usage(completion=8)}
    return exchange(operation, request(operation, n=2), http(200, _dump(answer)))


@wrong("usage.stream-requested")
def _usage_not_sent(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads.pop())


@wrong("usage.stream-place")
def _usage_with_choice(operation: Any) -> Exchange:
    return _stream(operation, lambda payloads: payloads[-2].update(usage=payloads.pop()["usage"]))


@wrong("usage.stream-unrequested")
def _usage_unasked(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation, stream_options=...), chunked(sse(chunks(operation))))


@wrong("error.no-5xx")
def _internal_error(operation: Any) -> Exchange:
    return exchange(operation, request(operation, n="two"), http(500, _error(500)))


@wrong("error.status-documented", "request.valid")
def _teapot(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(418, _error(418)))


@wrong("error.media-type", "error.envelope")
def _html_error(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(400, b"<html>", media_type="text/html"))


@wrong("error.envelope")
def _string_code(operation: Any) -> Exchange:
    body = b'{"error": {"message": "no", "code": "bad_request"}}'
    return exchange(operation, b"{", http(400, body))


@wrong("error.envelope-undocumented")
def _plain_404(operation: Any) -> Exchange:
    return exchange(operation, request(operation, n="two"), http(404, b"Not Found", media_type="text/plain"))


@wrong("error.code")
def _other_code(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(400, _error(422)))


@wrong("error.not-in-200")
def _error_in_200(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(200, ERROR))


@wrong("error.not-in-stream")
def _error_in_stream(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(sse([json.loads(ERROR)])))


@wrong("error.not-in-stream", "error.stream-shape")
def _odd_error_in_stream(operation: Any) -> Exchange:
    return exchange(operation, stream_request(operation), chunked(sse([{"error": {"code": "x"}}])))


@wrong("error.retry-after")
def _limited_without_hint(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(429, _error(429)))


@wrong("error.limit-envelope")
def _limited_by_a_proxy(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(429, b"slow down", extra="Retry-After: 1\r\n"))


@wrong("request.malformed")
def _malformed_accepted(operation: Any) -> Exchange:
    return exchange(operation, b'{"model": ', http(200, _dump(whole_answer(operation))))


@wrong("request.malformed-status")
def _malformed_404(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(404, _error(404)))


@wrong("request.model-missing")
def _model_missing_accepted(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: None, model=...)


@wrong("request.model-unknown")
def _model_unknown_accepted(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: None, model="other")


@wrong("request.model-unknown-status")
def _model_unknown_400(operation: Any) -> Exchange:
    return exchange(operation, request(operation, model="other"), http(400, _error(400)))


@wrong("request.invalid")
def _invalid_accepted(operation: Any) -> Exchange:
    return _whole(operation, lambda answer: None, n="two")


@wrong("request.valid")
def _valid_refused(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(422, _error(422)))


@wrong("request.extra-property", "request.valid")
def _extra_refused(operation: Any) -> Exchange:
    return exchange(operation, request(operation, x_unknown=1), http(400, _error(400)))


@wrong("request.stream-refused-whole")
def _refused_as_stream(operation: Any) -> Exchange:
    wire = http(422, sse([json.loads(_error(422))]), media_type="text/event-stream")
    return exchange(operation, stream_request(operation, model="other"), wire)


@wrong("request.method")
def _get_404(operation: Any) -> Exchange:
    return exchange(operation, b"", http(404, _error(404)), method="GET")


@wrong("request.allow")
def _get_405_without_allow(operation: Any) -> Exchange:
    return exchange(operation, b"", http(405, _error(405)), method="GET")


@wrong("auth.missing")
def _no_key_accepted(operation: Any) -> Exchange:
    wire = http(200, _dump(whole_answer(operation)))
    return exchange(operation, request(operation), wire, credential=Credential.NONE)


@wrong("auth.before-body")
def _body_before_key(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(400, _error(400)), credential=Credential.NONE)


@wrong("auth.wrong")
def _wrong_key_400(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(400, _error(400)), credential=Credential.WRONG)


@wrong("auth.accepted")
def _key_refused(operation: Any) -> Exchange:
    return exchange(operation, request(operation), http(401, _error(401)))


@wrong("auth.accepted")
def _key_refused_for_what_is_refused_anyway(operation: Any) -> Exchange:
    return exchange(operation, b"{", http(401, _error(401)))


@wrong("error.code-type")
def _code_in_words(operation: Any) -> Exchange:
    return exchange(operation, b"", _not_allowed(http(405, _worded_error())), method="GET")


@wrong("response.reasoning-field")
def _reasoning_under_another_name(operation: Any) -> Exchange:
    return _with_reasoning(operation, "reasoning_content")[0]


@wrong("chunk.reasoning-field")
def _streamed_reasoning_under_another_name(operation: Any) -> Exchange:
    return _with_reasoning(operation, "reasoning_content")[1]


@wrong("request.valid", "request.feature-supported")
def _supported_feature_refused(operation: Any) -> Exchange:
    return exchange(operation, request(operation, stream=True), http(400, _error(400)))


@wrong("request.valid")
def _stream_refused_for_its_temperature(operation: Any) -> Exchange:
    # The schema bounds nothing: whoever refuses the temperature says nothing about streams.
    return exchange(operation, request(operation, stream=True, temperature=-1), http(400, _error(400)))


@wrong("request.valid")
def _extra_refused_for_its_limit(operation: Any) -> Exchange:
    return exchange(operation, request(operation, x_unknown=1, max_tokens=0), http(400, _error(400)))


@wrong("request.valid")
def _extra_refused_for_its_message(operation: Any) -> Exchange:
    body = request(operation, x_unknown=1, messages=[{"role": "user"}])
    return exchange(operation, body, http(400, _error(400)))


@wrong("auth.key-echoed")
def _key_in_answer(operation: Any) -> Exchange:
    wire = http(400, _error(400))
    return exchange(operation, b"{", wire, redacted=((len(wire) - 9, len(wire) - 1),))


@pytest.mark.parametrize("name", MATRIX)
def test_wrong_exchange_trips_exactly_its_checks(name: str) -> None:
    """What is wrong in one way is found by the checks for that way and by no other."""
    make, expected = MATRIX[name]
    contract, operation = contract_of("seekr-chat")

    assert departures(contract, operation, make(operation)) == expected


def test_pair_with_different_prompts_is_found() -> None:
    """The streamed form may not cost other prompt tokens than the whole one."""
    contract, operation = contract_of("seekr-chat")
    whole = exchange(operation, request(operation), http(200, _dump(whole_answer(operation))), probe="a")
    payloads = chunks(operation)
    payloads[-1]["usage"] = usage(prompt=6)
    stream = exchange(operation, stream_request(operation), chunked(sse(payloads)), probe="b")

    assert departures(contract, operation, whole, stream) == {"usage.pair"}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_no_done, {"sse.done-undocumented"}),
        (_usage_missing, {"response.reference-shape"}),
    ],
)
def test_undocumented_answers_are_judged_by_the_usual_shape(make: Wrong, expected: set[str]) -> None:
    """A document that leaves its 200 open gets SHOULDs in place of MUSTs."""
    contract, operation = contract_of("deepinfra-completions")

    assert departures(contract, operation, make(operation)) == expected


_TOPS = [{token: -1.0, "?": -2.0} for token in _TOKENS]


def _listed(token: str) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": -1.0}, {"token": "?", "logprob": -2.0}]


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        (
            {"content": [{"token": token, "logprob": -1.0, "top_logprobs": _listed(token)} for token in _TOKENS]},
            "logprobs.shape",
        ),
        (
            {
                "tokens": _TOKENS,
                "token_logprobs": [-1.0] * 8,
                "top_logprobs": _TOPS,
                "text_offset": [0, 1, 2],
            },
            "logprobs.lengths",
        ),
    ],
)
def test_completions_with_wrong_logprobs_are_found(logprobs: dict[str, Any], expected: str) -> None:
    """The chat form and arrays of different lengths are wrong for completions, though the schema takes both."""
    contract, operation = contract_of("seekr-completions")
    answer = whole_answer(operation)
    answer["choices"][0]["logprobs"] = logprobs
    wrong_answer = exchange(operation, request(operation, logprobs=2), http(200, _dump(answer)))

    assert departures(contract, operation, wrong_answer) == {expected}


def test_undocumented_chunks_are_judged_by_the_usual_shape() -> None:
    """A chunk without an index is found where no document describes it."""
    contract, operation = contract_of("deepinfra-completions")
    payloads = chunks(operation)
    del payloads[0]["choices"][0]["text"]

    found = departures(contract, operation, exchange(operation, stream_request(operation), chunked(sse(payloads))))

    assert found == {"chunk.reference-shape"}


def test_rate_limited_probes_make_the_verdict_inconclusive() -> None:
    """429 is neither pass nor fail: what only it answered cannot be told."""
    contract, operation = contract_of("seekr-chat")
    limited = http(429, _error(429), extra="Retry-After: 1\r\n")

    found = outcomes(contract, operation, exchange(operation, request(operation), limited))

    assert found["response.schema"] is Outcome.INCONCLUSIVE
    assert found["error.limit-envelope"] is Outcome.PASS


@pytest.mark.parametrize("start", [b": ping\n\n", b"event: message\n", b"id: 1\n", b""])
def test_stream_is_judged_whatever_its_media_type_says(start: bytes) -> None:
    """A stream that is called JSON is still one, with whatever line it begins."""
    contract, operation = contract_of("seekr-chat")
    wire = chunked(start + sse(chunks(operation)), media_type="application/json")

    found = outcomes(contract, operation, exchange(operation, stream_request(operation), wire))

    assert found["http.stream-media-type"] is Outcome.FAIL
    assert found["sse.done"] is Outcome.PASS


def test_at_least_thirty_checks_with_unique_sentences() -> None:
    """Every check says what it stands on, and where that stands."""
    assert len(CHECKS) >= 30
    assert all(check.requirement and check.source and check.title for check in CHECKS.values())
