import json

import pytest
from reference_responder import (
    BODIES,
    CHAT,
    DEEP,
    MISSING,
    OPEN_CHAT,
    OPEN_TEXT,
    OPERATIONS,
    TEXT,
    ask,
    request_for,
    send,
)

from streamgauge.contract.contract import JSON
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reference.messages import Request
from streamgauge.reference.validation import MAX_DEPTH


def refused(name, response, status, param=None):
    """Judge an error by its status, its document's schema and its vendor's habits."""
    contract, operation = OPERATIONS[name]
    assert response.status == status, response.body
    assert contract.allows_status(operation, status)
    assert response.media_type == JSON
    body = json.loads(response.body)
    assert operation.response(status, JSON).problems(body) == []
    if name == DEEP and status == 422:
        [detail] = body["detail"]
        assert detail["loc"] == (["body"] if param is None else ["body", param])
    elif name in (DEEP, OPEN_CHAT, OPEN_TEXT):
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert body["error"]["param"] == param
        assert body["error"]["code"] in ("model_not_found", "invalid_api_key", "context_length_exceeded", None)
    else:
        assert body["error"]["code"] == status
        assert body["error"].get("param") == param


VENDORS = (CHAT, TEXT, DEEP)
"""Documents without bounds of their own."""

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
REFUSED = [
    *[(name, {"model": "other"}, 404 if name in (DEEP, OPEN_CHAT, OPEN_TEXT) else 422, "model") for name in BODIES],
    (CHAT, {"model": MISSING}, 400, "model"),
    (TEXT, {"model": None}, 400, "model"),
    (DEEP, {"model": MISSING}, 422, None),
    (TEXT, {"prompt": MISSING}, 400, "prompt"),
    (TEXT, {"prompt": None}, 400, "prompt"),
    (TEXT, {"prompt": []}, 400, "prompt"),
    (TEXT, {"prompt": [[1], []]}, 400, "prompt"),
    (TEXT, {"prompt": ["a"] * 1025}, 422, "prompt"),
    (TEXT, {"prompt": [1, "a"] * 20_000}, 400, None),
    (DEEP, {"prompt": []}, 422, "prompt"),
    (DEEP, {"prompt": [-1]}, 422, "prompt"),
    (DEEP, {"prompt": [1, 2]}, 422, "prompt"),
    (CHAT, {"messages": MISSING}, 400, None),
    (CHAT, {"messages": []}, 422, "messages"),
    (CHAT, {"messages": [{"role": "robot"}]}, 400, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": [IMAGE]}]}, 422, "messages"),
    (TEXT, {"max_tokens": "16"}, 400, "max_tokens"),
    (TEXT, {"max_tokens": True}, 400, "max_tokens"),
    (DEEP, {"temperature": 3}, 422, "temperature"),
    (DEEP, {"stop": None}, 422, "stop"),
    *[(name, {"max_tokens": value}, 422, "max_tokens") for name in VENDORS for value in (0, -1, 8192, 10**30)],
    *[(name, {"n": value}, 422, "n") for name in VENDORS for value in (0, -5, 129)],
    (OPEN_CHAT, {"max_tokens": 0}, 400, "max_tokens"),
    (OPEN_CHAT, {"n": 129}, 400, "n"),
    (OPEN_CHAT, {"max_tokens": 8192}, 422, "max_tokens"),
    (OPEN_CHAT, {"messages": [{"role": "user"}]}, 400, "messages"),
    (OPEN_TEXT, {"max_tokens": 0}, 422, "max_tokens"),
    (OPEN_TEXT, {"prompt": MISSING}, 400, None),
    (OPEN_TEXT, {"logprobs": 6}, 400, "logprobs"),
    (CHAT, {"n": 128, "max_tokens": 600}, 422, "n"),
    (TEXT, {"prompt": "1 " * 8200}, 422, "max_tokens"),
    (DEEP, {"prompt": "1 " * 8192}, 422, "max_tokens"),
    (TEXT, {"min_tokens": 20}, 422, "min_tokens"),
    (TEXT, {"min_tokens": -1}, 422, "min_tokens"),
    (CHAT, {"min_tokens": 9000}, 422, "max_tokens"),
    (TEXT, {"temperature": -1}, 422, "temperature"),
    (CHAT, {"top_p": 1.5}, 422, "top_p"),
    (TEXT, {"logprobs": -1}, 422, "logprobs"),
    (TEXT, {"logprobs": 21}, 422, "logprobs"),
    (CHAT, {"top_logprobs": 2}, 422, "top_logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, 422, "top_logprobs"),
    (CHAT, {"logprob_token_ids": [1]}, 422, "logprob_token_ids"),
    (TEXT, {"stop": ""}, 422, "stop"),
    (TEXT, {"stop": ["a", ""]}, 422, "stop"),
    (CHAT, {"continue_final_message": True, "add_generation_prompt": True}, 422, "continue_final_message"),
    (CHAT, {"priority": 1}, 422, "priority"),
    (TEXT, {"thinking_token_budget": -2}, 422, "thinking_token_budget"),
    (TEXT, {"structured_outputs": {}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"regex": "a", "choice": ["a"]}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"regex": "("}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"choice": []}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"grammar": "?start: /a/"}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"json": {"not": {}}}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"json": "{"}}, 422, "structured_outputs"),
    (TEXT, {"structured_outputs": {"structural_tag": "1"}}, 422, "structured_outputs"),
    (
        CHAT,
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
        422,
        "structured_outputs",
    ),
    (TEXT, {"response_format": {"type": "json_schema"}}, 422, "response_format"),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        422,
        "response_format",
    ),
    (CHAT, {"response_format": {"type": "structural_tag", "format": 1}}, 422, "response_format"),
    (DEEP, {"response_format": {"type": "regex", "regex": "a"}}, 422, "response_format"),
    (CHAT, {"repetition_detection": {"max_pattern_size": 3}}, 422, "repetition_detection"),
    (CHAT, {"repetition_detection": {"min_pattern_size": 3, "min_count": 2}}, 422, "repetition_detection"),
    (CHAT, {"tools": [], "tool_choice": "required"}, 422, "tool_choice"),
    (CHAT, {"tools": [{"function": {"name": "g"}}], "tool_choice": {"function": {"name": "f"}}}, 422, "tool_choice"),
    (CHAT, {"tool_choice": {"function": {"name": "f"}}}, 422, "tool_choice"),
    *[
        (CHAT, {param: value}, 422, param)
        for param, value in {
            "logit_bias": {"x": 1},
            "allowed_token_ids": [],
            "bad_words": [""],
            "chat_template": "{{ undefined.member }}",
            "truncate_prompt_tokens": 0,
            "repetition_penalty": 0,
        }.items()
    ],
    *[
        (CHAT, {"logprobs": True, param: value(token)}, 422, param)
        for token in (-1, 40, 2**31 - 1, 2**29 + 0xD800)
        for param, value in {
            "logit_bias": lambda token: {str(token): 1},
            "allowed_token_ids": lambda token: [1, token],
            "stop_token_ids": lambda token: [token],
            "logprob_token_ids": lambda token: [token],
        }.items()
    ],
    (CHAT, {"chat_template": "{{ 'x' * 10 }}"}, 422, "chat_template"),
    (CHAT, {"chat_template": "{{ ''.__class__.mro() }}"}, 422, "chat_template"),
    (DEEP, {"seed": 2**63}, 422, "seed"),
    (TEXT, {"prompt": [5, 2**31 - 1]}, 422, "prompt"),
    (OPEN_TEXT, {"best_of": 1, "n": 2}, 422, "best_of"),
    (DEEP, {"data": {"image": ["x"]}}, 422, "data"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "changes", "status", "param"), REFUSED)
