"""The mutation matrix once more, over real sockets: what the recorder keeps is what the matrix was made of."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mutations import WRONG, contract_of, golden, planned_for

from streamgauge.bundle.reader import Bundle
from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import Planned
from streamgauge.conformance.recording import record
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.launch import running
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.recorder import Limits

pytestmark = pytest.mark.sockets

LIMITS = Limits(idle=4.0, total=20.0, rate_limit_wait=0.1)


@contextmanager
def _endpoint(document: str, *faults: str) -> Iterator[Target]:
    """The endpoint with these faults, serving one document, at a pace that shows in the read times."""
    contract = contract_of(document)
    with running(profiles=[contract.profile.name], faults=faults, ttft_ms=40, itl_ms=20) as url:
        yield Target("t", url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)


def _departed(document: str, place: Path, *faults: str) -> list[str]:
    """Ids of the checks that depart, as in the matrix."""
    with _endpoint(document, *faults) as target:
        writer, _ = open_bundle("check", [target], output=place)
        planned = [Planned(target, item.operation, item.probe) for item in planned_for(document)]
        record(planned, writer.path, limits=LIMITS)
    exchanges = Bundle(writer.path).exchanges.values()
    (operation,) = target.contract.operations
    cases = cases_of(exchanges, operation, target.contract, target="t", model=DEFAULT_MODEL)
    found = [judge(check, cases, operation, target.contract, "t") for check in CHECKS.values()]
    return [finding.check for finding in found if finding.outcome in WRONG]


@functools.cache
def _one_document_for_each() -> list[tuple[str, str]]:
    """Each fault with one operation that shows it, the operations by turns: the matrix has them all."""
    pairs = []
    for number, (fault, operations) in enumerate(golden().items()):
        shown = [document for document in DOCUMENTS if document in operations]
        pairs.append((fault, shown[number % len(shown)]))
    return pairs


@pytest.mark.parametrize("document", DOCUMENTS)
def test_without_a_fault_nothing_departs(document: str, tmp_path: Path) -> None:
    """The endpoint keeps its contract over the network, too."""
    assert _departed(document, tmp_path / "run") == []


@pytest.mark.parametrize(("fault", "document"), _one_document_for_each())
def test_a_fault_trips_the_same_checks_over_sockets(fault: str, document: str, tmp_path: Path) -> None:
    """Exactly the checks of the matrix depart."""
    assert fault in FAULTS
    assert _departed(document, tmp_path / "run", fault) == golden()[fault][document]
