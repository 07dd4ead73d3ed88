"""What each operation does about the properties of its requests: the honour table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Honour
from streamgauge.reports.findings import Finding

__all__ = ["HonourCell", "HonourRow", "honour_rows"]

WRONG = (Honour.SERVER_ERROR, Honour.IGNORED, Honour.WRONG)
"""What a reader has to look at."""


@dataclass(frozen=True, slots=True)
class HonourCell:
    """
    What one operation does about one property.

    Attributes:
        word: one of :class:`Honour`'s; empty where the operation's document does not have the property.
        counts: how many exchanges said what, where they differ.
        reason: why no law judged it, or none had anything to judge.
        laws: id and place in the report of each law.
        wrong: whether a reader has to look at it.
    """

    word: str = ""
    counts: str = ""
    reason: str = ""
    laws: tuple[tuple[str, str], ...] = ()
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class HonourRow:
    """One property, by its path, and a cell for each operation."""

    path: str
    cells: tuple[HonourCell, ...]

    @property
    def wrong(self) -> bool:
        """Whether a cell of it is."""
        return any(cell.wrong for cell in self.cells)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in its cells, each once."""
        return tuple(dict.fromkeys(cell.reason for cell in self.cells if cell.reason))


def honour_rows(
    bundle: Bundle, columns: Sequence[tuple[str, str]], findings: Iterable[Finding]
) -> tuple[HonourRow, ...]:
    """A row for each property of any operation, in the order of the documents; the columns are target and operation."""
    anchors = {(each.target, each.operation, each.check): each.anchor for each in findings}
    told = {(line["property"], (line["target"], line["operation"])): line for line in bundle.honour}
    paths = dict.fromkeys(line["property"] for line in bundle.honour)
    return tuple(
        HonourRow(path, tuple(_cell(told.get((path, column)), anchors) for column in columns)) for path in paths
    )


def _cell(line: dict[str, Any] | None, anchors: dict[tuple[str, str, str], str]) -> HonourCell:
    if line is None:
        return HonourCell()
    counts = line["counts"]
    return HonourCell(
        word=line["honour"],
        counts=", ".join(f"{count} {word}" for word, count in counts.items()) if len(counts) > 1 else "",
        reason=line["reason"],
        laws=tuple((law, anchors.get((line["target"], line["operation"], law), "")) for law in line["laws"]),
        wrong=line["honour"] in WRONG,
    )
