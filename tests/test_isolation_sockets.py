"""Streams that the client leaves, over real sockets: the endpoint stops, or it is seen not to."""

import contextlib
import re
from collections.abc import Iterator
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
from streamgauge.wire.http import Read
from streamgauge.wire.recorder import Limits
from streamgauge.wire.tee import Tap

SPEC = "deepinfra-completions"
OWN = [name for name, fault in FAULTS.items() if fault.proof == "tests/test_isolation_sockets.py"]
_EVENT_END = re.compile(rb"(?<=\n\n)(?!\Z)")


@contextlib.contextmanager
def _clock_of_the_schedule(itl_ms: float) -> Iterator[None]:
    """
    Let the recorder read each event by itself, at the time when it was due.

    A client that stood still meanwhile would find many events at once, and could not tell how fast they came.
    """
    take = Tap.take

    def on_time(self: Tap, data: bytes) -> None:
        events = self.wire.count(b"data: ")
        take(self, data)
        if data:
            self.reads.pop()
        for piece in _EVENT_END.split(data) if data else ():
            events += piece.count(b"data: ")
            self.reads.append(Read(itl_ms / 1000 * events, len(piece)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tap, "take", on_time)
        yield


def _recorded(place: Path, *faults: str, itl_ms: float = 20) -> tuple[Bundle, dict[str, Finding]]:
    """What is kept of the streams that are left, and what every check says of it."""
    contract = contract_of(SPEC)
    (operation,) = contract.operations
    with (
        running(profiles=[contract.profile.name], faults=faults, ttft_ms=20, itl_ms=itl_ms) as url,
        _clock_of_the_schedule(itl_ms),
    ):
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
    """The client leaves both streams, the last look behind them shows as little to do as before, and no check departs."""
    bundle, found = _recorded(tmp_path / "run")
    kept = list(bundle.exchanges.values())
    left = [each for each in kept if each.ending is Ending.LEFT]
    looks = [busy for each in kept if is_metrics(each) and (busy := busy_in(each))]

    assert len(left) == 2
    for each in left:
        assert Evidence.ENDING not in each.holds
        assert 8 <= len(each.stream.payloads) < 200
        assert not each.stream.done
    before, *_, last = looks
    assert (before.running, last.running) == (0, 0)
    assert found["cancel.frees-capacity"].outcome is Outcome.PASS
    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set()


@pytest.mark.parametrize("fault", OWN)
def test_a_fault_is_caught(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly its check departs; two looks are enough, since the streams would go on for five seconds."""
    monkeypatch.setattr("streamgauge.conformance.isolation.alone.LOOKS_S", (0.2, 0.8))
    _, found = _recorded(tmp_path / "run", fault)

    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set(FAULTS[fault].caught_by)


def test_a_fast_endpoint_tells_nothing(tmp_path: Path) -> None:
    """Where the whole answer is out before the client can leave, nobody can say whether it would have been cancelled."""
    _, found = _recorded(tmp_path / "run", "cancel.keeps-generating", itl_ms=0)

    assert found["cancel.frees-capacity"].outcome is Outcome.NOT_RUN
    assert {id_ for id_, finding in found.items() if finding.outcome in WRONG} == set()
