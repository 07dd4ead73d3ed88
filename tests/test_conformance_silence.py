"""What nobody promised, and what nobody knows, is not demanded: documents, requests and captures that could mislead a check."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from transcripts import (
    MODEL,
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
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.contract.contract import JSON, SSE, Contract, Operation, load_contracts
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Evidence, Exchange

CONTRACT, CHAT = contract_of("seekr-chat")
TEXT_CONTRACT, TEXT = contract_of("openai-completions")
ERROR = {"error": {"message": "no", "type": "t", "code": None}}

SHAPE = {"type": "object", "required": ["error"], "properties": {"error": {"type": "object", "required": ["message"]}}}
DETAIL = {"type": "object", "required": ["detail"], "properties": {"detail": {"type": "array"}}}


def described(schema: Any) -> dict[str, Any]:
    """An answer in JSON of this schema."""
    return {"description": "", "content": {JSON: {"schema": schema}}}


def own(path: Path, responses: Any = None, *properties: str) -> tuple[Contract, Operation]:
    """A document whose requests have `model`, `messages`, `stream`, these properties, and any others."""
    names = ("model", "messages", "stream", *properties)
    answer = {"description": "", "content": {JSON: {"schema": {"type": "object", "required": ["id"]}}, SSE: {}}}
    operation = {
        "requestBody": {"content": {JSON: {"schema": {"type": "object", "properties": {name: {} for name in names}}}}},
        "responses": {"200": answer, **(responses or {})},
    }
    file = path / "own.json"
    file.write_text(json.dumps({"openapi": "3.1.0", "paths": {"/chat/completions": {"post": operation}}}))
    (contract,) = load_contracts([str(file)])
    return contract, contract.operations[0]


# -- documents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "status", "trips"),
    [
        ("default", 500, True),
        ("default", 503, True),
        ("default", 418, False),
        ("5XX", 500, False),
        ("500", 500, False),
        ("4XX", 500, True),
    ],
)
def test_default_is_no_licence_to_fail(tmp_path: Path, key: str, status: int, trips: bool) -> None:
    """DESIGN 10: "any undocumented 5xx breaks a MUST"; `default` says only what an error looks like."""
    contract, operation = own(tmp_path, {key: described(SHAPE)})
    answer = exchange(operation, request(operation, max_tokens=...), http(status, json.dumps(ERROR).encode()))
    found = departures(contract, operation, answer)

    assert ("error.no-5xx" in found) == trips
    assert "error.status-documented" not in found


def test_default_describes_the_body_of_a_failure(tmp_path: Path) -> None:
    """What the 500 looks like is judged by `default` all the same (OpenAPI 3.1.1, 4.8.16.1)."""
    contract, operation = own(tmp_path, {"default": described(SHAPE)})
    found = departures(contract, operation, exchange(operation, request(operation), http(500, b'{"detail": "no"}')))

    assert {"error.no-5xx", "error.envelope"} <= found


@pytest.mark.parametrize(("method", "body"), [("HEAD", b""), ("GET", b'{"detail": "Method Not Allowed"}')])
def test_documented_errors_are_those_of_the_method(tmp_path: Path, method: str, body: bytes) -> None:
    """An operation's answers are of its own method; one to HEAD has no body at all (RFC 9110, 9.3.2)."""
    contract, operation = own(tmp_path, {"default": described(SHAPE)})
    answer = exchange(operation, b"", http(405, body, extra="Allow: POST\r\n"), method=method)

    assert not {"error.envelope", "error.media-type"} & departures(contract, operation, answer)


