"""What requests drawn at random have shown, on the console."""

from pathlib import Path
from typing import Any

from rich.console import Console

from streamgauge.bundle.reader import Bundle

__all__ = ["print_explored"]

_FAILURES = 8
"""How many failures of explorations are told; the report tells all."""


def print_explored(directory: Path, console: Console) -> None:
    """A line for each failure that requests drawn at random have shown."""
    failed = [line for line in Bundle(directory).explored if line["failure"]]
    if failed:
        console.print()
    for line in failed[:_FAILURES]:
        console.print(_found(line), style="red", markup=False, highlight=False)
    if len(failed) > _FAILURES:
        console.print(f"and {len(failed) - _FAILURES} more: see the report", style="dim")


def _found(line: dict[str, Any]) -> str:
    failure = line["failure"]
    takes = ", ".join(failure["properties"]) or "nothing beside model, prompt and limit"
    again = f"failed again {failure['departed']} of {failure['replays']}" if failure["replays"] else "not sent again"
    return f"{line['exploration']} found {failure['check']} on {line['operation']}: smallest request takes {takes}; {again}"
