"""The two documents of the OpenAI-compatible dialect: what they take for right and for wrong, and on whose account."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from reference_responder import CHAT as SEEKR_CHAT
from reference_responder import DEEP, MISSING, ask
from reference_responder import TEXT as SEEKR_TEXT

from streamgauge import catalog
from streamgauge.conformance.probes.generated import generated
from streamgauge.contract.contract import JSON, SSE, Operation, load_contracts

CHAT, TEXT = "openai-chat", "openai-completions"
OPERATIONS: dict[str, Operation] = {name: load_contracts([name])[0].operations[0] for name in (CHAT, TEXT)}
RAW: dict[str, Any] = {name: yaml.safe_load(catalog.document_text(name)) for name in OPERATIONS}

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ENTRY = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}
ARRAYS = {"tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Hi": -0.5}], "text_offset": [0]}


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    """The same without one member."""
    return {key: member for key, member in value.items() if key != name}


def changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The same with members set, or taken out where the new value is MISSING."""
    return {key: member for key, member in {**value, **changes}.items() if member is not MISSING}


def answer(**choice: Any) -> dict[str, Any]:
    """A whole chat answer with one choice, changed."""
    message = {"role": "assistant", "content": "Hi"}
    made = changed({"index": 0, "message": message, "finish_reason": "stop"}, choice)
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [made], "usage": USAGE}


def says(**message: Any) -> dict[str, Any]:
    """A whole chat answer whose message is changed."""
    return answer(message=changed({"role": "assistant", "content": "Hi"}, message))


