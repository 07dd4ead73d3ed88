"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12, and which answer of a document is meant."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge import catalog
from streamgauge.conformance.probes.generated import generated
from streamgauge.contract.contract import JSON, SSE, Contract, Operation, load_contracts
from streamgauge.contract.media import matching_media_type, matching_status
from streamgauge.errors import DocumentError

BIG = 9223372036854776000
NULL = {"type": "null"}


def contract_of(path: Path, schema: Any, version: str = "3.1.0", responses: Any = None, **more: Any) -> Contract:
    """The contract of a document with one operation whose request has this schema."""
    operation = {
        "requestBody": {"content": {JSON: {"schema": schema}}},
        "responses": responses or {"200": {"description": ""}},
    }
    found = {"openapi": version, "paths": {"/completions": {"post": operation}}, **more}
    file = path / "own.json"
    file.write_text(json.dumps(found))
    return load_contracts([str(file)])[0]


def operation_of(path: Path, schema: Any, version: str = "3.1.0", responses: Any = None, **more: Any) -> Operation:
    """Its operation."""
    return contract_of(path, schema, version, responses, **more).operations[0]


ANY_NULL = {"schemas": {"S": {"type": "string"}, "N": {"type": "string", "nullable": True}}}
S = {"$ref": "#/components/schemas/S"}

READINGS: dict[str, tuple[str, Any, list[Any], list[Any]]] = {
    "nullable": ("both", {"type": "string", "nullable": True}, [None, "x"], [1]),
    "nullable-false": ("both", {"type": "string", "nullable": False}, ["x"], [None]),
    "nullable-text": ("both", {"type": "string", "nullable": "true"}, ["x"], [None]),
    "nullable-enum": ("both", {"type": "string", "enum": ["x"], "nullable": True}, [None, "x"], ["y"]),
    "nullable-enum-untyped": ("both", {"enum": ["x"], "nullable": True}, [None, "x"], ["y"]),
    "nullable-all-of": ("both", {"allOf": [S], "nullable": True}, [None, "x"], [1]),
    "nullable-any-of": ("both", {"anyOf": [S, {"type": "integer"}], "nullable": True}, [None, "x", 1], [[]]),
    "nullable-one-of": ("both", {"oneOf": [S, NULL], "nullable": True}, [None, "x"], [1]),
    "nullable-ref": ("both", {**S, "nullable": True}, [None, "x"], [1]),
    "nullable-behind-ref": ("both", {"$ref": "#/components/schemas/N"}, [None, "x"], [1]),
    "nullable-typed-all-of": ("both", {"type": "string", "allOf": [S], "nullable": True}, [None, "x"], [1]),
    "nullable-alone": ("both", {"nullable": True}, [None, "x", 1], []),
    "nullable-type-list": ("3.1.0", {"type": ["string", "null"], "nullable": True}, [None, "x"], [1]),
    "nullable-const": ("3.1.0", {"const": "x", "nullable": True}, [None, "x"], ["y"]),
    "nullable-called-so": (
        "both",
        {"properties": {"nullable": {"type": "boolean"}, "maximum": {"type": "integer"}}, "required": ["nullable"]},
        [{"nullable": True, "maximum": BIG}],
        [{"nullable": None}, {}],
    ),
    "nullable-in-data": (
        "both",
        {"enum": [{"type": "string", "nullable": True}], "default": {"maximum": BIG}, "example": {"$ref": "x"}},
        [{"type": "string", "nullable": True}],
        [{"type": ["string", "null"]}],
    ),
    "const-data": (
        "3.1.0",
        {"const": {"minimum": -BIG, "type": "integer"}},
        [{"minimum": -BIG, "type": "integer"}],
        [{}],
    ),
    "exclusive-minimum": ("3.0.3", {"type": "number", "minimum": 0, "exclusiveMinimum": True}, [0.1], [0, -1]),
    "exclusive-maximum": ("3.0.3", {"type": "number", "maximum": 2, "exclusiveMaximum": True}, [1.9], [2]),
    "exclusive-not": ("3.0.3", {"type": "number", "minimum": 0, "exclusiveMinimum": False}, [0], [-1]),
    "exclusive-alone": ("3.0.3", {"type": "number", "exclusiveMinimum": True}, [-1], ["x"]),
    "exclusive-number": ("3.1.0", {"type": "number", "exclusiveMinimum": 0}, [0.1], [0]),
    "int64": (
        "both",
        {"type": "integer", "maximum": BIG, "minimum": -BIG},
        [2**63 - 1, -(2**63)],
        [2**63, -(2**63) - 1],
    ),
    "int64-exclusive": ("3.1.0", {"type": "integer", "exclusiveMaximum": BIG}, [2**63 - 1], [2**63]),
    "int64-small": ("both", {"type": "integer", "maximum": 5}, [5], [6]),
    "int64-not-numbers": ("both", {"type": "number", "maximum": 1e300}, [1e299, 2**70], [1e301]),
    "format": ("both", {"type": "integer", "format": "int32"}, [2**40], ["x"]),
    "format-date": ("both", {"type": "string", "format": "date-time"}, ["no date"], [1]),
    "ref-siblings-30": ("3.0.3", {**S, "maxLength": 1}, ["long"], [1]),
    "ref-siblings-31": ("3.1.0", {**S, "maxLength": 1}, ["x"], ["long", 1]),
    "type-list": ("3.1.0", {"type": ["string", "integer"]}, ["x", 1], [None, 1.5]),
    "prefix-items": (
        "3.1.0",
        {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
        [[1, "x"]],
        [["x"], [1, 1]],
    ),
    "items-list": ("3.1.0", {"items": [{"type": "integer"}]}, [[1, "x"]], [["x"]]),
    "boolean-true": ("3.1.0", True, [None, {}, 1], []),
    "boolean-false": ("3.1.0", {"properties": {"x": False}}, [{}], [{"x": 1}]),
    "defs": ("3.1.0", {"$defs": {"D": {"type": "integer", "nullable": True}}, "properties": {}}, [{}], []),
    "discriminator": (
        "both",
        {
            "oneOf": [{"properties": {"k": {"enum": ["s"]}}, "required": ["k"], "type": "object"}, S],
            "discriminator": {"propertyName": "k", "mapping": {"s": "other.yaml#/S", "t": "#/components/schemas/S"}},
        },
        [{"k": "s"}, "x"],
        [{"k": "t"}, 1],
    ),
    "schema-keyword": ("3.1.0", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}, ["x"], [1]),
}


