"""Cuts the time of a run into equal slots of whole seconds, for bars and lines over time."""

import math
from dataclasses import dataclass

__all__ = ["MOST_SLOTS", "Slots", "slots_of"]

MOST_SLOTS = 120


@dataclass(frozen=True, slots=True)
class Slots:
    """
    The slots of a run, from its start on.

    Attributes:
        width: seconds of each.
        count: how many.
    """

    width: int
    count: int

    def of(self, second: float) -> int:
        """Which slot a moment lies in; one outside the run in the nearest."""
        return min(int(max(second, 0) // self.width), self.count - 1)

    def middle(self, slot: int) -> float:
        """The second in the middle of a slot."""
        return (slot + 0.5) * self.width


def slots_of(length: float) -> Slots:
    """So few slots that they can be told apart, for a run of so many seconds."""
    width = max(1, math.ceil(length / MOST_SLOTS))
    return Slots(width, int(length // width) + 1)
