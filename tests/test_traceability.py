"""Every statement of every bundled document has its checks or its reason, and a run judges what the data say."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import streamgauge
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.conformance import checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS, check
from streamgauge.conformance.judge import Finding
from streamgauge.conformance.verdict import describe
from streamgauge.contract.contract import Operation, load_contracts
from streamgauge.contract.statements import statements_of
from streamgauge.errors import DocumentError
from streamgauge.outcomes import Level, Outcome
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reports.findings import findings_of
from streamgauge.target import Target
from streamgauge.traceability import KINDS, Traced, requirement_in, trace, trace_by, traceability_lines
from streamgauge.yamlfile import load_yaml

pytestmark = pytest.mark.timeout(300)  # one run of everything

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for contract in load_contracts(list(catalog.DOCUMENTS))
    for operation in contract.operations
}
UNTOLD = inspect.signature(check).parameters["absent"].default
"""The reason of a check that does not say what event it waits for."""


def named(name: str) -> set[str]:
    """The checks that judge anything of a document."""
    return {id_ for entry in trace(OPERATIONS[name]) for id_ in entry.checks}


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_each_statement_has_one_entry(name: str) -> None:
    """None is left out, and each entry says exactly one thing; an entry without a statement is an error (see below)."""
    entries = trace(OPERATIONS[name])
    found = [each for entry in entries for each in entry.statements]

    assert sorted(found, key=lambda each: each.at) == sorted(statements_of(OPERATIONS[name]), key=lambda each: each.at)
    assert all(sum(bool(getattr(entry, kind)) for kind in KINDS) == 1 for entry in entries)


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_sentences_are_read_one_by_one(name: str) -> None:
    """No pattern takes a sentence."""
    for entry in trace(OPERATIONS[name]):
        if any(each.kind == "sentence" for each in entry.statements):
            assert [each.at for each in entry.statements] == list(entry.at)


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_each_named_check_exists(name: str) -> None:
    """An id that is misspelt, or that is gone, judges nothing."""
    assert named(name) <= CHECKS.keys()


def test_there_is_no_file_without_a_document() -> None:
    """One file for each bundled document."""
    folder = Path(__file__).parents[1] / "spec" / "traceability"
    assert {path.name for path in folder.iterdir()} == {f"{name}.yaml" for name in catalog.DOCUMENTS}


@pytest.fixture(scope="module")
def ran(reference: str, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """What a check of every bundled document finds on the right endpoint."""
    folder = tmp_path_factory.mktemp("traced")
    specs = [argument for name in catalog.DOCUMENTS for argument in ("--spec", name)]
    done = streamgauge(
        # At its document's own path the endpoint serves OpenAI's text completions.
        *("check", "--base-url", reference, *specs, "--path", "deepinfra-completions=/v1/openai/completions"),
        *("--explore-tokens", "0", "--output", "out"),
        cwd=folder,
        timeout=280,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Bundle(folder / "out")


def outcomes(ran: Bundle, name: str) -> Iterator[tuple[str, Outcome]]:
    """Id and outcome of each check on an operation."""
    for line in ran.findings:
        if line["operation"] == name:
            yield line["check"], Outcome(line["outcome"])


def waits_for_an_event(id_: str, ran: Bundle) -> bool:
    """Whether the check says what has to happen before it can judge (a limited rate, ...), and no operation showed it."""
    never = {line["outcome"] for line in ran.findings if line["check"] == id_} <= {"not-run", "not-applicable"}
    return never and CHECKS[id_].absent != UNTOLD


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_what_is_named_is_judged(name: str, ran: Bundle) -> None:
    """Each check that the data name comes to a verdict, unless it waits for what a right endpoint never shows."""
    found = dict(outcomes(ran, name))
    silent = (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE, Outcome.ERROR)
    unjudged = {id_ for id_ in named(name) if found.get(id_, Outcome.ERROR) in silent}
    excused = {id_ for id_ in unjudged if found.get(id_) is Outcome.NOT_RUN and waits_for_an_event(id_, ran)}

    assert unjudged - excused == set()


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_what_is_judged_by_the_document_is_named(name: str, ran: Bundle) -> None:
    """Each check that came to a verdict and points to a place of this document is named by one of its statements."""
    judged = {id_ for id_, outcome in outcomes(ran, name) if outcome not in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE)}
    places = [each.at for each in statements_of(OPERATIONS[name])]

    assert {id_ for id_ in judged if stands_in(CHECKS[id_].source, places)} - named(name) == set()


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_requests_reach_each_property_that_is_called_judged(name: str, ran: Bundle) -> None:
    """The run sent right values of each property that `request.valid` is named for, wrong ones for `request.invalid`."""
    operation = OPERATIONS[name]
    sent: dict[str, set[str]] = {"request.valid": set(), "request.invalid": set()}
    for exchange in ran.exchanges.values():
        if exchange.operation == name and isinstance(body := exchange.sent, dict):
            problems = operation.request.problems(body)
            sent["request.invalid"] |= {each.pointer.split("/")[1] for each in problems if each.pointer}
            if not problems:  # null alone says nothing of what else the property takes
                sent["request.valid"] |= {key for key, value in body.items() if value is not None}

    for id_, reached in sent.items():
        judged = {
            match.group(1)
            for entry in trace(operation)
            for each in entry.statements
            if id_ in entry.checks and (match := re.match(r"/requestBody/.*?/schema/properties/([^/]+)", each.at))
        }
        assert judged
        assert judged - reached == set()


def stands_in(source: str, places: list[str]) -> bool:
    """Whether a check's source points to something that this document holds."""
    pointer = re.match(r"/[^\s;]*", source)
    if pointer is None:
        return False
    begins = re.compile(re.escape(pointer.group()).replace("<status>", "[^/]+") + r"(?![^/#])")
    return any(begins.match(place) for place in places)