def piece(**delta: Any) -> dict[str, Any]:
    """A chat chunk with this delta."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    return {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def ending(**choice: Any) -> dict[str, Any]:
    """A chat chunk whose choice is changed."""
    return piece() | {"choices": [changed({"index": 0, "delta": {}, "finish_reason": None}, choice)]}


def text(**choice: Any) -> dict[str, Any]:
    """A whole text completion with one choice, changed."""
    made = changed({"index": 0, "text": "Hi", "logprobs": None, "finish_reason": "length"}, choice)
    return {"id": "a", "object": "text_completion", "created": 1, "model": "m", "choices": [made], "usage": USAGE}


def text_piece(**choice: Any) -> dict[str, Any]:
    """A chunk of a text completion with one choice, changed."""
    return without(text(**{"finish_reason": None, **choice}), "usage")


Row = tuple[str, Any, str | None]
"""Document, the payload, and where it is wrong; None when it is right."""

ANSWERS: dict[str, Row] = {
    "openai": (
        CHAT,
        says(refusal=None, annotations=[]) | {"service_tier": "default", "system_fingerprint": None},
        None,
    ),
    "vllm-extra-members": (
        CHAT,
        says(refusal=None, audio=None, function_call=None, reasoning=None) | {"prompt_logprobs": None, "metrics": None},
        None,
    ),
    "llama.cpp-timings": (CHAT, answer() | {"timings": {"cache_n": 15}}, None),
    "sglang-tool-calls-null": (CHAT, says(reasoning_content=None, tool_calls=None), None),
    "F9-tool-calls-empty": (CHAT, says(tool_calls=[]), None),
    "tgi-no-content-beside-calls": (CHAT, says(content=MISSING, tool_calls=[CALL]), None),
    "content-null-beside-calls": (CHAT, says(content=None, tool_calls=[CALL]), None),
    "deepseek-reasoning-content": (CHAT, says(reasoning_content="so"), None),
    "usage-details-null": (CHAT, answer() | {"usage": USAGE | {"prompt_tokens_details": None}}, None),
    "logprobs": (CHAT, answer(logprobs={"content": [ENTRY]}), None),
    "tgi-logprobs-without-bytes": (CHAT, answer(logprobs={"content": [without(ENTRY, "bytes")]}), None),
    "J32-no-id": (CHAT, without(answer(), "id"), ""),
    "async-openai-no-object": (CHAT, without(answer(), "object"), ""),
    "object-of-a-chunk": (CHAT, answer() | {"object": "chat.completion.chunk"}, "/object"),
    "C8-milliseconds": (CHAT, answer() | {"created": 1_795_956_698_123}, "/created"),
    "C9-created-with-fraction": (CHAT, answer() | {"created": 1744857525.25}, "/created"),
    "C6-model-null": (CHAT, answer() | {"model": None}, "/model"),
    "J19-no-choices": (CHAT, answer() | {"choices": []}, "/choices"),
    "J18-no-choices-member": (CHAT, without(answer(), "choices"), ""),
    "C12-usage-null": (CHAT, answer() | {"usage": None}, "/usage"),
    "smolagents-1401-no-usage": (CHAT, without(answer(), "usage"), ""),
    "E-usage-without-total": (CHAT, answer() | {"usage": without(USAGE, "total_tokens")}, "/usage"),
    "E-negative-count": (CHAT, answer() | {"usage": USAGE | {"prompt_tokens": -1}}, "/usage/prompt_tokens"),
    "C14-no-index": (CHAT, answer(index=MISSING), "/choices/0"),
    "D10-index-text": (CHAT, answer(index="0"), "/choices/0/index"),
    "D28-no-finish-reason": (CHAT, answer(finish_reason=MISSING), "/choices/0"),
    "dotnet-finish-reason-null": (CHAT, answer(finish_reason=None), "/choices/0/finish_reason"),
    "dotnet-finish-reason-eos": (CHAT, answer(finish_reason="eos"), "/choices/0/finish_reason"),
    "A21-finish-reason-error": (CHAT, answer(finish_reason="error"), "/choices/0/finish_reason"),
    "no-message": (CHAT, answer(message=MISSING), "/choices/0"),
    "role-missing": (CHAT, says(role=MISSING), "/choices/0/message"),
    "ai-sdk-role-other": (CHAT, says(role="model"), "/choices/0/message/role"),
    "content-parts": (CHAT, says(content=[{"type": "text", "text": "Hi"}]), "/choices/0/message/content"),
    "rig-1408-arguments-object": (
        CHAT,
        says(tool_calls=[CALL | {"function": {"name": "f", "arguments": {}}}]),
        "/choices/0/message/tool_calls/0/function/arguments",
    ),
    "F18-call-without-type": (
        CHAT,
        says(tool_calls=[without(CALL, "type")]),
        "/choices/0/message/tool_calls/0",
    ),
    "F-call-without-id": (CHAT, says(tool_calls=[without(CALL, "id")]), "/choices/0/message/tool_calls/0"),
    "G2-logprobs-of-completions": (CHAT, answer(logprobs=ARRAYS), "/choices/0/logprobs"),
    "G1-no-top-logprobs": (
        CHAT,
        answer(logprobs={"content": [without(ENTRY, "top_logprobs")]}),
        "/choices/0/logprobs/content/0",
    ),
    "text-completion": (TEXT, text(), None),
    "text-logprobs": (TEXT, text(logprobs=ARRAYS), None),
    "text-logprobs-zero": (TEXT, text(logprobs=ARRAYS | {"top_logprobs": None}), None),
    "M4-first-logprob-null": (
        TEXT,
        text(logprobs=ARRAYS | {"token_logprobs": [None], "top_logprobs": [None]}),
        None,
    ),
    "ollama-no-logprobs": (TEXT, text(logprobs=MISSING), None),
    "vllm-stop-reason": (TEXT, text(stop_reason=2, token_ids=None, prompt_logprobs=None), None),
    "llama.cpp-logprobs-of-chat": (TEXT, text(logprobs={"content": [ENTRY]}), "/choices/0/logprobs"),
    "M16-finish-reason-empty": (TEXT, text(finish_reason=""), "/choices/0/finish_reason"),
    "text-finish-reason-null": (TEXT, text(finish_reason=None), "/choices/0/finish_reason"),
    "text-finish-reason-of-chat": (TEXT, text(finish_reason="tool_calls"), "/choices/0/finish_reason"),
    "text-null": (TEXT, text(text=None), "/choices/0/text"),
    "text-object-of-chat": (TEXT, text() | {"object": "chat.completion"}, "/object"),
    "text-milliseconds": (TEXT, text() | {"created": 1_795_956_698_123}, "/created"),
    "text-no-choices": (TEXT, text() | {"choices": []}, "/choices"),
    "text-no-usage": (TEXT, without(text(), "usage"), ""),
    "text-message": (TEXT, text(text=MISSING, message={"role": "assistant", "content": "Hi"}), "/choices/0"),
}

CHUNKS: dict[str, Row] = {
    "role-chunk": (CHAT, piece(role="assistant", content=""), None),
    "llama.cpp-content-null": (CHAT, piece(role="assistant", content=None), None),
    "text-chunk": (CHAT, piece(content="Hi") | {"usage": None}, None),
    "C1-role-null": (CHAT, piece(role=None, content=None, reasoning_content="so"), None),
    "reasoning": (CHAT, piece(reasoning="so"), None),
    "finish": (CHAT, ending(finish_reason="stop"), None),
    "usage-chunk": (CHAT, piece() | {"choices": [], "usage": USAGE}, None),
    "E12-usage-in-every-chunk": (CHAT, piece(content="Hi") | {"usage": USAGE}, None),
    "vllm-first-call-piece": (
        CHAT,
        piece(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f"}}]),
        None,
    ),
    "next-call-piece": (CHAT, piece(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]), None),
    "sglang-nulls-in-call-piece": (
        CHAT,
        piece(tool_calls=[{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "{"}}]),
        None,
    ),
    "delta-tool-calls-null": (CHAT, piece(content="Hi", tool_calls=None), None),
    "D1-D2-finish-reason-empty": (CHAT, ending(finish_reason=""), "/choices/0/finish_reason"),
    "A21-finish-reason-error": (CHAT, ending(finish_reason="error"), "/choices/0/finish_reason"),
    "C3-D3-finish-reason-missing": (CHAT, ending(finish_reason=MISSING), "/choices/0"),
    "C2-role-empty": (CHAT, piece(role="", content="Hi"), "/choices/0/delta/role"),
    "ai-sdk-role-other": (CHAT, piece(role="model"), "/choices/0/delta/role"),
    "C6-object-empty": (CHAT, piece() | {"object": ""}, "/object"),
    "object-of-a-whole": (CHAT, piece() | {"object": "chat.completion"}, "/object"),
    "C8-milliseconds": (CHAT, piece() | {"created": 1_795_956_698_123}, "/created"),
    "C14-no-id": (CHAT, without(piece(), "id"), ""),
    "C14-no-created": (CHAT, without(piece(), "created"), ""),
    "A16-no-choices": (CHAT, without(piece(), "choices"), ""),
    "C14-no-index": (CHAT, ending(index=MISSING), "/choices/0"),
    "A14-message-in-place-of-delta": (
        CHAT,
        ending(delta=MISSING, message={"role": "assistant", "content": "Hi"}),
        "/choices/0",
    ),
    "delta-null": (CHAT, ending(delta=None), "/choices/0/delta"),
    "F1-call-piece-without-index": (
        CHAT,
        piece(tool_calls=[{"id": "call_1", "function": {"name": "f"}}]),
        "/choices/0/delta/tool_calls/0",
    ),
    "ai-sdk-call-piece-without-function": (
        CHAT,
        piece(tool_calls=[{"index": 0, "id": "call_1", "type": "function"}]),
        "/choices/0/delta/tool_calls/0",
    ),
    "F12-arguments-object": (
        CHAT,
        piece(tool_calls=[{"index": 0, "function": {"arguments": {}}}]),
        "/choices/0/delta/tool_calls/0/function/arguments",
    ),
    "E-usage-without-counts": (CHAT, piece() | {"choices": [], "usage": {}}, "/usage"),
    "text-piece": (TEXT, text_piece(), None),
    "text-finish": (TEXT, text_piece(text="", finish_reason="stop"), None),
    "text-usage-chunk": (TEXT, text_piece() | {"choices": [], "usage": USAGE}, None),
    "text-logprobs": (TEXT, text_piece(logprobs=ARRAYS), None),
    "text-finish-reason-empty": (TEXT, text_piece(finish_reason=""), "/choices/0/finish_reason"),
    "text-finish-reason-missing": (TEXT, text_piece(finish_reason=MISSING), "/choices/0"),
    "text-object-of-a-chunk": (TEXT, text_piece() | {"object": "text_completion.chunk"}, "/object"),
    "text-delta": (TEXT, text_piece(text=MISSING, delta={"content": "Hi"}), "/choices/0"),
}


def blamed(name: str, media_type: str, payload: Any) -> str | None:
    """Where the first defect of a 200 answer lies; None when it has none."""
    found = OPERATIONS[name].response(200, media_type).problems(payload)
    return found[0].pointer if found else None


@pytest.mark.parametrize(("name", "payload", "wrong"), ANSWERS.values(), ids=ANSWERS)
def test_whole_answers(name: str, payload: Any, wrong: str | None) -> None:
    """Whole answers that clients can read pass; others fail, and at the place that is wrong."""
    assert blamed(name, JSON, payload) == wrong


@pytest.mark.parametrize(("name", "payload", "wrong"), CHUNKS.values(), ids=CHUNKS)
def test_chunks(name: str, payload: Any, wrong: str | None) -> None:
    """Payloads of a stream that clients can read pass; others fail, and at the place that is wrong."""
    assert blamed(name, SSE, payload) == wrong


ERRORS: dict[str, tuple[Any, str | None]] = {
    "openai": (
        {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": "model_not_found"}},
        None,
    ),
    "vllm-code-integer": ({"error": {"message": "no", "type": "BadRequestError", "param": "n", "code": 400}}, None),
    "ollama": ({"error": {"message": "no", "type": "not_found_error", "param": None, "code": None}}, None),
    "llama.cpp": ({"error": {"message": "no", "type": "exceed_context_size_error", "code": 400, "n_ctx": 8}}, None),
    "message-alone": ({"error": {"message": "no"}}, None),
    "vllm-401-text": ({"error": "Unauthorized"}, "/error"),
    "J30-tgi-text": ({"error": "no", "error_type": "validation"}, "/error"),
    "J2-sglang-flat": ({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, ""),
    "J1-fastapi-detail": ({"detail": [{"loc": ["body"], "msg": "no", "type": "missing"}]}, ""),
    "J1-param-object": ({"error": {"message": "no", "param": {"n": "two"}}}, "/error/param"),
    "no-message": ({"error": {"type": "server_error", "code": 503}}, "/error"),
    "code-fraction": ({"error": {"message": "no", "code": 1.5}}, "/error/code"),
    "text": ("no", ""),
}


@pytest.mark.parametrize(("body", "wrong"), ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_errors(name: str, body: Any, wrong: str | None) -> None:
    """Every documented refusal has the error object that each SDK reads `message` from."""
    operation = OPERATIONS[name]
    for status in operation.statuses[1:]:
        found = operation.response(status, JSON).problems(body)

        assert [problem.pointer for problem in found][:1] == ([] if wrong is None else [wrong])


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    """A chat request with these messages, or with one of the user's."""
    return changed({"model": "m", "messages": list(messages) or [{"role": "user", "content": "Hi"}]}, more)


