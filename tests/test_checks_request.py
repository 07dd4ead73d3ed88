"""`request.*`: what has to be taken and what has to be turned away, each seen passing and departing."""

import dataclasses
import json
from typing import Any

import pytest
from transcripts import MODEL, chunked, chunks, contract_of, exchange, http, outcomes, request, sse, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Evidence, Exchange

CHAT, TEXT, OPEN, DEEP = "seekr-chat", "seekr-completions", "openai-chat", "deepinfra-completions"
PASS, FAIL, WARN, NOT_RUN = Outcome.PASS, Outcome.FAIL, Outcome.WARN, Outcome.NOT_RUN
REFUSED, IGNORED, INCONCLUSIVE = Outcome.REFUSED, Outcome.IGNORED, Outcome.INCONCLUSIVE


def _asked(spec: str, body: Any, status: int = 200, *, answer: bytes | None = None, **how: Any) -> Exchange:
    """An exchange with a right answer, or with a refusal of this status."""
    operation = contract_of(spec)[1]
    error = {"error": {"message": "no", "type": "invalid", "code": status}}
    told = whole_answer(operation) if status == 200 else error
    return exchange(operation, body, http(status, json.dumps(told).encode() if answer is None else answer), **how)


def _body(spec: str, **changes: Any) -> dict[str, Any]:
    return request(contract_of(spec)[1], **changes)


def _found(spec: str, check: str, *exchanges: Exchange) -> Outcome:
    contract, operation = contract_of(spec)
    return outcomes(contract, operation, *exchanges)[check]


NESTED = {"messages": [{"role": "user", "content": "hi", "x_mine": 1}]}
HELLO = {"messages": [{"role": "user", "content": "hi"}]}

