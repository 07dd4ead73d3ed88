"""How a change to a part of an answer becomes a change to its draft."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft

__all__ = ["Bend", "each_body", "each_choice"]

Bend = Callable[[Draft], None]

Change = Callable[[dict[str, Any]], Any]
"""Changes what it is given; what it returns counts for nothing."""


def each_body(change: Change) -> Bend:
    """Of a whole answer the body, of a stream each chunk."""

    def bend(draft: Draft) -> None:
        for body in draft.payloads if draft.streamed else [draft.body or {}]:
            change(body)

    return bend


def each_choice(change: Change) -> Bend:
    """Every choice of the answer, in every chunk that has it."""

    def bend(draft: Draft) -> None:
        for choice in draft.choices:
            change(choice)

    return bend
