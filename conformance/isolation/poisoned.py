"""Which exchanges asked for what has killed engines: by what they ask, never by the probe that sent them."""

import functools
import json

from streamgauge.conformance.check import Case
from streamgauge.conformance.probes.poisons import poisons
from streamgauge.contract.contract import Operation
from streamgauge.wire.exchange import Evidence, Exchange

__all__ = ["is_poison"]


@functools.lru_cache(maxsize=64)
def _bodies(operation: Operation, model: str) -> frozenset[str]:
    """Their JSON as questions are told apart by it."""
    return frozenset(json.dumps(probe.body, sort_keys=True) for probe in poisons(operation, model))


def is_poison(case: Case, exchange: Exchange) -> bool:
    """Whether an exchange of the case's operation asked for such a thing."""
    if Evidence.REQUEST not in exchange.holds or not isinstance(exchange.sent, dict):
        return False
    return exchange.question.split(" ", 2)[-1] in _bodies(case.operation, case.model)