@pytest.mark.parametrize(
    ("responses", "payload", "expected"),
    [
        ({"400": SHAPE, "422": DETAIL}, ERROR, Outcome.PASS),
        ({"400": DETAIL, "429": SHAPE}, ERROR, Outcome.PASS),
        ({"400": DETAIL}, ERROR, Outcome.NOT_RUN),
        ({"default": SHAPE}, ERROR, Outcome.PASS),
        ({"default": SHAPE}, {"error": "no"}, Outcome.FAIL),
        ({"4XX": SHAPE, "422": DETAIL}, {"error": {}}, Outcome.FAIL),
    ],
)
def test_stream_error_has_one_of_the_documented_shapes(
    tmp_path: Path, responses: dict[str, Any], payload: Any, expected: Outcome
) -> None:
    """No status tells which shape is meant; that of a refused request, which has no `error`, is none for a stream."""
    contract, operation = own(tmp_path, {key: described(schema) for key, schema in responses.items()})
    answer = exchange(operation, stream_request(operation), chunked(sse([payload])))

    assert outcomes(contract, operation, answer)["error.stream-shape"] is expected


@pytest.mark.parametrize(
    ("name", "changes", "check"),
    [
        ("n", {"n": 2}, "response.choices"),
        ("max_tokens", {"max_tokens": 2, "n": ...}, "usage.limit"),
        ("logprobs", {"logprobs": True}, "logprobs.given"),
    ],
)
def test_undocumented_property_of_a_whole_answer_promises_nothing(
    tmp_path: Path, name: str, changes: dict[str, Any], check: str
) -> None:
    """Sent beyond the document, a property may be ignored; the same within the document has to be honoured."""
    for properties, trips in (((), False), ((name,), True)):
        contract, operation = own(tmp_path, None, *properties)
        answer = exchange(
            operation, request(operation, **changes), http(200, json.dumps(whole_answer(operation)).encode())
        )
        assert (check in departures(contract, operation, answer)) == trips


@pytest.mark.parametrize(
    ("name", "changes", "check"),
    [
        ("n", {"n": 2, "stream_options": ...}, "chunk.choice-indexes"),
        ("stream_options", {}, "usage.stream-requested"),
    ],
)
def test_undocumented_property_of_a_stream_promises_nothing(
    tmp_path: Path, name: str, changes: dict[str, Any], check: str
) -> None:
    """The same of a stream."""
    for properties, trips in (((), False), ((name,), True)):
        contract, operation = own(tmp_path, None, *properties)
        wire = chunked(sse(chunks(operation, with_usage=False)))
        answer = exchange(operation, stream_request(operation, **changes), wire)
        assert (check in departures(contract, operation, answer)) == trips


def test_two_documented_forms_of_errors_are_two_forms(tmp_path: Path) -> None:
    """FastAPI documents `detail` for 422 and leaves the other errors to their author: who keeps to both has no choice."""
    contract, operation = own(tmp_path, {"400": described(SHAPE), "422": described(DETAIL), "404": described(SHAPE)})
    malformed = exchange(operation, b"{", http(400, json.dumps(ERROR).encode()))
    wrong = exchange(operation, request(operation, model=3), http(422, b'{"detail": []}'))
    found = outcomes(contract, operation, malformed, wrong)

    assert found["error.one-envelope"] is found["error.envelope"] is Outcome.PASS


@pytest.mark.parametrize(
    ("method", "expected"), [("GET", Outcome.NOT_RUN), ("HEAD", Outcome.NOT_RUN), ("PUT", Outcome.WARN)]
)
def test_another_method_may_be_documented(tmp_path: Path, method: str, expected: Outcome) -> None:
    """OpenAI lists stored completions by GET on the path that POST creates them on."""
    own(tmp_path)
    document = json.loads((tmp_path / "own.json").read_text())
    document["paths"]["/chat/completions"]["get"] = {"responses": {"200": {"description": ""}}}
    (tmp_path / "own.json").write_text(json.dumps(document))
    (contract,) = load_contracts([str(tmp_path / "own.json")])
    operation = next(each for each in contract.operations if each.method == "POST")
    answer = exchange(operation, b"", http(200, b"{}"), method=method)

    assert outcomes(contract, operation, answer)["request.method"] is expected


