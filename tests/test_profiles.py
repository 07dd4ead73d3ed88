"""Profiles: the format, the bundled ones, and the rule that a profile never removes a MUST."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from dialects import JUDGED_BY, turned, value_of
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.conformance.check import CHECKS
from streamgauge.contract.contract import Contract, Operation, load_contracts
from streamgauge.contract.features import FEATURES, features_used
from streamgauge.contract.profile import Auth, Dialect, Profile, default_profile, load_profile
from streamgauge.contract.widening import key_needed, widened
from streamgauge.errors import DocumentError
from streamgauge.outcomes import Level

NAMES = catalog.profile_names()
SCHEMA = catalog.schema("profile")
DOCS = Path(__file__).parents[1] / "docs" / "profiles.md"

SILENT = Profile(
    name="silent",
    title="A profile that says nothing",
    documents=(),
    auth=Auth("Authorization", "Bearer", required=False),
    operations={},
    dialect=Dialect((400,), (404,), error_envelope="any", usage_chunk="any"),
)


def written(profile: Profile, folder: Path) -> str:
    """The path of a file that holds the profile."""
    file = folder / f"{profile.name}.json"
    file.write_text(json.dumps(dataclasses.asdict(profile)))
    return str(file)


def switches() -> dict[str, dict[str, Any]]:
    """Every switch of the format with its schema: what x-judged-by stands at."""
    found = {}
    for part, schema in SCHEMA["properties"].items():
        if "x-judged-by" in schema:
            found[part] = schema
        for name, inner in schema.get("properties", {}).items():
            if "x-judged-by" in inner:
                found[f"{part}.{name}"] = inner
    return found


# --- the format ----------------------------------------------------------------------------------------------------------


def test_every_switch_says_what_it_means_and_what_judges_it() -> None:
    """The schema is the one table of switches: each has a description and checks that exist, in the tests' table, too."""
    found = switches()

    assert set(found) == set(JUDGED_BY)
    for name, schema in found.items():
        assert schema["description"]
        assert set(schema["x-judged-by"]) - {"error.no-5xx"} == set(JUDGED_BY[name])
        assert set(schema["x-judged-by"]) <= set(CHECKS)


def test_everything_in_the_schema_is_described() -> None:
    """A member without a description is one that nobody can use."""

    def undescribed(node: Any, place: str) -> list[str]:
        found = []
        for name, member in node.get("properties", {}).items() if isinstance(node, dict) else ():
            if place != "features":
                found += [] if member.get("description") else [f"{place}/{name}"]
            found += undescribed(member, name)
        return found

    assert undescribed(SCHEMA, "") == []
    assert undescribed(SCHEMA["properties"]["operations"]["additionalProperties"], "operations") == []


def test_features_of_the_schema_are_those_of_the_code() -> None:
    """A feature that may be named is one that requests are looked through for."""
    assert list(SCHEMA["properties"]["features"]["properties"]) == list(FEATURES)


def test_documentation_names_everything() -> None:
    """docs/profiles.md knows every switch, each of its values, each check that judges one, and each feature."""
    text = DOCS.read_text(encoding="utf-8")

    for name, schema in switches().items():
        assert f"`{name}`" in text, name
        for word in [*schema.get("enum", []), *schema["x-judged-by"]]:
            assert f"`{word}`" in text, word
    for name in FEATURES:
        assert f"`{name}`" in text, name


def test_documented_example_is_a_profile(tmp_path: Path) -> None:
    """The example of an own profile in docs/profiles.md can be copied as it stands."""
    example = DOCS.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "mine.yaml"
    file.write_text(example)

    profile = load_profile(str(file))

    (contract,) = load_contracts(profile.documents, str(file))
    assert {operation.name for operation in contract.operations} >= set(profile.operations)


