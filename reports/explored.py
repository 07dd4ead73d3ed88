"""What requests drawn at random have shown: each exploration, and the smallest request that still fails."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.reports.curl import curl_line
from streamgauge.reports.findings import Finding

__all__ = ["Exploration", "Failure", "explorations_in"]


@dataclass(frozen=True, slots=True)
class Failure:
    """
    The smallest request that an exploration found to fail.

    Attributes:
        check: which check fails on it.
        anchor: where the report shows that check's finding; empty where it has none.
        others: further checks that fail on it.
        expected, actual: what the check said about it.
        body: the request as JSON, in ASCII.
        properties: of the request, beside model, prompt and limit: as few as it takes.
        exchanges: ids of its exchanges, those of the replays last.
        replays, departed: how often it was sent again, and how often it failed again.
        curl: the command that sends it again; None when its exchange is not at hand, or its body too long for one.
    """

    check: str
    anchor: str
    others: tuple[str, ...]
    expected: str
    actual: str
    body: str
    properties: tuple[str, ...]
    exchanges: tuple[str, ...]
    replays: int
    departed: int
    curl: str | None


@dataclass(frozen=True, slots=True)
class Exploration:
    """One exploration of one operation; without `failure` where nothing new failed, or `stopped` where nothing cut it short."""

    anchor: str
    """Where the report shows it."""

    id: str
    title: str
    target: str
    operation: str
    seed: int
    examples: int
    requests: int
    tokens: int
    stopped: str
    failure: Failure | None


def explorations_in(bundle: Bundle, findings: Iterable[Finding]) -> tuple[Exploration, ...]:
    """The bundle's explorations in their order; none where nothing was drawn."""
    anchors = {(each.target, each.operation, each.check): each.anchor for each in findings}
    return tuple(
        _exploration(f"explored-{number}", line, bundle, anchors) for number, line in enumerate(bundle.explored, 1)
    )


def _exploration(
    anchor: str, line: dict[str, Any], bundle: Bundle, anchors: dict[tuple[str, str, str], str]
) -> Exploration:
    names = ("title", "target", "operation", "seed", "examples", "requests", "tokens", "stopped")
    failure = line["failure"]
    return Exploration(
        anchor=anchor,
        id=line["exploration"],
        **{name: line[name] for name in names},
        failure=_failure(failure, line, bundle, anchors) if failure else None,
    )


def _failure(
    failure: dict[str, Any], line: dict[str, Any], bundle: Bundle, anchors: dict[tuple[str, str, str], str]
) -> Failure:
    return Failure(
        check=failure["check"],
        anchor=anchors.get((line["target"], line["operation"], failure["check"]), ""),
        others=tuple(check for check in failure["checks"] if check != failure["check"]),
        expected=failure["expected"],
        actual=failure["actual"],
        body=json.dumps(failure["body"], indent=2),
        properties=tuple(failure["properties"]),
        exchanges=tuple(failure["exchanges"]),
        replays=failure["replays"],
        departed=failure["departed"],
        curl=_curl(failure, line["target"], bundle),
    )


def _curl(failure: dict[str, Any], target: str, bundle: Bundle) -> str | None:
    """The command for the first of its exchanges that the bundle holds."""
    at_hand = (bundle.exchanges[id_] for id_ in failure["exchanges"] if id_ in bundle.exchanges)
    targets = {each["name"]: each for each in bundle.meta.get("targets", [])}
    exchange = next(at_hand, None)
    return curl_line(exchange.request, targets.get(target, {})) if exchange else None