def test_the_bundle_holds_it(ran: Bundle) -> None:
    """`traceability.json` keeps its schema, and holds the statements of each operation."""
    schema = catalog.schema("bundle")
    valid = Draft202012Validator({"$ref": "#/$defs/traceability", "$defs": schema["$defs"]})

    assert [line["operation"] for line in ran.traceability] == list(catalog.DOCUMENTS)
    for line in ran.traceability:
        assert valid.is_valid(line), json.dumps(line)[:300]
        counted = sum(entry["statements"] for entry in line["entries"])
        assert counted == len(statements_of(OPERATIONS[line["operation"]]))


def test_captures_are_traced_too(ran: Bundle, tmp_path: Path) -> None:
    """Judged from stored bytes, with nothing sent, the bundle holds the same statements."""
    done = streamgauge("check", "auth", "--from", str(ran.path), "--output", "out", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert Bundle(tmp_path / "out").traceability == ran.traceability


def test_a_finding_quotes_its_own_document(ran: Bundle) -> None:
    """What a finding on an operation quotes stands in that operation's document, where the data name it."""
    for line in ran.traceability:
        own = {entry["at"]: entry["sentence"] for entry in line["entries"] if "sentence" in entry}
        quoted = 0
        for finding in findings_of(ran):
            if finding.operation == line["operation"] and finding.source.startswith(f"{line['document']}: "):
                places = finding.source.removeprefix(f"{line['document']}: ").split("; ")
                assert all(own[place] in finding.requirement for place in places)
                quoted += 1
        assert quoted > 5


def test_a_test_report_quotes_it_too() -> None:
    """So does the text of a failed test: the chat document of the common ground, not Seekr's."""
    finding = Finding("auth.missing", Level.MUST, "t", "openai-chat", Outcome.FAIL)
    said = describe(CHECKS["auth.missing"], finding, OPERATIONS["openai-chat"])

    assert "requirement: 401: Missing or invalid API key." in said
    assert "source:      /responses/401/description#1" in said


ENTRIES = [
    {"at": "/a#1", "sentence": "A.", "statements": 1, "checks": ["x.one", "x.many"]},
    {"at": "/b", "text": "integer", "statements": 1, "checks": ["x.schema"]},
    {"at": "/c#1", "sentence": "C.", "statements": 1, "checks": ["x.two", "x.many"]},
    {"at": "/d#1", "sentence": "D.", "statements": 1, "checks": ["x.two", "x.many"]},
    {"at": "/e#1", "sentence": "E.", "statements": 1, "checks": ["x.main", "x.main-too"]},
    {"at": "/f#1", "sentence": "F.", "statements": 1, "checks": ["x.none", "x.main"]},
    {"at": "/g#1", "sentence": "G.", "statements": 1, "checks": ["x.none", "x.main"]},
    {"at": "/h#1", "sentence": "H.", "statements": 1, "open": "x.one"},
    {"at": "/i#1", "sentence": "I.", "statements": 1, "checks": ["x.schema"]},
    {"at": "/**", "statements": 9, "checks": ["x.schema"]},
    {"at": "/s/properties/j/description#1", "sentence": "J.", "statements": 1, "checks": ["x.property"]},
    {"at": "/responses/429/headers/k/description#2", "sentence": "K.", "statements": 1, "checks": ["x.same"]},
    {"at": "/responses/503/headers/k/description#2", "sentence": "K.", "statements": 1, "checks": ["x.same"]},
    {"at": "/schema/items/description#1", "sentence": "L.", "statements": 1, "checks": ["x.nameless"]},
]


@pytest.mark.parametrize(
    ("check_id", "expected"),
    [
        ("x.one", ("A.", "/a#1")),
        ("x.two", ("C. ... D.", "/c#1; /d#1")),
        ("x.main", ("E.", "/e#1")),  # three name it: the one that is about it
        ("x.many", None),  # three name it, and none is about it
        ("x.schema", None),  # judges others wholesale, too
        ("x.property", ("j: J.", "/s/properties/j/description#1")),
        (
            "x.same",
            ("k: K.", "/responses/429/headers/k/description#2; /responses/503/headers/k/description#2"),
        ),
        ("x.nameless", ("L.", "/schema/items/description#1")),
        ("x.unknown", None),
    ],
)
def test_which_sentence_is_quoted(check_id: str, expected: tuple[str, str] | None) -> None:
    """One or two sentences that name the check; of more, those that name it first."""
    assert requirement_in(ENTRIES, check_id) == expected


def entries_of(name: str, text: str) -> tuple[Traced, ...]:
    """A file of one's own for a bundled document."""
    return trace_by(load_yaml(text, name="own.yaml", error=DocumentError), OPERATIONS[name])


ALL = "\n  - {at: /**, checks: [sse.done]}\n"
SENTENCES = "\n".join(
    f"  - at: {each.at}\n    sentence: {json.dumps(each.text)}\n    open: not yet"
    for each in statements_of(OPERATIONS["deepinfra-completions"])
    if each.kind == "sentence"
)
ONE_OF = "an entry says exactly one of: checks, unobservable, open"
WRONG: dict[str, tuple[str, str, str]] = {
    "statement": (SENTENCES, "1:1", "no entry for /parameters/0: header x-deepinfra-source"),
    "sentence": (ALL, "1:1", "no entry for /summary#1: Openai Completions"),
    "nothing left": (SENTENCES + ALL + ALL, "142:5", "stale: /** is no statement"),
    "nothing there": (f"  - {{at: /responses/418, open: tea}}\n{SENTENCES}{ALL}", "2:5", "stale: /responses/418"),
    "misquoted": (
        SENTENCES.replace("Openai Completions", "Completions") + ALL,
        "3:5",
        "the document says: Openai Completions",
    ),
    "two kinds": ("  - {at: /a, checks: [sse.done], open: both}", "2:5", ONE_OF),
    "no kind": ("  - {at: /a}", "2:5", ONE_OF),
    "no pointer": ("  - {at: a, open: not yet}", "2:6", "'a' does not match '^/'"),
    "no check": ("  - {at: /a, checks: []}", "2:14", "[] should be non-empty"),
    "unknown": ("  - {at: /a, close: now}", "2:5", "Additional properties are not allowed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_data_are_refused(name: str) -> None:
    """A statement without an entry, an entry without a statement, a sentence misquoted, an entry that says two things."""
    text, place, what = WRONG[name]
    text, where = f"entries:\n{text}", f"own.yaml:{place}"
    with pytest.raises(DocumentError) as caught:
        entries_of("deepinfra-completions", text)

    assert caught.value.where == where
    assert what in caught.value.what


def test_the_first_entry_that_fits_counts() -> None:
    """Patterns: `*` is one step, `**` any number; what stands above takes from what stands below."""
    found = entries_of(
        "deepinfra-completions",
        f"entries:\n  - {{at: /responses/*, open: statuses}}\n{SENTENCES}\n"
        "  - {at: /responses/**, open: the rest}\n  - {at: ['/parameters/**', '/requestBody/**'], open: the request}",
    )
    statuses, rest, request = found[0], found[-2], found[-1]

    assert [each.at for each in statuses.statements] == ["/responses/200", "/responses/422", "/responses/429"]
    assert all(each.at.startswith("/responses/") for each in rest.statements)
    assert {each.at.split("/")[1] for each in request.statements} == {"parameters", "requestBody"}
    assert request.line() == {
        "at": "/parameters/**, /requestBody/**",
        "statements": len(request.statements),
        "open": "the request",
    }


def test_a_document_is_known_by_its_bytes(tmp_path: Path) -> None:
    """A copy under another name is traced, one that was changed, or another document under that name, is not."""
    copy, changed = tmp_path / "mine.yaml", tmp_path / "seekr-chat.yaml"
    copy.write_bytes(catalog.document_text("seekr-chat"))
    changed.write_bytes(catalog.document_text("seekr-chat") + b"# mine\n")
    contracts = load_contracts([str(copy), str(changed)])
    targets = [Target("t", "http://127.0.0.1", contract) for contract in contracts]

    assert [(line["operation"], line["document"]) for line in traceability_lines(targets)] == [("mine", "mine")]