BASE = """\
name: mine
title: X
documents: [openai-chat]
auth: {header: Authorization, scheme: Bearer, required: true}
operations:
  openai-chat:
    paths: [/chat]
dialect:
  malformed_status: [400]
  unknown_model_status: [404]
  error_envelope: any
features:
  n: supported
"""


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("error_envelope: any", "error_envelop: any", "11:3", "error_envelop"),
        ("error_envelope: any", "error_envelope: none", "11:19", "none"),
        ("  error_envelope: any", "  error_envelope: any\n  error_code: number", "12:15", "number"),
        ("  error_envelope: any", "  error_envelope: any\n  reasoning_field: thoughts", "12:20", "thoughts"),
        ("  error_envelope: any", "  error_envelope: any\n  usage_chunk: first", "12:16", "first"),
        ("[404]", "[]", "10:25", "non-empty"),
        ("[404]", "[200]", "10:26", "200"),
        ("n: supported", "n: yes", "13:6", "True"),
        ("n: supported", "choices: supported", "13:3", "choices"),
        ("paths: [/chat]", "paths: [chat]", "7:13", "chat"),
        ("paths: [/chat]", "path: /chat", "7:5", "path"),
        ("header: Authorization", "header: 'Author ization'", "4:8", "Author"),
        ("name: mine", "named: mine\nname: mine", "1:1", "named"),
    ],
)
def test_unknown_keys_and_values_are_refused_where_they_stand(
    tmp_path: Path, old: str, new: str, where: str, what: str
) -> None:
    """A profile with a slip is refused with line and column; no switch is silently left out."""
    file = tmp_path / "mine.yaml"
    file.write_text(BASE)
    assert load_profile(str(file)).paths("openai-chat") == ("/chat",)
    assert BASE.count(old) == 1
    file.write_text(BASE.replace(old, new))

    with pytest.raises(DocumentError) as caught:
        load_profile(str(file))

    assert what in str(caught.value)
    assert caught.value.where.startswith(f"{file}:{where.partition(':')[0]}:"), caught.value.where


def test_absent_switches_have_their_documented_values(tmp_path: Path) -> None:
    """What is left out says nothing, but for the usage's place, which clients expect where OpenAI has it."""
    file = tmp_path / "mine.yaml"
    file.write_text(BASE)
    profile = load_profile(str(file))

    assert (profile.dialect.error_code, profile.dialect.reasoning_field) == ("any", "any")
    assert profile.dialect.usage_chunk == "own-chunk"
    assert (profile.headers, profile.allowed_statuses, profile.dialect.default_max_tokens) == ({}, (), {})
    assert profile.paths("openai-completions") == ()


@pytest.mark.parametrize("name", NAMES)
def test_profile_as_data_is_the_profile(name: str, tmp_path: Path) -> None:
    """Written out and read again it is equal: that is how a load run hands it to its workers."""
    profile = load_profile(name)

    assert load_profile(written(profile, tmp_path)) == profile


# --- the bundled ones ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_bundled_profiles_keep_the_schema(name: str) -> None:
    """Each passes the published schema and comments every switch that it sets."""
    text = catalog.profile_text(name).decode()
    data = yaml.safe_load(text)

    assert list(Draft202012Validator(SCHEMA).iter_errors(data)) == []
    lines = text.splitlines()
    for switch in ["header", *data["dialect"], *data.get("features", {})]:
        (at,) = [number for number, line in enumerate(lines) if line.strip().startswith(f"{switch}: ")]
        before = next(line.strip() for line in reversed(lines[:at]) if not line.endswith(": unsupported"))
        assert before.startswith("#"), switch
    assert load_profile(name).name == name


def _text(node: Any) -> str:
    return " ".join(json.dumps(node, ensure_ascii=False).replace("\\n", " ").split())


@pytest.mark.parametrize(
    ("document", "quote"),
    [
        ("seekr-chat", "Your Seekr API key, sent in the Authorization header with no 'Bearer' prefix."),
        ("seekr-completions", "Malformed request body, or `model` missing."),
        ("seekr-completions", "Deployment not found, or the request is unprocessable."),
        ("seekr-chat", "is not deployed for your team."),
        ("seekr-chat", "Sent as server-sent events."),
        ("deepinfra-completions", "one string is supported at present"),
        ("deepinfra-completions", "only JSON is supported at present"),
    ],
)
def test_quotes_stand_in_the_documents(document: str, quote: str) -> None:
    """What the bundled profiles quote is there (DeepInfra's page in our document's words)."""
    (contract,) = load_contracts([document])

    assert quote in _text(contract.operations[0].document.raw)