def test_a_document_without_streams_says_nothing_of_their_statuses(tmp_path: Path) -> None:
    """There, a wrong request for a stream has two faults, and may be refused for either."""
    own(tmp_path)
    document = json.loads((tmp_path / "own.json").read_text())
    post = document["paths"]["/chat/completions"]["post"]
    del post["responses"]["200"]["content"][SSE]
    post["requestBody"]["content"][JSON]["schema"]["properties"]["messages"] = {"type": "array"}
    (tmp_path / "own.json").write_text(json.dumps(document))
    (contract,) = load_contracts([str(tmp_path / "own.json")])
    (operation,) = contract.operations
    refused = http(422, json.dumps(ERROR).encode())
    whole = exchange(operation, request(operation, messages=3), refused, probe="whole")
    stream = exchange(operation, request(operation, messages=3, stream=True), http(400, json.dumps(ERROR).encode()))

    assert outcomes(contract, operation, whole, stream)["request.stream-status"] is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("messages", [5, True, 1.5, "x", [5], {"a": 1}, None])
def test_document_may_leave_the_messages_open(tmp_path: Path, messages: Any) -> None:
    """A request that such a document allows may hold anything there: no check fails over it."""
    contract, operation = own(tmp_path)
    answer = http(200, json.dumps(whole_answer(operation)).encode())
    found = outcomes(contract, operation, exchange(operation, request(operation, messages=messages), answer))

    assert Outcome.ERROR not in found.values()


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SQL = {"type": "custom", "custom": {"name": "sql"}}


def calling(call: Any) -> bytes:
    """A whole answer that calls a tool."""
    answer = whole_answer(CHAT)
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}}
    return http(200, json.dumps({**answer, "choices": [{**choice, "finish_reason": "tool_calls"}]}).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("tools", value)
            for value in (5, "x", {"a": 1}, [5], [None], [{"function": 5}], [{"function": {"name": [5]}}])
        ),
        *(("tool_choice", value) for value in (5, {}, {"function": 5}, {"type": "function", "function": {}})),
        *(("structured_outputs", value) for value in (5, {"choice": 5}, {"grammar": 5}, {"json": {"properties": 5}})),
        *(("thinking_token_budget", value) for value in ("x", {}, 1.5, True)),
        *(("request_id", value) for value in (5, {}, [5])),
    ],
)
def test_document_may_leave_a_property_open(tmp_path: Path, name: str, value: Any) -> None:
    """Then a request may hold anything there: no check fails over it, nor blames the answer for it."""
    contract, operation = own(tmp_path, None, "tools", "tool_choice", "structured_outputs", name)
    found = outcomes(contract, operation, exchange(operation, request(operation, **{name: value}), calling(CALL)))

    assert Outcome.ERROR not in found.values()
    assert Outcome.IGNORED not in found.values()


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "tool_calls": [{"id": [1]}]}],
        [{"role": "assistant", "tool_calls": [{"id": "c1", "function": 5}]}],
        [{"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": 5}}]}],
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": 5}, {"role": "tool"}],
    ],
)
def test_calls_in_open_messages(tmp_path: Path, messages: Any) -> None:
    """What is no call is none that the server made."""
    contract, operation = own(tmp_path)
    sent = exchange(
        operation, request(operation, messages=messages, temperature=...), http(400, json.dumps(ERROR).encode())
    )
    first = exchange(operation, request(operation), calling(CALL), probe="first")
    found = outcomes(contract, operation, first, sent)

    assert Outcome.ERROR not in found.values()
    assert found["calls.round-trip"] is Outcome.NOT_RUN


@pytest.mark.parametrize(
    ("tools", "choice", "call"),
    [
        ([SQL], "required", {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}),
        ([SQL], {"type": "custom", "custom": {"name": "sql"}}, {"id": "c1", **SQL}),
        (
            [{"type": "web_search"}, {"type": "function", "function": {"name": "f"}}],
            "auto",
            {**CALL, "function": {"name": "web_search", "arguments": "{}"}},
        ),
        ([{"type": "function", "function": {"name": "f"}}], {"type": "allowed_tools", "allowed_tools": {}}, CALL),
    ],
    ids=["custom", "custom, named", "the vendor's own", "allowed tools"],
)
def test_other_tools_than_functions(tmp_path: Path, tools: Any, choice: Any, call: Any) -> None:
    """OpenAI has custom tools and lists of allowed ones, vendors have tools of their own: what is called is theirs."""
    contract, operation = own(tmp_path, None, "tools", "tool_choice")
    sent = request(operation, tools=tools, tool_choice=choice, temperature=...)

    departed = departures(contract, operation, exchange(operation, sent, calling(call)))
    assert not {id_ for id_ in departed if id_.startswith("calls.")}


