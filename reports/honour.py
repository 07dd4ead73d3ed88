"""What each operation does about the properties of its requests: the honour table."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Honour
from streamgauge.reports.findings import Finding

__all__ = ["Attention", "HonourCell", "HonourRow", "HonourTable", "honour_table"]

WRONG = (Honour.SERVER_ERROR, Honour.IGNORED, Honour.WRONG)
"""What a reader has to look at, the worst first."""


@dataclass(frozen=True, slots=True)
class HonourCell:
    """
    What one operation does about one property.

    Attributes:
        word: one of :class:`Honour`'s; empty where the operation's document does not have the property.
        counts: how many exchanges said what, where they differ.
        reason: why no law judged it, or none had anything to judge.
        anchor: where the report shows the most severe finding of its laws; empty where they have none.
    """

    word: str = ""
    counts: str = ""
    reason: str = ""
    anchor: str = ""

    @property
    def wrong(self) -> bool:
        """Whether a reader has to look at it."""
        return self.word in WRONG


@dataclass(frozen=True, slots=True)
class HonourRow:
    """One property, by its path, a cell for each operation, and its laws: id and place of the most severe finding."""

    path: str
    cells: tuple[HonourCell, ...]
    laws: tuple[tuple[str, str], ...]

    @property
    def nested(self) -> bool:
        """Whether it is a part of another property."""
        return "." in self.path

    @property
    def wrong(self) -> bool:
        """Whether a cell of it is."""
        return any(cell.wrong for cell in self.cells)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in its cells, each once."""
        return tuple(dict.fromkeys(cell.reason for cell in self.cells if cell.reason))


@dataclass(frozen=True, slots=True)
class Attention:
    """Properties that share one bad word, and the operations that it stands for: name, counts, place of the finding."""

    paths: tuple[str, ...]
    word: str
    where: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class HonourTable:
    """A row for each property of any operation, in the order of the documents; the columns are target and operation."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[HonourRow, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Those that occur, in their order."""
        return tuple(word for word in Honour if any(cell.word == word for row in self.rows for cell in row.cells))

    @property
    def counts(self) -> tuple[Counter[str], ...]:
        """How many properties each column has by each word."""
        return tuple(
            Counter(row.cells[at].word for row in self.rows if row.cells[at].word) for at in range(len(self.columns))
        )

    @property
    def attention(self) -> tuple[Attention, ...]:
        """What a reader has to look at, the worst first; properties of the same laws with the same findings are one entry."""
        return tuple(self._attention())

    @property
    def parts(self) -> tuple[tuple[HonourRow, ...], tuple[HonourRow, ...]]:
        """The rows of the properties themselves, and of those nested in them."""
        return tuple(row for row in self.rows if not row.nested), tuple(row for row in self.rows if row.nested)

    def _attention(self) -> Iterator[Attention]:
        names = _names(self.columns)
        for word in WRONG:
            alike: dict[tuple[Any, ...], list[str]] = {}
            for row in self.rows:
                where = tuple(
                    (name, cell.counts, cell.anchor)
                    for name, cell in zip(names, row.cells, strict=True)
                    if cell.word == word
                )
                if where:
                    alike.setdefault((where, row.laws), []).append(row.path)
            yield from (Attention(tuple(paths), word, where) for (where, _), paths in alike.items())


def honour_table(bundle: Bundle, columns: Sequence[tuple[str, str]], findings: Iterable[Finding]) -> HonourTable:
    """
    The honour table of a bundle; without rows where nothing was judged.

    Args:
        bundle: the run.
        columns: target and operation of what was judged; those without any property are left out.
        findings: the run's, most severe first.
    """
    places = {(each.target, each.operation, each.check): each.anchor for each in findings}
    order = {anchor: number for number, anchor in enumerate(places.values())}
    told = {(line["property"], (line["target"], line["operation"])): line for line in bundle.honour}
    having = {column for _, column in told}
    own = tuple(column for column in columns if column in having)
    rows = []
    for path in dict.fromkeys(line["property"] for line in bundle.honour):
        lines = [told.get((path, column)) for column in own]
        cells = tuple(_cell(line, places, order) for line in lines)
        rows.append(HonourRow(path, cells, _laws(lines, places, order)))
    return HonourTable(own, tuple(rows))


def _cell(line: dict[str, Any] | None, places: dict[tuple[str, str, str], str], order: dict[str, int]) -> HonourCell:
    if line is None:
        return HonourCell()
    counts = line["counts"]
    return HonourCell(
        word=line["honour"],
        counts=", ".join(f"{count} {word}" for word, count in counts.items()) if len(counts) > 1 else "",
        reason=line["reason"],
        anchor=_worst([places[key] for law in line["laws"] if (key := _key(line, law)) in places], order),
    )


def _laws(
    lines: Sequence[dict[str, Any] | None], places: dict[tuple[str, str, str], str], order: dict[str, int]
) -> tuple[tuple[str, str], ...]:
    """Each law of a property, with its most severe finding of any operation."""
    found: dict[str, list[str]] = {}
    for line in filter(None, lines):
        for law in line["laws"]:
            place = places.get(_key(line, law))
            found.setdefault(law, []).extend([place] if place else [])
    return tuple((law, _worst(anchors, order)) for law, anchors in found.items())


def _key(line: dict[str, Any], law: str) -> tuple[str, str, str]:
    return line["target"], line["operation"], law


def _worst(anchors: Iterable[str], order: dict[str, int]) -> str:
    """The place of the most severe finding: findings are in that order."""
    return min(anchors, key=order.__getitem__, default="")


def _names(columns: Sequence[tuple[str, str]]) -> list[str]:
    """The operations' names, with the targets' where one is not enough to tell them apart."""
    operations = [operation for _, operation in columns]
    alone = len(set(operations)) == len(operations)
    return [operation if alone else f"{target}, {operation}" for target, operation in columns]
