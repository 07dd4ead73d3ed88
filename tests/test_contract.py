"""Documents, profiles, validators, and the contract that they make."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.contract.contract import CHAT, COMPLETIONS, JSON, SSE, Operation, load_contracts
from streamgauge.contract.document import load_document
from streamgauge.contract.plain import plain_request
from streamgauge.contract.profile import default_profile, load_profile
from streamgauge.contract.validator import Validator, pointer_of
from streamgauge.errors import DocumentError

ROOT = Path(__file__).parents[1]
DIGESTS = {
    "seekr-chat": "f6cffb1b83130f962fa19df8f2063be795f9dc61179fe78a7edee51125d7db2d",
    "seekr-completions": "fe7c168c31e73a7736eba10d19b0acbbb2d33b09930abf3df229eb25dd7df6bd",
    "deepinfra-completions": "2f2a39dca76945ea676467056a62bbe3658e5cb5701b15712b2124715c72401c",
}
"""The vendors' documents; those of the OpenAI-compatible dialect are our own, and may change."""

OURS = ("openai-chat", "openai-completions")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text("abc. ", max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text("abc", max_size=3), children, max_size=3),
    max_leaves=6,
)


@functools.cache
def operation_of(spec: str) -> Operation:
    """The only operation of a document."""
    return load_contracts([spec])[0].operations[0]


def document(paths: Any, version: Any = "3.1.0", **more: Any) -> str:
    """An OpenAPI document as YAML."""
    return yaml.safe_dump({"openapi": version, "info": {"title": "x", "version": "1"}, "paths": paths, **more})


def completions(schema: Any, responses: Any = None) -> dict[str, Any]:
    """Paths with one operation whose request has this schema."""
    body = {"content": {JSON: {"schema": schema}}}
    return {"/v1/completions": {"post": {"requestBody": body, "responses": responses or {"200": {"description": ""}}}}}


def loaded(tmp_path: Path, text: str | bytes) -> Operation:
    """The only operation of a document with this text."""
    file = tmp_path / "own.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return operation_of(str(file))


def refusal(tmp_path: Path, text: str | bytes) -> DocumentError:
    """What loading this text as a document raises."""
    with pytest.raises(DocumentError) as caught:
        loaded(tmp_path, text)
    return caught.value


# -- the bundled documents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIGESTS)
def test_bundled_documents_are_the_vendors(name: str) -> None:
    """The bundled documents are those of spec/openapi, byte for byte, and have not changed."""
    text = catalog.document_text(name)
    assert text == (ROOT / "spec" / "openapi" / catalog.DOCUMENTS[name]).read_bytes()
    assert hashlib.sha256(text).hexdigest() == load_document(name).sha256 == DIGESTS[name]


def test_every_document_is_in_the_catalog() -> None:
    """No file of spec/openapi is forgotten."""
    assert set(catalog.DOCUMENTS) == {*DIGESTS, *OURS}
    assert {file.name for file in (ROOT / "spec" / "openapi").iterdir()} == set(catalog.DOCUMENTS.values())


@pytest.mark.parametrize(
    ("spec", "path", "family", "fields", "required", "statuses"),
    [
        (
            "seekr-chat",
            "/v1/inference/chat/completions",
            CHAT,
            60,
            ("messages",),
            (200, 400, 401, 403, 422, 429, 502, 503),
        ),
        (
            "seekr-completions",
            "/v1/inference/completions",
            COMPLETIONS,
            46,
            (),
            (200, 400, 401, 403, 422, 429, 502, 503),
        ),
        ("deepinfra-completions", "/v1/completions", COMPLETIONS, 27, ("model", "prompt"), (200, 422, 429)),
        (
            "openai-chat",
            "/v1/chat/completions",
            CHAT,
            25,
            ("model", "messages"),
            (200, 400, 401, 403, 404, 422, 429, 502, 503),
        ),
        (
            "openai-completions",
            "/v1/completions",
            COMPLETIONS,
            18,
            ("model", "prompt"),
            (200, 400, 401, 403, 404, 422, 429, 502, 503),
        ),
    ],
)
def test_operations(
    spec: str, path: str, family: str, fields: int, required: tuple[str, ...], statuses: tuple[int, ...]
) -> None:
    """Each bundled document has one streaming POST operation with the known fields and statuses."""
    operation = operation_of(spec)
    assert (operation.name, operation.method, operation.path, operation.family) == (spec, "POST", path, family)
    assert (len(operation.properties), operation.required, operation.streams) == (fields, required, True)
    assert sorted(operation.statuses) == list(statuses)
    assert set(operation.media_types(200)) == {JSON, SSE}


