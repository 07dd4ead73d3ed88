"""The honour table: what a server does about each property that its document gives a request."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.conformance.isolation.poisoned import is_poison
from streamgauge.conformance.law import laws_of, refuses
from streamgauge.conformance.posting import not_plain
from streamgauge.conformance.predicates import valid_request
from streamgauge.conformance.unseen import unseen
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.paths import head_of, request_paths
from streamgauge.outcomes import Honour, Outcome

__all__ = ["honour_rows"]

_NO_LAW = "no law and no reason"


def honour_rows(
    operation: Operation, contract: Contract, target: str, cases: Iterable[Case], findings: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """
    A row for every property, nested ones included, in the document's order; the form is `honour` in `spec/bundle.schema.json`.

    The cases are those of the operation; lines of findings about other operations are left out.
    """
    own = {each["check"]: each for each in findings if (each["target"], each["operation"]) == (target, operation.name)}
    cases = [case for case in cases if valid_request(case) and not is_poison(case, case.exchange)]
    rows = []
    for path in request_paths(operation):
        laws = laws_of(operation, contract, path)
        told = [own[law.id] for law in laws if law.id in own]
        counts = sum((_counts(line) for line in told), Counter[Honour]())
        reason = ""
        if not laws:
            reason = unseen(path) or _NO_LAW
            counts = _accepted(path, cases)
        elif not counts:
            reason = "; ".join(dict.fromkeys(line["reason"] for line in told if line["reason"])) or "not judged"
        rows.append(
            {
                "target": target,
                "operation": operation.name,
                "property": path,
                "honour": min(counts, key=list(Honour).index, default=Honour.NOT_PROBED).value,
                "counts": {word.value: count for word, count in counts.items()},
                "laws": [law.id for law in laws],
                "reason": reason,
                "example": _example(told),
            }
        )
    return rows


def _counts(finding: Mapping[str, Any]) -> Counter[Honour]:
    return Counter({Honour(word): count for word, count in finding.get("honour", {}).items()})


def _accepted(path: str, cases: list[Case]) -> Counter[Honour]:
    """
    Of a property whose effect nobody sees: what became of requests that had nothing else unusual.

    Where one was answered, the server did not fail at others for this property.
    """
    found: Counter[Honour] = Counter()
    for case in cases:
        if not _names(case.exchange.sent, path) or not not_plain(case) <= {head_of(path)}:
            continue
        if case.exchange.status == 200:
            found[Honour.ACCEPTED] += 1
        elif refuses(case):
            found[Honour.REFUSED] += 1
        elif case.exchange.status >= 500 and not case.exchange.rate_limited:
            found[Honour.SERVER_ERROR] += 1
    if found[Honour.ACCEPTED]:
        del found[Honour.SERVER_ERROR]
    return found


def _names(value: Any, path: str) -> bool:
    """Whether a request gives the property, and not as null."""
    if not path:
        return value is not None
    step, _, rest = path.partition(".")
    name, listed = step.removesuffix("[]"), step.endswith("[]")
    if not isinstance(value, dict) or value.get(name) is None:
        return False
    if not listed:
        return _names(value[name], rest)
    return isinstance(value[name], list) and any(_names(item, rest) for item in value[name])


def _example(findings: Iterable[Mapping[str, Any]]) -> str:
    """The exchange that shows the row's verdict best: of the most severe departure; empty where nothing departed."""
    shown = [example for line in findings for example in line["examples"]]
    return str(min(shown, key=lambda each: list(Outcome).index(each["outcome"]))["exchange"]) if shown else ""
