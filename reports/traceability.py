"""What each operation's document says, and what judged it in this run."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Outcome
from streamgauge.reports.findings import Finding

__all__ = ["Judged", "Statements", "statements_in"]

_NO_VERDICT = (Outcome.NOT_APPLICABLE, Outcome.NOT_RUN)

_UNSELECTED = "not selected"


@dataclass(frozen=True, slots=True)
class Judged:
    """
    One statement of a document, or several that are judged alike.

    Attributes:
        at: where it stands.
        text: what stands there; how many there are where they are several.
        quoted: whether the text is a sentence of the document.
        checks: id, outcome and place in the report of each check that judges it; none where there is a reason.
        reason: why none does.
    """

    at: str
    text: str
    quoted: bool
    checks: tuple[tuple[str, str, str], ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Statements:
    """
    The statements of one operation of one target.

    Attributes:
        counts: in words → how many statements.
        judged, unobservable, open: by what is said of them.
    """

    target: str
    operation: str
    document: str
    counts: dict[str, int]
    judged: tuple[Judged, ...]
    unobservable: tuple[Judged, ...]
    open: tuple[Judged, ...]


def statements_in(bundle: Bundle, findings: Iterable[Finding]) -> tuple[Statements, ...]:
    """Those of each operation whose document we ship, with the outcomes of the run."""
    found = {(each.target, each.operation, each.check): each for each in findings}
    return tuple(_statements(line, found) for line in bundle.traceability)


def _statements(line: dict[str, Any], found: dict[tuple[str, str, str], Finding]) -> Statements:
    def outcome(check: str) -> tuple[str, str, str]:
        finding = found.get((line["target"], line["operation"], check))
        return (check, finding.outcome, finding.anchor) if finding else (check, _UNSELECTED, "")

    kinds: dict[str, list[Judged]] = {"checks": [], "unobservable": [], "open": []}
    counts: Counter[str] = Counter()
    for entry in line["entries"]:
        (kind,) = kinds.keys() & entry.keys()
        checks = tuple(map(outcome, entry.get("checks", ())))
        kinds[kind].append(
            Judged(
                at=entry["at"],
                text=entry.get("sentence") or entry.get("text") or f"{entry['statements']} statements",
                quoted="sentence" in entry,
                checks=checks,
                reason=entry.get("unobservable") or entry.get("open") or "",
            )
        )
        counts[_state(kind, [said for _, said, _ in checks])] += entry["statements"]
    return Statements(
        target=line["target"],
        operation=line["operation"],
        document=line["document"],
        counts={state: counts[state] for state in _STATES if counts[state]},
        judged=tuple(kinds["checks"]),
        unobservable=tuple(kinds["unobservable"]),
        open=tuple(kinds["open"]),
    )


_STATES = ("judged", "not judged in this run", "not observable", "open")


def _state(kind: str, outcomes: list[str]) -> str:
    if kind != "checks":
        return "open" if kind == "open" else "not observable"
    return "judged" if any(said != _UNSELECTED and said not in _NO_VERDICT for said in outcomes) else _STATES[1]
