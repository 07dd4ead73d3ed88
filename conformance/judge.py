"""Judges exchanges by one check and folds what it finds into one finding."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.check import Case, Check, Departure
from streamgauge.conformance.law import Law, honour_of
from streamgauge.conformance.others import Others
from streamgauge.contract.contract import Contract, Operation
from streamgauge.detection import excluded_rate
from streamgauge.outcomes import Honour, Level, Outcome, most_severe
from streamgauge.text import one_line
from streamgauge.wire.exchange import Evidence, Exchange

__all__ = ["Finding", "cases_of", "judge"]

_EVIDENCE: dict[Evidence, str] = {
    Evidence.TIMES: "read times",
    Evidence.FRAMING: "framing",
    Evidence.BYTES: "bytes as sent",
    Evidence.ENDING: "end of the transfer",
    Evidence.REQUEST: "request body",
    Evidence.CREDENTIAL: "form of the key",
    Evidence.CLOCK: "time of day",
}
"""What captures may lack, in words."""

_EVERYTHING = frozenset(Evidence)

EXAMPLES = 3
"""How many exchanges a finding shows, of those that depart and of those that pass by the profile only."""

MOST_LET_PASS = 12
"""How many kinds of what passes by the profile only: all that a profile can name, so that none goes unseen."""

LONGEST_TEXT = 400
"""Characters of the server's text in an example; all of it is in the exchange."""

_DEPARTED = {Level.MUST: Outcome.FAIL, Level.SHOULD: Outcome.WARN, Level.MAY: Outcome.WARN}


@dataclass(slots=True)
class Finding:
    """
    What one check found for one operation; the fields are those of `finding` in `spec/bundle.schema.json`.

    Attributes:
        honour: of a law: how many exchanges say what about its property.
    """

    check: str
    level: Level
    target: str
    operation: str
    outcome: Outcome = Outcome.NOT_RUN
    counts: Counter[Outcome] = field(default_factory=Counter)
    reason: str = ""
    examples: list[dict[str, Any]] = field(default_factory=list)
    honour: Counter[Honour] = field(default_factory=Counter)

    @property
    def n(self) -> int:
        """How many exchanges were judged."""
        return self.counts.total()

    def line(self) -> dict[str, Any]:
        """The finding as a line of `findings.jsonl`."""
        passed = self.outcome is Outcome.PASS
        return {
            "check": self.check,
            "level": self.level.value,
            "target": self.target,
            "operation": self.operation,
            "outcome": self.outcome.value,
            "counts": {
                outcome.value: count for outcome, count in sorted(self.counts.items(), key=lambda item: item[0])
            },
            "n": self.n,
            **({"excluded_rate": round(excluded_rate(self.n), 6)} if passed else {}),
            **({"honour": {word.value: count for word, count in self.honour.items()}} if self.honour else {}),
            "reason": self.reason,
            "examples": self.examples,
        }


def cases_of(
    exchanges: Iterable[Exchange], operation: Operation, contract: Contract, *, target: str, model: str
) -> list[Case]:
    """The exchanges of one target's operation as cases, each among all of them."""
    of_target = [exchange for exchange in exchanges if exchange.target == target]
    own = Others(exchange for exchange in of_target if exchange.operation == operation.name)
    own.beside = tuple(exchange for exchange in of_target if not exchange.operation)
    return [Case(exchange, operation, contract, model, own) for exchange in own]


