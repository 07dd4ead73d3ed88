"""What the console says of the honour table and of what random draws found: bounded, and told apart by target."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from report_bundles import full_bundle, lean_bundle
from rich.console import Console

from streamgauge.bundle.layout import EXPLORED, HONOUR
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import write_whole
from streamgauge.cli.explored import print_explored
from streamgauge.cli.honour import print_honour


def printed(show: Callable[[Console], None]) -> list[str]:
    """The lines printed, without empty ones."""
    console = Console(width=200, highlight=False, soft_wrap=True)
    with console.capture() as capture:
        show(console)
    return [line.rstrip() for line in capture.get().splitlines() if line.strip()]


def honoured(rows: list[dict[str, Any]], directory: Path, *, verbose: bool = False) -> list[str]:
    """What is printed of these rows."""
    bundle = lean_bundle(directory / "b")
    plain = {"target": "t", "operation": "chat", "counts": {}, "laws": [], "reason": "", "example": ""}
    write_whole(bundle / HONOUR, [{**plain, **row} for row in rows])
    return printed(lambda console: print_honour(bundle, console, verbose=verbose))


def rows(word: str, *paths: str, **more: str) -> list[dict[str, Any]]:
    """Rows with one word."""
    return [{"property": path, "honour": word, **more} for path in paths]


def test_counts_and_names(tmp_path: Path) -> None:
    """A line of counts for each operation, and by name what a reader has to know; the report has the rest."""
    told = honoured(rows("ignored", "stop", "seed") + rows("honoured", "n"), tmp_path)
    assert told[0].split() == ["request", "properties", "ignored", "honoured"]
    assert told[1].split() == ["t:", "chat", "2", "1"]
    assert told[2:] == ["ignored by chat: stop, seed"]


def test_long_lists_are_cut(tmp_path: Path) -> None:
    """A server that refuses forty properties does not fill the screen; what is nested in a named one is counted only."""
    paths = ["m", "m[].a", "m[].a.b", *(f"p{number}" for number in range(39))]
    told = honoured(rows("refused", *paths), tmp_path)
    assert told[-1] == "refused by chat: m, p0, p1, p2, p3, p4, p5, p6, and 32 more and 2 nested in them"


def test_verbose_names_all(tmp_path: Path) -> None:
    """With --verbose every word and every property."""
    paths = [f"p{number}" for number in range(12)]
    assert honoured(rows("accepted", *paths), tmp_path, verbose=True)[-1] == f"accepted by chat: {', '.join(paths)}"


def test_a_property_is_no_part_of_one_that_begins_alike(tmp_path: Path) -> None:
    """`stop_token_ids` does not lie below `stop`."""
    assert honoured(rows("ignored", "stop", "stop_token_ids"), tmp_path)[-1] == "ignored by chat: stop, stop_token_ids"


def test_targets_with_one_operation_are_told_apart(tmp_path: Path) -> None:
    """The operation's name alone would not tell which vendor ignores it."""
    told = honoured(rows("ignored", "stop") + rows("ignored", "n", target="u"), tmp_path)
    assert told[-2:] == ["ignored by t, chat: stop", "ignored by u, chat: n"]


def test_explorations(tmp_path: Path) -> None:
    """A line for each failure: what was found where, what it takes, how often it failed again."""
    bundle = full_bundle(tmp_path / "b")
    assert printed(lambda console: print_explored(bundle, console)) == [
        "explore.stops found sampling.stop on seekr-chat: smallest request takes stop, n; failed again 2 of 3",
        "explore.prompts found pair.text on seekr-completions: smallest request takes nothing beside model, prompt and "
        "limit; not sent again",
    ]


def test_many_failures_are_cut(tmp_path: Path) -> None:
    """A screen holds no more."""
    bundle = full_bundle(tmp_path / "b")
    write_whole(bundle / EXPLORED, 11 * Bundle(bundle).explored[:1])
    told = printed(lambda console: print_explored(bundle, console))
    assert (len(told), told[-1]) == (9, "and 3 more: see the report")


def test_nothing_to_tell(tmp_path: Path) -> None:
    """Without rows and explorations nothing is printed."""
    bundle = lean_bundle(tmp_path / "b")
    assert printed(lambda console: print_explored(bundle, console)) == []
    assert printed(lambda console: print_honour(bundle, console, verbose=False)) == []
