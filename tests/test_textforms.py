"""Whether a text has the form that is demanded of it, as far as anybody can tell."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.conformance.textforms import (
    Fit,
    TextForm,
    choice_form,
    json_form,
    regex_form,
    spacing_form,
    tag_form,
    triggered_form,
)

HAS, LACKS, ALMOST, OPEN = Fit.HAS, Fit.LACKS, Fit.ALMOST, Fit.OPEN
WHOLE, CUT = True, False
SCHEMA = {
    "type": "object",
    "properties": {"s": {"enum": ["雪🙂"]}, "n": {"type": "integer", "minimum": 41}},
    "required": ["s", "n"],
    "additionalProperties": False,
}
SEVEN = {"const": 7}


def form(made: TextForm | None) -> TextForm:
    """A form that can be judged."""
    assert made is not None
    return made


OBJECT = form(json_form({"type": "object"}, "an object"))
BY_SCHEMA = form(json_form(SCHEMA, "by the schema"))
CHOICE = choice_form(["zq7", "雪"])
PATTERN = form(regex_form("zq[0-9]{3}"))
TAG = tag_form("<q>", SEVEN, "</q>")
TAGS = triggered_form([(" ", SEVEN, ";"), ("<f=", SCHEMA, "/>")], [" ", "<f"])
TIGHT = spacing_form(lambda before, space: space == " " and before in ",:", "tight", needs_gap=False)
TABS = spacing_form(lambda before, space: space == "\t", "tabs", needs_gap=True)

CASES: list[tuple[str, TextForm, str, bool, Fit]] = [
    ("an object", OBJECT, ' {"a": [1]}\n', WHOLE, HAS),
    ("an empty object", OBJECT, "{}", WHOLE, HAS),
    ("a list", OBJECT, "[1]", WHOLE, ALMOST),
    ("a number, which prose may be as well", OBJECT, "5", WHOLE, LACKS),
    ("prose", OBJECT, "One, two.", WHOLE, LACKS),
    ("a fence around it", OBJECT, "```json\n{}\n```", WHOLE, LACKS),
    ("NaN is no JSON", OBJECT, '{"a": NaN}', WHOLE, LACKS),
    ("broken", OBJECT, '{"a": ', WHOLE, LACKS),
    ("an abyss", OBJECT, "[" * 100_000, WHOLE, LACKS),
    ("cut", OBJECT, '{"a": ', CUT, OPEN),
    ("cut within white space", OBJECT, "\n\n\n", CUT, OPEN),
    ("cut prose", OBJECT, "One, tw", CUT, LACKS),
    ("by the schema", BY_SCHEMA, '{"s": "雪🙂", "n": 42}', WHOLE, HAS),
    ("escaped once", BY_SCHEMA, '{"s": "\\u96ea\\ud83d\\ude42", "n": 42}', WHOLE, HAS),
    ("escaped twice (vllm 8805)", BY_SCHEMA, '{"s": "\\\\u96ea", "n": 42}', WHOLE, ALMOST),
    ("too small", BY_SCHEMA, '{"s": "雪🙂", "n": 40}', WHOLE, ALMOST),
    ("a member too many", BY_SCHEMA, '{"s": "雪🙂", "n": 42, "a": 1}', WHOLE, ALMOST),
    ("1.0 is an integer (JSON Schema)", BY_SCHEMA, '{"s": "雪🙂", "n": 42.0}', WHOLE, HAS),
    ("a choice", CHOICE, "zq7", WHOLE, HAS),
    ("a choice and more", CHOICE, "zq7.", WHOLE, LACKS),
    ("half a choice", CHOICE, "zq", WHOLE, LACKS),
    ("a cut choice", CHOICE, "zq", CUT, OPEN),
    ("cut, and no choice", CHOICE, "One", CUT, LACKS),
    ("a match", PATTERN, "zq123", WHOLE, HAS),
    ("a match within", PATTERN, "say zq123", WHOLE, LACKS),
    ("a cut match", PATTERN, "zq1", CUT, OPEN),
    ("a whole match that was cut", PATTERN, "zq123", CUT, OPEN),
    ("cut, and no match", PATTERN, "One", CUT, LACKS),
    ("a tag", TAG, "<q> 7\n</q>", WHOLE, HAS),
    ("a tag with other JSON", TAG, "<q>8</q>", WHOLE, LACKS),
    ("a tag and more", TAG, "<q>7</q> so", WHOLE, LACKS),
    ("a tag without its end", TAG, "<q>7", WHOLE, LACKS),
    ("a cut tag", TAG, "<q>7</", CUT, OPEN),
    ("a cut beginning", TAG, "<", CUT, OPEN),
    ("cut, and no tag", TAG, "One, two", CUT, LACKS),
    ("cut, and another value begins", TAG, "<q>true", CUT, LACKS),
    ("no trigger", TAGS, "One,two.", WHOLE, OPEN),
    ("a trigger and its tag", TAGS, "One, 7;two 7; 7;", WHOLE, HAS),
    ("a trigger and no tag", TAGS, "One, two.", WHOLE, LACKS),
    ("a trigger and no tag, cut", TAGS, "One, tw", CUT, LACKS),
    ("cut within the tag", TAGS, "One, ", CUT, OPEN),
    ("cut behind the value", TAGS, "One, 7", CUT, OPEN),
    ("an end of its own within the tag", TAGS, "One, 7", WHOLE, LACKS),
    ("the other tag", TAGS, 'x<f={"s":"雪🙂","n":42}/>', WHOLE, HAS),
    ("the other tag, by no schema", TAGS, 'x<f={"s":"雪🙂"}/>', WHOLE, LACKS),
    ("no white space", TIGHT, '{"a":1,"b":2}', WHOLE, HAS),
    ("one space, as backends have it", TIGHT, '{"a": 1, "b": " \\" \\n"}', WHOLE, HAS),
    ("a line break", TIGHT, '{"a":\n1}', WHOLE, LACKS),
    ("two spaces", TIGHT, '{"a":  1}', WHOLE, LACKS),
    ("a space elsewhere", TIGHT, '{ "a":1}', WHOLE, LACKS),
    ("no JSON", TIGHT, "One, two", WHOLE, OPEN),
    ("cut JSON", TIGHT, '{"a":\n1', CUT, OPEN),
    ("tabs", TABS, '{"a":\t1}', WHOLE, HAS),
    ("a space", TABS, '{"a": 1}', WHOLE, LACKS),
    ("no white space shows nothing", TABS, '{"a":1}', WHOLE, OPEN),
]


@pytest.mark.parametrize(("name", "demanded", "text", "complete", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_text_is_judged(name: str, demanded: TextForm, text: str, complete: bool, expected: Fit) -> None:
    """What was cut may still become anything that it can be the beginning of."""
    assert demanded.fit(text, complete) is expected


@pytest.mark.parametrize(
    "schema",
    [{"type": "nothing"}, {"$ref": "http://127.0.0.1:1/x"}, {"properties": 5}, {"pattern": "("}],
    ids=["type", "reference", "shape", "pattern"],
)
def test_what_is_no_schema_demands_nothing(schema: dict[str, Any]) -> None:
    """Nobody can hold a text to it."""
    assert json_form(schema, "") is None


def test_a_pattern_that_cannot_be_read_demands_nothing() -> None:
    """It may be right in another dialect."""
    assert regex_form("(") is None


def test_a_pattern_that_takes_for_ever_is_left_open() -> None:
    """Somebody else's request may hold one."""
    assert form(regex_form("(a|a)*(a|a)*(a|a)*b")).fit("a" * 4000 + "c", True) in (OPEN, LACKS)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()), st.data())
def test_no_beginning_of_right_json_lacks_the_form(value: dict[str, Any], data: st.DataObject) -> None:
    """Wherever a right text is cut, it is left open; whole, it has the form."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.none() | st.integers(0, 2)))
    cut = text[: data.draw(st.integers(0, len(text)))]

    assert OBJECT.fit(text, True) is HAS
    assert OBJECT.fit(cut, False) is OPEN


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4), st.data())
def test_no_beginning_of_a_choice_lacks_the_form(choices: list[str], data: st.DataObject) -> None:
    """The same for texts out of a list."""
    text = data.draw(st.sampled_from(choices))

    assert choice_form(choices).fit(text, True) is HAS
    assert choice_form(choices).fit(text[: data.draw(st.integers(0, len(text)))], False) is OPEN
