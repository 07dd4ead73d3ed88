"""A right endpoint trips no check, whatever its model says, whenever and how fast it says it."""

import pytest
from mutations import WRONG, findings_of

from streamgauge.catalog import DOCUMENTS
from streamgauge.outcomes import Outcome


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("seed", range(20))
def test_without_a_fault_nothing_departs(document: str, seed: int) -> None:
    """In every profile's dialect; nothing is left inconclusive either."""
    found = findings_of(document, seed=seed)

    assert [each.check for each in found if each.outcome in (*WRONG, Outcome.INCONCLUSIVE)] == []