def complete(**more: Any) -> dict[str, Any]:
    """A request for a text completion."""
    return changed({"model": "m", "prompt": "Hi"}, more)


def user(*parts: Any) -> dict[str, Any]:
    """A user's message of parts."""
    return {"role": "user", "content": list(parts)}


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

REQUESTS: dict[str, tuple[str, Any, str | None]] = {
    "plain": (CHAT, chat(), None),
    "L22-further-members": (CHAT, chat(top_k=5, chat_template_kwargs={}), None),
    "roles": (CHAT, chat({"role": "developer", "content": "a"}, {"role": "system", "content": "b"}), None),
    "parts": (CHAT, chat(user({"type": "text", "text": "What is this?"}, PICTURE)), None),
    "audio": (CHAT, chat(user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}})), None),
    "file": (CHAT, chat(user({"type": "file", "file": {"file_id": "file-1"}})), None),
    "L14-content-null-beside-calls": (CHAT, chat({"role": "assistant", "content": None, "tool_calls": [CALL]}), None),
    "L15-no-content-beside-calls": (CHAT, chat({"role": "assistant", "tool_calls": [CALL]}), None),
    "L30-content-empty": (CHAT, chat({"role": "assistant", "content": ""}), None),
    "F10-calls-sent-back-empty": (CHAT, chat({"role": "assistant", "content": "Hi", "tool_calls": []}), None),
    "tool-result": (CHAT, chat({"role": "tool", "content": "4", "tool_call_id": "call_1"}), None),
    "tools": (CHAT, chat(tools=[TOOL], tool_choice="required", parallel_tool_calls=False), None),
    "F20-named-tool": (CHAT, chat(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}}), None),
    "json-object": (CHAT, chat(response_format={"type": "json_object"}), None),
    "json-schema": (
        CHAT,
        chat(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}),
        None,
    ),
    "sampling-at-the-bounds": (
        CHAT,
        chat(temperature=2, top_p=1, presence_penalty=-2, frequency_penalty=2, n=128),
        None,
    ),
    "logprobs": (CHAT, chat(logprobs=True, top_logprobs=20), None),
    "four-stops": (CHAT, chat(stop=["a", "b", "c", "d"]), None),
    "L4-stop-empty": (CHAT, chat(stop=[]), None),
    "usage-of-a-stream": (CHAT, chat(stream=True, stream_options={"include_usage": True}), None),
    "L1-max-completion-tokens": (CHAT, chat(max_completion_tokens=1), None),
    "model-missing": (CHAT, chat(model=MISSING), ""),
    "model-null": (CHAT, chat(model=None), "/model"),
    "messages-missing": (CHAT, chat(messages=MISSING), ""),
    "L28-messages-empty": (CHAT, chat(messages=[]), "/messages"),
    "messages-text": (CHAT, chat(messages="Hi"), "/messages"),
    "role-unknown": (CHAT, chat({"role": "wizard", "content": "Hi"}), "/messages/0/role"),
    "role-missing": (CHAT, chat({"content": "Hi"}), "/messages/0"),
    "content-missing": (CHAT, chat({"role": "user"}), "/messages/0"),
    "content-null": (CHAT, chat({"role": "user", "content": None}), "/messages/0/content"),
    "no-part": (CHAT, chat(user()), "/messages/0/content"),
    "part-unknown": (CHAT, chat(user({"type": "smell", "text": "x"})), "/messages/0/content/0/type"),
    "tool-result-of-no-call": (CHAT, chat({"role": "tool", "content": "4"}), "/messages/0"),
    "temperature-high": (CHAT, chat(temperature=2.1), "/temperature"),
    "temperature-text": (CHAT, chat(temperature="1"), "/temperature"),
    "top-p-high": (CHAT, chat(top_p=1.1), "/top_p"),
    "penalty-low": (CHAT, chat(presence_penalty=-2.1), "/presence_penalty"),
    "n-zero": (CHAT, chat(n=0), "/n"),
    "n-129": (CHAT, chat(n=129), "/n"),
    "n-text": (CHAT, chat(n="two"), "/n"),
    "top-logprobs-21": (CHAT, chat(logprobs=True, top_logprobs=21), "/top_logprobs"),
    "logprobs-of-completions": (CHAT, chat(logprobs=2), "/logprobs"),
    "five-stops": (CHAT, chat(stop=["a"] * 5), "/stop"),
    "max-tokens-zero": (CHAT, chat(max_tokens=0), "/max_tokens"),
    "L8-seed-beyond-int64": (CHAT, chat(seed=2**63), "/seed"),
    "bias-high": (CHAT, chat(logit_bias={"50256": 101}), "/logit_bias/50256"),
    "stream-text": (CHAT, chat(stream="yes"), "/stream"),
    "format-unknown": (CHAT, chat(response_format={"type": "xml"}), "/response_format/type"),
    "json-schema-missing": (CHAT, chat(response_format={"type": "json_schema"}), "/response_format"),
    "tool-without-name": (CHAT, chat(tools=[{"type": "function", "function": {}}]), "/tools/0/function"),
    "effort-unknown": (CHAT, chat(reasoning_effort="utmost"), "/reasoning_effort"),
    "text": (TEXT, complete(), None),
    "M9-prompts": (TEXT, complete(prompt=["a", "b"]), None),
    "M8-token-ids": (TEXT, complete(prompt=[1, 2]), None),
    "M8-lists-of-token-ids": (TEXT, complete(prompt=[[1, 2], [3]]), None),
    "M15-scoring": (TEXT, complete(max_tokens=0, echo=True, logprobs=0), None),
    "M14-max-tokens-null": (TEXT, complete(max_tokens=None), None),
    "M12-suffix": (TEXT, complete(suffix="end"), None),
    "best-of": (TEXT, complete(n=2, best_of=3), None),
    "logprobs-5": (TEXT, complete(logprobs=5), None),
    "logprobs-6": (TEXT, complete(logprobs=6), "/logprobs"),
    "logprobs-of-chat": (TEXT, complete(logprobs=True), "/logprobs"),
    "prompt-missing": (TEXT, complete(prompt=MISSING), ""),
    "prompt-object": (TEXT, complete(prompt={"text": "Hi"}), "/prompt"),
    "prompt-empty-list": (TEXT, complete(prompt=[]), "/prompt"),
    "prompt-mixed": (TEXT, complete(prompt=["a", 1]), "/prompt"),
    "negative-token-id": (TEXT, complete(prompt=[-1]), "/prompt"),
    "text-model-missing": (TEXT, complete(model=MISSING), ""),
    "best-of-21": (TEXT, complete(best_of=21), "/best_of"),
    "max-tokens-negative": (TEXT, complete(max_tokens=-1), "/max_tokens"),
    "text-temperature-high": (TEXT, complete(temperature=3), "/temperature"),
}


