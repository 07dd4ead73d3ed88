"""Probes that need the server for themselves: poisons with their canaries, large bodies; without sockets."""

import asyncio
import dataclasses
from collections.abc import Iterable
from typing import cast

import pytest
from in_memory import send_all
from mutations import CURATED, NOW, WRONG, contract_of, model_of, responder_of
from transcripts import exchange, http, request

from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.isolation.alone import send_alone
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import NotRun, Planned, plan, require_probes
from streamgauge.conformance.probes.poisons import poisons
from streamgauge.conformance.probes.probe import Probe
from streamgauge.errors import UsageError
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reference.faults import FAULTS
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Recorder

OWN = [name for name, fault in FAULTS.items() if fault.proof == "tests/test_isolation_alone.py"]


def _target(document: str) -> Target:
    return Target("t", "http://127.0.0.1", contract_of(document), model=model_of(0), key=DEFAULT_KEY)


def _planned(document: str, *, destructive: bool = True) -> list[Planned]:
    select = ("refusal.model-unknown", "alone", "poison") if destructive else ("refusal.model-unknown", "alone")
    return plan([_target(document)], select=select, destructive=destructive).planned


def _outcomes(document: str, *faults: str) -> dict[str, Outcome]:
    """What every check finds in the answers to the probes that go alone."""
    exchanges = send_all(responder_of(document, *faults), _planned(document), NOW)
    contract = contract_of(document)
    (operation,) = contract.operations
    cases = cases_of(exchanges, operation, contract, target="t", model=model_of(0))
    return {id_: judge(each, cases, operation, contract, "t").outcome for id_, each in CHECKS.items()}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_right_endpoint_survives(document: str) -> None:
    """No poison makes it fail, the canaries are answered, and the large body is refused as the small one is."""
    found = _outcomes(document)

    assert {id_ for id_, outcome in found.items() if outcome in WRONG} == set()
    assert found["isolation.survives"] is Outcome.PASS
    assert found["limit.body-status"] is Outcome.PASS


@pytest.mark.parametrize("fault", OWN)
def test_a_fault_is_caught(fault: str) -> None:
    """In every operation in which it shows its check departs; it shows somewhere."""
    struck = {document: _outcomes(document, fault) for document in DOCUMENTS}
    departed = [d for d, found in struck.items() if any(found[id_] in WRONG for id_ in FAULTS[fault].caught_by)]

    assert departed
    for document, found in struck.items():
        assert document in departed or not any(outcome in WRONG for outcome in found.values())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_destructive_probes_are_opt_in(document: str) -> None:
    """None is planned by default; on demand each goes alone, and a canary follows it."""
    by_default = plan([_target(document)], select=(*CURATED, "alone", "poison")).planned
    demanded = [
        item.probe for item in plan([_target(document)], select=(*CURATED, "alone", "poison"), destructive=True).planned
    ]

    assert not any(isinstance(item.probe, Probe) and item.probe.destructive for item in by_default)
    poisonous = [at for at, probe in enumerate(demanded) if isinstance(probe, Probe) and probe.destructive]
    assert len(poisonous) >= 4
    for at in poisonous:
        probe, canary = cast("Probe", demanded[at]), cast("Probe", demanded[at + 1])
        assert probe.alone
        assert canary.alone
        assert not canary.destructive
        assert canary.id == f"{probe.id}.canary"


def test_poisons_are_selected_on_demand_only() -> None:
    """`--select poison` without `--destructive` selects nothing, and says how it would."""
    with pytest.raises(UsageError, match="no such probe") as caught:
        require_probes([_target("seekr-chat")], ["poison"])

    assert "--destructive" in str(caught.value)
    require_probes([_target("seekr-chat")], ["poison"], destructive=True)


class _Engine:
    """Answers until a poison has come, and then with these statuses."""

    def __init__(self, poison: str, behind: Iterable[int]) -> None:
        self.sent: list[str] = []
        self._poison = poison
        self._behind = iter(behind)

    async def send(self, item: Planned) -> Exchange:
        lost = self._poison in self.sent
        self.sent.append(item.probe.id)
        status = next(self._behind, 500) if lost else 200
        return exchange(item.operation, {}, http(status, b"{}") if status else b"", probe=item.probe.id)


