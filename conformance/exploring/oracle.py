"""Judges an exploration's exchanges as they come, by the checks of the run."""

import threading
from collections.abc import Sequence

from streamgauge.conformance.blotted import blotted
from streamgauge.conformance.check import Case, Check
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Outcome
from streamgauge.redaction import Redactor
from streamgauge.wire.exchange import Exchange

__all__ = ["Oracle"]

_DEPARTED = (Outcome.FAIL, Outcome.IGNORED)
"""What is worth making smaller. What is only a warning is found by the run's own judging, like all that departs."""


class Oracle:
    """
    All checks of a run for one operation.

    Args:
        checks: by which the run judges.
        earlier: what the curated probes got. A check that departs there already is no news, and is not looked for again.
        beside: those of them that new exchanges may be held against: the questions that requests are drawn from.
        redactor: keeps the target's secrets out of what is said of its answers.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        operation: Operation,
        contract: Contract,
        *,
        target: str,
        model: str,
        earlier: Sequence[Exchange] = (),
        beside: Sequence[Exchange] = (),
        redactor: Redactor | None = None,
    ) -> None:
        self._checks = [check for check in checks if check.concerns(operation, contract)]
        self._operation = operation
        self._contract = contract
        self._target = target
        self._model = model
        self._earlier = self._cases(earlier)
        self._beside = list(beside)
        self._redactor = redactor or Redactor()
        self._known: dict[str, bool] = {}
        self._lock = threading.Lock()

    def departures(self, exchanges: Sequence[Exchange]) -> dict[str, Finding]:
        """The findings of the checks that depart on these exchanges, most severe first."""
        new = {each.id for each in exchanges}
        cases = [case for case in self._cases([*self._beside, *exchanges]) if case.exchange.id in new]
        findings = [self._judge(check, cases) for check in self._checks]
        departed = [each for each in findings if each.outcome in _DEPARTED and not self._is_known(each.check)]
        return {each.check: each for each in sorted(departed, key=lambda each: list(Outcome).index(each.outcome))}

    def _is_known(self, id_: str) -> bool:
        with self._lock:
            if id_ not in self._known:
                (check,) = (check for check in self._checks if check.id == id_)
                self._known[id_] = self._judge(check, self._earlier).outcome in _DEPARTED
            return self._known[id_]

    def _judge(self, check: Check, cases: Sequence[Case]) -> Finding:
        return blotted(judge(check, cases, self._operation, self._contract, self._target), self._redactor)

    def _cases(self, exchanges: Sequence[Exchange]) -> list[Case]:
        return cases_of(exchanges, self._operation, self._contract, target=self._target, model=self._model)
