"""The rule that turns findings into an exit code."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.baseline import Baseline, Entry
from streamgauge.gate import decide
from streamgauge.outcomes import SEVERITY, ExitCode, Level, Outcome, exit_code_of, most_severe

PASS, FAILED, CANNOT_TELL = ExitCode.PASS, ExitCode.GATE_FAILED, ExitCode.CANNOT_TELL

# outcome: exit code by MUST, SHOULD, MAY
TABLE = {
    Outcome.ERROR: (CANNOT_TELL, CANNOT_TELL, CANNOT_TELL),
    Outcome.FAIL: (FAILED, PASS, PASS),
    Outcome.IGNORED: (FAILED, PASS, PASS),
    Outcome.WARN: (PASS, PASS, PASS),
    Outcome.INCONCLUSIVE: (CANNOT_TELL, PASS, PASS),
    Outcome.REFUSED: (PASS, PASS, PASS),
    Outcome.PASS: (PASS, PASS, PASS),
    Outcome.NOT_APPLICABLE: (PASS, PASS, PASS),
    Outcome.NOT_RUN: (PASS, PASS, PASS),
}
CASES = [(outcome, level, code) for outcome, codes in TABLE.items() for level, code in zip(Level, codes, strict=True)]
FINDINGS = st.lists(st.tuples(st.sampled_from(list(Outcome)), st.sampled_from(list(Level))))


def finding(outcome: str, level: str = "MUST", check: str = "a.b") -> dict[str, Any]:
    """A line of findings.jsonl."""
    counts = {outcome: 1, "pass": 12}
    return {"check": check, "level": level, "target": "t", "operation": "o", "outcome": outcome, "counts": counts}


@pytest.mark.parametrize(("outcome", "level", "code"), CASES)
def test_table(outcome: Outcome, level: Level, code: ExitCode) -> None:
    """Each outcome at each level has its exit code, beside a check that passes."""
    assert exit_code_of(outcome, level) is code
    gate = decide([finding("pass"), finding(outcome, level, "c.d")])
    assert gate.exit_code is code
    assert gate.reasons == ([] if code is PASS else [f"{outcome}: c.d (t, o), 1 of 13"])


@pytest.mark.parametrize("outcomes", [[], ["not-run"], ["not-applicable"], ["not-run", "not-applicable"]])
def test_nothing_judged(outcomes: list[str]) -> None:
    """Where nothing was judged there is no verdict."""
    gate = decide([finding(outcome) for outcome in outcomes])
    assert gate.line() == {"exit_code": 3, "verdict": "inconclusive", "reasons": ["no check could be judged"]}


def test_load_alone() -> None:
    """A load run without checks is judged by itself."""
    assert decide([], load=(PASS, "")).exit_code is PASS
    gate = decide([], load=(FAILED, "p95 too high"))
    assert (gate.exit_code, gate.reasons) == (FAILED, ["p95 too high"])


@pytest.mark.parametrize(
    ("findings", "load", "interrupted", "code", "verdict"),
    [
        (["pass"], None, False, ExitCode.PASS, "pass"),
        (["error", "fail"], None, False, ExitCode.GATE_FAILED, "fail"),
        (["error"], None, False, ExitCode.CANNOT_TELL, "inconclusive"),
        (["pass"], CANNOT_TELL, False, ExitCode.CANNOT_TELL, "inconclusive"),
        (["fail"], CANNOT_TELL, False, ExitCode.GATE_FAILED, "fail"),
        (["inconclusive"], FAILED, False, ExitCode.GATE_FAILED, "fail"),
        (["fail"], FAILED, True, ExitCode.INTERRUPTED, "interrupted"),
        (["pass"], PASS, True, ExitCode.INTERRUPTED, "interrupted"),
        ([], None, True, ExitCode.INTERRUPTED, "interrupted"),
    ],
)
def test_precedence(
    findings: list[str], load: ExitCode | None, interrupted: bool, code: ExitCode, verdict: str
) -> None:
    """Interrupted wins, then a failure, then doubt."""
    given_load = None if load is None else (load, "the load said so")
    gate = decide([finding(outcome) for outcome in findings], load=given_load, interrupted=interrupted)
    assert (gate.exit_code, gate.line()["verdict"]) == (code, verdict)


def test_baseline_excuses_what_it_names_and_nothing_else() -> None:
    """A finding that the baseline does not name fails the gate, beside one that it does."""
    known = Baseline("known.yaml", (Entry("a.b", "known", date.max),), date.min)

    assert decide([finding("fail")], baseline=known).exit_code is PASS
    gate = decide([finding("fail"), finding("fail", check="c.d")], baseline=known)
    assert gate.exit_code is FAILED
    assert gate.reasons == ["fail: c.d (t, o), 1 of 13"]
    assert gate.baseline is not None
    assert gate.baseline["known"] == 1


def test_reasons_are_listed_gravest_first() -> None:
    """Every reason is listed, those that decide first."""
    gate = decide([finding("inconclusive", check="x"), finding("fail", check="y")], interrupted=True)
    assert [reason.split()[0] for reason in gate.reasons] == ["interrupted:", "fail:", "inconclusive:"]


@given(FINDINGS, st.booleans())
def test_order_of_findings_is_no_matter(findings: list[tuple[Outcome, Level]], interrupted: bool) -> None:
    """The verdict is that of the gravest finding, whatever the order, and its line keeps the schema."""
    lines = [finding(outcome, level) for outcome, level in findings]
    gate, mirrored = decide(lines, interrupted=interrupted), decide(lines[::-1], interrupted=interrupted)
    assert gate.exit_code is mirrored.exit_code
    assert sorted(gate.reasons) == sorted(mirrored.reasons)
    schema = {**catalog.schema("bundle"), "$ref": "#/$defs/gate"}
    assert list(Draft202012Validator(schema).iter_errors(gate.line())) == []


@given(st.lists(st.sampled_from(list(Outcome))), st.lists(st.sampled_from(list(Outcome))))
def test_folding_is_associative(left: list[Outcome], right: list[Outcome]) -> None:
    """Folding parts first changes nothing; no outcome at all is `not-run`."""
    assert most_severe(left + right) is most_severe([most_severe(left), most_severe(right)])
    assert most_severe([]) is Outcome.NOT_RUN


def test_severity() -> None:
    """The order is the one that the design fixes."""
    order = "error fail ignored warn inconclusive refused pass not-applicable not-run"
    assert [outcome.value for outcome in SEVERITY] == order.split()
