"""Findings with their evidence at hand, in the order in which a reader wants them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.detection import excluded, tally
from streamgauge.outcomes import Level, Outcome, fails_gate
from streamgauge.reports.curl import curl_line
from streamgauge.reports.excerpt import Excerpt, excerpt_of
from streamgauge.traceability import requirement_in
from streamgauge.wire.exchange import Ending, Evidence, Exchange

__all__ = ["SHOWN", "Example", "Finding", "findings_of"]

SHOWN = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN, Outcome.INCONCLUSIVE, Outcome.REFUSED)
"""Outcomes that are shown with their evidence; the others take a line in a table."""

_ENDING_MEANING: dict[Ending, str] = {
    Ending.COMPLETE: "complete, as its framing announced",
    Ending.CLOSED: "the server closed the connection before the end of the message",
    Ending.RESET: "the connection was reset",
    Ending.REFUSED: "the connection was refused",
    Ending.DNS: "the host name could not be resolved",
    Ending.TLS: "TLS failed",
    Ending.PROXY: "the proxy opened no way to the target",
    Ending.MALFORMED_HTTP: "the bytes are no HTTP message",
    Ending.TIMEOUT_CONNECT: "no connection within the time limit",
    Ending.TIMEOUT_IDLE: "no byte arrived within the idle limit",
    Ending.TIMEOUT_TOTAL: "not over within the total time limit",
    Ending.TOO_LARGE: "larger than the recorder reads, which stopped there",
    Ending.LEFT: "the client left on purpose, to see whether the server notices",
}


@dataclass(frozen=True, slots=True)
class Example:
    """
    One exchange that shows a finding.

    Attributes:
        exchange: its id.
        outcome, expected, actual: what the check said about it.
        event: number of the event, from 0; None when it is about none.
        recorded: whether the bundle holds the exchange; if not, all that follows is empty.
        probe: which probe sent it.
        status: of the answer; 0 when there was none.
        ending: how it ended, in words.
        excerpt: the bytes; None when nothing came back.
        curl: the command that sends it again; None when its body is too long for one, or the request is not known.
    """

    exchange: str
    outcome: Outcome
    expected: str
    actual: str
    event: int | None
    recorded: bool
    probe: str = ""
    status: int = 0
    ending: str = ""
    excerpt: Excerpt | None = None
    curl: str | None = None
    kind: str = "probe"
    """What `probe` names: a probe that was sent, or a capture."""

    not_repeatable: str = ""
    """Why there is no curl line."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found for one operation of one target; see the bundle's schema for the fields' meaning."""

    anchor: str
    """Where the report shows it."""

    check: str
    topic: str
    level: Level
    title: str
    requirement: str
    source: str
    target: str
    operation: str
    outcome: Outcome
    counts: dict[Outcome, int]
    reason: str
    known: dict[str, str] | None
    examples: tuple[Example, ...]
    widened: tuple[str, ...]
    """What passed only because the profile lets it; different kinds of it, not every exchange."""

    @property
    def total(self) -> int:
        """How many exchanges were judged."""
        return sum(self.counts.values())

    @property
    def count(self) -> int:
        """How many of them had the finding's own outcome."""
        return self.counts.get(self.outcome, 0)

    @property
    def tally(self) -> str:
        """Both in words, and what a pass excludes; empty when nothing was judged."""
        return tally(self.outcome, self.counts)

    @property
    def excluded(self) -> str:
        """The rate of faults that a pass excludes at 95 %."""
        return excluded(self.total)

    @property
    def breaks_must(self) -> bool:
        """Whether it fails the gate unless the baseline knows it."""
        return fails_gate(self.outcome, self.level)


_STATUS = re.compile(r"/responses/\d{3}")
"""A source that is an answer of one status: not every document lists it."""


def findings_of(bundle: Bundle) -> list[Finding]:
    """The bundle's findings, most severe first, then by level, check, target and operation."""
    severity, levels = list(Outcome), list(Level)
    ordered = sorted(
        bundle.findings,
        key=lambda line: (
            severity.index(Outcome(line["outcome"])),
            levels.index(Level(line["level"])),
            line["check"],
            line["target"],
            line["operation"],
        ),
    )
    checks = {check["id"]: check for check in bundle.checks}
    targets = {target["name"]: target for target in bundle.meta.get("targets", [])}
    said = {(each["target"], each["operation"]): each for each in bundle.traceability}
    return [
        _finding(f"finding-{number}", line, _check(line, checks, said), bundle, targets)
        for number, line in enumerate(ordered, 1)
    ]


