"""The same question without some of its properties: what these do shows against its answers."""

import json
from collections.abc import Mapping
from typing import Any

from streamgauge.conformance.assembly import Answer, Choice
from streamgauge.conformance.check import Case
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.questions import answer_of, same_twice
from streamgauge.wire.exchange import Exchange

__all__ = ["answered_bare", "steady", "steady_exchange"]

_FORM = frozenset({"stream", "stream_options"})

_MOST = 64
"""So many answers to one question tell what all of them would; each case looks at them."""


def answered_bare(case: Case, *names: str) -> tuple[Exchange, ...]:
    """Exchanges that asked the same without these properties, in either form, and were answered to the end."""
    exchange = case.exchange
    if not isinstance(exchange.sent, dict):
        return ()
    return _without(case, names).get((_core(exchange, names), exchange.request.credential), ())


def steady(case: Case, *names: str) -> Mapping[int, Choice]:
    """
    The choices that the question has for sure without these properties.

    Empty unless it asks for the same answer each time, was answered twice at least and once in the form of the case, and
    said the same each time: then the model is as steady as anybody can tell, and what differs is the properties' doing.
    """
    found = steady_exchange(case, *names)
    answer = answer_of(case, found) if found else None
    return answer.choices if answer else {}


def steady_exchange(case: Case, *names: str) -> Exchange | None:
    """One of the exchanges behind :func:`steady`, in the form of the case."""
    twins = answered_bare(case, *names)
    alike = [each for each in twins if each.wants_stream == case.exchange.wants_stream]
    if len(twins) < 2 or not alike or asked(case.exchange) not in same_twice(case):
        return None
    said = {_texts(answer) for each in twins if (answer := answer_of(case, each))}
    return alike[0] if len(said) == 1 else None


def _texts(answer: Answer) -> tuple[tuple[int, str], ...]:
    return tuple((index, choice.text) for index, choice in answer.choices.items())


@once
def _without(case: Case, names: tuple[str, ...]) -> dict[Asked, tuple[Exchange, ...]]:
    """The answered questions that have none of these properties."""
    found: dict[Asked, tuple[Exchange, ...]] = {}
    for (_, credential), group in case.others.groups.items():
        sent = group[0].sent
        if not isinstance(sent, dict) or any(sent.get(name) is not None for name in names):
            continue
        answers = tuple(each for each in group if answer_of(case, each))
        key = _core(group[0], ()), credential
        found[key] = (found.get(key, ()) + answers)[:_MOST]
    return found


def _core(exchange: Exchange, names: tuple[str, ...]) -> str:
    """What is asked beside these properties, in whichever form; null and absent mean the same."""
    memory, key = exchange.request.memory, (_core, names)
    if key not in memory:
        sent: Mapping[str, Any] = exchange.sent
        left = {
            name: value for name, value in sent.items() if value is not None and name not in _FORM and name not in names
        }
        memory[key] = json.dumps(left, sort_keys=True)
    core: str = memory[key]
    return core
