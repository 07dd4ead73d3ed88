"""The mutation matrix: which checks depart when one thing goes wrong in the reference endpoint."""

import functools
import json
from dataclasses import fields
from pathlib import Path
from typing import ClassVar

from in_memory import send_all
from rehearsal import Rehearsed, Watching, unique

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.check import CHECKS, Case
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.conformance.plan import Planned, plan
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.faults.switched import SwitchedFaults
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange

GOLDEN = Path(__file__).parent / "golden" / "mutations.json"
PAGE = Path(__file__).parent.parent / "docs" / "mutation-matrix.md"

NOW = 1_800_000_000.5
CURATED = ("form", "pair", "law", "isolation", "refusal", "auth")
"""The topics of all probes but those that are made from the document, need the server for themselves, or are opt-in."""

SHOWN = {name: fault for name, fault in FAULTS.items() if not fault.proof}
"""The faults that these probes show without a socket."""

ELSEWHERE = {id_ for fault in FAULTS.values() if fault.proof for id_ in fault.caught_by}
"""The checks that are proved by the test modules which the other faults name."""

WRONG = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN)
"""The outcomes of a check that departed."""

Matrix = dict[str, dict[str, list[str]]]
"""Fault → operation → ids of the checks that departed, in the order of the checks."""


@functools.cache
def contract_of(document: str) -> Contract:
    """The contract of a bundled document alone."""
    return load_contracts([document])[0]


def responder_of(document: str, *faults: str, seed: int = 0, bending: SwitchedFaults | None = None) -> Responder:
    """The endpoint that serves one document; the seed changes ids, times, pace and what the model says."""
    settings = Settings(
        models=(model_of(seed),), faults=faults, seed=seed, ttft_ms=200.0 + seed, itl_ms=20.0 + seed % 3
    )
    return Responder(
        settings,
        contracts=[contract_of(document)],
        faults=bending,
        now=lambda: NOW + seed,
        unique=lambda: f"u{seed}-{unique()}",
    )


def model_of(seed: int) -> str:
    """Another model for each seed: it says other words."""
    return DEFAULT_MODEL if seed == 0 else f"{DEFAULT_MODEL}-{seed}"


@functools.cache
def planned_for(document: str, seed: int = 0) -> list[Planned]:
    """The curated probes of a document's operation."""
    target = Target("t", "http://127.0.0.1", contract_of(document), model=model_of(seed), key=DEFAULT_KEY)
    return plan([target], select=CURATED).planned


def exchanges_of(document: str, *faults: str, seed: int = 0) -> list[Exchange]:
    """What the endpoint with these faults answers to the curated probes."""
    beside = None
    if seed == 0 and all(name in FAULTS for name in faults):
        exchanges, watching = _rehearsal(document)
        beside = Rehearsed(exchanges, watching, [FAULTS[name] for name in faults])
    return send_all(responder_of(document, *faults, seed=seed), planned_for(document, seed), NOW + seed, beside)


@functools.cache
def _rehearsal(document: str) -> tuple[list[Exchange], Watching]:
    """The exchanges of the right endpoint, and the drafts that they were made of."""
    watching = Watching()
    return send_all(responder_of(document, bending=watching), planned_for(document), NOW), watching


def _right(document: str) -> list[Exchange]:
    return _rehearsal(document)[0]


def findings_of(document: str, *faults: str, seed: int = 0) -> list[Finding]:
    """What every check says of the endpoint with these faults; of what no fault touched only where it may matter."""
    exchanges = exchanges_of(document, *faults, seed=seed)
    if faults and seed == 0 and list(map(id, exchanges)) == list(map(id, _right(document))):
        return _findings(document)  # the fault does not show
    contract = contract_of(document)
    (operation,) = contract.operations
    cases = cases_of(exchanges, operation, contract, target="t", model=model_of(seed))
    if not faults or seed:
        return [judge(check, cases, operation, contract, "t") for check in CHECKS.values()]
    # A verdict on an exchange that did not change, by a check that looked at no other, stands: nothing departed there.
    right = {id(each) for each in _right(document)}
    changed = [id(case.exchange) not in right for case in cases]
    looked = _looks_at_others(document)
    touched = [case for case, differs in zip(cases, changed, strict=True) if differs]
    same = {case.exchange.id: case for case, differs in zip(cases, changed, strict=True) if not differs}
    return [
        judge(check, [*touched, *(same[each] for each in looked[id_] if each in same)], operation, contract, "t")
        for id_, check in CHECKS.items()
    ]


