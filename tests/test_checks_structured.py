"""Whether the answer has the form that the request demands: hand-made answers, and the endpoint under another profile."""

import dataclasses
import json
from typing import Any

import pytest
from in_memory import send_all
from transcripts import MODEL, chunked, chunks, contract_of, exchange, http, outcomes, request, sse, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import plan
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.target import Target

SEEKR, CHAT = contract_of("seekr-chat")
_, COMPLETIONS = contract_of("seekr-completions")
DEEPINFRA, DEEP = contract_of("deepinfra-completions")
OPENAI, OPENAI_CHAT = contract_of("openai-chat")

PASS, FAIL, IGNORED = Outcome.PASS, Outcome.FAIL, Outcome.IGNORED
WARN, REFUSED, NOT_RUN = Outcome.WARN, Outcome.REFUSED, Outcome.NOT_RUN
STOP, LENGTH = "stop", "length"

SCHEMA = {
    "type": "object",
    "properties": {"s": {"enum": ["雪🙂"]}},
    "required": ["s"],
    "additionalProperties": False,
}
SMALL = {"type": "object", "properties": {"c": {"const": 7}}}
RIGHT = json.dumps({"s": "雪🙂"}, ensure_ascii=False)
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<q>",
        "content": {"type": "json_schema", "json_schema": {"const": 7}},
        "end": "</q>",
    },
}
CONST = {"type": "structural_tag", "format": {"type": "const_string", "value": "zq7"}}
ANYTHING = {"type": "structural_tag", "format": {"type": "any_text"}}
TAGS = {
    "type": "structural_tag",
    "structures": [{"begin": " ", "schema": {"const": 7}, "end": ";"}],
    "triggers": [" "],
}
GRAMMAR = 'root ::= "zq7" | "zq8"'


def by_schema(strict: Any = True, schema: Any = SCHEMA) -> dict[str, Any]:
    """The format json_schema."""
    return {"type": "json_schema", "json_schema": {"name": "a", "strict": strict, "schema": schema}}


def answer(operation: Operation, text: str | None, finish: str = STOP, **members: Any) -> bytes:
    """A whole answer with one text."""
    body = whole_answer(operation)
    choice = body["choices"][0]
    choice["finish_reason"] = finish
    if operation.family == "chat":
        choice["message"].update(content=text, **members)
    else:
        choice["text"] = text
    return http(200, json.dumps(body).encode())


def wants(name: str, value: Any) -> dict[str, Any]:
    """What a request says for a demand."""
    return {"response_format" if name.startswith(("json-", "format-")) else "structured_outputs": value}


Row = tuple[str, Any, str | None, str, Outcome]