def _operation(name: str) -> Operation:
    (contract,) = load_contracts([name])
    return contract.operations[0]


def test_facts_behind_the_switches() -> None:
    """Code types, reasoning and default limit are those of the documents' schemas."""
    chat, text = _operation("seekr-chat"), _operation("seekr-completions")
    error = chat.response(400, "application/json")
    assert error.accepts({"error": {"message": "m", "code": 400}})
    assert not error.accepts({"error": {"message": "m", "code": "no"}})
    assert "reasoning" in _text(chat.document.raw)
    assert "reasoning_content" not in _text(chat.document.raw)
    assert text.properties["max_tokens"]["default"] == load_profile("seekr").dialect.default_max_tokens[text.name]
    own = _operation("openai-completions")
    assert own.properties["max_tokens"]["default"] == load_profile("openai").dialect.default_max_tokens[own.name]
    both = own.response(400, "application/json")
    assert all(both.accepts({"error": {"message": "m", "code": code}}) for code in (400, "no", None))
    assert _operation("deepinfra-completions").statuses == (200, 422, 429)


def test_document_of_ones_own_goes_with_the_generic_profile() -> None:
    """Each bundled document has its profile; one that none names is taken for OpenAI-compatible."""
    assert {name: default_profile(name) for name in ("seekr-chat", "deepinfra-completions", "own")} == {
        "seekr-chat": "seekr",
        "deepinfra-completions": "deepinfra",
        "own": "openai",
    }


# --- features --------------------------------------------------------------------------------------------------------------


def test_each_sample_uses_its_feature() -> None:
    """What a probe adds to ask for a feature asks for that one: for it alone, but for a tool that is forced."""
    for name, feature in FEATURES.items():
        for sample in feature.samples:
            assert name in features_used(sample, sample.keys())
            assert features_used(sample, sample.keys()) == {name}
            assert sample.keys() <= set(feature.params)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"stream": False, "n": 1, "stop": [], "echo": False, "suffix": "", "seed": None, "logprobs": 0},
        {"n": 1000, "stop": "", "seed": 2**70, "logprobs": 100, "min_tokens": 0, "reasoning_effort": "none"},
        {"n": True, "prompt": "text", "tools": [], "response_format": {"type": "text"}, "messages": "x"},
        {"prompt": [], "tools": [{}], "tool_choice": "none", "response_format": "json_object", "stop": [""]},
        {"messages": [{"role": "user", "content": "x"}, 5, {"content": [5, {"type": "text"}]}]},
    ],
)
def test_what_uses_no_feature(body: dict[str, Any]) -> None:
    """Absent, empty, and so odd that it may be refused for that."""
    assert features_used(body, body.keys()) == set()


def test_undocumented_property_asks_for_nothing() -> None:
    """To a document that does not know it, it is an extra field."""
    assert features_used({"n": 2, "echo": True}, {"n"}) == {"n"}


# --- what is widened, and what never is --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_is_widened_is_said(name: str) -> None:
    """Statuses beyond the document, accepted second choices, `any`, unsupported features: nothing passes unseen."""
    (contract,) = load_contracts(load_profile(name).documents)
    told = " | ".join(widened(contract))

    assert "statuses beyond the document: " in told
    for status in contract.profile.allowed_statuses:
        if not all(status in operation.statuses for operation in contract.operations):
            assert str(status) in told
    for status in contract.profile.dialect.unknown_model_status[1:]:
        assert str(status) in told.partition("for a model")[0]
    for feature, said in contract.profile.features.items():
        assert (f"a refusal of {feature}" in told) == (said == "unsupported")
    assert ("reasoning under either name" in told) == (contract.profile.dialect.reasoning_field == "any")


def test_silent_profile_widens_its_any_only() -> None:
    """A profile with one status each and nothing allowed lets nothing pass but forms that nobody prescribes."""
    contract = Contract(SILENT, (_operation("seekr-chat"),))

    assert len(list(widened(contract))) == 4


