"""
`streamgauge lint`: the rules, each proved both ways, the golden lists of the bundled documents, and the command line.

The golden lists (tests/golden/lint/NAME.txt) and docs/lint.md are written anew by
`STREAMGAUGE_WRITE_GOLDEN=1 pytest tests/test_lint.py`; read the difference before you keep it.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from commandline import environment, streamgauge
from hypothesis import given, settings
from hypothesis import strategies as st
from lint_cases import BASE, CASES, Case, document_of
from lint_page import page

from streamgauge import catalog
from streamgauge.lint.rule import RULES, LintLevel
from streamgauge.lint.run import Finding, lint

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "lint"
WRITE = bool(os.environ.get("STREAMGAUGE_WRITE_GOLDEN"))


def linted(tmp_path: Path, text: str | bytes) -> list[Finding]:
    """What is wrong with a document of this text."""
    file = tmp_path / "own.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return lint(str(file))


def ids(findings: list[Finding]) -> list[str]:
    """The rules that are broken."""
    return [finding.rule.id for finding in findings]


def compared(file: Path, text: str) -> None:
    """Compare with the file, or write it when asked to."""
    if WRITE:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.read_text() == text


# -- the rules ---------------------------------------------------------------------------------------------------------


def test_every_rule_has_a_case() -> None:
    """No rule is without its proof, and no proof without its rule."""
    assert CASES.keys() == RULES.keys()


def test_the_base_breaks_no_rule(tmp_path: Path) -> None:
    """The document that the fragments are put into is right by every rule."""
    assert linted(tmp_path, BASE) == []


@pytest.mark.parametrize("id_", CASES)
def test_a_rule_finds_what_is_wrong(id_: str, tmp_path: Path) -> None:
    """Each rule finds its wrong fragment, at a place that the document has."""
    found = [
        finding for finding in linted(tmp_path, document_of(CASES[id_], CASES[id_].wrong)) if finding.rule.id == id_
    ]

    assert len(found) == 1
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}/own\.yaml:\d+:\d+", found[0].where)


@pytest.mark.parametrize("id_", CASES)
def test_a_rule_lets_pass_what_is_right(id_: str, tmp_path: Path) -> None:
    """Each rule is silent about its right fragment."""
    assert id_ not in ids(linted(tmp_path, document_of(CASES[id_], CASES[id_].right)))


EDGES: dict[str, tuple[str, str, str, bool]] = {
    "const under a condition is no object": (
        "spec.const-optional",
        "request",
        "{if: {properties: {model: {const: a}}}, then: {}}",
        False,
    ),
    "null type in 3.0": ("spec.keyword-version", "properties", "a: {type: [string, 'null']}", False),
    "an ECMA pattern": ("spec.pattern-dialect", "properties", r"a: {type: string, pattern: '\p{Lu}'}", True),
    "an enum twice": ("spec.enum-invalid", "properties", "a: {enum: [1, 1]}", True),
    "true is not 1 in an enum": ("spec.enum-invalid", "properties", "a: {enum: [1, true]}", False),
    "an example of the media type": (
        "spec.example-invalid",
        "answer",
        "application/json: {schema: {type: object}, example: [1]}",
        True,
    ),
    "a named example": (
        "spec.example-invalid",
        "answer",
        "application/json: {schema: {type: object}, examples: {a: {value: 1}}}",
        True,
    ),
    "an example of XML is text": (
        "spec.example-invalid",
        "answer",
        "application/xml: {schema: {type: object}, example: <a/>}",
        False,
    ),
    "required in a part of a whole": (
        "spec.required-unknown",
        "properties",
        "a: {allOf: [{properties: {x: {type: string}}, required: [y]}]}",
        False,
    ),
    "a list of lists ends": (
        "spec.recursion-endless",
        "document",
        "components: {schemas: {A: {type: array, items: {$ref: '#/components/schemas/A'}}}}",
        False,
    ),
    "a list that must not be empty does not end": (
        "spec.recursion-endless",
        "document",
        "components: {schemas: {A: {type: array, minItems: 1, items: {$ref: '#/components/schemas/A'}}}}",
        True,
    ),
    "two objects in oneOf": (
        "spec.union-overlap",
        "properties",
        "a: {oneOf: [{type: object, properties: {x: {type: string}}}, {type: object, properties: {y: {type: string}}}]}",
        True,
    ),
    "a union of required constants": (
        "spec.union-overlap",
        "properties",
        "a: {oneOf: [{type: object, properties: {t: {const: x}}, required: [t]}, "
        "{type: object, properties: {t: {const: y}}, required: [t]}]}",
        False,
    ),
    "a property called like a keyword": ("spec.keyword-invalid", "properties", "required: {type: boolean}", False),
    "a default with a prefix": (
        "spec.default-contradicts-openai",
        "properties",
        "n: {type: integer, default: 2}",
        True,
    ),
    "false is not 0": (
        "spec.default-contradicts-openai",
        "properties",
        "stream: {type: boolean, default: false}",
        False,
    ),
    "a stream of lines": (
        "spec.stream-no-item-schema",
        "answer",
        "text/event-stream: {schema: {type: object}, itemSchema: {type: object}}",
        False,
    ),
    "all that the text lists": (
        "spec.text-contradicts-schema",
        "properties",
        "a: {enum: [x, y], description: \"Only {'type': 'x'} or {'type': 'y'} is supported.\"}",
        False,
    ),
    "what is true by default": (
        "spec.default-against-prose",
        "properties",
        "{a: {type: boolean, description: Cannot be used at the same time as `b`.}, b: {type: boolean, default: true}}",
        True,
    ),
    "exclusiveMinimum of 3.0 in 3.1": (
        "spec.keyword-version",
        "properties",
        "a: {type: number, minimum: 0, exclusiveMinimum: true}",
        True,
    ),
    "an anchor is a name": ("spec.ref-dangling", "properties", "a: {$ref: '#user'}", False),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str, tmp_path: Path) -> None:
    """What looks like a fault and is none, and what hides one."""
    id_, where, fragment, broken = EDGES[name]
    found = ids(linted(tmp_path, document_of(Case(where, "", ""), fragment)))
    assert (id_ in found) is broken


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("", "spec.unreadable", None),
        ("[1]", "spec.version", None),
        ("a: b: c", "spec.unreadable", 1),
        ("a: 1\nb: 2\na: 3\n", "spec.unreadable", 3),
        ('{"a": 1,\n "a": 2}', "spec.unreadable", 2),
        (b"\x7fELF\xff", "spec.unreadable", None),
        ("swagger: '2.0'\npaths: {}", "spec.version", 1),
        ("info: {}", "spec.version", 1),
        ("openapi: 4.0.0", "spec.version", 1),
        ("openapi: 3.1.0\npaths: " + '{"a": ' * 300 + "1" + "}" * 300, "spec.unreadable", None),
    ],
    ids=["empty", "list", "syntax", "twice", "twice-json", "binary", "swagger", "no-version", "4.0", "abyss"],
)
def test_documents_that_cannot_be_linted(text: str | bytes, rule: str, line: int | None, tmp_path: Path) -> None:
    """What the contract's loader refuses is one finding of level error, with its line where there is one."""
    (found,) = linted(tmp_path, text)
    assert (found.rule.id, found.rule.level, found.line()["line"]) == (rule, LintLevel.ERROR, line)


