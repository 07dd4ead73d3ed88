"""Findings without secrets: a key that a server streams piece by piece is whole again in the words of a check."""

from streamgauge.conformance.judge import Finding
from streamgauge.redaction import Redactor

__all__ = ["blotted"]


def blotted(finding: Finding, redactor: Redactor) -> Finding:
    """The finding, with every secret in its words replaced by filler."""
    finding.reason = redactor.text(finding.reason)
    for example in finding.examples:
        example |= {name: redactor.text(example[name]) for name in ("expected", "actual")}
    return finding