def _check(
    line: dict[str, Any], checks: dict[str, dict[str, Any]], said: dict[tuple[str, str], dict[str, Any]]
) -> dict[str, Any]:
    """The declaration of the finding's check, with the sentence of the operation's own document where it has one."""
    declared = checks.get(line["check"], {})
    traced = said.get((line["target"], line["operation"]))
    if traced is None:
        return declared
    own = requirement_in(traced["entries"], line["check"])
    if own is None:
        source = declared.get("source", "")
        if not _STATUS.fullmatch(source) or any(source in entry["at"] for entry in traced["entries"]):
            return declared
        return {**declared, "source": f"{source} of other documents; {traced['document']} does not list it"}
    return {**declared, "requirement": own[0], "source": f"{traced['document']}: {own[1]}"}


def _finding(
    anchor: str,
    line: dict[str, Any],
    check: dict[str, Any],
    bundle: Bundle,
    targets: dict[str, dict[str, Any]],
) -> Finding:
    outcome = Outcome(line["outcome"])
    return Finding(
        anchor=anchor,
        check=line["check"],
        topic=line["check"].split(".", 1)[0],
        level=Level(line["level"]),
        title=check.get("title", line["check"]),
        requirement=check.get("requirement", ""),
        source=check.get("source", ""),
        target=line["target"],
        operation=line["operation"],
        outcome=outcome,
        counts=_counts(line["counts"].items()),
        reason=line["reason"],
        known=line.get("known"),
        examples=tuple(
            _example(example, bundle.exchanges.get(example["exchange"]), targets.get(line["target"], {}))
            for example in line["examples"]
        )
        if outcome in SHOWN
        else (),
        widened=tuple(dict.fromkeys(said["actual"] for said in line["examples"] if said["outcome"] == Outcome.PASS)),
    )


def _counts(items: Iterable[tuple[str, int]]) -> dict[Outcome, int]:
    counts = {Outcome(name): count for name, count in items}
    return {outcome: counts[outcome] for outcome in Outcome if outcome in counts}


def _example(line: dict[str, Any], exchange: Exchange | None, target: dict[str, Any]) -> Example:
    said = {name: line[name] for name in ("exchange", "expected", "actual")}
    outcome, event = Outcome(line["outcome"]), line.get("event")
    if exchange is None:
        return Example(**said, outcome=outcome, event=event, recorded=False)
    told = Evidence.ENDING in exchange.holds
    ending = _ENDING_MEANING[exchange.ending] if told else "not told by the capture"
    curl = curl_line(exchange.request, target) if _repeatable(exchange) else None
    return Example(
        **said,
        outcome=outcome,
        event=event,
        recorded=True,
        probe=exchange.probe,
        kind="probe" if exchange.holds == frozenset(Evidence) else "capture",
        status=exchange.status,
        ending=f"{ending} ({exchange.detail})" if exchange.detail else ending,
        excerpt=_excerpt(line, exchange),
        curl=curl,
        not_repeatable="" if curl else _why_not(exchange),
    )


def _repeatable(exchange: Exchange) -> bool:
    """Whether the request is known, and where it went."""
    return Evidence.REQUEST in exchange.holds and "://" in exchange.request.url


def _why_not(exchange: Exchange) -> str:
    """Why the request cannot be sent again by a curl line."""
    if Evidence.REQUEST not in exchange.holds:
        return "The capture does not hold the request."
    if "://" not in exchange.request.url:
        return "The capture does not tell which host was asked; the request's body stands in the bundle."
    return "The request's body is too long for a curl line; it stands in the bundle."


def _excerpt(line: dict[str, Any], exchange: Exchange) -> Excerpt | None:
    part = line.get("part", "body")
    data = exchange.wire[: exchange.response.head_size] if part == "head" else exchange.response.body
    span = line.get("span")
    return excerpt_of(data, tuple(span) if span else None, part) if data else None