def test_openapi_32_is_linted_as_31(tmp_path: Path) -> None:
    """A document of 3.2 is refused by check, said so, and linted all the same."""
    found = linted(tmp_path, BASE.replace("3.1.0", "3.2.0").replace("operationId: chat", "summary: x"))
    assert ids(found) == ["spec.version", "spec.operation-id-missing"]


def test_the_same_complaint_is_folded(tmp_path: Path) -> None:
    """Places of one rule that say the same are one finding, at the first of them, and none is lost."""
    (found,) = linted(tmp_path, document_of(Case("properties", "", ""), "{a: {type: integer}, b: {type: integer}}"))
    assert found.pointer.endswith("/properties/a")
    assert [pointer[-13:] for pointer in found.also] == ["/properties/b"]


# -- the bundled documents ---------------------------------------------------------------------------------------------


def golden(spec: str) -> str:
    """A document's findings as a list: line, level, rule, pointer, message, number of places."""
    rows = []
    for finding in lint(spec):
        line = finding.line()
        rows.append(
            f"{line['line']} {line['level']} {line['rule']} {line['pointer']}: {line['message']} [{1 + len(finding.also)}]"
        )
    return "\n".join([*rows, ""])


@pytest.mark.parametrize("spec", catalog.DOCUMENTS)
def test_golden_lists(spec: str) -> None:
    """Each bundled document gives exactly its list (fault-catalogue Q1 to Q17; every line was read and found true)."""
    compared(GOLDEN / f"{spec}.txt", golden(spec))