@functools.cache
def _findings(document: str) -> list[Finding]:
    """What every check says of the right endpoint."""
    return findings_of(document)


@functools.cache
def verdict_of(document: str, *faults: str) -> tuple[list[str], list[str]]:
    """Ids of the checks that depart, and of those that some exchange passes."""
    found = findings_of(document, *faults)
    departed = [finding.check for finding in found if finding.outcome in WRONG]
    return departed, [finding.check for finding in found if finding.counts[Outcome.PASS]]


class _Watched(Case):
    """A case that notices when somebody looks at other exchanges than its own."""

    looked: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> object:
        if name == "others":
            self.looked.add(self.exchange.id)
        return super().__getattribute__(name)


@functools.cache
def _looks_at_others(document: str) -> dict[str, frozenset[str]]:
    """Check → ids of the exchanges of the right endpoint whose verdict needs more than the exchange itself."""
    contract = contract_of(document)
    (operation,) = contract.operations
    found = {}
    for id_, check in CHECKS.items():
        cases = cases_of(_right(document), operation, contract, target="t", model=model_of(0))
        watched = [_Watched(**{each.name: getattr(case, each.name) for each in fields(case)}) for case in cases]
        _Watched.looked.clear()
        judge(check, watched, operation, contract, "t")
        found[id_] = frozenset(_Watched.looked)
    return found


def row(fault: str) -> dict[str, list[str]]:
    """A fault's row of the matrix: operations in which nothing departs are left out."""
    found = {document: verdict_of(document, fault)[0] for document in DOCUMENTS}
    return {document: ids for document, ids in found.items() if ids}


def golden() -> Matrix:
    """The matrix as it was last read and found right."""
    matrix: Matrix = json.loads(GOLDEN.read_text("utf-8"))
    return matrix


def write(matrix: Matrix) -> None:
    """Keep a matrix and its page."""
    GOLDEN.write_text(json.dumps(matrix, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(matrix), "utf-8")


def page(matrix: Matrix) -> str:
    """The matrix as a page of the documentation."""
    caught = sum(bool(row) for row in matrix.values())
    lines = [
        "# Which check sees which fault",
        "",
        "Made by the tests from the reference endpoint: each row is one fault (`streamgauge serve --fault NAME`), and every",
        "check that departs when that alone goes wrong. Without a fault no check departs. Regenerate it with",
        "`STREAMGAUGE_WRITE_GOLDEN=1 pytest tests/test_mutations.py` and read the difference.",
        "",
        f"Score: {caught} of {len(matrix)} faults are caught, by {len(seen(matrix))} of {len(CHECKS)} checks. What shows over",
        f"sockets or with `--destructive` only, tests of their own prove: {', '.join(f'`{id_}`' for id_ in sorted(ELSEWHERE))}.",
        "",
        "| fault | what goes wrong | checks that depart |",
        "|---|---|---|",
    ]
    for name, operations in matrix.items():
        lines.append(f"| `{name}` | {FAULTS[name].title} | {_cell(operations)} |")
    return "\n".join([*lines, ""])


def _cell(operations: dict[str, list[str]]) -> str:
    """The ids that depart in every operation that shows the fault, then those of some only."""
    everywhere = [id_ for id_ in CHECKS if all(id_ in ids for ids in operations.values())]
    some = [id_ for id_ in CHECKS if id_ not in everywhere and any(id_ in ids for ids in operations.values())]
    told = [f"`{id_}`" for id_ in everywhere]
    told += [f"`{id_}` ({', '.join(doc for doc, ids in operations.items() if id_ in ids)})" for id_ in some]
    shown = "" if len(operations) == len(DOCUMENTS) else f" — shows in {', '.join(operations)}"
    return ", ".join(told) + shown


def seen(matrix: Matrix) -> set[str]:
    """Every check that departs somewhere."""
    return {id_ for operations in matrix.values() for ids in operations.values() for id_ in ids}
