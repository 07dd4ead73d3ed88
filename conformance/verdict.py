"""A finding in words, for terminals and test reports."""

from streamgauge.conformance.check import Check
from streamgauge.conformance.judge import Finding
from streamgauge.contract.contract import Operation
from streamgauge.detection import tally
from streamgauge.traceability import requirement_in, trace

__all__ = ["DepartureWarning", "describe"]


class DepartureWarning(UserWarning):
    """The target works, but departs from what most clients rely on."""


def describe(check: Check, finding: Finding, operation: Operation) -> str:
    """What was required, by the operation's own document where it says so, what was there instead, and how often."""
    own = requirement_in([each.line() for each in trace(operation)], check.id)
    requirement, source = own or (check.requirement, check.source)
    told = tally(finding.outcome, finding.counts)
    lines = [
        f"{finding.outcome}{f' ({told})' if told else ''}: {check.id} [{check.level}] {check.title}",
        f"  requirement: {requirement}",
        f"  source:      {source}",
    ]
    for example in finding.examples:
        lines += [
            f"  exchange {example['exchange']}:",
            f"    expected: {example['expected']}",
            f"    actual:   {example['actual']}",
        ]
    return "\n".join(lines)