@pytest.mark.parametrize(
    ("version", "schema", "right", "wrong"),
    [
        pytest.param(version, schema, right, wrong, id=f"{name}-{version}")
        for name, (versions, schema, right, wrong) in READINGS.items()
        for version in (("3.0.3", "3.1.0") if versions == "both" else (versions,))
    ],
)
def test_how_schemas_are_read(tmp_path: Path, version: str, schema: Any, right: list[Any], wrong: list[Any]) -> None:
    """Each version's keywords mean what that version says (OpenAPI 3.0.3, 4.7.24; 3.1.1, 4.8.24), and what its users mean."""
    request = operation_of(tmp_path, schema, version, components=ANY_NULL).request
    assert [request.accepts(value) for value in right] == [True] * len(right)
    assert [request.accepts(value) for value in wrong] == [False] * len(wrong)
    assert all(request.problems(value) for value in wrong)


@pytest.mark.parametrize(
    ("schema", "noted"),
    [
        ({"type": "string", "nullable": True}, False),
        ({"nullable": True}, False),
        ({"allOf": [S], "nullable": True}, True),
        ({"properties": {"a": {**S, "nullable": True}, "b": {**S, "nullable": True}}}, True),
        ({"enum": ["x"], "nullable": True}, True),
    ],
)
def test_widening_is_noted(tmp_path: Path, schema: Any, noted: bool) -> None:
    """Where `nullable` has no meaning by OpenAPI 3.0.3 and is given one, that is said once, with the place."""
    notes = contract_of(tmp_path, schema, "3.0.3", components=ANY_NULL).notes
    assert [note.startswith("own: `nullable` without a `type`") for note in notes] == [True] * noted
    assert all(f"{tmp_path / 'own.json'}:1:" in note for note in notes)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": 7}, "/type"),
        ({"properties": {"a": {"allOf": [{"pattern": "("}]}}}, "/properties/a/allOf/0/pattern"),
        ({"properties": {"a": [1]}}, "/properties/a"),
        ({"allOf": [{"$ref": "#/components/schemas/Bad"}]}, "#/components/schemas/Bad/maximum"),
        ({"allOf": ["x"], "nullable": True}, "/allOf/0"),
        ({"allOf": [{"minimum": "x"}], "nullable": True}, ""),
        ("text", ""),
    ],
    ids=str,
)
def test_broken_schemas_are_named_by_pointer(tmp_path: Path, schema: Any, pointer: str) -> None:
    """What is wrong with a schema is said with the pointer of the part to blame, and its line."""
    with pytest.raises(DocumentError) as caught:
        operation_of(tmp_path, schema, components={"schemas": {"Bad": {"maximum": "7"}}})
    start = "/paths/~1completions/post/requestBody/content/application~1json/schema"
    expected = pointer.removeprefix("#") if pointer.startswith("#") else start + pointer
    assert f"{expected} " in caught.value.what
    assert caught.value.where.startswith(f"{tmp_path / 'own.json'}:1:")


