"""How many processes send: what Locust's own arguments say about it."""

import contextlib
import os
from collections.abc import Iterator, Sequence

__all__ = ["dispatchers"]


def dispatchers(arguments: Sequence[str]) -> int:
    """
    How many processes Locust's arguments make it send from: its workers, or one alone.

    `--processes -1` stands for one for each core. What is no number is left to Locust to refuse.
    """
    for name in ("--processes", "--expect-workers"):
        for value in _values(arguments, name):
            with contextlib.suppress(ValueError):
                return int(value) if int(value) > 0 else os.cpu_count() or 1
    return 1


def _values(arguments: Sequence[str], name: str) -> Iterator[str]:
    for item, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if item == name:
            yield following
        elif item.startswith(f"{name}="):
            yield item.partition("=")[2]