@pytest.mark.parametrize(("name", "check"), [("echo", "messages.echo"), ("request_id", "bookkeeping.request-id")])
def test_a_property_means_what_its_document_says(tmp_path: Path, name: str, check: str) -> None:
    """Together's `echo` tells the prompt beside the choices; a `request_id` may be for the vendor's own records."""
    contract, operation = own(tmp_path, None, name)

    assert outcomes(contract, operation)[check] is Outcome.NOT_APPLICABLE


# -- requests and answers ----------------------------------------------------------------------------------------------


def test_prompts_beside_messages_make_no_choices() -> None:
    """A chat has no `prompt`: one sent along is an extra property, not two prompts."""
    body = request(CHAT, prompt=["a", "b"])
    answer = exchange(CHAT, body, http(200, json.dumps(whole_answer(CHAT)).encode()))

    assert departures(CONTRACT, CHAT, answer) == set()


@pytest.mark.parametrize(("best_of", "completion", "trips"), [(3, 24, False), (3, 25, True), (None, 9, True)])
def test_all_candidates_are_counted(best_of: int | None, completion: int, trips: bool) -> None:
    """Of `best_of` candidates `n` are returned; the tokens of all of them are generated, and billed."""
    answer = whole_answer(TEXT) | {"usage": usage(completion=completion)}
    found = departures(
        TEXT_CONTRACT,
        TEXT,
        exchange(TEXT, request(TEXT, best_of=best_of), http(200, json.dumps(answer).encode())),
    )

    assert ("usage.limit" in found) == trips


@pytest.mark.parametrize(("indexes", "trips"), [((1, 0), False), ((0, 0), True), ((0, 2), True), ((0, 1, 2), True)])
def test_choices_may_come_in_any_order(indexes: tuple[int, ...], trips: bool) -> None:
    """The index tells a choice, not its place: no document orders the array."""
    answer = whole_answer(CHAT, len(indexes)) | {"usage": usage(completion=16)}
    for choice, index in zip(answer["choices"], indexes, strict=True):
        choice["index"] = index
    found = departures(CONTRACT, CHAT, exchange(CHAT, request(CHAT, n=2), http(200, json.dumps(answer).encode())))

    assert ("response.choices" in found) == trips


@pytest.mark.parametrize(
    ("rest", "trips"),
    [
        (b": bye\n", False),
        (b": bye", False),
        (b":\n:\n", False),
        (b"data: x\n", True),
        (b"x", True),
        (b": a\nid: 1\n", True),
    ],
)
def test_comment_at_the_end_is_no_unfinished_event(rest: bytes, trips: bool) -> None:
    """WHATWG HTML, 9.2.6: a comment is ignored; no blank line is missing behind it."""
    answer = exchange(CHAT, stream_request(CHAT), chunked(sse(chunks(CHAT)) + rest))

    found = departures(CONTRACT, CHAT, answer)

    assert "sse.blank-line" not in found
    assert ("sse.done-last" in found) == trips


def test_key_that_is_refused_now_and_then_fails_with_counts() -> None:
    """One 401 to the right key among others breaks `auth.accepted`, and the finding says of how many."""
    right = exchange(CHAT, request(CHAT), http(200, json.dumps(whole_answer(CHAT)).encode()), probe="right")
    refused = exchange(CHAT, request(CHAT), http(401, json.dumps({"error": {"message": "no", "code": 401}}).encode()))
    cases = cases_of([right, right, refused], CHAT, CONTRACT, target="t", model=MODEL)
    finding = judge(CHECKS["auth.accepted"], cases, CHAT, CONTRACT, "t")

    assert (finding.outcome, finding.counts) == (Outcome.FAIL, {Outcome.PASS: 2, Outcome.FAIL: 1})
    forbidden = exchange(CHAT, request(CHAT), http(403, json.dumps({"error": {"message": "no", "code": 403}}).encode()))
    assert outcomes(CONTRACT, CHAT, forbidden)["auth.accepted"] is Outcome.PASS


