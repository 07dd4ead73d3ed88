"""Every check on every operation: the target keeps its contract."""

import warnings

import pytest

from streamgauge.conformance.judge import Finding
from streamgauge.conformance.session import Item
from streamgauge.conformance.verdict import DepartureWarning, describe
from streamgauge.outcomes import Outcome, fails_gate


def test_contract(streamgauge_item: Item, streamgauge_finding: Finding, streamgauge_known: str) -> None:
    """The check of this test finds no departure from its requirement."""
    finding, item = streamgauge_finding, streamgauge_item
    if streamgauge_known:
        pytest.xfail(streamgauge_known)
    if fails_gate(finding.outcome, finding.level) or finding.outcome is Outcome.ERROR:
        pytest.fail(describe(item.check, finding, item.operation), pytrace=False)
    if finding.outcome in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE):
        pytest.skip(f"{finding.outcome}: {finding.reason}")
    if finding.outcome is not Outcome.PASS:
        warnings.warn(describe(item.check, finding, item.operation), DepartureWarning, stacklevel=1)