CASES: list[Row] = [
    ("json-object", {"type": "json_object"}, '{"a": 1}', STOP, PASS),
    ("json-object", {"type": "json_object"}, "Sure! One, two.", STOP, IGNORED),
    ("json-object", {"type": "json_object"}, "[1]", STOP, FAIL),
    ("json-object", {"type": "json_object"}, "Sure! One,", LENGTH, IGNORED),
    ("json-object", {"type": "json_object"}, '{"a"', LENGTH, NOT_RUN),
    ("json-object", {"type": "json_object"}, "\n\n\n\n", LENGTH, NOT_RUN),
    ("json-object", {"type": "json_object"}, "", LENGTH, NOT_RUN),  # all went into reasoning
    ("json-object", {"type": "json_object"}, None, STOP, NOT_RUN),  # a refusal, for instance
    ("json-object", {"type": "json_object"}, '{"a"', "content_filter", NOT_RUN),
    ("json-schema", by_schema(), RIGHT, STOP, PASS),
    ("json-schema", by_schema(), json.dumps({"s": "雪🙂"}), STOP, PASS),
    ("json-schema", by_schema(), '{"s": "\\\\u96ea\\\\ud83d\\\\ude42"}', STOP, FAIL),  # vllm 8805
    ("json-schema", by_schema(), '{"a": 1}', STOP, FAIL),
    ("json-schema", by_schema(), "bare 100", STOP, IGNORED),  # TensorRT 4855
    ("json-schema", by_schema(strict=None), "bare 100", STOP, NOT_RUN),  # nothing promises it without `strict`
    ("json-schema", by_schema(schema={"$ref": "http://127.0.0.1:1/"}), "bare 100", STOP, NOT_RUN),
    ("format-tag", TAG, "<q>7</q>", STOP, PASS),
    ("format-tag", TAG, "One", LENGTH, IGNORED),
    ("format-tag", CONST, "zq7", STOP, PASS),
    ("format-tag", CONST, "One", STOP, IGNORED),
    ("format-tag", ANYTHING, "One", STOP, NOT_RUN),
    ("format-tags", TAGS, "One, 7;two", STOP, PASS),
    ("format-tags", TAGS, "One, two", LENGTH, IGNORED),
    ("format-tags", TAGS, "One", STOP, NOT_RUN),
    ("json", {"json": SCHEMA}, RIGHT, STOP, PASS),
    ("json", {"json": json.dumps(SCHEMA)}, RIGHT, STOP, PASS),
    ("json", {"json": json.dumps(SCHEMA)}, "One", STOP, IGNORED),
    ("json", {"json": "no JSON"}, "One", STOP, NOT_RUN),
    ("regex", {"regex": "zq[0-9]{3}"}, "zq123", STOP, PASS),
    ("regex", {"regex": "zq[0-9]{3}"}, "zq123.", STOP, IGNORED),
    ("regex", {"regex": "zq[0-9]{3}"}, "zq12", LENGTH, NOT_RUN),
    ("regex", {"regex": "zq[0-9]{3}"}, "One", LENGTH, IGNORED),
    ("choice", {"choice": ["zq7", "雪"]}, "雪", STOP, PASS),
    ("choice", {"choice": ["zq7", "雪"]}, " 雪", STOP, IGNORED),
    ("choice", {"choice": []}, "One", STOP, NOT_RUN),
    ("regex", {"regex": "z.*"}, "z\n7", STOP, PASS),  # xgrammar: a dot is any character
    (
        "closed",
        {"json": {**SMALL, "patternProperties": {"d": {}}}, "disable_additional_properties": True},
        '{"d": 1}',
        STOP,
        NOT_RUN,
    ),
    ("grammar", {"grammar": GRAMMAR}, "zq8", STOP, PASS),
    ("grammar", {"grammar": GRAMMAR}, "One", STOP, IGNORED),
    ("grammar", {"grammar": 'root ::= item+\nitem ::= "a"'}, "One", STOP, NOT_RUN),
    ("any-object", {"json_object": True}, "{}", STOP, PASS),
    ("any-object", {"json_object": True}, "One", STOP, IGNORED),
    ("any-object", {"json_object": False}, "One", STOP, NOT_RUN),
    ("structural-tag", {"structural_tag": json.dumps(TAG)}, "<q>7</q>", STOP, PASS),
    ("structural-tag", {"structural_tag": json.dumps(TAG)}, "One", STOP, IGNORED),
    ("structural-tag", {"structural_tag": '{"type": "structural_tag", "structures": [5]}'}, "One", STOP, NOT_RUN),
    ("tight", {"json": SMALL, "disable_any_whitespace": True}, '{"c": 7}', STOP, PASS),
    ("tight", {"json": SMALL, "disable_any_whitespace": True}, '{"c":\n7}', STOP, IGNORED),
    ("tight", {"json": SMALL, "disable_any_whitespace": False}, '{"c":\n7}', STOP, NOT_RUN),
    ("tight", {"json": SMALL, "disable_any_whitespace": True}, "One", STOP, NOT_RUN),
    ("closed", {"json": SMALL, "disable_additional_properties": True}, '{"c": 7}', STOP, PASS),
    ("closed", {"json": SMALL, "disable_additional_properties": True}, '{"c": 7, "d": 8}', STOP, IGNORED),
    ("spacing", {"json": SMALL, "whitespace_pattern": "[\t]"}, '{"c":\t7}', STOP, PASS),
    ("spacing", {"json": SMALL, "whitespace_pattern": "[\t]"}, '{"c": 7}', STOP, IGNORED),
    ("spacing", {"json": SMALL, "whitespace_pattern": "[\t]"}, '{"c":7}', STOP, NOT_RUN),
]


