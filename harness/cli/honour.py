"""The honour table on the console: what each operation does about the properties of its requests."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Honour

__all__ = ["print_honour"]

_STYLE = {
    Honour.SERVER_ERROR: "bold red",
    Honour.IGNORED: "red",
    Honour.WRONG: "yellow",
    Honour.HONOURED: "green",
    Honour.REFUSED: "blue",
}

_NAMED = (Honour.SERVER_ERROR, Honour.IGNORED, Honour.WRONG, Honour.REFUSED)
"""The words behind which the properties are named; the report names all."""

_PATHS = 8
"""How many properties are named behind a word; the report names all."""


def print_honour(directory: Path, console: Console, *, verbose: bool) -> None:
    """How many properties of each operation are honoured, ignored, refused, and which; with `verbose` every one."""
    rows = Bundle(directory).honour
    if not rows:
        return
    words = [word for word in Honour if any(row["honour"] == word for row in rows)]
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("\nrequest properties")
    for word in words:
        table.add_column(f"\n{word.value}", justify="right", style=_STYLE.get(word, "dim"))
    operations = dict.fromkeys((row["target"], row["operation"]) for row in rows)
    alone = len({operation for _, operation in operations}) == len(operations)
    named: list[tuple[str, Honour, list[str]]] = []
    for target, operation in operations:
        own = [row for row in rows if (row["target"], row["operation"]) == (target, operation)]
        counts = Counter(row["honour"] for row in own)
        table.add_row(f"{target}: {operation}", *(str(counts[word] or "") for word in words))
        by_word = {word: [row["property"] for row in own if row["honour"] == word] for word in words}
        name = operation if alone else f"{target}, {operation}"
        named += [(name, word, paths) for word, paths in by_word.items() if paths and (verbose or word in _NAMED)]
    console.print(table)
    for operation, word, paths in named:
        console.print(
            f"{word.value} by {operation}: {', '.join(paths) if verbose else _cut(paths)}",
            style=_STYLE.get(word, "dim"),
            markup=False,
            highlight=False,
        )


def _cut(paths: Sequence[str]) -> str:
    """The first of them, those left out that lie below another one; and how many more there are."""
    heads = [path for path in paths if not any(path.startswith((f"{other}.", f"{other}[]")) for other in paths)]
    nested = len(paths) - len(heads)
    more = [f"{len(heads) - _PATHS} more"] if len(heads) > _PATHS else []
    more += [f"{nested} nested in them"] if nested else []
    return ", ".join(heads[:_PATHS]) + (f", and {' and '.join(more)}" if more else "")
