"""Findings that are known and accepted for a while."""

import copy
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.baseline import LIFETIME, Baseline, Entry, gates, load_baseline, write_baseline
from streamgauge.errors import ConfigError
from streamgauge.gate import decide
from streamgauge.outcomes import ExitCode, Level, Outcome, exit_code_of

TODAY = date(2026, 3, 1)
PLACES = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)
NAMES = st.sampled_from(["a.b", "a.c", "x.y-z"])
TEXTS = st.text(max_size=20)


def finding(check: str = "a.b", outcome: str = "fail", level: str = "MUST", **more: Any) -> dict[str, Any]:
    """A line of findings.jsonl."""
    line = {"check": check, "level": level, "target": "t", "operation": "o", "outcome": outcome}
    return {**line, "counts": {outcome: 1}, "reason": "", "examples": [], **more}


def entry(check: str = "a.b", expires: date = TODAY, **more: Any) -> Entry:
    """An entry that is valid today."""
    return Entry(check, "known", expires, **more)


@pytest.mark.parametrize(
    ("known", "covered"),
    [
        (entry(), True),
        (entry(target="t"), True),
        (entry(operation="o"), True),
        (entry(target="t", operation="o"), True),
        (entry("a.c"), False),
        (entry("a"), False),
        (entry(target="other"), False),
        (entry(operation="other"), False),
    ],
)
def test_coverage(known: Entry, covered: bool) -> None:
    """An entry covers its check, at the target and operation that it names or at all."""
    assert known.covers(finding()) is covered
    assert Baseline("b", (known,), TODAY).known(finding()) == (known if covered else None)


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("level", list(Level))
def test_only_what_fails_the_gate_is_known(outcome: Outcome, level: Level) -> None:
    """A baseline excuses failures, not doubts, errors, or what passes anyway."""
    line = finding(outcome=outcome, level=level)
    found = Baseline("b", (entry(),), TODAY).known(line)
    assert (found is not None) is gates(line) is (exit_code_of(outcome, level) is ExitCode.GATE_FAILED)


@pytest.mark.parametrize(("days", "counts"), [(-1, False), (0, True), (1, True)])
def test_expiry(days: int, counts: bool) -> None:
    """An entry counts up to its last day, that day included."""
    known = entry(expires=TODAY + timedelta(days))
    baseline = Baseline("b", (known,), TODAY)
    assert (baseline.known(finding()) is not None) is counts
    assert baseline.expired == ([] if counts else [known])


@pytest.mark.parametrize(
    ("outcomes", "stale"),
    [
        (["pass"], True),
        (["pass", "not-run", "not-applicable"], True),
        (["pass", "fail"], False),
        (["pass", "inconclusive"], False),
        (["pass", "error"], False),
        (["fail"], False),
        (["not-run"], False),
        (["not-applicable"], False),
        ([], False),
    ],
)
def test_staleness(outcomes: list[str], stale: bool) -> None:
    """An entry is stale when its check was really judged and passes everywhere now."""
    findings = [finding(outcome=outcome) for outcome in outcomes] + [finding("other.check", "pass")]
    assert bool(Baseline("b", (entry(),), TODAY).stale(findings)) is stale


def test_entry_for_an_unknown_check() -> None:
    """An entry about a check that this run does not know excuses nothing and is not called stale."""
    gate = decide([finding()], baseline=Baseline("b", (entry("no.such-check"),), TODAY))
    assert gate.exit_code is ExitCode.GATE_FAILED
    assert gate.baseline == {"file": "b", "known": 0, "stale": [], "expired": []}


def test_gate_with_a_baseline() -> None:
    """Known failures pass; stale and expired entries fail, and are named."""
    baseline = Baseline("b", (entry(), entry("old.one", TODAY - timedelta(1)), entry("mended", target="t")), TODAY)
    findings = [finding(), finding("mended", "pass")]
    gate = decide(findings, baseline=baseline)
    assert gate.exit_code is ExitCode.GATE_FAILED
    assert gate.line()["baseline"] == {"file": "b", "known": 1, "stale": ["mended (t)"], "expired": ["old.one"]}
    assert len(gate.reasons) == 2
    assert decide(findings[:1], baseline=Baseline("b", (entry(),), TODAY)).exit_code is ExitCode.PASS