@pytest.mark.parametrize("operation", [CHAT, COMPLETIONS], ids=lambda each: each.name)
@pytest.mark.parametrize(("name", "value", "text", "finish", "expected"), CASES)
def test_a_text_has_the_form(
    name: str, value: Any, text: str | None, finish: str, expected: Outcome, operation: Operation
) -> None:
    """Each form of `response_format` and each constraint of `structured_outputs`, for chat and for text alike."""
    sent = request(operation, **wants(name, value))
    contract = SEEKR if operation is CHAT else contract_of("seekr-completions")[0]

    found = outcomes(contract, operation, exchange(operation, sent, answer(operation, text, finish)))

    assert found[f"structured.{name}"] is expected
    others = {id_ for id_, outcome in found.items() if id_.startswith("structured.") and outcome in (FAIL, IGNORED)}
    assert others <= {f"structured.{name}", "structured.json"}


def test_a_stream_is_read_like_a_whole_answer() -> None:
    """Its pieces make the text."""
    first, one, two, last, counted = chunks(CHAT)
    one["choices"][0]["delta"]["content"], two["choices"][0]["delta"]["content"] = RIGHT[:5], RIGHT[5:]
    last["choices"][0]["finish_reason"] = STOP
    sent = request(CHAT, response_format=by_schema(), stream=True, stream_options={"include_usage": True})
    right = exchange(CHAT, sent, chunked(sse([first, one, two, last, counted])))
    two["choices"][0]["delta"]["content"] = "!"
    wrong = exchange(CHAT, sent, chunked(sse([first, one, two, last, counted])))

    assert outcomes(SEEKR, CHAT, right)["structured.json-schema"] is PASS
    assert outcomes(SEEKR, CHAT, wrong)["structured.json-schema"] is IGNORED


@pytest.mark.parametrize("name", ["json-object", "json-schema"])
def test_a_refusal_has_no_form(name: str) -> None:
    """OpenAI: a model that will not do it says so in `refusal`; gateways repeat that as the text."""
    wanted = by_schema() if name == "json-schema" else {"type": "json_object"}
    wire = answer(CHAT, "I cannot do that.", refusal="I cannot do that.")
    found = outcomes(SEEKR, CHAT, exchange(CHAT, request(CHAT, response_format=wanted), wire))

    assert found[f"structured.{name}"] is NOT_RUN


def test_each_of_several_choices_has_the_form() -> None:
    """One that breaks it is enough."""
    body = whole_answer(CHAT, 2)
    for choice, text in zip(body["choices"], ("{}", "One"), strict=True):
        choice["message"]["content"], choice["finish_reason"] = text, STOP
    sent = request(CHAT, n=2, response_format={"type": "json_object"})

    found = outcomes(SEEKR, CHAT, exchange(CHAT, sent, http(200, json.dumps(body).encode())))

    assert found["structured.json-object"] is IGNORED


REFUSAL = b'{"error": {"message": "no", "type": "x", "code": 400}}'


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"response_format": {"type": "json_object"}}, REFUSED),
        ({"response_format": {"type": "json_object"}, "stop": ["a"]}, NOT_RUN),  # the other may be the reason
        ({"response_format": {"type": "json_object"}, "temperature": 9}, NOT_RUN),
    ],
)
def test_a_refusal_is_told_as_one(changes: dict[str, Any], expected: Outcome) -> None:
    """A documented 4xx about nothing else."""
    found = outcomes(SEEKR, CHAT, exchange(CHAT, request(CHAT, **changes), http(400, REFUSAL)))
    assert found["structured.json-object"] is expected