def _run(engine: _Engine, items: list[Planned]) -> list[NotRun]:
    return asyncio.run(send_alone(items, cast("Recorder", None), engine.send))


def _poisons_only(document: str = "seekr-chat") -> list[Planned]:
    return plan([_target(document)], select=["poison"], destructive=True).planned


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the engine no time between the two canaries."""
    monkeypatch.setattr("streamgauge.conformance.isolation.alone._SECOND_TRY_S", 0.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("behind", [(500, 500), (0, 0), (503, 0)])
def test_the_first_lost_engine_is_the_last(behind: tuple[int, int]) -> None:
    """Behind two canaries without an answer nothing more is sent, and the rest is named with the poison."""
    items = _poisons_only()
    poison = items[4].probe.id
    engine = _Engine(poison, behind)

    left_out = _run(engine, items)

    assert engine.sent == [item.probe.id for item in items[:6]] + [items[5].probe.id]
    assert [each.probe for each in left_out] == [item.probe.id for item in items[6:]]
    assert {each.reason for each in left_out} == {f"the engine was lost behind {poison}"}


@pytest.mark.usefixtures("impatient")
def test_an_engine_that_comes_back_is_asked_on() -> None:
    """One canary without an answer is told by the check; the run goes on."""
    items = _poisons_only()
    engine = _Engine(items[0].probe.id, [500, *[200] * 1000])

    assert _run(engine, items) == []
    assert len(engine.sent) == len(items) + 1


def test_nothing_to_send_is_sent() -> None:
    """A run without such probes has nothing left out."""
    assert _run(_Engine("none", []), []) == []


def test_no_poison_goes_without_its_canary() -> None:
    """Where the budget has left the canary out, the poison stays out, too."""
    items = _poisons_only()
    engine = _Engine("none", [])

    left_out = _run(engine, [items[0], items[2], items[3]])

    assert engine.sent == [items[2].probe.id, items[3].probe.id]
    assert [(each.probe, each.reason) for each in left_out] == [(items[0].probe.id, "its canary is left out")]


SPEC = "seekr-chat"


def _survives(*statuses: int) -> Outcome:
    """Verdict on a poison between exchanges with these statuses; it has the second one. 0 is no answer."""
    contract = contract_of(SPEC)
    (operation,) = contract.operations
    poison = next(poisons(operation, "tiny")).body
    bodies = [request(operation), poison, *[request(operation)] * (len(statuses) - 2)]
    made = [
        dataclasses.replace(exchange(operation, body, http(status, b"{}") if status else b""), id=f"e{number}")
        for number, (body, status) in enumerate(zip(bodies, statuses, strict=True))
    ]
    cases = cases_of(made, operation, contract, target="t", model="tiny")
    return judge(CHECKS["isolation.survives"], cases, operation, contract, "t").outcome


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((200, 200, 200), Outcome.PASS),
        ((200, 422, 200), Outcome.PASS),
        ((200, 500, 200), Outcome.PASS),  # its own failure is judged as such
        ((200, 400, 429), Outcome.INCONCLUSIVE),  # nobody asked the engine
        ((200, 400, 429, 200), Outcome.PASS),
        ((200, 400, 429, 500, 500), Outcome.FAIL),
        ((200, 200, 500, 500), Outcome.FAIL),
        ((200, 0, 0, 0), Outcome.FAIL),
        ((200, 500, 503, 200), Outcome.FAIL),  # everybody had to wait until it was back
        ((200, 0, 0, 200), Outcome.FAIL),
        ((200, 200, 503, 200), Outcome.INCONCLUSIVE),  # one failure among answers comes from anything
        ((500, 500, 500), Outcome.INCONCLUSIVE),  # it was lost before
        ((200, 200), Outcome.INCONCLUSIVE),
    ],
)
def test_survival_is_the_next_answer(statuses: tuple[int, ...], expected: Outcome) -> None:
    """The request behind the poison tells; what the poison got is another check's, and a server lost before proves nothing."""
    assert _survives(*statuses) is expected
