"""A finding in words, for terminals and test reports."""

from streamgauge.conformance.check import Check
from streamgauge.conformance.judge import Finding

__all__ = ["DepartureWarning", "describe"]


class DepartureWarning(UserWarning):
    """The target works, but departs from what most clients rely on."""


def describe(check: Check, finding: Finding) -> str:
    """What was required, what was there instead, and how often."""
    total = sum(finding.counts.values())
    departed = finding.counts[finding.outcome]
    lines = [
        f"{finding.outcome} ({departed} of {total}): {check.id} [{check.level}] {check.title}",
        f"  requirement: {check.requirement}",
        f"  source:      {check.source}",
    ]
    for example in finding.examples:
        lines += [
            f"  exchange {example['exchange']}:",
            f"    expected: {example['expected']}",
            f"    actual:   {example['actual']}",
        ]
    return "\n".join(lines)
