"""What a right endpoint answered, step by step: only what a fault touches has to be answered once more."""

import copy
from collections.abc import Iterable, Sequence

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Fault, Stage
from streamgauge.reference.faults.switched import SwitchedFaults, settle
from streamgauge.reference.messages import Reply, Request
from streamgauge.wire.exchange import Exchange, SentRequest

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
        if not self._knows(id_, request):
            return None
        drafts = self._drafts[id_]
        struck = any(fault.concerns(drafts[fault.stage]) for fault in self._faults)
        assert not any(draft.memory for draft in drafts.values()), "a fault remembers before it strikes"
        return None if struck else self._exchanges[id_]

    def same(self, id_: str, request: Request, reply: Reply) -> Exchange | None:
        """The right exchange of this request, where the reply is the right one byte for byte."""
        if not self._knows(id_, request):
            return None
        right = self._drafts[id_][Stage.WIRE]
        return self._exchanges[id_] if (right.end, right.writes) == (reply.end, reply.writes) else None

    def sent(self, id_: str, request: Request) -> SentRequest | None:
        """The request as the right exchange holds it: much about it has been reckoned already."""
        return self._exchanges[id_].request if self._knows(id_, request) else None

    def _knows(self, id_: str, request: Request) -> bool:
        return id_ in self._drafts and self._drafts[id_][Stage.REQUEST].request == request
