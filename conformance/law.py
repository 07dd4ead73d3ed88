"""
Laws: checks about one property of a request. Does the server honour what it accepts?

A law says how honouring a property shows from outside. Its verdict on an exchange is one of :class:`Honour`'s; the honour
table of a run (:mod:`streamgauge.conformance.honour`) has a row for every property that a document gives its requests.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.conformance.check import CHECKS, Case, Check, Departure, Judge, check
from streamgauge.conformance.isolation.poisoned import is_poison
from streamgauge.conformance.once import of_request, once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.posting import not_plain, posted, said, shown
from streamgauge.conformance.predicates import ended_answer, valid_request
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.paths import head_of, request_paths
from streamgauge.outcomes import Honour, Level, Outcome
from streamgauge.wire.exchange import Evidence

__all__ = ["BESIDE", "Law", "counting_for", "given", "honour_of", "ignored", "law", "laws_of", "refuses"]

Asks = Callable[[Mapping[str, Any]], bool]
"""Whether a request asks for the property in an ordinary way, so that honouring it would show."""

BESIDE = frozenset(
    {
        "echo",
        "include_reasoning",
        "logprobs",
        "n",
        "prompt_cache_key",
        "request_id",
        "return_token_ids",
        "seed",
        "stream_options",
        "top_logprobs",
        "user",
    }
)
"""Properties that most laws hold beside: they neither end an answer nor choose its words."""

_ABOUT_ELSE = frozenset({401, 403, 404, 405, 408, 413, 415, 429})
"""Refusals that are not about what a request asks for."""


@dataclass(frozen=True)
class Law(Check):
    """
    A check with the properties that it is about, as paths (`streamgauge.contract.paths`).

    Attributes:
        properties: the rows of the honour table that its verdict counts for.
        abstains: whether `inconclusive` says that a right answer need not show it: `unclear` in its rows, and no verdict on
            the check. Of older checks (:func:`counting_for`) it says that evidence is lacking.
    """

    properties: tuple[str, ...]
    abstains: bool

    def declaration(self) -> dict[str, Any]:
        """The check as `checks.json` holds it."""
        return {**super().declaration(), "properties": list(self.properties)}


@of_request
def given(case: Case) -> dict[str, Any]:
    """The documented properties of a request that are not null: null and absent mean the same."""
    sent, known = case.exchange.sent, case.operation.properties
    if not isinstance(sent, dict):
        return {}
    return {name: value for name, value in sent.items() if name in known and value is not None}


def ignored(expected: str, actual: str, **where: Any) -> Departure:
    """The departure of a server that took a property and did not honour it; `where` as in :class:`Departure`."""
    return Departure(expected, actual, outcome=Outcome.IGNORED, **where)


def refuses(case: Case) -> bool:
    """A 4xx that is about the request's content."""
    status = case.exchange.status
    return 400 <= status < 500 and status not in _ABOUT_ELSE and posted(case)


@once
def _lively(case: Case) -> frozenset[Asked]:
    """The questions that were answered without a failure of the server at least once; none where nothing was answered."""
    groups = case.others.groups
    if not any(each.status == 200 for each in case.others):
        return frozenset(groups)
    return frozenset(key for key, group in groups.items() if any(0 < each.status < 500 for each in group))


def _breaks(case: Case) -> bool:
    """A 5xx that every try of the question got, from a server that answers others."""
    exchange = case.exchange
    return (
        exchange.status >= 500 and not exchange.rate_limited and posted(case) and asked(exchange) not in _lively(case)
    )


@once
def _turned_away(case: Case) -> frozenset[frozenset[str]]:
    """What is unusual in each valid request that was refused, or that the server failed at."""
    others = (replace(case, exchange=each) for each in case.others if each.status >= 400)
    away = [each for each in others if valid_request(each) and (refuses(each) or each.exchange.status >= 500)]
    return frozenset(not_plain(each) for each in away)


def _without(case: Case, rest: frozenset[str]) -> bool:
    """Whether a request with nothing unusual but some of these was turned away as well."""
    return any(unusual and unusual <= rest for unusual in _turned_away(case)) if rest else False