@pytest.mark.parametrize(("name", "body", "wrong"), REQUESTS.values(), ids=REQUESTS)
def test_requests(name: str, body: Any, wrong: str | None) -> None:
    """What clients send is allowed; what OpenAI refuses is not, and the place that is wrong is named."""
    found = OPERATIONS[name].request.problems(body)

    assert bool(found) == (wrong is not None)
    assert all(problem.pointer.startswith(wrong or "") for problem in found)


@pytest.mark.parametrize("name", OPERATIONS)
def test_null_means_absent(name: str) -> None:
    """Every optional property of a request takes null (L3: clients send it for what they leave open)."""
    operation = OPERATIONS[name]
    plain = chat() if name == CHAT else complete()
    optional = sorted(set(operation.properties) - set(operation.required))

    assert [each for each in optional if not operation.request.accepts(plain | {each: None})] == []


REFERENCE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "chat": (SEEKR_CHAT, CHAT, {}),
    "chat-two-choices": (SEEKR_CHAT, CHAT, {"n": 2, "max_tokens": 3}),
    "chat-logprobs": (SEEKR_CHAT, CHAT, {"logprobs": True, "top_logprobs": 2, "max_tokens": 3}),
    "chat-refused": (SEEKR_CHAT, CHAT, {"n": "two"}),
    "chat-unknown-model": (SEEKR_CHAT, CHAT, {"model": "no-such-model"}),
    "text": (SEEKR_TEXT, TEXT, {}),
    "text-prompts": (SEEKR_TEXT, TEXT, {"prompt": ["a", "b"], "n": 2, "max_tokens": 3}),
    "text-logprobs": (SEEKR_TEXT, TEXT, {"logprobs": 2, "echo": True, "max_tokens": 3}),
    "text-refused": (SEEKR_TEXT, TEXT, {"n": "two"}),
    "deepinfra": (DEEP, TEXT, {"max_tokens": 3, "logprobs": 1}),
}


