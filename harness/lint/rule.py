"""What a rule is, and the table of all rules; the rules stand in :mod:`streamgauge.lint.rules`."""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamgauge.lint.grammar import Path

if TYPE_CHECKING:
    from streamgauge.lint.subject import Subject

__all__ = ["RULES", "LintLevel", "Place", "Rule", "declare", "rule"]


class LintLevel(enum.StrEnum):
    """How much a departure matters."""

    ERROR = "error"
    """The document is invalid or contradicts itself: a tool or client that follows it goes wrong."""

    WARNING = "warning"
    """It misleads: a tool, client or reader will believe something that does not hold, or cannot tell."""

    INFO = "info"
    """Worth knowing: legitimate, and still a thing that tools stumble over or cannot check."""

    @property
    def weight(self) -> int:
        """The greater, the worse."""
        return list(LintLevel)[::-1].index(self)


@dataclass(frozen=True, slots=True)
class Place:
    """
    One place that breaks a rule.

    Attributes:
        path: keys and indexes from the document's root.
        message: what stands there; places with the same message are folded into one finding.
    """

    path: Path
    message: str


Finder = Callable[["Subject"], Iterator[Place]]


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One thing that can be wrong with a document.

    Attributes:
        id: stable, `spec.` and a slug.
        title: the complaint in a few words.
        why: what goes wrong by it.
        mend: what to write instead.
        source: the paragraph or the public case that it stands on.
        find: yields the places; `None` for what is found while loading.
    """

    id: str
    level: LintLevel
    title: str
    why: str
    mend: str
    source: str
    find: Finder | None = None

    def declaration(self) -> dict[str, str]:
        """The rule in plain words, for `list` and `explain`."""
        return {
            "id": self.id,
            "level": self.level.value,
            "title": self.title,
            "why": self.why,
            "mend": self.mend,
            "source": self.source,
        }


RULES: dict[str, Rule] = {}
"""Every rule by id, in the order of declaration; filled when :mod:`streamgauge.lint.rules` is imported."""


def declare(entry: Rule) -> Rule:
    """Put a rule into the table."""
    assert entry.id not in RULES, entry.id
    RULES[entry.id] = entry
    return entry


def rule(id_: str, level: LintLevel, title: str, *, why: str, mend: str, source: str) -> Callable[[Finder], Finder]:
    """Declare the decorated function as the rule's finder."""

    def register(find: Finder) -> Finder:
        declare(Rule(f"spec.{id_}", level, title, why, mend, source, find))
        return find

    return register
