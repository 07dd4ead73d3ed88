"""`error.*`: each check passes on what right servers say and departs on what wrong ones say."""

import json
from typing import Any

import pytest
from mutations import findings_of, verdict_of
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
from streamgauge.conformance.internals import internals_in
from streamgauge.outcomes import Outcome
from streamgauge.reference.faults import FAULTS
from streamgauge.wire.exchange import Credential, Ending, Exchange

CHAT, OPEN, DEEP = "seekr-chat", "openai-chat", "deepinfra-completions"


def _error(**members: Any) -> dict[str, Any]:
    return {"error": {"message": "`n` must be an integer.", "type": "invalid_request_error", **members}}


def _refusal(spec: str, body: Any, *, status: int = 400, sent: Any = None, **how: Any) -> Exchange:
    operation = contract_of(spec)[1]
    wire = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = request(operation, n="two") if sent is None else sent
    return exchange(operation, asked, http(status, wire, **how), probe=f"{status}-{len(wire)}")


def _found(spec: str, check: str, *exchanges: Exchange) -> Outcome:
    contract, operation = contract_of(spec)
    return outcomes(contract, operation, *exchanges)[check]


PASS, FAIL, WARN, NOT_RUN = Outcome.PASS, Outcome.FAIL, Outcome.WARN, Outcome.NOT_RUN


@pytest.mark.parametrize(
    ("spec", "check", "body", "status", "expected"),
    [
        # A documented refusal without a body is a matter of its shape; any other one of RFC 9110, section 15.5.
        (CHAT, "error.body", b"", 404, WARN),
        (CHAT, "error.body", b"", 400, NOT_RUN),
        (CHAT, "error.envelope", b"", 400, FAIL),
        (CHAT, "error.envelope-undocumented", b"", 404, NOT_RUN),
        (DEEP, "error.body", b"", 404, WARN),
        (DEEP, "error.body", b"no", 404, PASS),
        # vLLM: numbers as codes and null for what is missing; OpenAI: words.
        (OPEN, "error.none-strings", _error(code=400, param=None), 400, PASS),
        (OPEN, "error.none-strings", _error(code="none_found", param="nullable"), 400, PASS),
        (OPEN, "error.none-strings", _error(param="None"), 400, WARN),
        (OPEN, "error.none-strings", _error(code="null"), 400, WARN),
        (OPEN, "error.none-strings", {"error": {"message": " "}}, 400, WARN),
        (OPEN, "error.none-strings", {"error": "None"}, 400, NOT_RUN),
        # The document says what `param` is; where it says nothing, clients do.
        (OPEN, "error.member-types", _error(param={"n": "two"}), 400, NOT_RUN),
        (OPEN, "error.member-types", _error(param={"n": "two"}), 405, WARN),
        (OPEN, "error.member-types", _error(param=None), 405, PASS),
        (DEEP, "error.member-types", _error(param=["n"]), 400, WARN),
        (DEEP, "error.member-types", {"error": {"message": "no", "type": 3}}, 404, WARN),
        (DEEP, "error.member-types", {"error": {"message": "no"}}, 404, NOT_RUN),
        # What `param` may say of `n`, the one wrong property.
        (OPEN, "error.param", _error(param="n"), 400, PASS),
        (OPEN, "error.param", _error(param="body.n"), 400, PASS),
        (OPEN, "error.param", _error(param="body"), 400, PASS),
        (OPEN, "error.param", _error(param="n; model"), 400, PASS),
        (OPEN, "error.param", _error(param=None), 400, NOT_RUN),
        (OPEN, "error.param", _error(param="model"), 400, WARN),
        (OPEN, "error.param", _error(param="messages.0"), 400, WARN),
        # Numbers that are no status are the vendor's own.
        (OPEN, "error.code", _error(code=40001), 400, PASS),
        (OPEN, "error.code", _error(code=404), 400, WARN),
        # 405 and 415 are about method and media type: `error.status-fits`.
        (CHAT, "error.status-fits", _error(code=422), 422, PASS),
        (CHAT, "error.status-fits", _error(code=405), 405, WARN),
        (CHAT, "error.status-fits", _error(code=415), 415, PASS),  # nobody knows what the body was called
    ],
)
def test_one_refusal(spec: str, check: str, body: Any, status: int, expected: Outcome) -> None:
    """A request with `n: "two"` is refused: what each check says of the refusal's status and body."""
    assert _found(spec, check, _refusal(spec, body, status=status)) is expected