CASES: dict[str, tuple[str, str, list[tuple[Any, int]], Outcome]] = {
    # --- the plainest request
    "plainest, answered": (CHAT, "request.plain-accepted", [(_body(CHAT, temperature=...), 200)], PASS),
    "plainest, refused": (CHAT, "request.plain-accepted", [(_body(CHAT, temperature=...), 422)], FAIL),
    "plainest, stream false": (
        CHAT,
        "request.plain-accepted",
        [(_body(CHAT, temperature=..., stream=False), 400)],
        FAIL,
    ),
    "plainest, of completions": (TEXT, "request.plain-accepted", [(_body(TEXT, temperature=...), 400)], FAIL),
    "plainest, the server is away": (CHAT, "request.plain-accepted", [(_body(CHAT, temperature=...), 503)], PASS),
    "without a prompt there is nothing to answer": (
        TEXT,
        "request.plain-accepted",
        [(_body(TEXT, temperature=..., prompt=...), 400)],
        NOT_RUN,
    ),
    "a temperature may be refused": (CHAT, "request.plain-accepted", [(_body(CHAT), 400)], NOT_RUN),
    "a stream may be": (CHAT, "request.plain-accepted", [(_body(CHAT, temperature=..., stream=True), 400)], NOT_RUN),
    "a null is a matter of its own": (
        CHAT,
        "request.plain-accepted",
        [(_body(CHAT, temperature=..., user=None), 400)],
        NOT_RUN,
    ),
    "a great limit may be": (
        CHAT,
        "request.plain-accepted",
        [(_body(CHAT, temperature=..., max_tokens=9999), 400)],
        NOT_RUN,
    ),
    # --- valid requests: a refusal is a matter of features, unless there are none
    "no feature in it": (CHAT, "request.valid", [(_body(CHAT), 400)], WARN),
    "no prompt in it": (TEXT, "request.valid", [(_body(TEXT, prompt=...), 400)], REFUSED),
    "a feature in it": (CHAT, "request.valid", [(_body(CHAT, logprobs=True), 400)], REFUSED),
    "an odd value in it": (CHAT, "request.valid", [(_body(CHAT, temperature=-1), 400)], REFUSED),
    # --- what is refused anyway says nothing of what is added
    "extra, refused": (CHAT, "request.extra-property", [(_body(CHAT, x_a=1), 400), (_body(CHAT), 200)], FAIL),
    "extra, refused without as well": (
        CHAT,
        "request.extra-property",
        [(_body(CHAT, x_a=1), 400), (_body(CHAT), 400)],
        PASS,
    ),
    "a promised feature, refused": (
        CHAT,
        "request.feature-supported",
        [(_body(CHAT, stream=True), 400), (_body(CHAT), 200)],
        WARN,
    ),
    "a promised feature, refused for the rest": (
        CHAT,
        "request.feature-supported",
        [(_body(CHAT, stream=True), 400), (_body(CHAT), 400)],
        PASS,
    ),
    # --- members of messages and options
    "nested, answered": (
        CHAT,
        "request.extra-nested",
        [(_body(CHAT, **NESTED), 200), (_body(CHAT, **HELLO), 200)],
        PASS,
    ),
    "nested, refused": (
        CHAT,
        "request.extra-nested",
        [(_body(CHAT, **NESTED), 400), (_body(CHAT, **HELLO), 200)],
        WARN,
    ),
    "nested, refused without": (
        CHAT,
        "request.extra-nested",
        [(_body(CHAT, **NESTED), 400), (_body(CHAT, **HELLO), 400)],
        NOT_RUN,
    ),
    "nested, never asked without": (CHAT, "request.extra-nested", [(_body(CHAT, **NESTED), 400)], NOT_RUN),
    # --- nulls
    "null, answered": (CHAT, "request.null-accepted", [(_body(CHAT, stop=None), 200), (_body(CHAT), 200)], PASS),
    "null, refused": (CHAT, "request.null-accepted", [(_body(CHAT, stop=None), 400), (_body(CHAT), 200)], FAIL),
    "null, refused without": (
        CHAT,
        "request.null-accepted",
        [(_body(CHAT, stop=None), 400), (_body(CHAT), 400)],
        NOT_RUN,
    ),
    "null that the document forbids": (
        DEEP,
        "request.null-accepted",
        [(_body(DEEP, n=None), 422), (_body(DEEP), 200)],
        NOT_RUN,
    ),
    # --- what the document requires
    "no messages, refused": (CHAT, "request.required", [(_body(CHAT, messages=...), 400)], PASS),
    "no messages, answered": (CHAT, "request.required", [(_body(CHAT, messages=...), 200)], FAIL),
    "no prompt, answered": (DEEP, "request.required", [(_body(DEEP, prompt=...), 200)], FAIL),
    "no model is another check's": (OPEN, "request.required", [(_body(OPEN, model=...), 200)], NOT_RUN),
    "no messages is no wrong type": (CHAT, "request.invalid", [(_body(CHAT, messages=...), 200)], NOT_RUN),
    "no model is no wrong type": (OPEN, "request.invalid", [(_body(OPEN, model=...), 200)], NOT_RUN),
    # --- numbers that a reader may take for infinite
    "1e400 answered": (CHAT, "request.invalid", [(b'{"model": "tiny", "messages": [], "n": 1e400}', 200)], NOT_RUN),
    "1e400 refused": (CHAT, "request.invalid", [(b'{"model": "tiny", "messages": [], "n": 1e400}', 400)], NOT_RUN),
    "a text for a number": (CHAT, "request.invalid", [(_body(CHAT, n="two"), 200)], IGNORED),
    # --- how another model is refused
    "unknown model, 400": (CHAT, "request.model-unknown-status", [(_body(CHAT, model="other"), 400)], WARN),
    "unknown model, as the profile says": (
        CHAT,
        "request.model-unknown-status",
        [(_body(CHAT, model="other"), 422)],
        PASS,
    ),
    "a null may be what was refused": (
        CHAT,
        "request.model-unknown-status",
        [(_body(CHAT, model="other", n=None), 400)],
        NOT_RUN,
    ),
    "so may a message of a tool": (
        CHAT,
        "request.model-unknown-status",
        [(_body(CHAT, model="other", messages=[{"role": "tool", "content": "x", "tool_call_id": "c"}]), 400)],
        NOT_RUN,
    ),
    # --- a failure of the server says nothing of the body
    "no JSON, 500": (CHAT, "request.malformed", [(b"{", 500)], NOT_RUN),
    "no JSON, 302": (CHAT, "request.malformed", [(b"{", 302)], FAIL),
}


@pytest.mark.parametrize("name", CASES)
def test_requests_and_their_statuses(name: str) -> None:
    """What a check says when these requests get these statuses."""
    spec, check, asked, expected = CASES[name]

    assert _found(spec, check, *(_asked(spec, body, status) for body, status in asked)) is expected


LONG = {"messages": [{"role": "user", "content": "word " * 2000}], "temperature": ...}
FILTERED = json.dumps(
    {"error": {"message": "filtered", "type": None, "param": "prompt", "code": "content_filter"}}
).encode()


@pytest.mark.parametrize(
    ("changes", "status", "answer", "plain", "valid"),
    [
        ({"temperature": ...}, 400, None, FAIL, NOT_RUN),
        (LONG, 400, None, NOT_RUN, Outcome.REFUSED),  # may be longer than the context
        ({"temperature": ...}, 400, FILTERED, NOT_RUN, NOT_RUN),  # as Azure says it
        ({"temperature": ...}, 402, None, NOT_RUN, NOT_RUN),  # the balance is used up
        ({}, 402, None, NOT_RUN, NOT_RUN),
    ],
)
def test_refusals_that_are_not_about_the_form(
    changes: dict[str, Any], status: int, answer: bytes | None, plain: Outcome, valid: Outcome
) -> None:
    """What a user's own traffic holds may be too long, filtered, or unpaid: no fault of the server."""
    contract, operation = contract_of(CHAT)
    found = outcomes(contract, operation, _asked(CHAT, _body(CHAT, **changes), status, answer=answer))

    assert (found["request.plain-accepted"], found["request.valid"]) == (plain, valid)


