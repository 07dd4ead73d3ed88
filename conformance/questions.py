"""Which exchanges ask the same in both forms, and what their answers say."""

import dataclasses
from collections.abc import Container
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from streamgauge.conformance.assembly import Answer, assemble_chunks, assemble_whole
from streamgauge.conformance.check import Case
from streamgauge.conformance.predicates import ended, object_answer
from streamgauge.wire.exchange import Credential, Exchange

__all__ = ["Question", "answer_of", "asks_same_twice", "first_of", "questions"]

_ANSWERS: WeakKeyDictionary[Exchange, Answer | None] = WeakKeyDictionary()
"""Computed once: every check of a question looks at all of its answers."""


def answer_of(case: Case, exchange: Exchange) -> Answer | None:
    """What an exchange says; None where it has no answer, or none that came to its end."""
    if exchange not in _ANSWERS:
        _ANSWERS[exchange] = _assembled(dataclasses.replace(case, exchange=exchange))
    return _ANSWERS[exchange]


def _assembled(case: Case) -> Answer | None:
    if case.exchange.wants_stream:
        return assemble_chunks(chunk.object for chunk in case.exchange.stream.chunks) if ended(case) else None
    return assemble_whole(case.exchange.json.value) if object_answer(case) else None


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


def asks_same_twice(sent: Any, known: Container[str]) -> bool:
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


def first_of(case: Case) -> bool:
    """Whether this is the exchange on which its question is judged: the first streamed answer, by its id."""
    exchange = case.exchange
    if not (exchange.wants_stream and asks_same_twice(exchange.sent, case.operation.properties)):
        return False
    streams = [each for each in (exchange, *case.partners) if each.wants_stream and answer_of(case, each)]
    return bool(streams) and min(each.id for each in streams) == exchange.id


def _question(case: Case, exchanges: list[Exchange]) -> Question:
    told = [(each.wants_stream, answer) for each in exchanges if (answer := answer_of(case, each))]
    return Question(
        tuple(answer for streamed, answer in told if not streamed),
        tuple(answer for streamed, answer in told if streamed),
    )


def questions(case: Case) -> tuple[Question | None, list[Question]]:
    """
    The case's own question, and all of its operation that are compared: those that were repeated, or all where none was.

    The own one is None where it is not compared: one pair cannot tell noise from a fault where others can.
    """
    groups: dict[tuple[str, Credential], list[Exchange]] = {}
    for each in case.others:
        if each.question and asks_same_twice(each.sent, case.operation.properties):
            groups.setdefault((each.question, each.request.credential), []).append(each)
    own_key = (case.exchange.question, case.exchange.request.credential)
    found = {key: _question(case, exchanges) for key, exchanges in groups.items() if len(exchanges) > 1}
    compared = {key: each for key, each in found.items() if each.whole and each.streamed}
    repeated = {key: each for key, each in compared.items() if each.repeated}
    chosen = repeated or compared
    return chosen.get(own_key), list(chosen.values())