def test_param_is_not_judged_where_two_properties_are_wrong_or_another_may_be_refused() -> None:
    """Nobody can say which one the server found first."""
    operation = contract_of(OPEN)[1]
    for sent in (
        request(operation, n="two", stop=5),
        request(operation, n="two", top_p=0.5),  # valid, but a server may refuse it
        request(operation, n="two", model="other"),
        b'{"n": ',
    ):
        assert _found(OPEN, "error.param", _refusal(OPEN, _error(param="stop"), sent=sent)) is NOT_RUN
    limit = request(operation, max_tokens="many")
    assert _found(OPEN, "error.param", _refusal(OPEN, _error(param="max_completion_tokens"), sent=limit)) is PASS


def test_a_broken_transfer_says_nothing_of_the_body() -> None:
    """What the connection took away, the server may have meant to send."""
    operation = contract_of(CHAT)[1]
    wire = http(400, json.dumps(_error(code=400)).encode())[:-10]
    cut = exchange(operation, b"{", wire, ending=Ending.RESET)
    contract, _ = contract_of(CHAT)
    found = outcomes(contract, operation, cut)

    assert {found[id_] for id_ in ("error.envelope", "error.media-type", "error.one-envelope")} == {NOT_RUN}


ALIKE: dict[str, tuple[str, list[tuple[int, Any]], Outcome]] = {
    "all as objects": (CHAT, [(400, _error(code=400)), (401, _error(code=401)), (422, _error(code=422))], PASS),
    "all as texts": (CHAT, [(400, {"error": "no"}), (422, {"error": "no"})], PASS),
    "one as a text, both documented": (CHAT, [(400, _error(code=400)), (422, {"error": "no"})], WARN),
    "one undocumented and wrong: judged elsewhere": (CHAT, [(400, _error(code=400)), (404, {"detail": "no"})], PASS),
    "FastAPI's two forms of one member": (DEEP, [(404, {"detail": "no"}), (401, {"detail": [{"msg": "no"}]})], PASS),
    "what is documented differs from the rest": (
        DEEP,
        [(422, {"detail": [{"loc": ["body"], "msg": "no", "type": "t"}]}), (404, _error()), (401, _error())],
        PASS,
    ),
    "two forms, neither documented": (DEEP, [(404, {"detail": "no"}), (401, _error())], WARN),
    "a page is no form": (DEEP, [(404, b"<html>"), (401, _error())], PASS),
    "a limited rate is answered by a gateway": (CHAT, [(429, {"error": "slow down"}), (400, _error(code=400))], PASS),
}


@pytest.mark.parametrize("name", ALIKE)
def test_errors_of_one_endpoint(name: str) -> None:
    """`error.one-envelope` compares only forms that are right for themselves."""
    spec, refused, expected = ALIKE[name]

    assert _found(spec, "error.one-envelope", *(_refusal(spec, body, status=status) for status, body in refused)) is (
        expected
    )