def test_an_error_told_with_200_is_no_acceptance() -> None:
    """`error.not-in-200` and `error.not-in-stream` say what is wrong; the request was not answered."""
    error = json.dumps({"error": {"message": "no"}}).encode()
    contract, operation = contract_of(CHAT)
    whole = _asked(CHAT, _body(CHAT, model="other"), answer=error)
    stream = exchange(operation, _body(CHAT, model="other", stream=True), chunked(sse([error.decode()])))
    found = outcomes(contract, operation, whole, stream)

    assert found["request.model-unknown"] is NOT_RUN
    assert {found["error.not-in-200"], found["error.not-in-stream"]} == {FAIL}


WRONG = {"n": "two"}
FORMS: dict[str, tuple[dict[str, Any], list[int], int, Outcome]] = {
    "same": (WRONG, [400], 400, PASS),
    "another": (WRONG, [400], 422, FAIL),
    "answered as a stream": (WRONG, [400], 200, FAIL),
    "one of several tries": (WRONG, [400, 422], 422, PASS),
    "unknown model": ({"model": "other"}, [422], 404, FAIL),
    "the whole form failed": (WRONG, [500], 400, NOT_RUN),
    "the streamed form failed": (WRONG, [400], 500, NOT_RUN),
    "the whole form was limited": (WRONG, [429], 400, INCONCLUSIVE),
    "right, streams are refused": ({}, [200], 400, NOT_RUN),
    "wrong by its stream": ({"stream_options": "x"}, [200], 400, NOT_RUN),
    "right, both refused": ({"temperature": -1}, [400], 422, NOT_RUN),
}


@pytest.mark.parametrize("name", FORMS)
def test_status_of_both_forms(name: str) -> None:
    """A wrong request gets one status, unless it is wrong by what it says of streams, or nobody can tell."""
    changes, whole, streamed, expected = FORMS[name]
    contract, operation = contract_of(CHAT)
    asks_whole = {key: value for key, value in changes.items() if key != "stream_options"}
    told = [_asked(CHAT, _body(CHAT, **asks_whole), status, probe=str(i)) for i, status in enumerate(whole)]
    if streamed == 200:
        stream = exchange(operation, _body(CHAT, stream=True, **changes), chunked(sse(chunks(operation))), probe="s")
    else:
        stream = _asked(CHAT, _body(CHAT, stream=True, **changes), streamed, probe="s")
    found = outcomes(contract, operation, *told, stream)["request.stream-status"]

    assert found is expected


def test_a_null_for_the_form_may_be_what_was_refused() -> None:
    """`request.null-accepted` judges that a server wants `stream` to be a boolean."""
    whole = _asked(CHAT, _body(CHAT, model="other", stream=None), 422)
    stream = exchange(
        contract_of(CHAT)[1], _body(CHAT, model="other", stream=True), chunked(sse(chunks(contract_of(CHAT)[1])))
    )

    assert _found(CHAT, "request.stream-status", whole, stream) is NOT_RUN


def test_another_key_is_another_request() -> None:
    """A 401 to the whole form without a key says nothing of the streamed form with it."""
    whole = _asked(CHAT, _body(CHAT, **WRONG), 401, credential=Credential.NONE)
    stream = _asked(CHAT, _body(CHAT, stream=True, **WRONG), 400)

    assert _found(CHAT, "request.stream-status", whole, stream) is NOT_RUN


def test_refused_stream_as_another_media_type_is_not_a_stream() -> None:
    """A page is `error.media-type`'s; an event stream is this check's, alone."""
    contract, operation = contract_of(CHAT)
    sent = _body(CHAT, model="other", stream=True)
    page = exchange(operation, sent, http(422, b"<html>", media_type="text/html"))
    stream = exchange(operation, sent, http(422, sse(['{"error": "no"}']), media_type="text/event-stream"))

    for each, departing in ((page, "error.media-type"), (stream, "request.stream-refused-whole")):
        found = outcomes(contract, operation, each)
        assert {id_ for id_ in ("error.media-type", "request.stream-refused-whole") if found[id_] is FAIL} == {
            departing
        }


def _called(media_type: str | None, status: int, *, holds: frozenset[Evidence] = frozenset(Evidence)) -> Exchange:
    """A request for a model that does not exist, with a body that is called something."""
    told = _asked(CHAT, _body(CHAT, model="other"), status)
    fields = [("host", "127.0.0.1"), *([("Content-Type", media_type)] if media_type else [])]
    return dataclasses.replace(told, request=dataclasses.replace(told.request, headers=tuple(fields)), holds=holds)


