"""`absent.*`: does null, or the default, mean the same as leaving a property out?"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.assembly import Answer
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.once import once
from streamgauge.conformance.others import asked
from streamgauge.conformance.predicates import valid_request
from streamgauge.conformance.questions import answer_of, same_twice
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence, Exchange

__all__: list[str] = []


def padding(sent: Any, properties: dict[str, Any]) -> dict[str, Any]:
    """The documented properties that a request gives as null or with their default, with these values."""
    if not isinstance(sent, dict):
        return {}
    return {
        name: value for name, value in sent.items() if name in properties and _says_nothing(value, properties[name])
    }


def _says_nothing(value: Any, schema: Any) -> bool:
    if value is None:
        return True
    default = schema.get("default") if isinstance(schema, dict) else None
    return default is not None and type(value) is type(default) and value == default


def _shown(told: tuple[tuple[str, str], ...]) -> str:
    return repr(told[0][0].strip()) if told else "no choice"


@dataclass
class _Group:
    """Answers to requests that differ only by nulls and defaults: of the plain one, as what is compared."""

    plain: list[tuple[tuple[str, str], ...]] = field(default_factory=list)


def _told(answer: Answer) -> tuple[tuple[str, str], ...]:
    return tuple((choice.generated, choice.finish) for choice in answer.choices.values())


def _bare(exchange: Exchange, properties: dict[str, Any]) -> str:
    left_out = {"stream", "stream_options", *padding(exchange.sent, properties)}
    return json.dumps({name: value for name, value in exchange.sent.items() if name not in left_out}, sort_keys=True)


@once
def _groups(case: Case) -> dict[str, _Group]:
    """The answers to plain requests that ask for the same answer whenever they are sent, by what they ask."""
    found: dict[str, _Group] = {}
    properties = case.operation.properties
    for group in same_twice(case).values():
        for exchange in group:
            if not padding(exchange.sent, properties) and (answer := answer_of(case, exchange)) is not None:
                found.setdefault(_bare(exchange, properties), _Group()).plain.append(_told(answer))
    return found


def _padded(case: Case, *, nulls: bool) -> bool:
    """Whether the request gives such properties, and the plain one was asked twice at least, with one and the same answer."""
    exchange = case.exchange
    added = padding(exchange.sent, case.operation.properties)
    if not added or any((value is None) is not nulls for value in added.values()):
        return False
    if not valid_request(case) or asked(exchange) not in same_twice(case) or answer_of(case, exchange) is None:
        return False
    group = _groups(case).get(_bare(exchange, case.operation.properties))
    return group is not None and len(group.plain) > 1 and len(set(group.plain)) == 1


def _differs(case: Case) -> Iterator[Departure]:
    plain = _groups(case)[_bare(case.exchange, case.operation.properties)].plain[0]
    answer = answer_of(case, case.exchange)
    assert answer is not None
    if (told := _told(answer)) != plain:
        names = ", ".join(padding(case.exchange.sent, case.operation.properties))
        yield Departure(
            f"as without them: {plain[0] if plain else 'no choice'}", f"{told[0] if told else 'no choice'} with {names}"
        )


@check(
    "absent.null",
    Level.SHOULD,
    "A property that is null changes nothing",
    requirement="A null that the schema allows says the same as leaving the property out.",
    source="what clients rely on that send every member of their request class",
    applies=lambda case: _padded(case, nulls=True),
    absent="no plain question was answered alike several times and asked with nulls as well",
    needs=(Evidence.REQUEST,),
)
def null(case: Case) -> Iterator[Departure]:
    """Only where the plain question has one and the same answer whenever it is asked."""
    yield from _differs(case)


@check(
    "absent.default",
    Level.SHOULD,
    "A property with its default changes nothing",
    requirement="The default value represents what would be assumed by the consumer of the input as the value of the schema "
    "if one is not provided.",
    source="OpenAPI 3.0.3, Schema Object: default",
    applies=lambda case: _padded(case, nulls=False),
    absent="no plain question was answered alike several times and asked with its defaults as well",
    needs=(Evidence.REQUEST,),
)
def default(case: Case) -> Iterator[Departure]:
    """Only where the plain question has one and the same answer whenever it is asked."""
    yield from _differs(case)