def judge(check: Check, cases: Iterable[Case], operation: Operation, contract: Contract, target: str) -> Finding:
    """
    Judge every case that the check applies to.

    A check that raises is the harness's fault: its outcome is `error`, and the other exchanges are judged all the same.
    """
    finding = Finding(check.id, check.level, target, operation.name)
    if not check.concerns(operation, contract):
        finding.outcome = Outcome.NOT_APPLICABLE
        finding.reason = "the requirement does not concern this operation"
        return finding
    cases = list(cases)
    needs = frozenset(check.needs)
    lacking: Counter[Evidence] = Counter()
    looked_at = False
    unclear: dict[str, Any] | None = None
    shown: dict[tuple[Outcome, str], int] = {}
    candidates: list[tuple[bool, int, int, dict[str, Any]]] = []
    for case in cases:
        if not needs <= case.exchange.holds:
            lacking.update(each for each in check.needs if each not in case.exchange.holds)
            continue
        looked_at = True
        outcome, example = _judge_one(check, case)
        if outcome is None:
            continue
        if isinstance(check, Law):
            finding.honour[honour_of(outcome, case)] += 1
            if check.abstains and outcome is Outcome.INCONCLUSIVE:
                unclear = unclear or example
                continue
        finding.counts[outcome] += 1
        if example is not None:
            kind = (outcome, example["actual"])
            shown[kind] = shown.get(kind, 0) + 1
            candidates.append((outcome is Outcome.PASS, shown[kind], list(Outcome).index(outcome), example))
    finding.outcome = most_severe(finding.counts)
    # Different kinds first, the most severe ones foremost; behind them what passed only because the profile lets it.
    for passed in (False, True):
        kinds = sorted((item for item in candidates if item[0] is passed), key=lambda item: item[1:3])
        firsts = sum(nth == 1 for _, nth, *_ in kinds) if passed else 0
        finding.examples += [example for *_, example in kinds[: max(EXAMPLES, min(firsts, MOST_LET_PASS))]]
    if finding.outcome is Outcome.NOT_RUN and unclear is not None:
        finding.reason = f"no answer shows whether it is honoured: {unclear['actual']}"
    elif finding.outcome is Outcome.NOT_RUN:
        finding.reason = _reason(check, lacking, others=looked_at)
        if unanswered := _limited(cases):
            finding.outcome = Outcome.INCONCLUSIVE
            finding.counts[Outcome.INCONCLUSIVE] = unanswered.total()
            probes = f"{len(unanswered)} probe{'' if len(unanswered) == 1 else 's'}"
            finding.reason = f"rate-limited: {probes} got only 429, or 503 with Retry-After"
    elif finding.outcome is Outcome.INCONCLUSIVE:
        finding.reason = finding.examples[0]["actual"]
    return finding


def _limited(cases: list[Case]) -> Counter[str]:
    """The probes of ours of which every try was rate-limited, with the number of exchanges."""
    limited: Counter[str] = Counter()
    if not any(case.exchange.rate_limited for case in cases):
        return limited
    answered: set[str] = set()
    for exchange in (case.exchange for case in cases):
        if exchange.holds != _EVERYTHING:  # nobody can repeat what somebody else captured
            continue
        if exchange.rate_limited:
            limited[exchange.probe] += 1
        else:
            answered.add(exchange.probe)
    return Counter({probe: count for probe, count in limited.items() if probe not in answered})


def _reason(check: Check, lacking: Counter[Evidence], *, others: bool) -> str:
    """Why nothing was judged."""
    if not lacking:
        return check.absent
    told = ", ".join(f"{_EVIDENCE[each]} in {count}" for each, count in lacking.most_common())
    return f"the captures do not hold: {told}" + (f"; in others: {check.absent}" if others else "")


def _judge_one(check: Check, case: Case) -> tuple[Outcome | None, dict[str, Any] | None]:
    try:
        if not check.applies(case):
            return None, None
        departures = list(check.judge(case))
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"
        return Outcome.ERROR, _example(case, Outcome.ERROR, Departure("a verdict of the harness", said))
    if not departures:
        return Outcome.PASS, None
    outcomes = [departure.outcome or _DEPARTED[check.level] for departure in departures]
    worst = most_severe(outcomes)
    return worst, _example(case, worst, departures[outcomes.index(worst)])


def _example(case: Case, outcome: Outcome, departure: Departure) -> dict[str, Any]:
    example: dict[str, Any] = {
        "exchange": case.exchange.id,
        "outcome": outcome.value,
        "expected": one_line(departure.expected, LONGEST_TEXT),
        "actual": one_line(departure.actual, LONGEST_TEXT),
    }
    event = departure.event
    span = departure.span or ((event.start, event.end) if event else None)
    if span is not None:
        example["part"] = "body"
        example["span"] = list(span)
    if event is not None and event.number >= 0:
        example["event"] = event.number
    return example
