"""What the reference endpoint makes for patterns, schemas, grammars and tags: right, or honestly refused."""

import random
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.reference.grammars import derived
from streamgauge.reference.patterns import CannotMakeError, matching
from streamgauge.reference.schemas import instance
from streamgauge.reference.tags import tagged
from streamgauge.reference.tokens import count, encode, is_token, text_of, texts_of


def chance(seed: int = 0) -> random.Random:
    """Chance that a seed fixes."""
    return random.Random(seed)


@settings(database=None, derandomize=True)
@given(st.text())
def test_every_text_has_tokens(text: str) -> None:
    """Encoded and decoded it is the same, and each id is in the vocabulary and below 2^31-1."""
    tokens = encode(text)
    assert texts_of(tokens) == text
    assert len(tokens) == count(text)
    assert all(is_token(token) and token < 2**31 - 1 for token in tokens)
    assert all(encode(text_of(token)) == (token,) for token in tokens)


@pytest.mark.parametrize(
    "token", [-1, 35, 64, 2**28 + 10**7, 2**29, 2**29 + 0xD800, 2**29 + 0x110000, 2**31 - 1, 1.5, 1e300]
)
def test_what_is_no_token(token: float) -> None:
    """Ids between and beyond the ranges, those of surrogates, and what is no whole number."""
    assert not is_token(token)


PATTERNS = [
    r"abc", r"[a-c]{3}", r"(foo|bar)+\d?", r"\w+@\w+\.(com|org)", r"^x{2,}$", r"[^a-z\d]{2}", r"(a)(b)\2\1", r".*", r"",
    r"\d{4}-[01]\d", r"\S\s\D\W", r"(?:yes|no)", r"[\w-]{5}", r"é+", r"(?i:ab)c", r"\bab\b", r"(?>ab|a)c",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", range(5))
def test_text_for_a_pattern(pattern: str, seed: int) -> None:
    """The whole pattern matches it."""
    assert re.fullmatch(pattern, matching(pattern, chance(seed)))


@pytest.mark.parametrize("pattern", ["(", r"a(?!a)a(?<!a)", "[^\x00-\U0010ffff]", "a{5000}", r"a\bb", "(?P<x"])
def test_pattern_that_is_refused(pattern: str) -> None:
    """No pattern, one that matches nothing, or one that only matches what is too long."""
    with pytest.raises(CannotMakeError):
        matching(pattern, chance())


SCHEMAS: list[Any] = [
    True,
    {},
    {"const": [1, None]},
    {"enum": ["a", 2]},
    {"type": "integer", "minimum": 3, "maximum": 3},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 7},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "maximum": -5},
    {"type": "string", "minLength": 30, "maxLength": 31},
    {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 4},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": False},
    {"type": "array", "contains": {"const": "x"}},
    {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"], "minProperties": 3},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    {"type": "object", "patternProperties": {"^k[0-9]$": {"const": 1}}, "minProperties": 1, "additionalProperties": False},
    {"anyOf": [{"type": "string", "minLength": 5}, {"type": "integer"}]},
    {"oneOf": [{"const": 1}, {"const": 2}]},
    {"allOf": [{"type": "integer", "minimum": 5}, {"maximum": 6}, {"minimum": 6}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/c"}}}, "c": {"const": 9}}},
    {"$defs": {"n": {"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]}},
                     "required": ["next"]}}, "$ref": "#/$defs/n"},
    {"type": ["string", "null"]},
    {"not": {"type": "string"}, "type": ["string", "integer"]},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("seed", range(4))
def test_value_for_a_schema(schema: Any, seed: int) -> None:
    """Judged by jsonschema, which had no part in its making."""
    jsonschema.Draft202012Validator(schema).validate(instance(schema, chance(seed)))


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"type": "nonsense"},
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "#/$defs/missing"},
        {"$schema": "http://127.0.0.1:9/meta", "type": "string"},
        {"$dynamicRef": "#x"},
        {"$ref": "#"},
        {"type": "integer", "minimum": 5, "maximum": 4},
    ],
)
def test_schema_that_is_refused(schema: Any) -> None:
    """No schema, one that nothing keeps, or one that refers to elsewhere: nothing is fetched."""
    with pytest.raises(CannotMakeError):
        instance(schema, chance())