def choice(**changes: Any) -> dict[str, Any]:
    """A chat completion with one choice, changed."""
    made = {"index": 0, "message": {"role": "assistant", "content": "x"}, **changes}
    return {"id": "1", "created": 1, "model": "m", "usage": {}, "choices": [made]}


def chunk(*choices: Any, **changes: Any) -> dict[str, Any]:
    """A chunk with these choices."""
    return {"id": "1", "created": 1, "model": "m", "choices": list(choices), **changes}


TEXT = {"id": "1", "created": 1, "model": "m", "usage": {}, "choices": [{"index": 0, "text": "x"}]}

FACTS: dict[str, tuple[str, int, str, Any, bool]] = {
    "chat": ("seekr-chat", 200, JSON, choice(), True),
    "chat-object-const": ("seekr-chat", 200, JSON, choice() | {"object": "text_completion"}, False),
    "chat-usage-required": ("seekr-chat", 200, JSON, {k: v for k, v in choice().items() if k != "usage"}, False),
    "chat-created-integer": ("seekr-chat", 200, JSON, choice() | {"created": "1"}, False),
    "chat-message-required": ("seekr-chat", 200, JSON, TEXT, False),
    "chat-role-required": ("seekr-chat", 200, JSON, choice(message={"content": "x"}), False),
    "chat-content-null": ("seekr-chat", 200, JSON, choice(message={"role": "assistant", "content": None}), True),
    "chat-tool-calls-null": ("seekr-chat", 200, JSON, choice(message={"role": "assistant", "tool_calls": None}), False),
    "chat-any-finish-reason": ("seekr-chat", 200, JSON, choice(finish_reason="whatever"), True),
    "chat-finish-reason-number": ("seekr-chat", 200, JSON, choice(finish_reason=1), False),
    "chat-stop-reason-integer": ("seekr-chat", 200, JSON, choice(stop_reason=1), True),
    "chat-usage-count-null": ("seekr-chat", 200, JSON, choice() | {"usage": {"prompt_tokens": None}}, False),
    "chat-completion-tokens-null": ("seekr-chat", 200, JSON, choice() | {"usage": {"completion_tokens": None}}, True),
    "chunk": ("seekr-chat", 200, SSE, chunk({"index": 0, "delta": {"content": "x"}}), True),
    "chunk-without-choices": ("seekr-chat", 200, SSE, chunk(usage={"prompt_tokens": 1}), True),
    "chunk-delta-required": ("seekr-chat", 200, SSE, chunk({"index": 0}), False),
    "chunk-index-required": ("seekr-chat", 200, SSE, chunk({"delta": {}}), False),
    "chunk-object-const": ("seekr-chat", 200, SSE, chunk(object="chat.completion"), False),
    "chunk-tool-calls-null": ("seekr-chat", 200, SSE, chunk({"index": 0, "delta": {"tool_calls": None}}), False),
    "chunk-tool-index": ("seekr-chat", 200, SSE, chunk({"index": 0, "delta": {"tool_calls": [{"id": "a"}]}}), False),
    "text": ("seekr-completions", 200, JSON, TEXT, True),
    "text-required": ("seekr-completions", 200, JSON, TEXT | {"choices": [{"index": 0}]}, False),
    "text-chunk": ("seekr-completions", 200, SSE, chunk({"index": 0, "text": ""}), True),
    "text-chunk-object-free": ("seekr-completions", 200, SSE, chunk(object="anything"), True),
    "error-object": ("seekr-chat", 400, JSON, {"error": {"message": "no", "type": "x", "code": 400}}, True),
    "error-text": ("seekr-chat", 400, JSON, {"error": "no"}, True),
    "error-code-text": ("seekr-chat", 400, JSON, {"error": {"message": "no", "code": "model_not_found"}}, False),
    "error-type-null": ("seekr-chat", 400, JSON, {"error": {"message": "no", "type": None}}, False),
    "error-message-required": ("seekr-chat", 400, JSON, {"error": {"code": 400}}, False),
    "error-bare": ("seekr-completions", 401, JSON, {"message": "no"}, False),
    "unknown-status": ("seekr-completions", 404, JSON, "anything", True),
    "deepinfra-200-unknown": ("deepinfra-completions", 200, JSON, ["anything"], True),
    "deepinfra-422": (
        "deepinfra-completions",
        422,
        JSON,
        {"detail": [{"loc": ["body"], "msg": "x", "type": "y"}]},
        True,
    ),
}