@given(
    findings=st.lists(
        st.builds(
            lambda check, target, operation, outcome, level, actual: finding(
                check,
                outcome,
                level,
                target=target,
                operation=operation,
                examples=[{"expected": "right", "actual": actual}] if actual else [],
            ),
            NAMES,
            PLACES,
            PLACES,
            st.sampled_from(["fail", "ignored", "warn", "pass", "refused"]),
            st.sampled_from(list(Level)),
            TEXTS,
        ),
        min_size=1,
        unique_by=lambda line: (line["check"], line["target"], line["operation"]),
    )
)
@settings(max_examples=40)
def test_what_is_written_excuses_the_same_findings(
    tmp_path_factory: pytest.TempPathFactory, findings: list[dict[str, Any]]
) -> None:
    """A baseline written from findings, read again, lets exactly these pass for its lifetime, and not longer."""
    path = tmp_path_factory.getbasetemp() / "baseline.yaml"
    before = copy.deepcopy(findings)
    count = write_baseline(path, findings, TODAY)
    assert (findings, count) == (before, sum(map(gates, findings)))
    for day in (TODAY, TODAY + LIFETIME):
        gate = decide(findings, baseline=load_baseline(path, day))
        assert (gate.exit_code, gate.reasons) == (ExitCode.PASS, [])
        assert gate.baseline == {"file": str(path), "known": count, "stale": [], "expired": []}
    late = decide(findings, baseline=load_baseline(path, TODAY + LIFETIME + timedelta(1)))
    assert late.exit_code is (ExitCode.GATE_FAILED if count else ExitCode.PASS)


def test_reasons_are_one_line(tmp_path: Path) -> None:
    """What a server said goes into the file as one short printable line."""
    path = tmp_path / "b.yaml"
    write_baseline(
        path, [finding(examples=[{"expected": "right", "actual": "a\u2028b\n\x1b[31mc\ud800" + "d" * 1000}])], TODAY
    )
    (known,) = load_baseline(path, TODAY).entries
    assert known.reason.isprintable()
    assert known.reason.startswith("seen on 2026-03-01: a b [31mc d")
    assert len(known.reason) < 300


BROKEN = {
    "empty": ("", ""),
    "no-list": ("known: {}", ":1:1"),
    "no-check": ("known:\n- {reason: r, expires: 2026-01-01}", ":2:3"),
    "no-reason": ("known:\n- {check: a, reason: '', expires: 2026-01-01}", ":2:14"),
    "unknown-member": ("known:\n- {check: a, reason: r, expires: 2026-01-01, why: x}", ":2:3"),
    "no-day": ("known:\n- {check: a, reason: r, expires: soon}", ":2:25"),
    "no-such-day": ("known:\n- {check: a, reason: r, expires: 2026-02-30}", ":2:25"),
    "time": ("known:\n- {check: a, reason: r, expires: 2026-01-01 10:00:00}", ":2:25"),
}


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN)
def test_broken_files(tmp_path: Path, text: str, place: str) -> None:
    """A baseline that breaks its schema or names no real day is refused with line and column."""
    path = tmp_path / "b.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_baseline(path, TODAY)
    assert caught.value.where == f"{path}{place}"


def test_missing_file(tmp_path: Path) -> None:
    """A baseline that is not there is named."""
    with pytest.raises(ConfigError) as caught:
        load_baseline(tmp_path / "none.yaml", TODAY)
    assert caught.value.where.endswith("none.yaml")


def test_dates_need_no_quotes(tmp_path: Path) -> None:
    """A day is written as people write it."""
    path = tmp_path / "b.yaml"
    path.write_text("known:\n- check: a.b\n  reason: issue 7\n  expires: 2026-03-01\n")
    assert load_baseline(path, TODAY).entries == (Entry("a.b", "issue 7", TODAY),)
