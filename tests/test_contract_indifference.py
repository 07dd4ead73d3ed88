"""Schemas whose verdict cannot depend on what a text says, and such whose verdict can."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.contract.contract import SSE, load_contracts
from streamgauge.contract.indifference import is_indifferent
from streamgauge.contract.validator import Validator

TEXT = frozenset({"text"})


def of(text: Any, **others: Any) -> dict[str, Any]:
    """A schema of objects with such a text."""
    return {"type": "object", "properties": {"text": text, **others}}


LONG, SHORT = {"minLength": 3}, {"type": "string", "maxLength": 2}

INDIFFERENT: dict[str, Any] = {
    "everything": True,
    "nothing": False,
    "a string": of({"type": "string"}),
    "a string or null": of({"type": ["string", "null"], "description": "x", "x-more": {"pattern": "a"}}),
    "whole number or any string": of({"oneOf": [{"type": "integer"}, {"type": "string"}]}),
    "never": of({"not": {"type": "string"}}),
    "null is allowed by name": of({"enum": [None, 3]}),
    "length of another member": of({"type": "string"}, role={"enum": ["a"], "minLength": 1}),
    "by reference": {**of({"$ref": "#/$defs/a"}), "$defs": {"a": {"type": "string"}}},
    "in a list of objects": of({"type": "string"}, list={"items": of({"type": "string"}), "prefixItems": [True]}),
    "nested in itself": of({"type": "string"}, next={"$ref": "#"}),
    "names of members": of({"type": "string"}) | {"propertyNames": {"maxLength": 9}},
    "an unused part": of({"type": "string"}) | {"$defs": {"a": LONG}},
}

DEPENDENT: dict[str, Any] = {
    "length": of(LONG),
    "pattern": of({"pattern": "a"}),
    "one of these": of({"enum": ["a", "b"]}),
    "this": of({"const": "a"}),
    "in a branch": of({"anyOf": [{"type": "null"}, SHORT]}),
    "not": of({"not": SHORT}),
    "if": of({"if": SHORT, "then": False}),
    "by reference": of({"$ref": "#/$defs/a"}) | {"$defs": {"a": {"allOf": [LONG]}}},
    "in one branch of several": of({"oneOf": [SHORT, {"type": "null"}]}),
    "then": of({"if": True, "then": SHORT}),
    "else": of({"if": False, "else": SHORT}),
    "first of a list": {"prefixItems": [of(SHORT)]},
    "rest of a list": {"unevaluatedItems": of(SHORT)},
    "any other member": {"additionalProperties": SHORT},
    "what nobody looked at": {"unevaluatedProperties": SHORT},
    "by pattern": {"patternProperties": {"^t": SHORT}},
    "depending on another": {"dependentSchemas": {"text": of(SHORT)}},
    "the whole object": {"const": {"text": "a"}},
    "one of these objects": of({"type": "string"}) | {"enum": [{"text": "a"}]},
    "all different": {"items": of({"type": "string"}), "uniqueItems": True},
    "deep inside": of(True, list={"items": of(True, list={"contains": of(LONG)})}),
    "a keyword that nobody knows": of({"type": "string", "kind": "short"}),
    "another document": of({"$ref": "https://example.invalid/a"}),
    "nowhere": of({"$ref": "#/$defs/b"}),
    "no schema": of(3),
    "a base of its own": of({"$id": "https://example.invalid/", "type": "string"}),
    "resolved at run time": of({"$dynamicRef": "#a"}),
}


@pytest.mark.parametrize("name", INDIFFERENT)
def test_indifferent(name: str) -> None:
    """Nothing in them asks what the text says."""
    assert is_indifferent({"allOf": [INDIFFERENT[name]], **_definitions(INDIFFERENT[name])}, TEXT)


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent(name: str) -> None:
    """Something asks, or may ask."""
    assert not is_indifferent({"allOf": [DEPENDENT[name]], **_definitions(DEPENDENT[name])}, TEXT)


def _definitions(schema: Any) -> dict[str, Any]:
    """The schema's own, at the root that references are looked up from."""
    return {"$defs": schema["$defs"]} if isinstance(schema, dict) and "$defs" in schema else {}


STRINGS = st.sampled_from(["a", "ab", "abc", "abcd", "b"])
LEAVES = st.one_of(
    st.just({"type": "string"}),
    st.sampled_from(["string", "null", "integer", "object", "array"]).map(lambda name: {"type": name}),
    st.integers(1, 4).map(lambda size: {"minLength": size}),
    st.integers(1, 4).map(lambda size: {"maxLength": size}),
    st.lists(STRINGS | st.none(), min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.just({"const": {"text": "ab"}}),
    st.just({"pattern": "b"}),
    st.just({"required": ["text"]}),
    st.booleans(),
)
NAMES = st.sampled_from(["text", "other"])


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.dictionaries(NAMES, inner, min_size=1).map(lambda parts: {"properties": parts}),
        st.builds(lambda key, parts: {key: parts}, st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"]), some),
        st.builds(
            lambda key, part: {key: part},
            st.sampled_from(["not", "items", "contains", "additionalProperties", "unevaluatedProperties"]),
            inner,
        ),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda a, b: {**a, **b} if isinstance(a, dict) and isinstance(b, dict) else a, inner, inner),
        inner.map(lambda part: {"patternProperties": {"t$": part}}),
        inner.map(lambda part: {"dependentSchemas": {"text": part}}),
    )


SCHEMAS = st.recursive(LEAVES, _deeper, max_leaves=8)


def _values(text: str) -> list[Any]:
    one = {"text": text}
    return [one, {"other": one}, {"other": [one, {"text": text, "other": None}]}, {"text": text, "other": "ab"}, [one]]


@given(SCHEMAS, STRINGS, STRINGS)
def test_a_proof_holds(schema: Any, first: str, second: str) -> None:
    """Where indifference is proved, no two texts get different verdicts."""
    validator = Validator(schema)
    if is_indifferent(validator.root, TEXT):
        for one, other in zip(_values(first), _values(second), strict=True):
            assert validator.accepts(one) == validator.accepts(other)


@pytest.mark.parametrize(
    "document", ["openai-chat", "openai-completions", "seekr-chat", "seekr-completions", "deepinfra-completions"]
)
def test_documents(document: str) -> None:
    """What all given documents say of streams leaves the text free, so that the quick way is open to them."""
    for operation in load_contracts([document])[0].operations:
        assert is_indifferent(operation.response(200, SSE).root, TEXT | {"content", "reasoning_content"})