def test_refused(name, changes, status, param, stream):
    """Each rule has its status and names its parameter, streamed or not: errors are never streamed."""
    refused(name, ask(name, stream=stream, **changes), status, param)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": "\\ud800"}',
        b'\xef\xbb\xbf{"model": "m"}',
        b'{"a": %s}' % (b"9" * 5000),
        b'{"a": %s%s}' % (b"[" * MAX_DEPTH, b"]" * MAX_DEPTH),
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("name", BODIES)
def test_body_that_is_not_json(name, body):
    """What is no strict JSON object is malformed in the vendor's manner."""
    response, _ = send(request_for(name, body))
    refused(name, response, 422 if name == DEEP else 400)


def headers_of(*credentials, content_type=JSON):
    """These credentials and a content type."""
    return (*credentials, ("content-type", content_type))


@pytest.mark.parametrize(
    ("name", "credentials", "status"),
    [
        (CHAT, (("authorization", DEFAULT_KEY),), 200),
        (CHAT, (("authorization", f"Bearer {DEFAULT_KEY}"),), 401),
        (CHAT, (("x-api-key", DEFAULT_KEY),), 401),
        (TEXT, (("authorization", DEFAULT_KEY + "x"),), 401),
        (TEXT, (("authorization", ""),), 401),
        (TEXT, (), 401),
        (DEEP, (("authorization", f"Bearer {DEFAULT_KEY}"),), 200),
        (DEEP, (("authorization", f"bearer {DEFAULT_KEY}"),), 200),
        (DEEP, (("authorization", DEFAULT_KEY),), 401),
        (DEEP, (("authorization", "Bearer ключ".encode().decode("latin-1")),), 401),
        (DEEP, (("x-api-key", DEFAULT_KEY),), 200),
        (DEEP, (("xi-api-key", DEFAULT_KEY),), 200),
        (DEEP, (("x-api-key", f"Bearer {DEFAULT_KEY}"),), 401),
        (OPEN_CHAT, (("authorization", f"Bearer {DEFAULT_KEY}"),), 200),
        (OPEN_CHAT, (("authorization", DEFAULT_KEY),), 401),
        (OPEN_TEXT, (), 401),
    ],
)
def test_forms_of_the_key(name, credentials, status):
    """The key counts only in the vendor's form; a missing or wrong one is told before the body is read."""
    response, _ = send(request_for(name, BODIES[name], headers=headers_of(*credentials)))
    assert response.status == status
    if status == 401:
        refused(name, response, 401)
        assert response.header("www-authenticate")
        broken, _ = send(request_for(name, b"{", headers=credentials))
        assert broken.status == 401


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
@pytest.mark.parametrize("name", BODIES)
def test_content_type(name, content_type, status):
    """Only application/json is taken, and a compressed body is not."""
    contract, _ = OPERATIONS[name]
    credential = ("authorization", contract.profile.auth.value(DEFAULT_KEY))
    headers = headers_of(credential, content_type=content_type)
    response, _ = send(request_for(name, BODIES[name], headers=headers))
    assert response.status == status
    if status == 415:
        refused(name, response, 415)
    packed, _ = send(request_for(name, b"", headers=(*headers, ("content-encoding", "gzip"))))
    assert packed.status == 415


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("name", BODIES)
def test_other_methods(name, method):
    """Every other method of an operation is refused, and the right one named."""
    response, _ = send(request_for(name, b"", method=method))
    assert response.status == 405
    assert response.header("allow") == "POST"
    assert bool(response.body) == (method != "HEAD")


@pytest.mark.parametrize("target", ["/", "/v1", "/v1/completions/", "*", "http://host", "/health/../x", "//health"])
def test_unknown_path(target):
    """A path that is not served is 404, key or not."""
    response, _ = send(Request("GET", target))
    assert response.status == 404
