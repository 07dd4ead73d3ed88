"""The gate: the rule that turns findings, a baseline and a load run into one exit code."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamgauge.baseline import Baseline
from streamgauge.detection import tally
from streamgauge.outcomes import ExitCode, Level, Outcome, exit_code_of

__all__ = ["Gate", "decide"]

_VERDICTS = {
    ExitCode.PASS: "pass",
    ExitCode.GATE_FAILED: "fail",
    ExitCode.CANNOT_TELL: "inconclusive",
    ExitCode.INTERRUPTED: "interrupted",
}

_ORDER = (ExitCode.INTERRUPTED, ExitCode.GATE_FAILED, ExitCode.CANNOT_TELL, ExitCode.PASS)
"""Which exit code wins when several things happened."""


@dataclass(slots=True)
class Gate:
    """The verdict on a run."""

    exit_code: ExitCode
    reasons: list[str] = field(default_factory=list)
    baseline: dict[str, Any] | None = None

    @property
    def verdict(self) -> str:
        """The exit code in a word: pass, fail, inconclusive or interrupted."""
        return _VERDICTS[self.exit_code]

    def line(self) -> dict[str, Any]:
        """The verdict as `gate.json` holds it."""
        line: dict[str, Any] = {
            "exit_code": int(self.exit_code),
            "verdict": self.verdict,
            "reasons": self.reasons,
        }
        if self.baseline is not None:
            line["baseline"] = self.baseline
        return line


def decide(
    findings: Iterable[Mapping[str, Any]],
    *,
    baseline: Baseline | None = None,
    load: tuple[ExitCode, str] | None = None,
    interrupted: bool = False,
) -> Gate:
    """
    Weigh everything that was found.

    Args:
        findings: lines of `findings.jsonl`.
        baseline: what is known and accepted.
        load: exit code and reason that the load run alone would give.
        interrupted: whether the user stopped the run.
    """
    findings = list(findings)
    codes: list[tuple[ExitCode, str]] = []
    known = 0
    for finding in findings:
        outcome = Outcome(finding["outcome"])
        code = exit_code_of(outcome, Level(finding["level"]))
        if code is ExitCode.PASS:
            continue
        if baseline is not None and baseline.known(finding):
            known += 1
            continue
        told = f"{outcome}: {finding['check']} ({finding['target']}, {finding['operation']})"
        codes.append((code, f"{told}, {tally(outcome, finding['counts'])}"))
    # Checks alone: a verdict needs something that was judged.
    judged = [f for f in findings if f["outcome"] not in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE)]
    if not judged and (findings or load is None):
        codes.append((ExitCode.CANNOT_TELL, "no check could be judged"))
    if baseline is not None:
        codes += [(ExitCode.GATE_FAILED, f"stale baseline entry, it passes now: {e}") for e in baseline.stale(findings)]
        codes += [(ExitCode.GATE_FAILED, f"expired baseline entry ({e.expires}): {e}") for e in baseline.expired]
    if load is not None and load[0] is not ExitCode.PASS:
        codes.append(load)
    if interrupted:
        codes.append((ExitCode.INTERRUPTED, "interrupted: what was measured until then is kept"))
    ordered = sorted(codes, key=lambda item: _ORDER.index(item[0]))
    gate = Gate(ordered[0][0] if ordered else ExitCode.PASS, [reason for _, reason in ordered])
    if baseline is not None:
        gate.baseline = {
            "file": baseline.name,
            "known": known,
            "stale": [str(entry) for entry in baseline.stale(findings)],
            "expired": [str(entry) for entry in baseline.expired],
        }
    return gate
