"""Which exchanges ask the same in both forms, and what their answers say."""

import dataclasses
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.assembly import Answer, answer_in
from streamgauge.conformance.check import Case
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.predicates import ended_answer
from streamgauge.wire.exchange import Exchange

__all__ = ["Question", "answer_of", "first_of", "questions", "same_twice"]


def answer_of(case: Case, exchange: Exchange) -> Answer | None:
    """What another exchange of the case's operation says; None where it has no answer, or none that came to its end."""
    memory = exchange.memory
    if answer_of not in memory:
        other = dataclasses.replace(case, exchange=exchange)
        memory[answer_of] = answer_in(exchange) if ended_answer(other) else None
    answer: Answer | None = memory[answer_of]
    return answer


@dataclass(frozen=True, slots=True)
class Question:
    """
    What was asked in both forms, each once or several times.

    Attributes:
        whole, streamed: its answers that came to their end.
    """

    whole: tuple[Answer, ...]
    streamed: tuple[Answer, ...]

    @property
    def repeated(self) -> bool:
        """Whether each form was asked for more than once."""
        return len(self.whole) > 1 and len(self.streamed) > 1

    @property
    def all(self) -> tuple[Answer, ...]:
        """Every answer."""
        return self.whole + self.streamed


def _asks_same_twice(sent: Any, known: Container[str]) -> bool:
    """
    Whether a request asks for the same answer whenever it is sent: without sampling, or with a fixed seed.

    Args:
        sent: the request's body.
        known: the properties that its document has; others ask for nothing.
    """
    if not isinstance(sent, dict):
        return False
    temperature, seed = sent.get("temperature"), sent.get("seed")
    greedy = "temperature" in known and type(temperature) in (int, float) and temperature == 0
    return greedy or ("seed" in known and type(seed) is int)


@once
def same_twice(case: Case) -> dict[Asked, tuple[Exchange, ...]]:
    """The operation's questions that ask for the same answer whenever they are sent, with their exchanges."""
    known = case.operation.properties
    return {key: group for key, group in case.others.groups.items() if _asks_same_twice(group[0].sent, known)}


@once
def _firsts(case: Case) -> dict[Asked, str]:
    streams = {
        key: [each.id for each in group if each.wants_stream and answer_of(case, each)]
        for key, group in same_twice(case).items()
    }
    return {key: min(ids) for key, ids in streams.items() if ids}


def first_of(case: Case) -> bool:
    """Whether this is the exchange on which its question is judged: the first streamed answer, by its id."""
    return case.exchange.wants_stream and _firsts(case).get(asked(case.exchange)) == case.exchange.id


def _question(case: Case, exchanges: Iterable[Exchange]) -> Question:
    told = [(each.wants_stream, answer) for each in exchanges if (answer := answer_of(case, each))]
    return Question(
        tuple(answer for streamed, answer in told if not streamed),
        tuple(answer for streamed, answer in told if streamed),
    )


@once
def questions(case: Case) -> dict[Asked, Question]:
    """
    All questions of the operation that are compared: those that were repeated, or all where none was.

    One pair cannot tell noise from a fault where others can.
    """
    found = {key: _question(case, group) for key, group in same_twice(case).items()}
    compared = {key: each for key, each in found.items() if each.whole and each.streamed}
    return {key: each for key, each in compared.items() if each.repeated} or compared