@pytest.mark.parametrize(
    ("check", "changes", "text", "accepted"),
    [
        ("exactly-one", {"structured_outputs": {"regex": "z", "choice": ["z"]}}, "z", IGNORED),
        ("exactly-one", {"structured_outputs": {"regex": "z", "json_object": False}}, "z", NOT_RUN),
        ("exactly-one", {"structured_outputs": {}}, "z", NOT_RUN),
        ("schema-missing", {"response_format": {"type": "json_schema"}}, "z", IGNORED),
        ("schema-missing", {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}, "z", IGNORED),
        ("schema-missing", {"response_format": by_schema()}, RIGHT, NOT_RUN),
        ("schema-missing", {"response_format": {"type": "json_object"}}, "{}", NOT_RUN),
        (
            "both",
            {"response_format": {"type": "json_object"}, "structured_outputs": {"choice": ["z"]}},
            "z",
            IGNORED,
        ),
        (
            "both",
            {"response_format": {"type": "json_object"}, "structured_outputs": {"json": SMALL}},
            '{"c": 7}',
            PASS,
        ),
        ("both", {"response_format": {"type": "text"}, "structured_outputs": {"choice": ["z"]}}, "z", NOT_RUN),
    ],
)
def test_what_cannot_be_kept_is_refused(check: str, changes: dict[str, Any], text: str, accepted: Outcome) -> None:
    """`structured_outputs`: exactly one constraint may be set. A 200 shows that it is not so."""
    sent = request(CHAT, **changes)
    taken = outcomes(SEEKR, CHAT, exchange(CHAT, sent, answer(CHAT, text)))
    refused = outcomes(SEEKR, CHAT, exchange(CHAT, sent, http(400, REFUSAL)))

    assert taken[f"structured.{check}"] is accepted
    assert refused[f"structured.{check}"] is (NOT_RUN if accepted is NOT_RUN else PASS)


@pytest.mark.parametrize(
    ("contract", "operation", "strict", "expected"),
    [(OPENAI, OPENAI_CHAT, False, NOT_RUN), (OPENAI, OPENAI_CHAT, True, IGNORED), (DEEPINFRA, DEEP, None, IGNORED)],
    ids=["openai", "openai strict", "deepinfra"],
)
def test_a_schema_binds_as_the_document_says(
    contract: Contract, operation: Operation, strict: bool | None, expected: Outcome
) -> None:
    """OpenAI promises it with `strict` only; DeepInfra's page has no such property."""
    wanted = by_schema(strict)
    if strict is None:
        del wanted["json_schema"]["strict"]
    sent = request(operation, response_format=wanted)

    found = outcomes(contract, operation, exchange(operation, sent, answer(operation, "One")))

    assert found["structured.json-schema"] is expected


@pytest.mark.parametrize(("faults", "expected"), [((), PASS), (("structured.format-regex-ignored",), IGNORED)])
def test_a_format_with_a_pattern_is_kept(faults: tuple[str, ...], expected: Outcome) -> None:
    """
    `regex`: Pattern that the output has to match.

    DeepInfra's page says as well that only JSON is supported, and so its profile, under which the endpoint refuses patterns.
    """
    features = {name: said for name, said in DEEPINFRA.profile.features.items() if name != "regex"}
    contract = dataclasses.replace(DEEPINFRA, profile=dataclasses.replace(DEEPINFRA.profile, features=features))
    target = Target("t", "http://127.0.0.1", contract, model=MODEL, key=DEFAULT_KEY)
    settings = Settings(models=(MODEL,), faults=faults)
    responder = Responder(settings, contracts=[contract], now=lambda: 1_800_000_000.0, unique=lambda: "u")
    planned = plan([target], select=["law.structured"]).planned
    exchanges = send_all(responder, planned, 1_800_000_000.0)
    cases = cases_of(exchanges, DEEP, contract, target="t", model=MODEL)

    assert judge(CHECKS["structured.format-regex"], cases, DEEP, contract, "t").outcome is expected