@pytest.mark.parametrize(
    ("document", "required", "needed"),
    [
        ("seekr-chat", True, True),
        ("seekr-chat", False, True),
        ("openai-chat", False, True),
        ("deepinfra-completions", True, True),
        ("deepinfra-completions", False, False),
    ],
)
def test_key_that_the_document_demands(document: str, required: bool, needed: bool) -> None:
    """`required: false` fills silence only: 401 or a security scheme in the document stand."""
    operation = _operation(document)
    profile = turned(SILENT, "auth.required", required)

    assert key_needed(operation, Contract(profile, (operation,))) is needed


@pytest.mark.parametrize(("security", "needed"), [([{"k": []}], True), ([{}, {"k": []}], False), ([], False)])
def test_key_that_the_document_leaves_to_the_caller(security: list[Any], needed: bool, tmp_path: Path) -> None:
    """An empty requirement among a document's alternatives makes the key optional (OpenAPI 3.1.1, 4.8.30)."""
    answers = {"200": {"description": ""}}
    document = {
        "openapi": "3.1.0",
        "paths": {"/v1/completions": {"post": {"security": security, "responses": answers}}},
        "components": {"securitySchemes": {"k": {"type": "http", "scheme": "bearer"}}},
    }
    file = tmp_path / "own.json"
    file.write_text(json.dumps(document))
    (operation,) = load_contracts([str(file)])[0].operations
    profile = turned(SILENT, "auth.required", False)

    assert key_needed(operation, Contract(profile, (operation,))) is needed


def musts(operation: Operation, profile: Profile) -> set[str]:
    """The MUST checks that concern an operation."""
    contract = Contract(profile, (operation,))
    return {id_ for id_, check in CHECKS.items() if check.level is Level.MUST and check.concerns(operation, contract)}


CHANGES: dict[str, tuple[Any, ...]] = {
    "auth.header": ("X-Token",),
    "auth.scheme": ("raw", "Bearer"),
    "auth.required": (True, False),
    "dialect.malformed_status": ((418,),),
    "dialect.unknown_model_status": ((418,),),
    "dialect.error_envelope": ("openai", "openai-or-string", "detail", "any"),
    "dialect.error_code": ("integer", "string", "any"),
    "dialect.reasoning_field": ("reasoning", "reasoning_content", "any"),
    "dialect.usage_chunk": ("own-chunk", "last-choice", "any"),
    "dialect.default_max_tokens": ({},),
    "allowed_statuses": ((), tuple(range(100, 600))),
    "features": ({}, dict.fromkeys(FEATURES, "unsupported"), dict.fromkeys(FEATURES, "supported")),
    "headers": ({"x": "y"},),
    "operations": ({},),
}


@pytest.mark.parametrize("switch", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_no_switch_removes_a_must(name: str, switch: str) -> None:
    """Whatever a profile says, the MUSTs that concern an operation are at least those of a profile that says nothing."""
    profile = load_profile(name)
    for document in catalog.DOCUMENTS:
        operation = _operation(document)
        least = musts(operation, SILENT)
        for value in (value_of(profile, switch), *CHANGES[switch]):
            assert musts(operation, turned(profile, switch, value)) >= least


@pytest.mark.parametrize("document", catalog.DOCUMENTS)
def test_stream_false_removes_no_must(document: str, tmp_path: Path) -> None:
    """A stream that the document describes is judged, whatever the profile says of `stream`."""
    denied = turned(SILENT, "operations", {document: {"stream": False}})
    (told,) = load_contracts([document], written(denied, tmp_path))
    (silent,) = load_contracts([document], written(dataclasses.replace(SILENT, name="quiet"), tmp_path))

    assert musts(told.operations[0], denied) >= musts(silent.operations[0], SILENT)


def test_no_profile_allows_500(tmp_path: Path) -> None:
    """A 500 is the server's own fault (RFC 9110, 15.6.1): to allow it would take the MUST of `error.no-5xx` away."""
    with pytest.raises(DocumentError, match="500"):
        load_profile(written(turned(SILENT, "allowed_statuses", (405, 500)), tmp_path))
    assert load_profile(written(turned(SILENT, "allowed_statuses", (405, 503)), tmp_path)).allowed_statuses == (
        405,
        503,
    )