@pytest.mark.parametrize(
    ("media_type", "status", "expected"),
    [
        ("text/plain", 415, PASS),
        ("text/plain", 400, PASS),
        (None, 422, PASS),
        (None, 404, PASS),  # read all the same, and then the model was looked for
        ("application/x-www-form-urlencoded", 200, PASS),
        ("application/x-www-form-urlencoded", 405, WARN),
        (None, 409, WARN),
        (None, 500, NOT_RUN),
        ("application/json; charset=utf-8", 409, NOT_RUN),
        ("application/vnd.api+json", 409, NOT_RUN),
    ],
)
def test_media_types(media_type: str | None, status: int, expected: Outcome) -> None:
    """What is not called JSON is refused as such or read as JSON; it says nothing of models, and no document speaks of it."""
    contract, operation = contract_of(CHAT)
    found = outcomes(contract, operation, _called(media_type, status))

    assert found["request.media-type"] is expected
    if expected is not NOT_RUN:
        assert found["request.model-unknown"] is found["request.model-unknown-status"] is NOT_RUN
        assert found["error.status-documented"] is PASS


def test_captured_fields_may_be_incomplete() -> None:
    """Of a capture without Content-Type nobody knows that none was sent."""
    captured = _called(None, 409, holds=frozenset(Evidence) - {Evidence.TIMES})

    assert _found(CHAT, "request.media-type", captured) is NOT_RUN


@pytest.mark.parametrize(
    ("status", "extra", "method", "allow"),
    [
        (405, "Allow: POST\r\n", PASS, PASS),
        (405, "Allow:\r\n", PASS, PASS),
        (405, "", PASS, FAIL),
        (404, "", WARN, NOT_RUN),
        (200, "", WARN, NOT_RUN),
        (500, "", NOT_RUN, NOT_RUN),
    ],
)
@pytest.mark.parametrize("name", ["GET", "PUT", "HEAD"])
def test_methods(name: str, status: int, extra: str, method: Outcome, allow: Outcome) -> None:
    """RFC 9110, section 15.5.6."""
    contract, operation = contract_of(CHAT)
    told = exchange(operation, b"", http(status, b"", extra=extra), method=name)
    found = outcomes(contract, operation, told)

    assert (found["request.method"], found["request.allow"]) == (method, allow)


@pytest.mark.parametrize(
    ("name", "status", "extra", "expected"),
    [
        ("PUT", 405, "Allow: POST\r\n", PASS),
        (
            "PUT",
            405,
            "Allow: GET, POST, HEAD, OPTIONS\r\n",
            PASS,
        ),  # what it knows beyond the document is its own affair
        ("PUT", 405, "Allow: post\r\n", PASS),
        ("PUT", 405, "Allow: GET\r\nAllow: POST\r\n", PASS),  # RFC 9110, 5.3: several lines are one list
        ("PUT", 405, "Allow: GET\r\n", FAIL),  # a router that knows another table
        ("PUT", 405, "Allow:\r\n", FAIL),  # it says that no method is allowed, and takes POST
        ("PUT", 405, "Allow: POST, PUT\r\n", FAIL),
        ("PUT", 405, "Allow: POSTS\r\n", FAIL),
        ("HEAD", 405, "Allow: POST\r\n", PASS),
        ("PUT", 405, "", NOT_RUN),  # request.allow
        ("PUT", 404, "Allow: GET\r\n", NOT_RUN),
        ("OPTIONS", 204, "Allow: OPTIONS, POST\r\n", PASS),
        ("OPTIONS", 200, "Allow: OPTIONS, GET\r\n", FAIL),
        ("OPTIONS", 204, "Access-Control-Allow-Methods: GET\r\n", NOT_RUN),  # another list, for browsers
        ("OPTIONS", 405, "Allow: POST\r\n", PASS),
        ("OPTIONS", 401, "Allow: GET\r\n", NOT_RUN),
        ("POST", 405, "Allow: GET\r\n", NOT_RUN),  # that POST is refused is judged elsewhere
    ],
)
def test_allow_lists_the_method(name: str, status: int, extra: str, expected: Outcome) -> None:
    """RFC 9110, sections 15.5.6 and 10.2.1: the methods that the resource supports, and so not the refused one."""
    contract, operation = contract_of(CHAT)
    told = exchange(operation, b"", http(status, b"", extra=extra), method=name)

    assert outcomes(contract, operation, told)["request.allow-methods"] is expected


def test_the_model_is_that_of_the_target() -> None:
    """The hand-made requests above name the model that the cases take for right."""
    assert _body(CHAT)["model"] == MODEL
