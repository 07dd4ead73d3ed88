"""What an answer tells of each of its tokens, in either family's form. Survives any shape."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.assembly import Choice
from streamgauge.wire.json import is_number

__all__ = ["AS_ID", "REPLACEMENT", "Entry", "entries_of", "is_partial", "is_special", "reports_of", "spells"]

AS_ID = re.compile(r"token_id:(\d+)")
"""A token that is told by its id."""

REPLACEMENT = "\ufffd"
"""In a token's text: it is a part of a character only, or the character itself."""

_MARKED = re.compile(r"[<\[].*[>\]]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One token's report.

    Attributes:
        text: the token.
        logprob: its log-probability as it was sent.
        data: its bytes as they were sent; chat only.
        top: the likeliest tokens with their log-probabilities, in the order of the answer; empty where none are told.
        offset: where its text begins, as it was sent; text completions only.
    """

    text: str
    logprob: Any
    data: Any = None
    top: tuple[tuple[str, Any], ...] = ()
    offset: Any = None

    @property
    def number(self) -> float | None:
        """The log-probability; None where that is no number."""
        return float(self.logprob) if is_number(self.logprob) else None


def reports_of(choice: Choice) -> list[Any]:
    """The `logprobs` of a choice that hold anything, as they were sent."""
    found = [part.get("logprobs") for part in choice.parts]
    return [each for each in found if (any(each.values()) if isinstance(each, dict) else each)]


def entries_of(choice: Choice) -> tuple[Entry, ...]:
    """All tokens of a choice; none where it tells none."""
    return tuple(entry for report in reports_of(choice) if isinstance(report, dict) for entry in _entries(report))


def _entries(report: Mapping[str, Any]) -> Iterable[Entry]:
    content = report.get("content")
    if isinstance(content, list):
        return [
            Entry(_text(item.get("token")), item.get("logprob"), item.get("bytes"), _listed(item.get("top_logprobs")))
            for item in content
            if isinstance(item, dict)
        ]
    tokens = _list(report.get("tokens"))
    columns = [_list(report.get(name)) for name in ("token_logprobs", "top_logprobs", "text_offset")]
    padded = [column + [None] * (len(tokens) - len(column)) for column in columns]
    return [
        Entry(_text(token), logprob, None, _named(top), offset)
        for token, logprob, top, offset in zip(tokens, *padded, strict=False)
    ]


def _listed(top: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((_text(each.get("token")), each.get("logprob")) for each in _list(top) if isinstance(each, dict))


def _named(top: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(top.items()) if isinstance(top, dict) else ()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def is_partial(token: str) -> bool:
    """Whether a token is a part of a character, which no text can show: OpenAI's text completions name its bytes."""
    return REPLACEMENT in token or token.startswith("bytes:\\x")


def is_special(token: str) -> bool:
    """Whether a token looks like one that servers leave out of the text: empty, or a mark in brackets."""
    return _MARKED.fullmatch(token) is not None or not token


def spells(tokens: Iterable[str], text: str) -> bool:
    """
    Whether a text is its tokens put together.

    Special tokens may lack in it, and white space around it: servers trim answers.
    """
    rest = text.lstrip()
    begun = False
    for token in tokens:
        piece = token if begun else token.lstrip()
        if piece and rest.startswith(piece):
            rest, begun = rest[len(piece) :], True
        elif token.isspace() or is_special(token):
            continue
        elif rest and token.startswith(rest) and token[len(rest) :].isspace():
            rest = ""
        else:
            return False
    return not rest.strip()
