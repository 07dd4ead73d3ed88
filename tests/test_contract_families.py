"""Which operations of a document are judged, as what, with the key where."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgauge.contract.contract import CHAT, COMPLETIONS, JSON, SSE, Contract, load_contracts
from streamgauge.contract.profile import Auth
from streamgauge.errors import DocumentError

TEXT = {"type": "string"}
MESSAGE = {"type": "object", "properties": {"role": TEXT, "content": TEXT}}
MESSAGES = {"type": "array", "items": MESSAGE}
ANSWER = {"type": "object", "properties": {"choices": {"type": "array"}}}
LIMIT = {"type": "integer"}


def post(properties: dict[str, Any] | None = None, answer: Any = None, **more: Any) -> dict[str, Any]:
    """A POST operation whose request has these properties and whose 200 has this schema."""
    content = {JSON: {"schema": {"type": "object", "properties": properties or {}}}}
    described = {"description": "", **({"content": {JSON: {"schema": answer}}} if answer is not None else {})}
    return {"post": {"requestBody": {"content": content}, "responses": {"200": described}, **more}}


def contract_of(folder: Path, paths: dict[str, Any], profile: str | None = None, **more: Any) -> Contract:
    """The contract of a document with these paths."""
    file = folder / "own.json"
    file.write_text(json.dumps({"openapi": "3.1.0", "paths": paths, **more}))
    return load_contracts([str(file)], profile)[0]


def profile_with(folder: Path, operations: dict[str, Any]) -> str:
    """A profile that says this of operations."""
    file = folder / "profile.yaml"
    said = {
        "name": "mine",
        "title": "Mine",
        "documents": [],
        "auth": {"header": "X-Mine", "scheme": "raw", "required": True},
        "operations": operations,
        "dialect": {"malformed_status": [400], "unknown_model_status": [404], "error_envelope": "any"},
    }
    file.write_text(yaml.safe_dump(said))
    return str(file)


FIELDS: dict[str, tuple[dict[str, Any], str | None]] = {
    "chat": (post({"messages": MESSAGES}), CHAT),
    "chat-answered": (post({"messages": MESSAGES}, ANSWER), CHAT),
    "chat-open-answer": (post({"messages": MESSAGES}, {}), CHAT),
    "chat-alternatives": (
        post({"messages": {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/M"}, MESSAGE]}}}),
        CHAT,
    ),
    "chat-by-reference": (
        post({"messages": {"$ref": "#/components/schemas/L"}}, {"$ref": "#/components/schemas/A"}),
        CHAT,
    ),
    "anthropic": (
        post({"messages": MESSAGES, "max_tokens": LIMIT}, {"properties": {"content": {"type": "array"}}}),
        None,
    ),
    "messages-of-text": (post({"messages": {"type": "array", "items": TEXT}}), None),
    "completions": (post({"prompt": TEXT, "max_tokens": LIMIT}), COMPLETIONS),
    "completions-newer-limit": (post({"prompt": TEXT, "max_completion_tokens": LIMIT}, ANSWER), COMPLETIONS),
    "pictures": (post({"prompt": TEXT, "n": LIMIT, "size": TEXT}), None),
    "pictures-answered": (post({"prompt": TEXT, "max_tokens": LIMIT}, {"properties": {"data": {}}}), None),
    "get": ({"get": post({"messages": MESSAGES})["post"]}, None),
    "nothing-asked": ({"post": {"responses": {"200": {"description": ""}}}}, None),
}
COMPONENTS = {"schemas": {"M": {"allOf": [MESSAGE]}, "L": MESSAGES, "A": {"anyOf": [ANSWER, {"type": "null"}]}}}


@pytest.mark.parametrize(("item", "family"), FIELDS.values(), ids=FIELDS)
def test_recognised_by_fields(tmp_path: Path, item: dict[str, Any], family: str | None) -> None:
    """Where no path tells, the fields of the request do, unless the answer is of another kind; and that is noted."""
    paths = {"/other": {"get": {"responses": {}}}, "/v1/ask": item}
    if family is None:
        with pytest.raises(DocumentError):
            contract_of(tmp_path, paths, components=COMPONENTS)
        return
    contract = contract_of(tmp_path, paths, components=COMPONENTS)
    assert [(each.name, each.path, each.family) for each in contract.operations] == [("own", "/v1/ask", family)]
    assert contract.notes[0] == f"own: POST /v1/ask is taken for {family} by the fields of its request"


def test_a_path_goes_before_fields(tmp_path: Path) -> None:
    """Fields are looked at only where no path tells; a path counts whatever the request holds, and only for POST."""
    item = {**post({}), "get": {"responses": {"200": {"description": ""}}}}
    contract = contract_of(tmp_path, {"/v1/ask": post({"messages": MESSAGES}), "/v1/chat/completions": item})
    assert [(each.method, each.path) for each in contract.operations] == [("POST", "/v1/chat/completions")]
    assert contract.notes == ()


def test_a_profile_goes_before_the_path(tmp_path: Path) -> None:
    """A profile may name an operation, and may say that it is of another family than its path tells."""
    said = {"own:POST /v1/ask": {"family": "chat"}, "own:POST /v1/completions": {"family": "chat", "stream": True}}
    paths = {"/v1/ask": post(), "/v1/completions": post(), "/v1/other": post()}
    contract = contract_of(tmp_path, paths, profile_with(tmp_path, said))
    assert [(each.path, each.family, each.streams) for each in contract.operations] == [
        ("/v1/ask", CHAT, False),
        ("/v1/completions", CHAT, True),
    ]


def test_a_profile_names_the_only_operation(tmp_path: Path) -> None:
    """Where a document has one operation, the document's name is enough."""
    profile = profile_with(tmp_path, {"own": {"family": "completions", "stream": True}})
    (operation,) = contract_of(tmp_path, {"/v1/ask": post()}, profile).operations
    assert (operation.name, operation.family, operation.streams) == ("own", COMPLETIONS, True)