@pytest.mark.parametrize(
    ("given", "check", "expected"),
    [
        *((given, "logprobs.shape", Outcome.FAIL) for given in (1.5, True, "x", [[]], {"content": 1})),
        *((given, "logprobs.given", Outcome.IGNORED) for given in (0, [], {}, {"content": []})),
    ],
)
def test_logprobs_of_any_type_are_judged(given: Any, check: str, expected: Outcome) -> None:
    """What is no object has no arrays, and what is empty is none."""
    answer = whole_answer(CHAT)
    answer["choices"][0]["logprobs"] = given
    wire = http(200, json.dumps(answer).encode())

    assert outcomes(CONTRACT, CHAT, exchange(CHAT, request(CHAT, logprobs=True), wire))[check] is expected


# -- captures ----------------------------------------------------------------------------------------------------------


def captured(original: Exchange) -> Exchange:
    """The exchange as somebody else kept it."""
    unknown = dataclasses.replace(original.request, credential=Credential.UNKNOWN)
    return dataclasses.replace(
        original, request=unknown, holds=original.holds - {Evidence.TIMES, Evidence.CREDENTIAL, Evidence.CLOCK}
    )


@pytest.mark.parametrize(
    ("answered_by", "expected"), [("second", Outcome.NOT_RUN), ("second-2026", Outcome.NOT_RUN), (MODEL, Outcome.FAIL)]
)
@pytest.mark.parametrize("stream", [False, True])
def test_second_model_of_a_capture_may_exist(answered_by: str, expected: Outcome, stream: bool) -> None:
    """Two models in one trace are no fault; the answer of the one to a request for the other is."""
    if stream:
        wire = chunked(sse([payload | {"model": answered_by} for payload in chunks(CHAT)]))
        ours = exchange(CHAT, stream_request(CHAT, model="second"), wire)
    else:
        wire = http(200, json.dumps(whole_answer(CHAT) | {"model": answered_by}).encode())
        ours = exchange(CHAT, request(CHAT, model="second"), wire)

    assert outcomes(CONTRACT, CHAT, ours)["request.model-unknown"] is Outcome.FAIL
    assert outcomes(CONTRACT, CHAT, captured(ours))["request.model-unknown"] is expected


@pytest.mark.parametrize(("status", "expected"), [(400, Outcome.NOT_RUN), (422, Outcome.PASS)])
def test_refusal_of_a_second_model_may_have_another_reason(status: int, expected: Outcome) -> None:
    """A captured 400 to a request for another model may be about anything; a status named for it is the expected one."""
    body = json.dumps({"error": {"message": "too long", "type": "t", "code": status}}).encode()
    each = captured(exchange(CHAT, request(CHAT, model="second"), http(status, body)))

    assert outcomes(CONTRACT, CHAT, each)["request.model-unknown-status"] is expected


@pytest.mark.parametrize("n", [2**63 - 1, 10**30])
def test_any_number_of_choices_is_compared_at_once(n: int) -> None:
    """A request may ask for more choices than memory holds: generated ones do, and servers have taken them."""
    for body in (request(CHAT, n=n), stream_request(CHAT, n=n)):
        whole = http(200, json.dumps(whole_answer(CHAT)).encode())
        payloads = [json.dumps(payload).replace('"index": 0', '"index": 0.5') for payload in chunks(CHAT)]
        answer = exchange(CHAT, body, chunked(sse(payloads)) if body.get("stream") else whole)
        found = outcomes(CONTRACT, CHAT, answer)
        assert Outcome.ERROR not in found.values()
        assert found["chunk.choice-indexes" if body.get("stream") else "usage.sum"] in (Outcome.FAIL, Outcome.PASS)