INNOCENT = [
    "The model `x` does not exist.",
    "Expecting value: line 1 column 1 (char 0)",
    "1 validation error for Request\nn\n  Input should be a valid integer [type=int_parsing, input_value='two']\n"
    "    For further information visit https://errors.pydantic.dev/2.11/v/int_parsing",
    "See https://platform.openai.com/docs/guides/error-codes at 10:30:15.",
    "[json.exception.parse_error.101] parse error at line 1, column 1: attempting to parse an empty input",
    "This model's maximum context length is 4096 tokens (at 1:2).",
    "POST /v1/chat/completions is right; /v1/completions.json is not.",
    "See https://github.com/owner/engine/blob/main/engine/entrypoints/api.py for what is supported.",
    "request id 1.2.3.4:80/abc, try again in 10.5 s",
    "your address 10.1.2.3 sent 127 requests; version 10.0.0.1 is not supported",
]
GUILTY = [
    'Traceback (most recent call last):\n  File "api.py"',
    'File "/srv/app.py", line 3, in create',
    "TypeError: x\n    at Object.parse (/srv/app/index.js:10:5)",
    "java.lang.NullPointerException\n\tat com.example.Api.handle(Api.java:42)",
    "goroutine 17 [running]:",
    "thread 'main' panicked at src/main.rs:4:5",
    "assertion failed at /build/src/batch.cpp:77",
    "C:\\\\srv\\\\engine\\\\api.py",
    "ImportError: cannot load /usr/lib/python3/dist-packages/x.so",
    "Connection refused: http://localhost:8000/generate",
    "dial tcp 10.42.0.7:8000: connect: connection refused",
    "HTTPConnectionPool(host='192.168.1.4', port=8000): Max retries exceeded with url: /generate",
    "connect ECONNREFUSED 127.0.0.1:11434",
    "at Engine.Api.Handle() in /src/Engine/Api.cs:line 42",
    "upstream https://engine-3.models.svc:443 did not answer",
    "http://172.20.1.4/v1",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_right_servers_say_betrays_nothing(text: str) -> None:
    """Messages of real servers, among them some with line numbers, addresses for the caller, and paths of the API."""
    assert internals_in(text) == []


@pytest.mark.parametrize("text", GUILTY)
def test_what_betrays_the_inside(text: str) -> None:
    """Stack traces of several languages, source files, addresses that no caller can reach; also within JSON."""
    assert internals_in(text)
    assert _found(CHAT, "error.no-internals", _refusal(CHAT, {"error": {"message": text}})) is WARN


def test_a_page_is_judged_by_what_it_shows() -> None:
    """A proxy's page loads its scripts from somewhere; a framework's own page shows a trace."""
    page = b'<html><script src="/cdn-cgi/x/main.js"></script><script>import("/a/b.js")</script><h1>Error</h1></html>'
    debug = b"<html><pre>Traceback (most recent call last):\n  File &quot;api.py&quot;</pre></html>"

    assert _found(CHAT, "error.no-internals", _refusal(CHAT, page, media_type="text/html")) is PASS
    assert _found(CHAT, "error.no-internals", _refusal(CHAT, debug, media_type="text/html")) is WARN


def test_what_the_request_says_is_only_quoted() -> None:
    """A server that quotes the caller's own path or address shows nothing of itself; its own address the caller knows."""
    operation = contract_of(CHAT)[1]
    sent = request(operation, n="see /home/me/tools/run.py and http://localhost:9/x")
    quoted = _refusal(CHAT, {"error": {"message": "bad: /home/me/tools/run.py, http://localhost:9/x"}}, sent=sent)
    own = _refusal(CHAT, {"error": {"message": "http://127.0.0.1/ takes POST"}})

    assert _found(CHAT, "error.no-internals", quoted, own) is PASS


@pytest.mark.parametrize(
    ("extra", "form", "shape"),
    [
        ("Retry-After: 3\r\n", PASS, PASS),
        ("Retry-After: Thu, 01 Jan 2026 00:00:09 GMT\r\n", PASS, PASS),
        ("Retry-After: Thursday, 01-Jan-26 00:00:09 GMT\r\n", PASS, PASS),
        ("Retry-After: Thu Jan  1 00:00:09 2026\r\n", PASS, PASS),
        ("Retry-After: Thu, 01 Jan 2026 02:00:09 +0200\r\n", FAIL, PASS),
        ("Retry-After: Thu, 01 Jan 2026 00:00:09\r\n", FAIL, PASS),
        ("Retry-After: 2026-01-01T00:00:09Z\r\n", FAIL, PASS),
        ("Retry-After: 1s\r\n", FAIL, PASS),
        ("Retry-After: soon\r\n", FAIL, PASS),
        ("Retry-After: -1\r\n", FAIL, PASS),
        ("Retry-After: 1.5\r\n", FAIL, PASS),
        ("", Outcome.INCONCLUSIVE, WARN),
    ],
)
def test_limited_rate(extra: str, form: Outcome, shape: Outcome) -> None:
    """RFC 9110, section 10.2.3: seconds or a date. A right 429 passes all of its checks."""
    limited = _refusal(CHAT, _error(code=429), status=429, extra=extra)

    assert _found(CHAT, "error.retry-after-form", limited) is form
    assert _found(CHAT, "error.retry-after", limited) is shape
    assert _found(CHAT, "error.limit-envelope", limited) is PASS


LIMITED: dict[str, tuple[bytes, dict[str, Any], Outcome]] = {
    "a page": (http(429, b"<html>slow down</html>"), {}, FAIL),
    "nothing": (http(429, b""), {}, FAIL),
    "nothing to GET": (http(429, b""), {"method": "GET"}, Outcome.INCONCLUSIVE),
    "nothing to HEAD": (http(429, b""), {"method": "HEAD"}, Outcome.INCONCLUSIVE),
    "half of it": (
        http(429, json.dumps(_error(code=429)).encode())[:-10],
        {"ending": Ending.CLOSED},
        Outcome.INCONCLUSIVE,
    ),
    "deeper than our reader goes": (http(429, b"[" * 5000 + b"]" * 5000), {}, Outcome.INCONCLUSIVE),
}


@pytest.mark.parametrize("name", LIMITED)
def test_body_of_a_limited_rate(name: str) -> None:
    """The document speaks of its own method, and of bodies that arrived: a gateway's 429 to HEAD has none at all."""
    contract, operation = contract_of(CHAT)
    wire, how, expected = LIMITED[name]
    each = exchange(operation, b"" if "method" in how else request(operation), wire, **how)

    assert outcomes(contract, operation, each)["error.limit-envelope"] is expected


def test_other_methods_are_not_judged_by_the_document() -> None:
    """The document lists what its own method may answer: 405 to our GET is no departure, even where no profile allows it."""
    contract, operation = contract_of(CHAT)
    get = exchange(operation, b"", http(418, b"", extra="Allow: POST\r\n"), method="GET")
    post = exchange(operation, request(operation), http(418, b""), credential=Credential.WRONG)

    assert outcomes(contract, operation, get)["error.status-documented"] is PASS
    assert outcomes(contract, operation, post)["error.status-documented"] is FAIL


ERROR = json.dumps(_error(code=503))
STREAMS: dict[str, tuple[list[Any], bool, dict[str, Outcome]]] = {
    "an error, then [DONE]": ([ERROR], True, {"error.not-in-stream": FAIL, "error.stream-last": PASS}),
    "an error, then the end": ([ERROR], False, {"error.not-in-stream": FAIL, "error.stream-last": PASS}),
    "a second error": ([ERROR, ERROR], True, {"error.stream-last": WARN}),
    "a flat error": (
        ['{"object": "error", "message": "no"}'],
        True,
        {"error.not-in-stream": FAIL, "error.stream-shape": FAIL},
    ),
    "a null error is none": ([], True, {"error.not-in-stream": PASS, "error.stream-last": NOT_RUN}),
    "a text": (['{"error": "no"}'], True, {"error.not-in-stream": FAIL, "error.stream-shape": PASS}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_errors_within_a_stream(name: str) -> None:
    """Behind half of an answer, keep-alives between: found, judged by its shape and by what follows."""
    errors, done, expected = STREAMS[name]
    contract, operation = contract_of(CHAT)
    parts = [{**payload, "error": None} for payload in chunks(operation)]
    body = b": keep-alive\n\n" + sse([*parts[:2], *errors, *([] if errors else parts[2:])], done=done)
    found = outcomes(contract, operation, exchange(operation, stream_request(operation), chunked(body)))

    assert {id_: found[id_] for id_ in expected} == expected


def test_a_null_error_in_an_answer_is_none() -> None:
    """Some servers send `error: null` along."""
    contract, operation = contract_of(CHAT)
    answer = exchange(
        operation, request(operation), http(200, json.dumps({**whole_answer(operation), "error": None}).encode())
    )

    assert outcomes(contract, operation, answer)["error.not-in-200"] is PASS


@pytest.mark.parametrize(
    "fault", ["error.429-no-retry-after", "error.429-html", "error.429-empty", "error.retry-after-words"]
)
def test_a_run_outlives_a_limited_rate(fault: str) -> None:
    """A 429 is sent again: nothing stays without a verdict, and the finding about the 429 itself is there."""
    found = findings_of("seekr-chat", fault)

    assert not [finding.check for finding in found if finding.outcome is Outcome.INCONCLUSIVE]
    assert verdict_of("seekr-chat", fault)[0] == list(FAULTS[fault].caught_by)
