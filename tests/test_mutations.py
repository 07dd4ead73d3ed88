"""The checks are proved by faults: each fault trips exactly its checks, and each check has one."""

import os

import pytest
from mutations import ELSEWHERE, PAGE, SHOWN, golden, page, row, seen, verdict_of, write

from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.check import CHECKS
from streamgauge.reference.faults import FAULTS

if os.environ.get("STREAMGAUGE_WRITE_GOLDEN"):
    write({name: row(name) for name in SHOWN})


@pytest.mark.parametrize("fault", SHOWN)
def test_a_fault_trips_exactly_its_checks(fault: str) -> None:
    """The departing checks are those of the matrix; wherever the fault shows, a check that it names is among them."""
    found = row(fault)

    assert found == golden().get(fault)
    assert found, "nothing sees it"
    for document, ids in found.items():
        assert set(ids) & set(FAULTS[fault].caught_by), (document, ids)


def test_the_matrix_knows_every_fault_and_its_page_is_true() -> None:
    """No row of a fault that is gone; docs/mutation-matrix.md says what the matrix says."""
    assert list(golden()) == list(SHOWN)
    assert PAGE.read_text("utf-8") == page(golden())


def test_every_named_check_exists() -> None:
    """`caught_by` names checks."""
    assert {id_ for fault in FAULTS.values() for id_ in fault.caught_by} <= set(CHECKS)


@pytest.mark.timeout(600)
def test_every_check_is_seen_passing_and_failing() -> None:
    """A check that never passes on a right endpoint, or never departs on a wrong one, has not been proved."""
    runs = [(document, *faults) for document in DOCUMENTS for faults in ((), *((fault,) for fault in SHOWN))]
    passing = {id_ for run in runs for id_ in verdict_of(*run)[1]}

    assert set(CHECKS) - seen(golden()) - ELSEWHERE == set(), "never seen failing"
    assert set(CHECKS) - passing - ELSEWHERE == set(), "never seen passing"
