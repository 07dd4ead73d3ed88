"""Streams that the client leaves, over real sockets: the endpoint stops, or it is seen not to."""

from pathlib import Path

import pytest
from mutations import WRONG, contract_of

from streamgauge.bundle.reader import Bundle
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.isolation.gauges import busy_in, is_metrics
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.conformance.plan import plan
from streamgauge.conformance.recording import record
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.launch import running
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Evidence
from streamgauge.wire.recorder import Limits

SPEC = "deepinfra-completions"
OWN = [name for name, fault in FAULTS.items() if fault.proof == "tests/test_isolation_sockets.py"]


def _recorded(place: Path, *faults: str, itl_ms: float = 20) -> tuple[Bundle, dict[str, Finding]]:
    """What is kept of the streams that are left, and what every check says of it."""
    contract = contract_of(SPEC)
    (operation,) = contract.operations
    with running(profiles=[contract.profile.name], faults=faults, ttft_ms=20, itl_ms=itl_ms) as url:
        target = Target("t", url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)
        writer, _ = open_bundle("check", [target], output=place)
        planned = plan(
            [target], select=["alone.canary-before", "alone.leave-0", "alone.leave-1", "alone.canary-behind"]
        )
        assert record(planned.planned, writer.path, limits=Limits()) == []
    bundle = Bundle(writer.path)
    cases = cases_of(bundle.exchanges.values(), operation, contract, target="t", model=DEFAULT_MODEL)
    return bundle, {id_: judge(each, cases, operation, contract, "t") for id_, each in CHECKS.items()}


def test_a_right_endpoint_notices(tmp_path: Path) -> None:
    """The client leaves both streams, the first look behind them shows as little to do as before, and no check departs."""
    bundle, found = _recorded(tmp_path / "run")
    kept = list(bundle.exchanges.values())
    left = [each for each in kept if each.ending is Ending.LEFT]
    looks = [busy_in(each) for each in kept if is_metrics(each)]

    assert len(left) == 2
    for each in left:
        assert Evidence.ENDING not in each.holds
        assert 8 <= len(each.stream.payloads) < 200
        assert not each.stream.done
    assert [busy.running for busy in looks if busy] == [0, 0]
    assert found["cancel.frees-capacity"].outcome is Outcome.PASS
    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set()


@pytest.mark.parametrize("fault", OWN)
def test_a_fault_is_caught(fault: str, tmp_path: Path) -> None:
    """Exactly its check departs."""
    _, found = _recorded(tmp_path / "run", fault)

    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set(FAULTS[fault].caught_by)


def test_a_fast_endpoint_tells_nothing(tmp_path: Path) -> None:
    """Where the whole answer is out before the client can leave, nobody can say whether it would have been cancelled."""
    _, found = _recorded(tmp_path / "run", "cancel.keeps-generating", itl_ms=0)

    assert found["cancel.frees-capacity"].outcome is Outcome.NOT_RUN
    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set()
