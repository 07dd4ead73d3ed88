"""Reads events that are alike but for their text, without looking into them one by one."""

import re

__all__ = ["TEXTS", "Likeness"]

TEXTS = frozenset({"content", "text", "reasoning_content", "reasoning"})
"""The members that bear a token's text."""

_OPENING = re.compile(rb'(?<!\\)"(?:' + "|".join(sorted(TEXTS)).encode() + rb')": ?"(?!")')
_STRING = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)

_PLAIN = rb'[^"\\\x00-\x09\x0b-\x1f]*'
_STRINGS = re.compile(_PLAIN + rb'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})' + _PLAIN + rb")*")
"""What JSON strings may say, a line each (RFC 8259, section 7)."""

_SHORT = 12
"""So many bytes of a needle are enough to find it by: a long one costs more to look for than the bytes that it skips."""

_MOST_USELESS = 5
"""After so many events in a row that no other one was like, nothing more is learnt: each costs as much as reading it."""


class Likeness:
    """
    What the events of one stream have in common, learnt from one of them that bears a token.

    An event is alike when all before its text and all behind it is the same byte for byte, and its text is a JSON string that is
    not empty: it is the JSON value of the other one with another text. What has a finish reason, usage, an error, another choice
    or no text is not alike.
    """

    def __init__(self) -> None:
        self._before = self._behind = self._joint = b""
        self._useless = 0

    def learn(self, event: bytes) -> bool:
        """
        Take an event, from `data: ` to its end, that bears a token of one choice and nothing else worth knowing.

        Returns:
            Whether learning is still worth it: no longer after some lessons in a row that were of no use.
        """
        self._useless += 1
        found = _OPENING.findall(event)
        if len(found) == 1:
            start = event.index(found[0]) + len(found[0])
            end = _STRING.match(event, start)
            if end is not None:
                self._before, self._behind = event[:start], event[end.end() - 1 :] + b"\n\n"
                self._joint = self._behind + self._before
        return self._useless <= _MOST_USELESS

    def forget(self) -> None:
        """Nothing is alike until the next lesson: something came that may have changed what such an event means."""
        self._before = self._behind = self._joint = b""

    def run(self, block: bytes) -> tuple[int, int]:
        """How many events at the beginning of the block are like the one that was learnt, and how many bytes they are."""
        before, behind = self._before, self._behind
        end = block.rfind(behind) if before and block.startswith(before) else -1
        start = len(before)
        if end <= start:
            return 0, 0
        texts, size = self._texts(block[start:end])
        joined = b"\n".join(texts)
        right = _right(joined)
        if right < len(joined):
            texts = texts[: joined.count(b"\n", 0, right)]
            joined, size = b"\n".join(texts), sum(map(len, texts))
        count = len(texts)
        if not count or b"" in texts or joined.count(b"\n") >= count:  # a text of two lines is no JSON string
            return 0, 0
        self._useless = 0
        return count, size + count * len(self._joint)

    def _texts(self, inner: bytes) -> tuple[list[bytes], int]:
        """What stands between what the events have in common, and how long that is; one piece where nothing of it is found."""
        joint = self._joint
        # To look for all of it takes four times as long, so its end is looked for. The sum says whether the rest was there.
        pieces = inner.split(joint[-_SHORT:])
        last, beginning = pieces.pop(), joint[:-_SHORT]
        texts = [piece.removesuffix(beginning) for piece in pieces]
        texts.append(last)
        size = sum(map(len, texts))
        if size + len(pieces) * len(joint) != len(inner):
            texts = inner.split(joint)
            size = sum(map(len, texts))
        return texts, size


def _right(joined: bytes) -> int:
    """How many bytes at the beginning are JSON strings' insides, a line each."""
    found = _STRINGS.match(joined)
    assert found is not None  # it matches nothing, too
    if joined.isascii():
        return found.end()
    try:
        joined.decode()
    except UnicodeDecodeError as problem:
        return min(found.end(), problem.start)
    return found.end()
