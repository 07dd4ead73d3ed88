"""The faults that one endpoint was told to have: which, how often, from when on."""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.errors import UsageError
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.faults.fault import Fault, Stage

__all__ = ["SwitchedFaults", "settle"]

_FORM = re.compile(r"(?P<name>[^@,]+)(@(?P<probability>[^,]+))?(,after=(?P<after>.+))?")
_HINT = "NAME, NAME@PROBABILITY (0 to 1), and ,after=N behind either. `streamgauge list faults` shows every name."


@dataclass(slots=True)
class _Switched:
    """One fault, and how many replies it could have struck until now."""

    fault: Fault
    probability: float
    after: int
    draws: random.Random
    met: int = 0

    def strikes(self, draft: Draft) -> bool:
        if not self.fault.concerns(draft):
            return False
        self.met += 1
        return self.met > self.after and (self.probability >= 1 or self.draws.random() < self.probability)


class SwitchedFaults:
    """
    Bends drafts by the faults that are switched on, in the order in which they were named.

    Args:
        told: `NAME`, `NAME@PROBABILITY`, and `,after=N` behind either: spare the first N replies that it could strike.
        seed: of the draws: the same requests in the same order meet the same faults.

    Raises:
        UsageError: there is no such fault, or its probability or count is none.
    """

    def __init__(self, told: Iterable[str], seed: int = 0) -> None:
        self._switched = [_read(each, seed) for each in told]
        self._memory: dict[str, object] = {}

    def bend(self, stage: Stage, draft: Draft) -> None:
        """Let the faults of this stage strike."""
        if not self._switched:
            return
        draft.memory = self._memory
        settle(stage, draft)
        for each in self._switched:
            if each.fault.stage is stage and each.strikes(draft):
                each.fault.bend(draft)


def settle(stage: Stage, draft: Draft) -> None:
    """Make now what a step made on the fly, before the next step reads it: a fault looks at all of it."""
    if stage is Stage.ANSWER and draft.chunks is not None:
        draft.chunks = list(draft.chunks)
    elif stage is Stage.TEXT:
        draft.events = list(draft.events)
    elif stage is Stage.WIRE:
        draft.writes = list(draft.writes)


def _read(told: str, seed: int) -> _Switched:
    form = _FORM.fullmatch(told)
    name = form["name"] if form else told
    if form is None or name not in FAULTS:
        raise UsageError(f"no fault is called {name}", where=f"--fault {told}", hint=_HINT)
    try:
        probability = float(form["probability"] or 1)
        after = int(form["after"] or 0)
    except ValueError:
        raise UsageError("that is no number", where=f"--fault {told}", hint=_HINT) from None
    if not (0 < probability <= 1 and after >= 0):
        raise UsageError(
            "a probability lies above 0 and up to 1, a count at 0 or above", where=f"--fault {told}", hint=_HINT
        )
    return _Switched(FAULTS[name], probability, after, random.Random(f"{seed} {name}"))  # noqa: S311 - no secret