LEAVES = st.sampled_from(
    [
        {"type": "string", "minLength": 2},
        {"type": "integer", "minimum": 3, "maximum": 9},
        {"enum": [None, 1, "é"]},
        {"type": "number", "multipleOf": 0.5},
        {"type": "boolean"},
        {"pattern": "^a[bc]+$", "type": "string"},
    ]
)


@settings(database=None, derandomize=True, max_examples=60)
@given(
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.builds(
                lambda item, least: {"type": "array", "items": item, "minItems": least}, inner, st.integers(0, 3)
            ),
            st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
            st.builds(
                lambda members: {"type": "object", "properties": members, "required": sorted(members)},
                st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            ),
        ),
        max_leaves=6,
    )
)
def test_ordinary_schemas_are_kept(schema: Any) -> None:
    """Law: schemas of what most clients write get a value that they accept."""
    jsonschema.Draft202012Validator(schema).validate(instance(schema, chance()))


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ('root ::= "yes" | "no"', "yes|no"),
        ('root ::= a b\na ::= "x"+\nb ::= ("y" | "z")?', "x+[yz]?"),
        ('# words\nroot ::= [0-9] "\\n"\n  | "a"*', "[0-9]\n|a*"),
        ('start: "SELECT " column\ncolumn: "a" | "b"', "SELECT [ab]"),
        ('root ::= "(" root ")" | "x"', r"\(*x\)*"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_text_for_a_grammar(grammar: str, pattern: str, seed: int) -> None:
    """Rules, literals, classes, sequences, alternatives, repetitions."""
    assert re.fullmatch(pattern, derived(grammar, chance(seed)))


@pytest.mark.parametrize(
    "grammar",
    ["", "root", 'other ::= "x"', "root ::= missing", 'root ::= "a', "root ::= (", "root ::= root", "?start: /x/"],
)
def test_grammar_that_is_refused(grammar: str) -> None:
    """No grammar, or more of it than is known here."""
    with pytest.raises(CannotMakeError):
        derived(grammar, chance())


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"type": "const_string", "value": "a"}, "a"),
        ({"type": "json_schema", "json_schema": {"const": {"a": 1}}}, '{"a":1}'),
        ({"type": "regex", "pattern": "a{2}"}, "aa"),
        ({"type": "grammar", "grammar": 'root ::= "g"'}, "g"),
        ({"type": "sequence", "elements": [{"type": "const_string", "value": "a"}] * 2}, "aa"),
        ({"type": "or", "elements": [{"type": "const_string", "value": "a"}]}, "a"),
        ({"type": "tag", "begin": "<", "content": {"type": "const_string", "value": "x"}, "end": ">"}, "<x>"),
        (
            {
                "type": "triggered_tags",
                "triggers": ["<"],
                "tags": [{"begin": "<", "content": {"type": "const_string", "value": "x"}, "end": [">"]}],
            },
            "<x>",
        ),
    ],
)
def test_structural_tag(wanted: dict[str, Any], text: str) -> None:
    """Each format that is known."""
    assert tagged({"type": "structural_tag", "format": wanted}, chance()) == text


@pytest.mark.parametrize(
    "wanted",
    [
        1,
        {},
        {"format": 1},
        {"format": {"type": "qwen"}},
        {"format": {"type": "tag"}},
        {"structures": [], "triggers": []},
        {"structures": [{"begin": "<a>", "end": ""}], "triggers": ["<b"]},
    ],
)
def test_structural_tag_that_is_refused(wanted: Any) -> None:
    """What is none, or is not known."""
    with pytest.raises(CannotMakeError):
        tagged(wanted, chance())