@pytest.mark.parametrize(("served", "name", "changes"), REFERENCE.values(), ids=REFERENCE)
@pytest.mark.parametrize("stream", [False, True])
def test_the_reference_endpoint_keeps_them(served: str, name: str, changes: dict[str, Any], stream: bool) -> None:
    """What the built-in endpoint answers by the vendors' documents is right by these as well: they are common ground."""
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    response = ask(served, **changes, **options)
    payloads = list(_payloads(response.body)) if response.media_type == SSE else [json.loads(response.body)]

    assert payloads
    validator = OPERATIONS[name].response(response.status, response.media_type)
    assert [problem for payload in payloads for problem in validator.problems(payload)] == []


def _payloads(body: bytes) -> Iterator[Any]:
    for line in body.decode().split("\n"):
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def _schemas(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that is a property, with its place."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _schemas(item, f"{path}/{index}")
    if isinstance(node, dict):
        for key, item in node.items():
            if key == "properties":
                yield from ((f"{path}/{key}/{name}", schema) for name, schema in item.items())
            yield from _schemas(item, f"{path}/{key}")


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_property_is_described(name: str) -> None:
    """Each property has a sentence of ours, or what it refers to has: findings quote it. Conditions have none."""
    components = RAW[name]["components"]["schemas"]

    def described(schema: dict[str, Any]) -> bool:
        return "description" in components.get(schema.get("$ref", "").rpartition("/")[2], schema)

    places = [
        (place, schema) for place, schema in _schemas(components) if not {"if", "then", "else"} & set(place.split("/"))
    ]
    assert [place for place, schema in places if not described(schema)] == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_defaults_are_valid_and_bounds_fit_int64(name: str) -> None:
    """A default is valid in its place, the example is a valid request, and no bound needs to be clamped."""
    operation = OPERATIONS[name]
    components = RAW[name]["components"]
    for place, schema in _schemas(components["schemas"]):
        if "default" in schema:
            root = {"allOf": [schema], "components": components}
            assert Draft202012Validator(root).is_valid(schema["default"]), place
        bounds = [schema[key] for key in ("minimum", "maximum") if key in schema]
        assert all(-(2**63) <= bound <= 2**63 - 1 for bound in bounds), place
    content = RAW[name]["paths"][operation.path]["post"]["requestBody"]["content"][JSON]
    assert operation.request.problems(content["example"]) == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_documents_say_beside_the_schemas(name: str) -> None:
    """No host, a bearer key, and the statuses: 400 speaks of the model, 500 is no promise (`error.no-5xx`)."""
    raw, operation = RAW[name], OPERATIONS[name]

    assert "servers" not in raw
    assert raw["security"] == [{"bearerAuth": []}]
    assert raw["components"]["securitySchemes"]["bearerAuth"]["scheme"] == "bearer"
    assert "not OpenAI's own document" in raw["info"]["description"]
    assert operation.statuses == (200, 400, 401, 403, 404, 422, 429, 502, 503)
    assert "`model` missing" in operation.definition["responses"]["400"]["description"]
    assert "[DONE]" in operation.definition["responses"]["200"]["content"][SSE]["schema"]["description"]
    assert operation.schemas.resolved(operation.request_schema)["additionalProperties"] is True


def test_both_documents_agree() -> None:
    """What the two operations share is the same in both: one server has one way to refuse, to count and to sample."""
    ours, theirs = (RAW[name]["components"]["schemas"] for name in (CHAT, TEXT))
    for shared in ("ErrorResponse", "Created", "StreamOptions"):
        assert ours[shared] == theirs[shared]
    chat_properties, text_properties = (OPERATIONS[name].properties for name in (CHAT, TEXT))
    differ = {
        each for each in set(chat_properties) & set(text_properties) if chat_properties[each] != text_properties[each]
    }
    assert differ == {"logprobs", "max_tokens", "n"}  # boolean or count; at least 1 or 0; for each prompt


@pytest.mark.parametrize(("name", "least"), [(CHAT, 400), (TEXT, 150)])
def test_schemathesis_makes_sensible_requests_of_them(name: str, least: int) -> None:
    """Coverage gives probes of both kinds, and hardly any names what OpenAI takes only beside something else."""
    probes = list(generated(OPERATIONS[name], "m"))
    valid = [probe.body for probe in probes if not probe.free]
    choosy = ("max_completion_tokens", "top_logprobs", "metadata", "parallel_tool_calls", "best_of", "stream_options")

    assert len(probes) > least
    assert len(valid) > 50
    for each in choosy:
        assert sum(body.get(each) is not None for body in valid) < len(valid) / 10, each