@pytest.mark.parametrize(("spec", "status", "media_type", "body", "valid"), FACTS.values(), ids=FACTS)
def test_what_the_documents_require_of_an_answer(
    spec: str, status: int, media_type: str, body: Any, valid: bool
) -> None:
    """The facts about answers that checks rely on stand in the documents."""
    assert operation_of(spec).response(status, media_type).accepts(body) is valid


MESSAGES = [{"role": "user", "content": "x"}]
REQUESTS: dict[str, tuple[str, Any, bool]] = {
    "chat": ("seekr-chat", {"messages": MESSAGES}, True),
    "chat-messages-required": ("seekr-chat", {"model": "m"}, False),
    "chat-role-enum": ("seekr-chat", {"messages": [{"role": "robot", "content": "x"}]}, False),
    "chat-part": ("seekr-chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, True),
    "chat-part-untyped": ("seekr-chat", {"messages": [{"role": "user", "content": [{"text": "x"}]}]}, True),
    "chat-part-foreign": (
        "seekr-chat",
        {"messages": [{"role": "user", "content": [{"type": "foo", "text": "x"}]}]},
        False,
    ),
    "chat-tool-name-required": ("seekr-chat", {"messages": MESSAGES, "tools": [{"function": {}}]}, False),
    "chat-further-fields": ("seekr-chat", {"messages": MESSAGES, "foo": 1}, True),
    "chat-integral-float": ("seekr-chat", {"messages": MESSAGES, "max_tokens": 16.0}, True),
    "chat-integer-as-text": ("seekr-chat", {"messages": MESSAGES, "max_tokens": "16"}, False),
    "chat-integer-as-boolean": ("seekr-chat", {"messages": MESSAGES, "max_tokens": True}, False),
    "chat-seed-int64": ("seekr-chat", {"messages": MESSAGES, "seed": 2**63 - 1}, True),
    "chat-seed-too-great": ("seekr-chat", {"messages": MESSAGES, "seed": 2**63}, False),
    "chat-seed-least": ("seekr-chat", {"messages": MESSAGES, "seed": -(2**63)}, True),
    "chat-seed-too-small": ("seekr-chat", {"messages": MESSAGES, "seed": -(2**63) - 1}, False),
    "text-nothing-required": ("seekr-completions", {}, True),
    "text-seed-too-great": ("seekr-completions", {"seed": 2**63}, False),
    "text-logprobs-integer": ("seekr-completions", {"prompt": "x", "logprobs": 1}, True),
    "text-unbounded-temperature": ("seekr-completions", {"prompt": "x", "temperature": 99}, True),
    "deepinfra": ("deepinfra-completions", {"model": "m", "prompt": "x"}, True),
    "deepinfra-model-required": ("deepinfra-completions", {"prompt": "x"}, False),
    "deepinfra-prompt-required": ("deepinfra-completions", {"model": "m"}, False),
    "deepinfra-temperature-bounded": (
        "deepinfra-completions",
        {"model": "m", "prompt": "x", "temperature": 2.5},
        False,
    ),
    "deepinfra-temperature-null": ("deepinfra-completions", {"model": "m", "prompt": "x", "temperature": None}, False),
    "deepinfra-max-tokens-null": ("deepinfra-completions", {"model": "m", "prompt": "x", "max_tokens": None}, True),
    "deepinfra-16-stops": ("deepinfra-completions", {"model": "m", "prompt": "x", "stop": ["a"] * 16}, True),
    "deepinfra-17-stops": ("deepinfra-completions", {"model": "m", "prompt": "x", "stop": ["a"] * 17}, False),
}


@pytest.mark.parametrize(("spec", "body", "valid"), REQUESTS.values(), ids=REQUESTS)
def test_what_the_documents_allow_in_a_request(spec: str, body: Any, valid: bool) -> None:
    """The facts about requests that probes rely on stand in the documents."""
    validator = operation_of(spec).request
    assert validator.accepts(body) is valid
    assert bool(validator.problems(body)) is not valid


@pytest.mark.parametrize("spec", catalog.DOCUMENTS)
def test_the_plainest_request_is_valid(spec: str) -> None:
    """The request that the preflight sends keeps the document."""
    operation = operation_of(spec)
    assert operation.request.problems(plain_request(operation, "m", max_tokens=1)) == []


# -- normalising -------------------------------------------------------------------------------------------------------


def test_nullable_is_folded(tmp_path: Path) -> None:
    """`nullable: true` means null in every version, enums and references included, and only there."""
    schema = {
        "properties": {
            "a": {"type": "string", "nullable": True},
            "b": {"type": "string", "enum": ["x"], "nullable": True},
            "c": {"type": "string", "nullable": False},
            "d": {"$ref": "#/components/schemas/D"},
            "nullable": {"type": "boolean"},
        }
    }
    text = document(completions(schema), "3.0.3", components={"schemas": {"D": {"type": "integer", "nullable": True}}})
    request = loaded(tmp_path, text).request
    assert request.accepts({"a": None, "b": None, "d": None, "nullable": True})
    assert not any(request.accepts({name: None}) for name in ("c", "nullable"))
    assert not request.accepts({"b": "y"})


def test_bounds_are_clamped_to_int64(tmp_path: Path) -> None:
    """Bounds that JavaScript rounded up are those of int64; others stay."""
    bounds = {"maximum": 9223372036854776000, "minimum": -9223372036854776000}
    schema = {"properties": {"a": {"type": "integer", **bounds}, "b": {"type": "integer", "maximum": 5, "minimum": -5}}}
    request = loaded(tmp_path, document(completions(schema))).request
    for name, most in (("a", 2**63 - 1), ("b", 5)):
        assert request.accepts({name: most})
        assert not request.accepts({name: most + 1})
    assert request.accepts({"a": -(2**63)})
    assert not request.accepts({"a": -(2**63) - 1})


def test_the_document_as_written_stays() -> None:
    """Normalising leaves the document as it was read."""
    raw = load_document("seekr-chat").raw
    assert raw == yaml.safe_load(catalog.document_text("seekr-chat"))


def test_unquoted_statuses_are_understood(tmp_path: Path) -> None:
    """Many a document says `200:` without quotes."""
    answer = {"description": "", "content": {JSON: {"schema": {"type": "object"}}, SSE: {}}}
    operation = loaded(tmp_path, document(completions({}, {200: answer, 429: {"description": ""}})))
    assert (operation.statuses, operation.streams) == ((200, 429), True)
    assert operation.media_types(200) == (JSON, SSE)
    assert not operation.response(200, JSON).accepts([])


def test_references_beside_schemas_are_followed(tmp_path: Path) -> None:
    """Request bodies, answers and path items may be references, too, and a pointer may lead through a list."""
    content = {
        "content": {JSON: {"schema": {"allOf": [{"required": ["a"]}, {"$ref": "#/components/schemas/S/allOf/0"}]}}}
    }
    item = {
        "post": {
            "requestBody": {"$ref": "#/components/requestBodies/B"},
            "responses": {"200": {"$ref": "#/components/responses/R"}},
        }
    }
    components = {
        "requestBodies": {"B": content},
        "responses": {"R": {"description": "", **content}},
        "schemas": {"S": {"allOf": [{"required": ["b"]}]}},
        "pathItems": {"P": item},
    }
    operation = loaded(
        tmp_path, document({"/completions": {"$ref": "#/components/pathItems/P"}}, components=components)
    )
    for validator in (operation.request, operation.response(200, JSON)):
        assert [validator.accepts(body) for body in ({}, {"a": 1}, {"a": 1, "b": 2})] == [False, False, True]


def test_several_operations_are_told_apart(tmp_path: Path) -> None:
    """A document with several operations names each by method and path; others than completions are left out."""
    paths = {path: completions({})["/v1/completions"] for path in ("/a/completions", "/a/chat/completions", "/models")}
    file = tmp_path / "My API.yaml"
    file.write_text(document(paths))
    operations = load_contracts([str(file)])[0].operations
    assert [(each.name, each.family) for each in operations] == [
        ("my-api:POST /a/chat/completions", CHAT),
        ("my-api:POST /a/completions", COMPLETIONS),
    ]
    assert operations[0].pointer == "/paths/~1a~1chat~1completions/post"


# -- documents that cannot be used ---------------------------------------------------------------------------------------

BROKEN: dict[str, str | bytes] = {
    "empty": "",
    "text": "hello",
    "list": "[]",
    "binary": b"\x7fELF\x02\x01\x00\xff\xfe",
    "broken-yaml": "a: [",
    "duplicate-key": "openapi: 3.1.0\nopenapi: 3.1.0\n",
    "no-openapi": "info: {}",
    "swagger-2": "swagger: '2.0'\npaths: {}",
    "openapi-2": "openapi: '2.0'\npaths: {/a: {}}",
    "openapi-3.2": "openapi: 3.2.0\npaths: {/a: {}}",
    "openapi-3.10": "openapi: 3.10.0\npaths: {/a: {}}",
    "no-paths": "openapi: 3.1.0",
    "paths-empty": "openapi: 3.1.0\npaths: {}",
    "paths-list": "openapi: 3.1.0\npaths: []",
    "no-operation-of-ours": document({"/models": {"get": {"responses": {}}}}),
    "unresolved-ref": document(completions({"$ref": "#/components/schemas/No"})),
    "remote-ref": document(completions({"$ref": "https://example.com/x.yaml#/X"})),
    "file-ref": document(completions({"$ref": "other.yaml#/X"})),
    "cyclic-ref": document(
        completions({"$ref": "#/components/schemas/A"}),
        components={"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}},
    ),
    "ref-to-a-list": document(completions({"$ref": "#/x"}), x=[1]),
    "type-unknown": document(completions({"type": "strnig"})),
    "type-number": document(completions({"type": 7})),
    "enum-scalar": document(completions({"type": "string", "nullable": True, "enum": 7})),
    "pattern-broken": document(completions({"pattern": "("})),
    "schema-list": document(completions([1])),
    "responses-list": document({"/completions": {"post": {"responses": [1]}}}),
    "responses-null": document({"/completions": {"post": {"responses": None}}}),
    "response-text": document({"/completions": {"post": {"responses": {"200": "fine"}}}}),
    "body-text": document({"/completions": {"post": {"requestBody": "x"}}}),
    "content-list": document({"/completions": {"post": {"requestBody": {"content": [JSON]}}}}),
    "alias-cycle": "openapi: 3.1.0\npaths: &a {/completions: *a}",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_documents(tmp_path: Path, text: str | bytes) -> None:
    """A document that cannot be used is refused with the place, before anything runs."""
    problem = refusal(tmp_path, text)
    assert "own" in problem.where
    assert "\n" not in problem.what


@pytest.mark.parametrize("name", ["swagger-2", "openapi-3.2", "remote-ref", "unresolved-ref", "no-paths", "no-openapi"])
def test_refusals_say_what_to_do(tmp_path: Path, name: str) -> None:
    """The commonest mistakes come with a hint."""
    assert refusal(tmp_path, BROKEN[name]).hint


@pytest.mark.parametrize(
    ("name", "where"), [("openapi-3.2", ":1:1"), ("unresolved-ref", ":12:15"), ("duplicate-key", ":2:1")]
)
def test_refusals_name_line_and_column(tmp_path: Path, name: str, where: str) -> None:
    """Where one place is to blame, its line and column are named."""
    assert refusal(tmp_path, BROKEN[name]).where.endswith(where)


@pytest.mark.parametrize("spec", ["nothing.yaml", "", "a\0b", "x" * 5000, "ftp://127.0.0.1/openapi.yaml", "."])
def test_unreadable_documents(spec: str) -> None:
    """What is no readable file is refused, with the names that would do."""
    with pytest.raises(DocumentError) as caught:
        load_contracts([spec])
    assert caught.value.hint


def test_boolean_bounds_are_refused_in_words_in_31(tmp_path: Path) -> None:
    """`exclusiveMinimum: true` is 3.0's and no JSON Schema 2020-12: said so where it stands, not crashed upon."""
    schema = {"properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}}
    problem = refusal(tmp_path, document(completions(schema)))
    assert "/schema/properties/a/exclusiveMinimum cannot be used" in problem.what
    assert problem.where.endswith("own.yaml:14:19")


def test_two_documents_of_one_name(tmp_path: Path) -> None:
    """Two documents whose operations would bear the same name are refused."""
    files = [tmp_path / folder / "api.yaml" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(document(completions({})))
    with pytest.raises(DocumentError, match="api"):
        load_contracts([str(file) for file in files])


@given(
    st.text()
    | st.binary()
    | st.builds(
        lambda paths, components: json.dumps({"openapi": "3.1.0", "paths": paths, "components": components}),
        st.dictionaries(st.just("/completions"), st.dictionaries(st.just("post"), PLAIN) | PLAIN, min_size=1),
        PLAIN,
    )
    | st.builds(
        lambda part, schema: json.dumps({"openapi": "3.1.0", "paths": {"/completions": {"post": {part: schema}}}}),
        st.sampled_from(["requestBody", "responses"]),
        st.dictionaries(st.sampled_from(["content", "200", "$ref"]), PLAIN | st.dictionaries(st.just(JSON), PLAIN)),
    )
)
@settings(max_examples=200)
def test_any_text_as_a_document(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    """Any text is a document or is refused as one; nothing else ever happens."""
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    try:
        load_contracts([str(file)])
    except DocumentError as problem:
        assert problem.what


# -- validators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "body", "pointer", "keyword"),
    [
        ("seekr-chat", {}, "", "required"),
        ("seekr-chat", {"messages": MESSAGES, "n": "2"}, "/n", "anyOf"),
        ("seekr-chat", {"messages": [{"role": "robot"}]}, "/messages/0/role", "enum"),
        ("seekr-completions", {"seed": 2**63}, "/seed", "maximum"),
        ("deepinfra-completions", {"model": 1, "prompt": "x"}, "/model", "type"),
        ("deepinfra-completions", {"model": "m", "prompt": "x", "temperature": 3}, "/temperature", "maximum"),
    ],
)
def test_problems_name_the_place(spec: str, body: Any, pointer: str, keyword: str) -> None:
    """A defect comes with the pointer of the value and the keyword that it breaks."""
    problems = operation_of(spec).request.problems(body)
    assert (pointer, keyword) in [(problem.pointer, problem.keyword) for problem in problems]
    assert all(str(problem).startswith(problem.pointer or "(the whole)") for problem in problems)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({"c": 1}, "(the whole): 'a' is a required property"),
        ("x", "(the whole): 'x' is not of type 'object' or 'x' is not of type 'null'"),
        ({"a": {"n": 1}}, "/a/n: 1 is not of type 'string'"),
        ({"a": 5}, "/a: 5 is not of type 'object' or 5 is not of type 'boolean'"),
    ],
)
def test_problem_is_that_of_the_branch_that_is_meant(instance: Any, expected: str) -> None:
    """Where one branch of a union has the instance's type, its defect is told, and not that null would do as well."""
    inner = {"anyOf": [{"type": "object", "properties": {"n": {"type": "string"}}}, {"type": "boolean"}]}
    validator = Validator(
        {"anyOf": [{"type": "object", "required": ["a"], "properties": {"a": inner}}, {"type": "null"}]}
    )

    assert str(validator.problems(instance)[0]) == expected


def test_pointers_are_escaped() -> None:
    """Keys with `~` and `/` are escaped (RFC 6901)."""
    assert pointer_of(["a/b", "c~d", 0, ""]) == "/a~1b/c~0d/0/"
    assert Validator({"properties": {"a/b": {"type": "null"}}}).problems({"a/b": 1})[0].pointer == "/a~1b"


def test_long_messages_are_cut() -> None:
    """A message does not repeat a book."""
    assert len(Validator({"type": "string"}).problems(["x" * 10_000])[0].message) <= 160


def test_patterns_that_python_does_not_know() -> None:
    """A pattern of ECMA 262 that Python's `re` cannot compile still judges, without the detail."""
    validator = Validator({"type": "string", "pattern": r"^\p{Lu}+$"})
    assert validator.problems("ABC") == []
    assert len(validator.problems("abc")) == 1


@pytest.mark.parametrize("spec", DIGESTS)
def test_the_two_validators_agree(spec: str) -> None:
    """jsonschema-rs and jsonschema come to the same verdict on any plain JSON value in any place of a request."""
    operation = operation_of(spec)
    slow = Draft202012Validator({"allOf": [operation.request_schema], "components": operation.components})
    base = plain_request(operation, "m", max_tokens=1)

    @given(st.dictionaries(st.sampled_from(sorted(operation.properties)), PLAIN, max_size=4), st.booleans())
    def agree(changes: dict[str, Any], on_top: bool) -> None:
        body = {**base, **changes} if on_top else changes
        assert operation.request.accepts(body) is slow.is_valid(body)
        assert bool(operation.request.problems(body)) is not slow.is_valid(body)

    agree()


# -- profiles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", catalog.profile_names())
def test_bundled_profiles(name: str) -> None:
    """A bundled profile is valid, is named after its file, and speaks of operations that exist in its documents."""
    profile = load_profile(name)
    assert profile.name == name
    (contract,) = load_contracts(profile.documents)
    operations = {operation.name: operation for operation in contract.operations}
    assert contract.profile == profile
    assert set(profile.operations) == set(operations)
    assert set(profile.dialect.default_max_tokens) <= set(operations)
    assert {each: said["family"] for each, said in profile.operations.items()} == {
        each: operation.family for each, operation in operations.items()
    }


def test_every_document_has_one_profile() -> None:
    """Each bundled document belongs to exactly one bundled profile; a document of one's own goes with openai."""
    named = [document for name in catalog.profile_names() for document in load_profile(name).documents]
    assert sorted(named) == sorted(catalog.DOCUMENTS)
    assert (default_profile("deepinfra-completions"), default_profile("own")) == ("deepinfra", "openai")


def test_documents_are_grouped_by_profile() -> None:
    """Documents of two vendors make two contracts; a profile that is named goes with all of them."""
    contracts = load_contracts([*DIGESTS, "seekr-chat"])
    assert [(each.profile.name, len(each.operations)) for each in contracts] == [("seekr", 2), ("deepinfra", 1)]
    (one,) = load_contracts(list(DIGESTS), "deepinfra")
    assert (one.profile.name, len(one.operations)) == ("deepinfra", 3)
    assert one.operation("seekr-chat") is not None
    assert one.operation("nobody") is None


def test_allowed_statuses() -> None:
    """A status is allowed when document or profile knows it."""
    contract = load_contracts(["seekr-chat"])[0]
    operation = contract.operations[0]
    assert [contract.allows_status(operation, status) for status in (422, 404, 500)] == [True, True, False]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("scheme: raw", "scheme: Basic", 7),
        ("required: true", "required: perhaps", 8),
        ("name: seekr", "name: Seekr!", 1),
        ("stream: true", "streams: true", 10),
        ("400, 422", "400, 1000", 12),
        ("title: X", "titel: X", 2),
    ],
)
def test_broken_profiles(tmp_path: Path, old: str, new: str, line: int) -> None:
    """A profile that breaks its schema is refused with the line."""
    text = """\
name: seekr
title: X
documents: []

auth:
  header: Authorization
  scheme: raw
  required: true
operations:
  own: {family: chat, stream: true}
dialect:
  malformed_status: [400, 422]
  unknown_model_status: [404]
  error_envelope: any
"""
    file = tmp_path / "p.yaml"
    file.write_text(text)
    assert load_profile(str(file)).auth.value("KEY") == "KEY"
    file.write_text(text.replace(old, new))
    with pytest.raises(DocumentError) as caught:
        load_profile(str(file))
    assert caught.value.where.startswith(f"{file}:{line}:")


@pytest.mark.parametrize("name", ["nobody", "", "a\0b", "x" * 5000, "."])
def test_unknown_profiles(name: str) -> None:
    """What is no profile is refused."""
    with pytest.raises(DocumentError):
        load_profile(name)
