"""The schema of what was seen where the document leaves an answer open."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from transcripts import (
    MODEL,
    chunked,
    chunks,
    contract_of,
    exchange,
    http,
    request,
    sse,
    stream_request,
    whole_answer,
)

from streamgauge import catalog
from streamgauge.bundle.writer import BundleWriter
from streamgauge.conformance.inferring import inferred_lines
from streamgauge.conformance.judge import cases_of
from streamgauge.contract.inferred import MOST_NAMES, inferred_schema
from streamgauge.reports.html import report_html
from streamgauge.reports.model import report_of
from streamgauge.runs import describe_run

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda deeper: st.lists(deeper, max_size=4) | st.dictionaries(st.text("abc", max_size=2), deeper, max_size=4),
    max_leaves=15,
)

SEEN: dict[str, tuple[list[Any], Any]] = {
    "nothing": ([], {}),
    "one": ([1], {"type": "integer"}),
    "two-kinds": (["x", None], {"type": ["null", "string"]}),
    "number": ([1, 1.5], {"type": "number"}),
    "boolean": ([True, 1], {"type": ["boolean", "integer"]}),
    "empty": ([[], {}], {"type": ["array", "object"]}),
    "items": ([[1], [], ["x"]], {"items": {"type": ["integer", "string"]}, "type": "array"}),
    "required": (
        [{"b": 1, "a": "x"}, {"b": None}],
        {
            "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}},
            "required": ["b"],
            "type": "object",
        },
    ),
    "none-required": (
        [{"a": 1}, {}],
        {"properties": {"a": {"type": "integer"}}, "type": "object"},
    ),
    "mapping-of-few": (
        [{"a": 1, "b": 2}, {"c": 3, "d": 4}, {"e": 5}],
        {"additionalProperties": {"type": "integer"}, "type": "object"},
    ),
    "no-mapping": (
        [{"a": 1, "b": 2, "c": 3}, {"d": 4}],
        {"properties": {name: {"type": "integer"} for name in "abcd"}, "type": "object"},
    ),
    "mapping": (
        [{f"token{number}": -0.5 for number in range(MOST_NAMES + 1)}],
        {"additionalProperties": {"type": "number"}, "type": "object"},
    ),
}


@pytest.mark.parametrize(("values", "schema"), SEEN.values(), ids=SEEN)
def test_what_is_inferred(values: list[Any], schema: Any) -> None:
    """Types, items and the names that are always there; names that are data make a mapping."""
    assert inferred_schema(values) == schema


@given(st.lists(JSON_VALUES, max_size=6), st.randoms(use_true_random=False))
def test_every_instance_keeps_it(values: list[Any], order: random.Random) -> None:
    """Every value seen keeps the schema, which is one, and the order of values does not matter, to the byte."""
    schema = inferred_schema(values)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert all(validator.is_valid(value) for value in values)
    shuffled = list(values)
    order.shuffle(shuffled)
    assert json.dumps(inferred_schema(shuffled)) == json.dumps(schema)


@given(JSON_VALUES, JSON_VALUES)
def test_it_refuses_what_was_never_seen(value: Any, other: Any) -> None:
    """A value of a kind that was not seen at all is refused."""
    kinds = {type(value), type(other)}
    if len(kinds) == 2 and kinds != {int, float}:
        assert not Draft202012Validator(inferred_schema([value])).is_valid(other) or _integral(value, other)


def _integral(value: Any, other: Any) -> bool:
    return isinstance(other, float) and other.is_integer() and isinstance(value, int) and not isinstance(value, bool)


def test_deep_values() -> None:
    """Below a depth anything goes, rather than that reading ends in a crash."""
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    assert Draft202012Validator(inferred_schema([deep])).is_valid(deep)


def lines_of(spec: str) -> list[dict[str, Any]]:
    """What is inferred from a right answer in each form, an error and an answer that is none."""
    contract, operation = contract_of(spec)
    seen = [
        exchange(operation, request(operation), http(200, json.dumps(whole_answer(operation)).encode())),
        exchange(operation, request(operation), http(200, b'{"error": "no"}')),
        exchange(operation, request(operation), http(200, b"[]")),
        exchange(operation, request(operation), http(422, b'{"detail": 1}')),
        exchange(operation, stream_request(operation), chunked(sse(chunks(operation)))),
    ]
    cases = cases_of(seen, operation, contract, target="t", model=MODEL)
    return inferred_lines({("t", operation.name): cases})


def test_only_open_answers_are_inferred() -> None:
    """A document that describes its answers needs no schema of what was seen."""
    assert lines_of("seekr-completions") == []
    assert inferred_lines({("t", "nobody"): []}) == []


def test_open_answers_are_inferred_by_form() -> None:
    """Whole answers and payloads have a schema each; errors and other statuses take no part; lines keep the bundle's schema."""
    lines = lines_of("deepinfra-completions")
    assert [(line["form"], line["instances"]) for line in lines] == [("whole", 1), ("chunk", 4)]
    _, operation = contract_of("deepinfra-completions")
    assert Draft202012Validator(lines[0]["schema"]).is_valid(whole_answer(operation))
    assert all(Draft202012Validator(lines[1]["schema"]).is_valid(payload) for payload in chunks(operation))
    assert lines[1]["schema"]["required"] == ["choices", "created", "id", "model", "object"]
    validator = Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/inferred"})
    assert [list(validator.iter_errors(line)) for line in lines] == [[], []]


def test_the_report_shows_it(tmp_path: Path) -> None:
    """The report has each schema behind a summary, escaped, and nothing about it where there is none."""
    writer = BundleWriter(tmp_path / "bundle")
    writer.meta(describe_run("check", [], seed=0))
    assert b"leaves open" not in report_html(report_of(writer.path))
    schema = {"properties": {"<script>": {"type": "string"}}, "type": "object"}
    writer.inferred([{"target": "t<", "operation": "o", "form": "chunk", "instances": 3, "schema": schema}])
    page = report_html(report_of(writer.path))
    assert b"t&lt;, o: one payload of a stream, from 3 seen</summary>" in page
    assert b"&#34;&lt;script&gt;&#34;: {" in page
    assert b"<script" not in page
