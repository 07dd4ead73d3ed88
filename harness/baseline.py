"""The baseline: findings that are known and accepted for a while, each with a reason and a last day."""

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.errors import ConfigError
from streamgauge.outcomes import Level, Outcome, fails_gate
from streamgauge.text import one_line
from streamgauge.yamlfile import load_yaml

__all__ = ["Baseline", "Entry", "gates", "load_baseline", "write_baseline"]

LIFETIME = timedelta(days=90)
"""How long a freshly written entry counts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One known finding; see `spec/baseline.schema.json`."""

    check: str
    reason: str
    expires: date
    target: str | None = None
    operation: str | None = None

    def covers(self, finding: Mapping[str, Any]) -> bool:
        """Whether the entry is about this finding's check, target and operation."""
        return (
            self.check == finding["check"]
            and self.target in (None, finding["target"])
            and self.operation in (None, finding["operation"])
        )

    def __str__(self) -> str:
        place = "/".join(part for part in (self.target, self.operation) if part)
        return f"{self.check} ({place})" if place else self.check


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """All known findings, and the day for which they are asked."""

    name: str = ""
    entries: tuple[Entry, ...] = ()
    today: date = date.min

    def known(self, finding: Mapping[str, Any]) -> Entry | None:
        """The entry that still covers a finding which would fail the gate; None where there is none."""
        if not gates(finding):
            return None
        return next((entry for entry in self.entries if entry.expires >= self.today and entry.covers(finding)), None)

    @property
    def expired(self) -> list[Entry]:
        """Entries whose last day is over."""
        return [entry for entry in self.entries if entry.expires < self.today]

    def stale(self, findings: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Entries whose every finding was really judged, and passes now."""
        findings = list(findings)
        stale = []
        for entry in self.entries:
            outcomes = [Outcome(finding["outcome"]) for finding in findings if entry.covers(finding)]
            judged = [o for o in outcomes if o not in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE)]
            if judged and all(outcome is Outcome.PASS for outcome in judged):
                stale.append(entry)
        return stale


def gates(finding: Mapping[str, Any]) -> bool:
    """Whether a finding, unknown, fails the gate."""
    return fails_gate(Outcome(finding["outcome"]), Level(finding["level"]))


def load_baseline(path: Path, today: date) -> Baseline:
    """
    Read a baseline.

    Raises:
        ConfigError: the file cannot be read, breaks the schema, or names a day that does not exist.
    """
    located = load_yaml(path, error=ConfigError)
    for error in Draft202012Validator(catalog.schema("baseline")).iter_errors(located.data):
        raise ConfigError(error.message, where=located.where(error.absolute_path))
    entries = []
    for number, item in enumerate(located.data["known"]):
        try:
            expires = date.fromisoformat(item["expires"])
        except ValueError:
            where = located.where(["known", number, "expires"])
            raise ConfigError(f"no such day: {item['expires']}", where=where) from None
        entries.append(Entry(**{**item, "expires": expires}))
    return Baseline(str(path), tuple(entries), today)


def write_baseline(path: Path, findings: Iterable[Mapping[str, Any]], today: date) -> int:
    """
    Write a baseline with every finding that fails the gate; returns how many.

    The reasons say what was seen; whoever keeps the file should say why it is accepted.
    """
    known = [
        {
            "check": finding["check"],
            "target": finding["target"],
            "operation": finding["operation"],
            "reason": f"seen on {today}: {one_line(_seen(finding), 200)}",
            "expires": str(today + LIFETIME),
        }
        for finding in findings
        if gates(finding)
    ]
    path.write_text(yaml.safe_dump({"known": known}, sort_keys=False, allow_unicode=True, width=110), encoding="utf-8")
    return len(known)


def _seen(finding: Mapping[str, Any]) -> str:
    if not finding["examples"]:
        return str(finding["outcome"])
    example = finding["examples"][0]
    return f"{example['actual']} instead of {example['expected']}"
