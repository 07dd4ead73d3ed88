"""Counts events that are alike but for their text, without looking into them."""

import re

__all__ = ["Likeness"]

_KEYS = ("content", "text", "reasoning_content", "reasoning")
_OPENING = re.compile(rb'"(?:' + "|".join(_KEYS).encode() + rb')": ?"(?!")')
_STRING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)

_MOST_USELESS = 5
"""After so many events in a row that no other one was like, nothing more is learnt: each costs as much as reading it."""


class Likeness:
    """
    What the events of one stream have in common, learnt from one of them that bears a token.

    Two long needles are all that is looked for: what stands before the text and what stands behind it. An event that has a
    finish reason, usage, an error, another choice or no text has not both.
    """

    def __init__(self) -> None:
        self._before = self._behind = b""
        self._useless = 0

    def learn(self, event: bytes) -> bool:
        """
        Take an event, from `data: ` to its end, that bears a token of one choice and nothing else worth knowing.

        Returns:
            Whether learning is still worth it: no longer after some lessons in a row that were of no use.
        """
        found = _OPENING.findall(event)
        self._before = self._behind = b""
        self._useless += 1
        if len(found) == 1:
            start = event.index(found[0]) + len(found[0])
            end = _STRING.match(event, start)
            if end is not None:
                self._before, self._behind = event[:start], event[end.end() - 1 :] + b"\n\n"
        return self._useless <= _MOST_USELESS

    def run(self, block: bytes) -> tuple[int, int]:
        """How many events at the beginning of the block are like the one that was learnt, and how many bytes they are."""
        before, behind = self._before, self._behind
        last = block.rfind(behind) if before and block.startswith(before) else -1
        if last < 0:
            return 0, 0
        size = last + len(behind)
        if size < len(block):
            block = block[:size]
        events = block.count(before)
        # JSON has no bare line feed in a string, so two for each event are those of its end.
        if block.count(behind) != events or block.count(b"\n") != 2 * events or before + b'"' in block:
            return 0, 0
        self._useless = 0
        return events, size
