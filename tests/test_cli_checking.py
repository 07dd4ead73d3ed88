"""What `check` prints of its findings, and which selections it refuses."""

from pathlib import Path
from typing import Any

import pytest
from report_bundles import meta
from rich.console import Console

from streamgauge.bundle.writer import BundleWriter
from streamgauge.cli.checking import CheckPart, print_findings
from streamgauge.contract.contract import load_contracts
from streamgauge.errors import UsageError
from streamgauge.target import Target


def finding(check: str, operation: str, outcome: str = "fail", **more: Any) -> dict[str, Any]:
    """A line of findings.jsonl: two of three exchanges had the outcome."""
    example = {"exchange": "main-0", "outcome": outcome, "expected": "one thing", "actual": "another"}
    said = {"check": check, "level": "MUST", "target": "t", "operation": operation, "outcome": outcome, "reason": ""}
    return {**said, "counts": {outcome: 2, "pass": 1}, "examples": [example], **more}


def printed(lines: list[dict[str, Any]], directory: Path, *, verbose: bool = False) -> list[str]:
    """What stands below the table of outcomes, without empty lines."""
    writer = BundleWriter(directory / "b")
    writer.meta(meta())
    with writer.findings() as findings:
        for line in lines:
            findings.write(line)
    console = Console(width=160, highlight=False, soft_wrap=True)
    with console.capture() as capture:
        print_findings(directory / "b", console, verbose=verbose)
    told = [line for line in capture.get().splitlines() if line]
    return told[next(i for i, line in enumerate(told) if line.startswith(("fail ", "known", "inconclusive "))) :]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [finding("a.b", "chat"), finding("a.b", "text")],
            ["fail a.b [MUST] chat: 2 of 3; text: 2 of 3", "  expected one thing", "  actual   another"],
        ),
        (
            [finding("a.b", "chat"), finding("a.b", "chat", target="u")],
            ["fail a.b [MUST] t, chat: 2 of 3; u, chat: 2 of 3", "  expected one thing", "  actual   another"],
        ),
        (
            [finding("a.b", "chat", "inconclusive", reason="another")],
            ["inconclusive a.b [MUST] chat: 2 of 3", "  expected one thing", "  actual   another"],
        ),
        (
            [finding("a.b", "chat", known={"reason": "r", "expires": "2027-01-01"})],
            ["known until 2027-01-01 a.b [MUST] chat: 2 of 3", "  expected one thing", "  actual   another"],
        ),
    ],
    ids=["operations", "targets", "reason", "known"],
)
def test_what_a_check_says_alike_is_said_once(lines: list[dict[str, Any]], expected: list[str], tmp_path: Path) -> None:
    """One entry for each check, with every operation's k of n; a reason that repeats the example is left out."""
    assert printed(lines, tmp_path) == expected


def test_many_failures_fit_a_screen(tmp_path: Path) -> None:
    """Of 30 checks that fail over 5 operations 8 are shown in full, the others with a line each."""
    lines = [finding(f"a.c{number}", f"o{operation}") for number in range(30) for operation in range(5)]

    told = printed(lines, tmp_path)

    assert len(told) == 8 * 3 + 22 + 1
    assert "--verbose" in told[-1]


def test_verbose_shows_every_example(tmp_path: Path) -> None:
    """With --verbose nothing is left to one line."""
    lines = [finding(f"a.c{number}", "chat") for number in range(30)]
    assert len(printed(lines, tmp_path, verbose=True)) == 30 * 3


TARGET = Target("t", "http://127.0.0.1", load_contracts(["openai-chat"])[0], key="not-a-real-key")


@pytest.mark.parametrize("name", ["form", "pair.tool", "refusal", "auth", "generated"])
def test_selection_of_something(name: str) -> None:
    """Topics and ids of probes are taken, before the model is known."""
    CheckPart(select=(name,)).require_probes([TARGET])


@pytest.mark.parametrize("name", ["nosuch", "form.nosuch", "sse"])
def test_selection_of_nothing(name: str) -> None:
    """A name that no probe has is wrong use: sending nothing would end as `cannot tell`."""
    with pytest.raises(UsageError, match=f"--select {name}: these targets have no such probe"):
        CheckPart(select=("form", name)).require_probes([TARGET])


def test_selection_of_key_forms_without_a_key() -> None:
    """Where the probes of the key are missing for want of one, that is said."""
    with pytest.raises(UsageError, match="STREAMGAUGE_API_KEY"):
        CheckPart(select=("auth",)).require_probes([Target("t", "http://127.0.0.1", TARGET.contract)])