def test_every_bundled_document_has_a_golden_list() -> None:
    """No list is left over."""
    assert {file.stem for file in GOLDEN.iterdir()} == set(catalog.DOCUMENTS)


@pytest.mark.parametrize("spec", [name for name in catalog.DOCUMENTS if name.startswith("openai")])
def test_our_own_documents_are_clean(spec: str) -> None:
    """What we wrote ourselves has neither errors nor warnings."""
    assert {finding.rule.level for finding in lint(spec)} <= {LintLevel.INFO}


BY_FIELDS = """
openapi: 3.1.0
info: {title: Example, version: '1'}
paths:
  /generate:
    post:
      requestBody:
        content:
          application/json:
            schema: {properties: {prompt: {type: string}, max_tokens: {type: integer, minimum: 0}}}
      responses: {}
"""


def test_what_check_recognises_by_fields_is_known_to_the_rules(tmp_path: Path) -> None:
    """An operation that `check` judges for its fields is one of a family to `lint`, too; without them it is none."""
    told = {}
    for name, text in {"known": BY_FIELDS, "other": BY_FIELDS.replace("max_tokens", "size")}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
        told[name] = {finding.rule.id for finding in lint(str(tmp_path / f"{name}.yaml"))}
    assert told["known"] - told["other"] == {"spec.input-optional"}
    assert told["other"] - told["known"] >= {"spec.no-family"}


def test_the_page_is_that_of_the_rules() -> None:
    """docs/lint.md tells of every rule what the rule says itself."""
    compared(ROOT / "docs" / "lint.md", page())


MUTANTS = {name: yaml.safe_load(catalog.document_text(name)) for name in catalog.DOCUMENTS}
ANYTHING = st.sampled_from(
    [None, True, 0, -1.5, 10**30, "", "x", "#/", "#/components/schemas/X", [], [None], {}, {"a": 1}]
)


def paths_of(node: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node below."""
    items = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [path for key, value in items for path in ((*above, key), *paths_of(value, (*above, key)))]


PATHS = {name: paths_of(data) for name, data in MUTANTS.items()}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_mutants_never_crash(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever is removed from a document or put in its place, lint answers with findings."""
    name = data.draw(st.sampled_from(sorted(MUTANTS)))
    document = json.loads(json.dumps(MUTANTS[name]))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(PATHS[name]))
        target: Any = document
        for step in path[:-1]:
            try:
                target = target[step]
            except (LookupError, TypeError):
                break
        else:
            mutate(target, path[-1], data)
    file = tmp_path_factory.getbasetemp() / "mutant.json"
    file.write_text(json.dumps(document))
    for finding in lint(str(file)):
        assert finding.message
        json.dumps(finding.line())