def test_properties_from_everywhere(tmp_path: Path) -> None:
    """Properties and requirements are found through references, `allOf`, and an alternative that has no other but null."""
    schema = {
        "allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
        "anyOf": [{"properties": {"c": {}}}, NULL],
        "oneOf": [{"properties": {"d": {}}}, {"properties": {"e": {}}}],
        "properties": {"a": {"type": "string"}},
    }
    components = {"schemas": {"A": {"properties": {"a": {}, "f": {}}, "required": ["f"]}}}
    operation = operation_of(tmp_path, schema, components=components)
    assert sorted(operation.properties) == ["a", "b", "c", "f"]
    assert operation.properties["a"] == {"type": "string"}
    assert sorted(operation.required) == ["b", "f"]


def test_recursive_requests_are_generated(tmp_path: Path) -> None:
    """Schemathesis makes cases of a request whose schema holds itself, and each is judged."""
    tree = {
        "type": "object",
        "required": ["model", "prompt"],
        "properties": {
            "model": {"type": "string"},
            "prompt": {"type": "string"},
            "max_tokens": {"type": "integer", "nullable": True},
            "child": {"$ref": "#/components/schemas/Tree"},
        },
    }
    schema = {"$ref": "#/components/schemas/Tree"}
    operation = operation_of(tmp_path, schema, "3.0.3", components={"schemas": {"Tree": tree}})
    made = list(generated(operation, "m", count=0))
    assert {probe.id.partition("-")[0] for probe in made} >= {"generated.broken", "generated.valid"}


# -- which answer is meant ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "status", "found"),
    [
        (("200", "4XX", "404", "default"), 404, "404"),
        (("200", "4XX", "404", "default"), 400, "4XX"),
        (("200", "4xx"), 499, "4xx"),
        (("200", "4XX", "default"), 500, "default"),
        (("200", "4XX"), 500, None),
        (("x-4XX", "40X", "444"), 404, None),
    ],
)
def test_statuses(keys: tuple[str, ...], status: int, found: str | None) -> None:
    """An explicit code goes before its range, and that before `default` (OpenAPI 3.1.1, 4.8.16.2)."""
    assert matching_status(keys, status) == found


@pytest.mark.parametrize(
    ("keys", "wanted", "found"),
    [
        (("*/*", "application/*", JSON), JSON, JSON),
        (("*/*", "application/*"), JSON, "application/*"),
        (("*/*", "text/*"), JSON, "*/*"),
        (("application/json; charset=utf-8",), JSON, "application/json; charset=utf-8"),
        (("Application/JSON",), JSON, "Application/JSON"),
        (("application/problem+json", "*/*"), JSON, "application/problem+json"),
        (("application/problem+json",), "application/problem+json", "application/problem+json"),
        (("text/plain", "image/*"), JSON, None),
        (("*/*", "text/*"), SSE, None),
        ((JSON, "text/event-stream;charset=utf-8"), SSE, "text/event-stream;charset=utf-8"),
    ],
)
def test_media_types(keys: tuple[str, ...], wanted: str, found: str | None) -> None:
    """The most specific key counts (OpenAPI 3.1.1, 4.8.14.1), parameters apart; a range never means an event stream."""
    assert matching_media_type(keys, wanted) == found


def test_answers_by_range_and_default(tmp_path: Path) -> None:
    """Ranges and the default take part in everything that is asked about a status."""
    content = {"application/problem+json; charset=utf-8": {"schema": {"type": "object"}}}
    responses = {"200": {"description": ""}, "4XX": {"description": "", "content": content}, "x-note": 1}
    contract = contract_of(tmp_path, {}, responses=responses)
    (operation,) = contract.operations
    assert (operation.statuses, operation.status_keys) == ((200,), ("200", "4XX"))
    assert [contract.allows_status(operation, status) for status in (200, 418, 500, 405)] == [True, True, False, True]
    assert (operation.documents_body(422, JSON), operation.documents_body(500, JSON)) == (True, False)
    assert (operation.json_types(422), operation.json_types(500)) == (("application/problem+json",), (JSON,))
    assert not operation.response(422, JSON).accepts([])
    assert operation.media_types(404) == tuple(content)
    everything = contract_of(tmp_path, {}, responses={"default": {"description": "", "content": content}})
    (operation,) = everything.operations
    assert [everything.allows_status(operation, status) for status in (200, 404, 500, 503)] == [
        True,
        True,
        False,
        False,
    ]
    assert operation.documents_body(500, JSON)  # `default` says what a failure looks like, not that there may be one
    named = contract_of(tmp_path, {}, responses={"default": {"description": ""}, "5XX": {"description": ""}})
    assert named.allows_status(named.operations[0], 503)


