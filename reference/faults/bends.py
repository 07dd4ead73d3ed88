"""How a change to a part of a request or an answer becomes a change to its draft."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, fault, requests, streams

__all__ = [
    "Bend",
    "ask",
    "calls_of",
    "declare",
    "each_body",
    "each_choice",
    "ignoring",
    "parts_of",
    "rewriting",
    "texts_of",
]

Bend = Callable[[Draft], None]

Change = Callable[[dict[str, Any]], Any]
"""Changes what it is given; what it returns counts for nothing."""


def declare(
    name: str,
    title: str,
    check: str | tuple[str, ...],
    bend: Bend,
    *seen: str,
    concerns: Callable[[Draft], bool] = streams,
    stage: Stage = Stage.ANSWER,
) -> None:
    """A fault in a line or two, where its bend is made of others; see :func:`fault`."""
    fault(name, title, caught_by=check, stage=stage, concerns=concerns, seen=seen)(bend)


def ask(draft: Draft, body: dict[str, Any]) -> None:
    """Let this be what was asked."""
    draft.request = dataclasses.replace(draft.request, body=json.dumps(body).encode())


def rewriting(
    name: str,
    title: str,
    check: str | tuple[str, ...],
    wants: Callable[[dict[str, Any]], object],
    rewrite: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    seen: tuple[str, ...] = (),
) -> None:
    """A fault that takes a right request, of those that `wants` holds for, as another one."""

    def concerned(draft: Draft) -> bool:
        right = requests(draft) and draft.operation is not None and draft.operation.request.accepts(draft.asked)
        return right and bool(wants(draft.asked))  # what is wrong stays refused

    def bend(draft: Draft) -> None:
        ask(draft, rewrite(draft.asked))

    declare(name, title, check, bend, *seen, concerns=concerned, stage=Stage.REQUEST)


def ignoring(name: str, title: str, check: str | tuple[str, ...], *properties: str, seen: tuple[str, ...] = ()) -> None:
    """A fault that takes top-level properties of a request and does as if they were not there."""

    def given(asked: dict[str, Any]) -> bool:
        return any(asked.get(each) is not None for each in properties)

    def without(asked: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in asked.items() if key not in properties}

    rewriting(name, title, check, given, without, seen=seen)


def parts_of(draft: Draft) -> list[dict[str, Any]]:
    """The messages, or the deltas, of a chat's answer."""
    found = [choice.get("message", choice.get("delta")) for choice in draft.choices]
    return [part for part in found if isinstance(part, dict)]


def calls_of(draft: Draft) -> list[dict[str, Any]]:
    """Every call in a chat's answer, or every piece of one."""
    return [call for part in parts_of(draft) for call in part.get("tool_calls") or ()]


def texts_of(draft: Draft) -> list[tuple[int, dict[str, Any], str]]:
    """Where a stream's pieces of text are: the choice's index, the object that holds the text, the member's name."""
    return [
        (choice["index"], choice["delta"], "content") if draft.chat else (choice["index"], choice, "text")
        for choice in draft.choices
    ]


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
