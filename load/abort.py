"""When a run is given up: too many errors, or too many in a row. Pure."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from streamgauge.errors import UsageError
from streamgauge.load.texts import written
from streamgauge.metrics.record import NO_FAILURE, Outcome

__all__ = ["AbortRule", "AbortWatch"]

WINDOW = 100
"""`errors` looks at so many of the latest requests."""

LEAST = 20
"""`errors` says nothing before so many requests have ended."""

_ERRORS = re.compile(r"errors\s*>\s*(\d+(?:\.\d+)?)\s*%")
_CONSECUTIVE = re.compile(r"consecutive\s*>=\s*(\d+)")


@dataclass(frozen=True, slots=True)
class AbortRule:
    """
    One rule of `--abort-on`.

    Attributes:
        kind: `errors` (share of failures among the latest requests) or `consecutive` (failures in a row).
        limit: a share between 0 and 1, or a number.
    """

    kind: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        From `errors>50%` or `consecutive>=20`.

        Raises:
            UsageError: it is neither, or the limit makes no sense.
        """
        given = text.strip()
        if (found := _ERRORS.fullmatch(given)) and float(found[1]) < 100:
            return cls("errors", float(found[1]) / 100)
        if (found := _CONSECUTIVE.fullmatch(given)) and int(found[1]) > 0:
            return cls("consecutive", int(found[1]))
        raise UsageError(
            f"{text!r} is no rule for giving up",
            where="--abort-on",
            hint="Write errors>50% (below 100 %) or consecutive>=20 (at least 1).",
        )

    def __str__(self) -> str:
        """The text that :meth:`parse` takes, to the tenth decimal place of a per cent."""
        if self.kind == "errors":
            return f"errors>{written(round(self.limit * 100, 10))}%"
        return f"consecutive>={written(self.limit)}"


class AbortWatch:
    """
    Looks at the outcomes of one process, one after the other, and says when a rule is met.

    What the end of the run cut off says nothing about the server and is not looked at; what was dropped for want of room is a
    failure.
    """

    def __init__(self, rules: Iterable[AbortRule]) -> None:
        self._rules = tuple(rules)
        self._latest: deque[bool] = deque(maxlen=WINDOW)
        self._failed = 0
        self._in_a_row = 0

    def add(self, outcome: Outcome) -> str:
        """Take one outcome; the rule that is met now, in words, or nothing."""
        if not self._rules or outcome is Outcome.UNFINISHED_AT_STOP:
            return ""
        failed = outcome not in NO_FAILURE
        if len(self._latest) == WINDOW:
            self._failed -= self._latest[0]
        self._latest.append(failed)
        self._failed += failed
        self._in_a_row = self._in_a_row + 1 if failed else 0
        return next((said for rule in self._rules if (said := self._met(rule))), "")

    def _met(self, rule: AbortRule) -> str:
        if rule.kind == "consecutive":
            return f"{rule}: {self._in_a_row} failures in a row" if self._in_a_row >= rule.limit else ""
        n = len(self._latest)
        if n >= LEAST and self._failed > rule.limit * n:
            return f"{rule}: {self._failed} of the latest {n} requests failed"
        return ""
