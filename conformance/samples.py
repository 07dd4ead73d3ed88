"""What a model said to one question at several temperatures, however its sampling was narrowed."""

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.conformance.law import given
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import valid_request
from streamgauge.conformance.questions import answer_of
from streamgauge.wire.json import is_number

__all__ = [
    "HOT",
    "MOST",
    "NARROWING",
    "Sample",
    "greedy_texts",
    "hot_texts",
    "is_greedy",
    "is_hot",
    "number",
    "samples",
]

HOT = 1.5
"""From this temperature on the next token is anybody's guess wherever a model has a choice at all."""

HOTTEST = 2
"""Many servers take no more."""

MOST = 64
"""So many answers of one kind tell what all of them would; each case looks at them."""

NARROWING = frozenset({"top_k", "top_p", "min_p"})
"""Properties that leave only some tokens to choose from."""

_SAMPLING = NARROWING | {"temperature", "seed", "n"}
_FORM = frozenset({"stream", "stream_options"})


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One answer.

    Attributes:
        asked: the properties of its request that choose among tokens, and the number of choices.
        texts: all that the model wrote, of each choice that says anything.
    """

    asked: Mapping[str, Any]
    texts: tuple[str, ...]


def samples(case: Case) -> tuple[Sample, ...]:
    """Answers to the case's question, whatever the sampling: of each kind the first ones, if they are many."""
    return _by_question(case).get(_question(given(case)), ())


def greedy_texts(case: Case) -> tuple[str, ...]:
    """What was said at temperature 0."""
    return tuple(text for each in samples(case) if is_greedy(each.asked) for text in each.texts)


def hot_texts(case: Case, **narrowed: Any) -> tuple[str, ...]:
    """What was said at a high temperature, with exactly these properties to narrow the choice."""
    found: list[str] = []
    for each in samples(case):
        narrowing = {name: value for name, value in each.asked.items() if name in NARROWING}
        if is_hot(each.asked) and narrowing == narrowed:
            found += each.texts
    return tuple(found)


def number(asked: Mapping[str, Any], name: str, default: float = 0) -> float:
    """A property's number; the default where it has none, or what no document of a vendor's lets it have."""
    value = asked.get(name)
    return value if is_number(value) else default


def is_greedy(asked: Mapping[str, Any]) -> bool:
    """Whether a request asks for temperature 0."""
    return number(asked, "temperature", 1) == 0


def is_hot(asked: Mapping[str, Any]) -> bool:
    """Whether a request asks for a high temperature that servers take."""
    return HOT <= number(asked, "temperature") <= HOTTEST


@once
def _by_question(case: Case) -> dict[str, tuple[Sample, ...]]:
    found: dict[str, list[Sample]] = {}
    kinds: Counter[str] = Counter()
    for exchange in case.others:
        other = dataclasses.replace(case, exchange=exchange)
        if exchange.status != 200 or not valid_request(other):
            continue
        asked = given(other)
        if isinstance(asked.get("prompt"), list):
            continue  # its choices are of several questions
        kind = json.dumps(
            {name: value for name, value in asked.items() if name not in {"seed", *_FORM}}, sort_keys=True
        )
        kinds[kind] += 1
        if kinds[kind] > MOST:
            continue
        answer = answer_of(case, exchange)
        texts = [choice.generated.strip() for choice in answer.choices.values()] if answer else []
        settings = {name: value for name, value in asked.items() if name in _SAMPLING}
        found.setdefault(_question(asked), []).append(Sample(settings, tuple(filter(None, texts))))
    return {question: tuple(group) for question, group in found.items()}


def _question(asked: Mapping[str, Any]) -> str:
    left = {name: value for name, value in asked.items() if name not in _SAMPLING | _FORM}
    return json.dumps(left, sort_keys=True)