@pytest.mark.parametrize(
    ("schema", "documented"),
    [
        ({}, False),
        (True, False),
        ({"title": "Response", "description": "x", "x-y": 1}, False),
        ({"$ref": "#/components/schemas/Open"}, False),
        ({"type": "object"}, True),
        (False, True),
        ({"$ref": "#/components/schemas/S"}, True),
    ],
    ids=str,
)
def test_open_answers(tmp_path: Path, schema: Any, documented: bool) -> None:
    """A schema that refuses nothing documents nothing."""
    components = {"schemas": {"Open": {"title": "Any"}, "S": {"type": "string"}}}
    responses = {"200": {"description": "", "content": {JSON: {"schema": schema}}}}
    assert (
        operation_of(tmp_path, {}, responses=responses, components=components).documents_body(200, JSON) is documented
    )


# -- documents that are broken anywhere -----------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "x", "version": "1"},
    "security": [{"Key": []}],
    "paths": {
        "/v1/chat/completions": {
            "parameters": [{"name": "a", "in": "query", "schema": {"type": "string"}}],
            "post": {
                "parameters": [{"$ref": "#/components/parameters/P"}],
                "requestBody": {"$ref": "#/components/requestBodies/B"},
                "responses": {"200": {"$ref": "#/components/responses/R"}, "4XX": {"description": ""}, "default": {}},
            },
        },
    },
    "components": {
        "parameters": {"P": {"name": "b", "in": "header", "schema": {"type": "string"}}},
        "requestBodies": {"B": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/S"}, "example": {}}}}},
        "responses": {"R": {"description": "", "content": {JSON: {"schema": {}}, "*/*": {}}}},
        "schemas": {
            "S": {
                "type": "object",
                "required": ["messages"],
                "properties": {
                    "messages": {"type": "array", "items": {"$ref": "#/components/schemas/M"}, "nullable": True},
                    "stream": {"type": "boolean", "nullable": True},
                    "n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": BIG},
                },
                "allOf": [{"properties": {"x": {"enum": ["a"]}}}],
            },
            "M": {"oneOf": [{"$ref": "#/components/schemas/S"}], "discriminator": {"mapping": {"a": "#/b"}}},
        },
        "securitySchemes": {"Key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}
DOCUMENTS = {"small": SMALL, **{name: yaml.safe_load(catalog.document_text(name)) for name in catalog.DOCUMENTS}}
VALUES: list[Any] = [
    None,
    True,
    7,
    -1.5,
    "text",
    "#/paths",
    "$ref",
    [],
    [1],
    ["x"],
    {},
    {"a": 1},
    {"$ref": "#/components"},
]


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every part of a document but its root."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, value in items for found in ((*at, key), *places(value, (*at, key)))]


PLACES = {name: places(found) for name, found in DOCUMENTS.items()}


def broken(name: str, place: tuple[Any, ...], value: Any, *, delete: bool) -> Any:
    """The document with one part deleted or replaced."""
    found = copy.deepcopy(DOCUMENTS[name])
    above = found
    for step in place[:-1]:
        above = above[step]
    if delete:
        del above[place[-1]]
    else:
        above[place[-1]] = value
    return found


def is_read_or_refused(file: Path, found: Any) -> None:
    """Loading either works or raises a DocumentError that says what and where."""
    file.write_text(json.dumps(found))
    try:
        for contract in load_contracts([str(file)]):
            for operation in contract.operations:
                assert isinstance(operation.properties, dict)
                assert operation.definition["responses"] is not None
    except DocumentError as problem:
        assert problem.what
        assert "\n" not in problem.what
        assert problem.where.startswith(str(file))


def test_the_small_document_is_right(tmp_path: Path) -> None:
    """The document that is broken below can be read as it stands."""
    (tmp_path / "own.json").write_text(json.dumps(SMALL))
    (contract,) = load_contracts([str(tmp_path / "own.json")])
    assert (contract.profile.auth.header, contract.operations[0].streams) == ("X-Key", True)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_small_document_broken_anywhere(tmp_path: Path, value: Any) -> None:
    """Whatever stands at any one place of a document, it is read or refused, never anything else."""
    for place in PLACES["small"]:
        is_read_or_refused(tmp_path / "own.json", broken("small", place, value, delete=False))


def test_a_small_document_with_anything_missing(tmp_path: Path) -> None:
    """Whatever one part is missing, the document is read or refused."""
    for place in PLACES["small"]:
        is_read_or_refused(tmp_path / "own.json", broken("small", place, None, delete=True))


@given(st.data())
@settings(max_examples=60)
def test_bundled_documents_broken_anywhere(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """The same holds of the real documents."""
    name = data.draw(st.sampled_from(sorted(catalog.DOCUMENTS)))
    place = data.draw(st.sampled_from(PLACES[name]))
    delete = data.draw(st.booleans())
    value = None if delete else data.draw(st.sampled_from(VALUES))
    is_read_or_refused(tmp_path_factory.getbasetemp() / "broken.json", broken(name, place, value, delete=delete))
