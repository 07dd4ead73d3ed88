"""
What a check is, and the table of all checks.

A check is a pure function from one exchange (and its contract) to departures from one requirement. It is declared once,
beside its code; its id is the same whether it passes or fails.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.others import Others
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence, Exchange
from streamgauge.wire.sse import Event

__all__ = ["CHECKS", "CLIENTS", "Case", "Check", "Departure", "Judge", "check", "select"]


@dataclass(frozen=True, slots=True)
class Case:
    """
    What a check looks at.

    Attributes:
        exchange: the exchange to judge.
        operation: what it asked for.
        contract: under which promise.
        model: id of the model that right requests name.
        others: every exchange of the operation, this one included, and which of them ask the same. What is reckoned over
            them is reckoned once: see :func:`streamgauge.conformance.once.once`.
    """

    exchange: Exchange
    operation: Operation
    contract: Contract
    model: str
    others: Others = field(default_factory=Others)


@dataclass(frozen=True, slots=True)
class Departure:
    """
    One way in which an exchange departs from the requirement.

    Attributes:
        expected, actual: what should have been there, and what was.
        event: the event that shows it, where one does.
        span: the offending bytes of the body, `[start, end)`; taken from `event` by default.
        outcome: replaces the outcome that the check's level gives (`ignored`, `refused`); `pass` for what passes only
            because the profile lets it.
    """

    expected: str
    actual: str
    event: Event | None = None
    span: tuple[int, int] | None = None
    outcome: Outcome | None = None


Judge = Callable[[Case], Iterable[Departure]]
Predicate = Callable[[Case], bool]


@dataclass(frozen=True)
class Check:
    """
    One requirement and the code that judges it.

    Attributes:
        id: stable; its first part is the topic.
        level: how binding the requirement is.
        title: what holds when the check passes.
        requirement: the sentence that it stands on, quoted.
        source: where that sentence stands. A source that begins with `/` points into the operation in its document.
        applies: which exchanges can show it.
        concerns: which operations it is about; others are `not-applicable`.
        absent: why no exchange could show it, where none did.
        needs: the evidence that the code looks at, beside the answer; an exchange without it is not judged.
        judge: yields the departures; none means that the exchange passes.
    """

    id: str
    level: Level
    title: str
    requirement: str
    source: str
    applies: Predicate
    concerns: Callable[[Operation, Contract], bool]
    absent: str
    needs: tuple[Evidence, ...]
    judge: Judge

    @property
    def topic(self) -> str:
        """The part of the id before the first dot."""
        return self.id.partition(".")[0]

    def declaration(self) -> dict[str, Any]:
        """The check as `checks.json` holds it."""
        return {
            "id": self.id,
            "title": self.title,
            "level": self.level.value,
            "requirement": self.requirement,
            "source": self.source,
        }


CLIENTS = "what clients of the OpenAI API rely on"
"""The source of a requirement that no document states."""

CHECKS: dict[str, Check] = {}
"""Every check by its id, in the order of declaration; filled by importing `streamgauge.conformance.checks`."""


def check(
    id: str,
    level: Level,
    title: str,
    *,
    requirement: str,
    source: str,
    applies: Predicate,
    concerns: Callable[[Operation, Contract], bool] = lambda operation, contract: True,
    absent: str = "no answer of the kind that could show it",
    needs: tuple[Evidence, ...] = (),
) -> Callable[[Judge], Judge]:
    """Declare the function below as a check; see :class:`Check` for the arguments."""

    def declare(judge: Judge) -> Judge:
        if id in CHECKS:
            raise ValueError(f"the check {id} is declared twice")
        CHECKS[id] = Check(id, level, title, requirement, source, applies, concerns, absent, needs, judge)
        return judge

    return declare


def select(sections: Iterable[str]) -> Iterator[Check]:
    """The checks whose id is one of the sections or lies below one; all of them when there are no sections."""
    wanted = tuple(sections)
    for id_, declared in CHECKS.items():
        if not wanted or any(id_ == section or id_.startswith(section.rstrip(".") + ".") for section in wanted):
            yield declared
