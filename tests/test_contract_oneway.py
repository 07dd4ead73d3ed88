"""`readOnly` and `writeOnly` beside `required` (OpenAPI 3.0.3, 4.7.24.2): each binds one direction only."""

from pathlib import Path
from typing import Any

import pytest
from test_contract_normal import operation_of

from streamgauge.conformance.probes.generated import generated
from streamgauge.contract.contract import JSON, Operation

COMPONENTS = {
    "schemas": {
        "Id": {"type": "string", "readOnly": True},
        "Base": {"type": "object", "required": ["id"], "properties": {"id": {"$ref": "#/components/schemas/Id"}}},
        "Loose": {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}},
    }
}
ID = {"type": "string", "readOnly": True}
BASE, LOOSE, REF = ({"$ref": f"#/components/schemas/{name}"} for name in ("Base", "Loose", "Id"))

FORMS: dict[str, Any] = {
    "itself": {"type": "object", "required": ["id"], "properties": {"id": ID}},
    "behind a reference": {"type": "object", "required": ["id"], "properties": {"id": REF}},
    "beside allOf": {"required": ["id"], "properties": {"id": {"allOf": [{"type": "string"}], "readOnly": True}}},
    "nullable": {"required": ["id"], "properties": {"id": {**ID, "nullable": True}}},
    "beside a reference": {"required": ["id"], "properties": {"id": {**LOOSE, "readOnly": True}}},
    "referred to": BASE,
    "in allOf": {"allOf": [BASE, {"type": "object"}]},
    "required elsewhere": {"allOf": [LOOSE, {"required": ["id"]}]},
    "required outside": {"allOf": [LOOSE], "required": ["id"]},
    "in anyOf": {"properties": {"id": ID}, "anyOf": [{"required": ["id"]}]},
}
KEPT: dict[str, tuple[Any, Any]] = {
    "unmarked": ({"required": ["id"], "properties": {"id": {"type": "string"}}}, {}),
    "marked false": ({"required": ["id"], "properties": {"id": {"type": "string", "readOnly": False}}}, {}),
    "unknown": ({"required": ["id"]}, {}),
    "other object": ({"properties": {"id": ID, "x": {"required": ["id"]}}}, {"x": {}}),
    "type": ({"required": ["id"], "properties": {"id": ID}}, {"id": 7}),
    "not": ({"not": {"required": ["id"], "properties": {"id": ID}}}, {"id": "x"}),
}


def turned(value: Any) -> Any:
    """The same with the other mark."""
    if isinstance(value, dict):
        return {"writeOnly" if key == "readOnly" else key: turned(item) for key, item in value.items()}
    return [turned(item) for item in value] if isinstance(value, list) else value


def both(path: Path, schema: Any, version: str, *, write_only: bool) -> Operation:
    """An operation that takes and answers this schema."""
    change = turned if write_only else lambda value: value
    answer = {"200": {"description": "", "content": {JSON: {"schema": change(schema)}}}}
    return operation_of(path, change(schema), version, answer, components=change(COMPONENTS))


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("write_only", [False, True], ids=["readOnly", "writeOnly"])
@pytest.mark.parametrize("form", FORMS)
def test_marked_property_is_required_of_one_side(tmp_path: Path, form: str, write_only: bool, version: str) -> None:
    """The quoted paragraph: required of the answer only where `readOnly`, and of the request only where `writeOnly`."""
    operation = both(tmp_path, FORMS[form], version, write_only=write_only)

    assert operation.request.accepts({}) is not write_only
    assert operation.response(200, JSON).accepts({}) is write_only
    assert operation.request.accepts({"id": {} if form == "beside a reference" else "x"})


@pytest.mark.parametrize("write_only", [False, True], ids=["readOnly", "writeOnly"])
@pytest.mark.parametrize("form", KEPT)
def test_everything_else_stands(tmp_path: Path, form: str, write_only: bool) -> None:
    """Requirements of other properties, types, and what is said within `not`, hold in both directions."""
    schema, wrong = KEPT[form]
    operation = both(tmp_path, schema, "3.1.0", write_only=write_only)

    assert not operation.request.accepts(wrong)
    assert not operation.response(200, JSON).accepts(wrong)


def test_request_does_not_need_what_the_answer_brings(tmp_path: Path) -> None:
    """Nor do the probes: cases of such a request are made, and the valid ones are valid."""
    schema = {
        "type": "object",
        "required": ["model", "prompt", "id"],
        "properties": {
            "model": {"type": "string"},
            "prompt": {"type": "string"},
            "max_tokens": {"type": "integer"},
            "id": ID,
        },
    }
    operation = operation_of(tmp_path, schema, "3.0.3")

    assert operation.required == ("model", "prompt")
    made = list(generated(operation, "m", count=0))
    assert {probe.id.partition("-")[0] for probe in made} >= {"generated.broken", "generated.valid"}
