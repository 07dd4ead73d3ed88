"""Texts that a regular expression matches."""

import random
import re
from typing import Any

__all__ = ["CannotMakeError", "matching"]

# Python's own parser of patterns, which has no public name.
_PARSER: Any = re._parser

_MORE = 3
"""How often a part without an upper bound is repeated beyond its lower one, at most."""

_TRIES = 8
_LONGEST = 2000
_COMMON = "abcdefghijklmnopqrstuvwxyz0123456789 "
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))) + "éж東"
_CATEGORIES = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_WORD": "abcdefghijklmnopqrstuvwxyz0123456789_",
    "CATEGORY_NOT_DIGIT": "abcdefghij",
    "CATEGORY_NOT_SPACE": "abcdefghij",
    "CATEGORY_NOT_WORD": " -.",
}


class CannotMakeError(Exception):
    """What is wanted cannot be made here; its text says why."""


def matching(pattern: str, draws: random.Random) -> str:
    """
    A text that the whole pattern matches.

    Args:
        pattern: in Python's dialect.
        draws: what the choice among several is taken from.

    Raises:
        CannotMakeError: it is no pattern, or nothing that matches was found.
    """
    try:
        tree, compiled = _PARSER.parse(pattern), re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        raise CannotMakeError("is no regular expression") from None
    for _ in range(_TRIES):
        text = _Walk(draws).of(tree)
        if compiled.fullmatch(text):
            return text
    raise CannotMakeError("is a pattern that nothing can be made for here")


class _Walk:
    """One way through a parsed pattern. What looks around is passed over: whoever asked tests the whole."""

    def __init__(self, draws: random.Random) -> None:
        self._draws = draws
        self._groups: dict[int, str] = {}
        self._left = _LONGEST

    def of(self, tree: Any) -> str:
        return "".join(self._one(str(kind), given) for kind, given in tree)

    def _one(self, kind: str, given: Any) -> str:
        match kind:
            case "LITERAL":
                return self._spent(chr(given))
            case "NOT_LITERAL":
                return self._spent(self._letter(lambda letter: ord(letter) != given))
            case "ANY":
                return self._spent(self._draws.choice(_COMMON))
            case "IN":
                return self._spent(self._from_set(given))
            case "BRANCH":
                return self.of(self._draws.choice(given[1]))
            case "SUBPATTERN":
                text = self.of(given[3])
                if given[0] is not None:
                    self._groups[given[0]] = text
                return text
            case "ATOMIC_GROUP":
                return self.of(given)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, part = given
                times = self._draws.randint(least, min(int(most), least + _MORE))
                return "".join(self.of(part) for _ in range(times))
            case "GROUPREF":
                return self._groups.get(given, "")
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return ""
            case _:
                raise CannotMakeError("is a pattern with a part that cannot be made here")

    def _from_set(self, items: Any) -> str:
        kinds = [(str(kind), given) for kind, given in items]
        if kinds[0][0] == "NEGATE":
            return self._letter(lambda letter: not any(_has(kind, given, letter) for kind, given in kinds[1:]))
        kind, given = self._draws.choice(kinds)
        if kind == "LITERAL":
            return chr(given)
        if kind == "RANGE":
            return chr(self._draws.randint(*given))
        return self._draws.choice(_CATEGORIES[str(given)])

    def _letter(self, fits: Any) -> str:
        letters = [letter for letter in _COMMON if fits(letter)] or [letter for letter in _PRINTABLE if fits(letter)]
        if not letters:
            raise CannotMakeError("is a pattern that leaves no letter")
        return self._draws.choice(letters)

    def _spent(self, letter: str) -> str:
        self._left -= 1
        if self._left < 0:
            raise CannotMakeError("wants a longer text than can be made here")
        return letter


def _has(kind: str, given: Any, letter: str) -> bool:
    if kind == "LITERAL":
        return ord(letter) == int(given)
    if kind == "RANGE":
        return bool(given[0] <= ord(letter) <= given[1])
    negated = "_NOT_" in str(given)
    match str(given).rsplit("_", 1)[1]:
        case "DIGIT":
            within = letter.isdigit()
        case "SPACE":
            within = letter.isspace()
        case _:
            within = letter.isalnum() or letter == "_"
    return within != negated
