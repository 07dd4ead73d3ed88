"""When `repetition_detection` has to end an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Detection", "detection_of"]


@dataclass(frozen=True, slots=True)
class Detection:
    """
    What is to be detected.

    Attributes:
        smallest, largest: tokens that the repeated block has; a largest size of 0 turns it off.
        times: how often it stands in a row.
    """

    smallest: int
    largest: int
    times: int

    def due(self, tokens: Sequence[int]) -> int | None:
        """After how many of the tokens the answer has to end; None where nothing repeats often enough."""
        return next((count for count in range(1, len(tokens) + 1) if self._ends_repeated(tokens[:count])), None)

    def _ends_repeated(self, tokens: Sequence[int]) -> bool:
        for size in range(self.smallest, min(self.largest, len(tokens) // self.times) + 1):
            last = tokens[-size * self.times :]
            if all(last[at] == last[at % size] for at in range(len(last))):
                return True
        return False

    @property
    def broken(self) -> str:
        """Which rule of the document the parameters break; empty where none."""
        if self.largest > 0 and self.times < 2:
            return "min_count: Must be >= 2."
        return "min_pattern_size: Must be <= max_pattern_size." if self.smallest > max(self.largest, 1) else ""


def detection_of(asked: Mapping[str, Any]) -> Detection | None:
    """What a request wants detected, with the document's defaults; None where it does not say so in numbers."""
    given = asked.get("repetition_detection")
    if not isinstance(given, dict):
        return None
    numbers = [given.get(name, 0) for name in ("min_pattern_size", "max_pattern_size", "min_count")]
    if any(type(number) is not int or number < 0 for number in numbers):
        return None
    smallest, largest, times = numbers
    return Detection(max(1, smallest), largest, times)
