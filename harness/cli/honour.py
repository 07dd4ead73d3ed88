"""The honour table on the console: what each operation does about the properties of its requests."""

from collections import Counter
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
    named: list[tuple[str, Honour, list[str]]] = []
    for target, operation in operations:
        own = [row for row in rows if (row["target"], row["operation"]) == (target, operation)]
        counts = Counter(row["honour"] for row in own)
        table.add_row(f"{target}: {operation}", *(str(counts[word] or "") for word in words))
        by_word = {word: [row["property"] for row in own if row["honour"] == word] for word in words}
        named += [(operation, word, paths) for word, paths in by_word.items() if paths and (verbose or word in _NAMED)]
    console.print(table)
    for operation, word, paths in named:
        console.print(
            f"{word.value} by {operation}: {', '.join(paths)}",
            style=_STYLE.get(word, "dim"),
            markup=False,
            highlight=False,
        )