def mutate(target: Any, step: Any, data: st.DataObject) -> None:
    """Remove or replace one member, where it is still there."""
    there = isinstance(target, dict) and step in target
    there = there or (isinstance(target, list) and isinstance(step, int) and step < len(target))
    if there and data.draw(st.booleans()):
        del target[step]
    elif there:
        target[step] = data.draw(ANYTHING)


# -- the command line --------------------------------------------------------------------------------------------------


def test_a_finding_is_one_line(tmp_path: Path) -> None:
    """A finding is `file:line:column level rule pointer: message`, as editors and grep know it; a summary follows."""
    (tmp_path / "own.yaml").write_text(document_of(CASES["spec.nullable-in-31"], CASES["spec.nullable-in-31"].wrong))
    done = streamgauge("lint", "own.yaml", cwd=tmp_path)

    first, *_, last = done.stdout.splitlines()
    assert re.match(r"own\.yaml:\d+:\d+ error spec\.nullable-in-31 /paths/\S+/nullable: `nullable`", first)
    assert last == "1 document: 1 error, 0 warnings, 0 infos"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "lines"),
    [
        (["deepinfra-completions"], 0, 21),
        (["deepinfra-completions", "--level", "warning"], 0, 14),
        (["deepinfra-completions", "--level", "error"], 0, 1),
        (["deepinfra-completions", "--fail-on", "warning"], 1, 21),
        (["deepinfra-completions", "openai-chat", "--rule", "spec.success-unknown"], 0, 3),
        (["seekr-chat", "--rule", "spec.nullable-in-31", "--ignore", "spec.nullable-in-31"], 0, 1),
        (["seekr-chat", "--rule", "spec.nullable-in-31"], 1, 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_selection_and_exit_codes(arguments: list[str], code: int, lines: int, tmp_path: Path) -> None:
    """--level hides, --rule and --ignore select, --fail-on tightens; the exit code follows what is selected."""
    done = streamgauge("lint", *arguments, cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (code, lines)


@pytest.mark.parametrize("part", ["Examples:", "streamgauge lint openapi.yaml", "Exit codes: 0"])
def test_help_teaches(part: str, tmp_path: Path) -> None:
    """The help shows examples and exit codes."""
    assert part in streamgauge("lint", "--help", cwd=tmp_path).stdout


def test_json_output(tmp_path: Path) -> None:
    """--json gives every finding with all of its places."""
    done = streamgauge("lint", "seekr-chat", "--json", "--rule", "spec.nullable-in-31", cwd=tmp_path)
    (found,) = json.loads(done.stdout)
    assert found.keys() == {"document", "file", "line", "column", "rule", "level", "pointer", "message", "also"}
    assert (found["document"], found["line"], found["level"], len(found["also"])) == ("seekr-chat", 70, "error", 6)


def test_standard_input(tmp_path: Path) -> None:
    """- reads the document from standard input."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "streamgauge", "lint", "-"]
    done = subprocess.run(
        command, input=BASE, text=True, capture_output=True, cwd=tmp_path, env=environment(), timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "1 document: 0 errors, 0 warnings, 0 infos\n")


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing.yaml"], ["seekr-chat", "--rule", "spec.nothing"], ["seekr-chat", "--level", "fatal"]],
    ids=["none", "no-such-document", "no-such-rule", "no-such-level"],
)
def test_wrong_use(arguments: list[str], tmp_path: Path) -> None:
    """Wrong use is exit code 2 and one screen."""
    done = streamgauge("lint", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 12


def test_rules_are_listed_and_explained(tmp_path: Path) -> None:
    """`list rules` shows every id, `explain` a rule in full."""
    listed = json.loads(streamgauge("list", "rules", "--json", cwd=tmp_path).stdout)
    assert [row["id"] for row in listed] == list(RULES)
    told = streamgauge("explain", "spec.nullable-in-31", cwd=tmp_path).stdout
    assert "Write `type: [string, 'null']`" in " ".join(told.split())