def law(
    id: str,
    level: Level,
    title: str,
    *,
    properties: str | tuple[str, ...],
    requirement: str,
    source: str,
    asks: Asks,
    applies: Callable[[Case], bool] = lambda case: True,
    needs_also: Iterable[str] = (),
    beside: Iterable[str] = BESIDE,
    concerns: Callable[[Operation, Contract], bool] = lambda operation, contract: True,
    absent: str = "no request asked for it in a form that could show it",
    needs: tuple[Evidence, ...] = (),
) -> Callable[[Judge], Judge]:
    """
    Declare the function below as a law. It is given answers only: 200, complete, to valid requests that ask for the property.

    Beside the arguments of every check (the request is always needed) there are these.

    * `properties`: paths of the properties that it is about; it concerns operations whose document has the first one, as
      far as `concerns` lets it.
    * `asks`: whether the request's properties, without those that are null or not documented, ask for it.
    * `applies`: whether an *answer* can show it. Refusals and failures of the server are classed without it.
    * `needs_also`: further top-level properties without which it cannot be asked for (`logprobs` of `top_logprobs`).
    * `beside`: top-level properties that do not disturb it: answers to requests with others are not judged. A refusal, or a
      failure of the server, counts only if the request has something unusual, all of it `properties` and `needs_also`, and
      if no request with some of `needs_also` alone was turned away as well.
    * `concerns`: which operations that have the property, where not all mean the same by it (`echo`).

    The function yields :func:`ignored` where an answer proves that the property was not honoured, a plain departure where
    it was honoured wrongly, and `inconclusive` where nobody can tell.
    """
    paths = (properties,) if isinstance(properties, str) else properties
    heads = frozenset(map(head_of, paths))
    own = heads | frozenset(needs_also)
    allowed = own | frozenset(beside)

    @of_request
    def asked_for(case: Case) -> bool:
        return asks(given(case))

    def can_show(case: Case) -> bool:
        if not (valid_request(case) and asked_for(case)) or is_poison(case, case.exchange):
            return False
        unusual = not_plain(case)
        if unusual and unusual <= own and (refuses(case) or _breaks(case)):
            return not _without(case, unusual - heads)
        return unusual <= allowed and ended_answer(case) and applies(case)

    def has_property(operation: Operation, contract: Contract) -> bool:
        return paths[0] in request_paths(operation) and concerns(operation, contract)

    def declare(judge: Judge) -> Judge:
        def judge_all(case: Case) -> Iterator[Departure]:
            if case.exchange.status == 200:
                yield from judge(case)
            elif refuses(case):
                yield Departure("an answer that honours it", f"{shown(case)}: {said(case)}", outcome=Outcome.REFUSED)
            else:
                yield Departure("an answer, or a refusal that the document knows", f"{shown(case)}: {said(case)}")

        check(
            id,
            level,
            title,
            requirement=requirement,
            source=source,
            applies=can_show,
            concerns=has_property,
            absent=absent,
            needs=tuple(dict.fromkeys((Evidence.REQUEST, *needs))),
        )(judge_all)
        CHECKS[id] = Law(**vars(CHECKS[id]), properties=paths, abstains=True)
        return judge

    return declare


def counting_for(*properties: str) -> Callable[[Judge], Judge]:
    """
    Let the verdicts of the check that is declared below count for the rows of these properties, too.

    It goes above `@check`, and the check is given what it always was: for requirements that are older than a property's law.
    """

    def declare(judge: Judge) -> Judge:
        last = next(reversed(CHECKS.values()))
        CHECKS[last.id] = Law(**vars(last), properties=properties, abstains=False)
        return judge

    return declare


_HONOUR = {Outcome.PASS: Honour.HONOURED, Outcome.IGNORED: Honour.IGNORED, Outcome.REFUSED: Honour.REFUSED}


def honour_of(outcome: Outcome, case: Case) -> Honour:
    """What a law's outcome on one exchange says about its property."""
    if outcome in (Outcome.FAIL, Outcome.WARN):
        return Honour.SERVER_ERROR if case.exchange.status >= 500 else Honour.WRONG
    return _HONOUR.get(outcome, Honour.UNCLEAR)


def laws_of(operation: Operation, contract: Contract, path: str) -> list[Law]:
    """The laws about one property of an operation, in the order of declaration."""
    return [
        each
        for each in CHECKS.values()
        if isinstance(each, Law) and path in each.properties and each.concerns(operation, contract)
    ]
