"""Which of a request's properties it takes for it to fail."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["MAX_CALLS", "minimal_set"]

MAX_CALLS = 15
"""How many requests finding the smallest set may take: enough for fourteen properties."""


def minimal_set(
    body: Mapping[str, Any],
    droppable: Iterable[str],
    still_fails: Callable[[dict[str, Any]], bool],
    max_calls: int = MAX_CALLS,
) -> frozenset[str]:
    """
    A smallest set of top-level properties with which a failing request still fails.

    First all are left out, then one after the other: n properties take n + 1 calls, whatever it takes. Delta debugging
    (Zeller and Hildebrandt, 2002), which bisects, takes more of them as soon as two properties out of eight are needed.

    Args:
        body: a request that fails.
        droppable: names of its properties that it may do without; all others stay.
        still_fails: whether a smaller body fails as well.
        max_calls: how often that may be asked; what was not asked about stays.

    Returns:
        The droppable properties that have to stay. Where a request with more properties fails whenever one with fewer
        does, none of them can be left out.
    """
    names = [name for name in droppable if name in body]
    dropped: set[str] = set()
    for calls, without in enumerate([set(names), *({name} for name in names)]):
        if calls >= max_calls:
            break
        smaller = dropped | without
        if still_fails({name: value for name, value in body.items() if name not in smaller}):
            dropped = smaller
        if len(dropped) == len(names):
            break
    return frozenset(names) - dropped