def test_nothing_recognised(tmp_path: Path) -> None:
    """The message lists the first ten operations and says how a profile names one; that works as it is written."""
    with pytest.raises(DocumentError) as caught:
        contract_of(tmp_path, {f"/p{number}": post() for number in range(12)})
    hint = caught.value.hint
    assert "POST /p9 and 2 more" in hint
    assert "POST /p10" not in hint
    said = yaml.safe_load(hint.split("operations: ")[1].split("`")[0])
    assert (
        contract_of(tmp_path, {"/p0": post(), "/p1": post()}, profile_with(tmp_path, said)).operations[0].path == "/p0"
    )


STREAM = {"stream": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}
DOCUMENTED = {"200": {"description": "", "content": {JSON: {"schema": ANSWER}, "text/event-stream; charset=utf-8": {}}}}


@pytest.mark.parametrize(
    ("item", "said", "streams"),
    [
        (post({}), None, False),
        (post(STREAM), None, True),
        (post(STREAM, {}), None, True),
        (post(STREAM, ANSWER), None, False),
        (post({"stream": TEXT}), None, False),
        (post(STREAM), False, False),
        (post({}), True, True),
        (post({}, responses=DOCUMENTED), None, True),
        (post({}, responses=DOCUMENTED), False, True),
    ],
)
def test_what_streams(tmp_path: Path, item: dict[str, Any], said: bool | None, streams: bool) -> None:
    """The document's word counts; a profile fills its silence and never takes back a MUST; then the request hints."""
    profile = profile_with(tmp_path, {"own": {"family": "chat", "stream": said}}) if said is not None else None
    contract = contract_of(tmp_path, {"/chat/completions": item}, profile)
    assert contract.operations[0].streams is streams
    assert any("taken to stream" in note for note in contract.notes) is (
        streams and "200" in str(item) and said is None and SSE not in str(item)
    )


SCHEMES = {
    "Key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "Query": {"type": "apiKey", "in": "query", "name": "key"},
    "Basic": {"type": "http", "scheme": "basic"},
    "Bearer": {"type": "http", "scheme": "Bearer"},
    "OAuth": {"type": "oauth2", "flows": {}},
    "OpenId": {"type": "openIdConnect", "openIdConnectUrl": "https://example.com"},
}
BEARER = ("Authorization", "Bearer")


@pytest.mark.parametrize(
    ("root", "own", "form", "required"),
    [
        ([{"Key": []}], None, ("X-Api-Key", "raw"), True),
        ([{"Key": []}], [{"Bearer": []}], BEARER, True),
        (None, [{"OAuth": ["a"]}], BEARER, True),
        (None, [{"OpenId": []}], BEARER, True),
        (None, [{"Query": []}, {"Basic": []}, {"Key": []}], ("X-Api-Key", "raw"), True),
        (None, [{"Key": [], "Basic": []}, {"Bearer": []}], BEARER, True),
        (None, [{}, {"Key": []}], ("X-Api-Key", "raw"), False),
    ],
)
def test_the_document_says_where_the_key_goes(
    tmp_path: Path, root: Any, own: Any, form: tuple[str, str], required: bool
) -> None:
    """Under a profile that was only fallen back on, the operation's security decides (OpenAPI 3.1.1, 4.8.27, 4.8.30)."""
    given = {"security": own} if own is not None else {}
    more = {"security": root} if root is not None else {}
    paths = {"/chat/completions": post({}, **given)}
    contract = contract_of(tmp_path, paths, components={"securitySchemes": SCHEMES}, **more)
    assert contract.profile.auth == Auth(*form, required=required)
    assert bool(contract.notes) is (form != BEARER)
    named = contract_of(tmp_path, paths, profile_with(tmp_path, {}), components={"securitySchemes": SCHEMES}, **more)
    assert (named.profile.auth.header, named.notes) == ("X-Mine", ())


@pytest.mark.parametrize("security", [None, [], [{"Query": []}], [{"Nobody": []}]])
def test_a_document_that_does_not_say_it(tmp_path: Path, security: Any) -> None:
    """Where the document names no header, the profile's counts."""
    given = {"security": security} if security is not None else {}
    contract = contract_of(tmp_path, {"/chat/completions": post({}, **given)}, components={"securitySchemes": SCHEMES})
    assert (contract.profile.auth.header, contract.profile.auth.scheme) == BEARER
    assert contract.notes == ()
