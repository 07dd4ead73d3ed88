"""What a right endpoint answered, step by step: only what a fault touches has to be answered once more."""

import copy
from collections.abc import Iterable, Sequence

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Fault, Stage
from streamgauge.reference.faults.switched import SwitchedFaults, settle
from streamgauge.reference.messages import Reply, Request
from streamgauge.wire.exchange import Exchange

SENDING = ["none"]
"""Id of the exchange that is being sent."""


def unique() -> str:
    """What makes an answer's id unique: the exchange that is being sent, whatever a fault did to those before."""
    return SENDING[0]


class Watching(SwitchedFaults):
    """No fault: keeps each draft as it stands behind each stage."""

    def __init__(self) -> None:
        super().__init__(())
        self.drafts: dict[str, dict[Stage, Draft]] = {}

    def bend(self, stage: Stage, draft: Draft) -> None:
        """Keep the draft, as a fault of this stage would find it."""
        settle(stage, draft)
        self.drafts.setdefault(SENDING[0], {})[stage] = copy.copy(draft)


class Rehearsed:
    """
    The right endpoint's exchanges and drafts, beside which an endpoint with faults is run.

    Args:
        exchanges: of the right endpoint.
        watching: what it was built with.
        faults: of the endpoint that answers now. Whether one can strike depends on the request and on what the right
            endpoint makes of it; what a fault remembers, it remembers when it strikes.
    """

    def __init__(self, exchanges: Iterable[Exchange], watching: Watching, faults: Sequence[Fault]) -> None:
        self._exchanges = {each.id: each for each in exchanges}
        self._drafts = watching.drafts
        self._faults = faults

    def spared(self, id_: str, request: Request) -> Exchange | None:
        """The right exchange of this request, where no fault can strike it."""
        drafts = self._drafts.get(id_)
        if drafts is None or drafts[Stage.REQUEST].request != request:
            return None
        struck = any(fault.concerns(drafts[fault.stage]) for fault in self._faults)
        assert not any(draft.memory for draft in drafts.values()), "a fault that remembers before it strikes"
        return None if struck else self._exchanges[id_]

    def same(self, id_: str, request: Request, reply: Reply) -> Exchange | None:
        """The right exchange of this request, where the reply is the right one byte for byte."""
        drafts = self._drafts.get(id_)
        if drafts is None or drafts[Stage.REQUEST].request != request:
            return None
        right = drafts[Stage.WIRE]
        return self._exchanges[id_] if (right.end, right.writes) == (reply.end, reply.writes) else None
