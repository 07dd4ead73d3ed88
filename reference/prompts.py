"""Prompts as the pseudo-model sees them: tokens, and the text that they make."""

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamgauge.reference.tokens import BEGIN, count, encode, text_of, texts_of

__all__ = ["Prompt", "completion_prompts", "from_ids", "from_text"]

_REPEATED = re.compile(r"(?:^|\s)(\S+)(?:\s+\1){3,}\s*$")
_LOOKS_BACK = 400
_BRIEF = re.compile(r"\bone word\b", re.IGNORECASE)


@dataclass(frozen=True)
class Prompt:
    """
    One prompt.

    Attributes:
        text: what the model reads; also what `echo` repeats in text completions.
        count: number of tokens.
        asked: what it is asked there: the text, or the last message of a chat.
        given: the tokens where they are not those of the text.
        begins: whether the beginning-of-sequence token goes before those of the text.
        suffix: what follows behind the answer; the model reads it too.
    """

    text: str
    count: int
    asked: str
    given: tuple[int, ...] | None = None
    begins: bool = False
    suffix: str = ""

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The tokens, those of the suffix behind the others."""
        return self._own + encode(self.suffix)

    @property
    def shown(self) -> tuple[int, ...]:
        """The tokens of the text."""
        return tuple(token for token in self._own if text_of(token))

    @property
    def _own(self) -> tuple[int, ...]:
        if self.given is not None:
            return self.given
        return (BEGIN, *encode(self.text)) if self.begins else encode(self.text)

    def before(self, suffix: str) -> "Prompt":
        """The same prompt, to be continued up to this suffix."""
        return dataclasses.replace(self, suffix=suffix, count=self.count + count(suffix))

    @cached_property
    def repeated(self) -> tuple[int, ...]:
        """The word that stands at its end four times or more, as tokens: real models go on like that, and so do we."""
        found = _REPEATED.search(self.asked[-_LOOKS_BACK:])
        return encode(" " + found[1]) if found else ()

    @property
    def brief(self) -> bool:
        """Whether it wants one word only."""
        return bool(_BRIEF.search(self.asked))


def from_text(text: str, *, begins: bool = False, asked: str | None = None) -> Prompt:
    """
    A prompt of text.

    Args:
        text: the whole of it.
        begins: whether the beginning-of-sequence token goes first; an empty text has that one at least.
        asked: see :class:`Prompt`.
    """
    begins = begins or not text
    return Prompt(text, count(text) + begins, text if asked is None else asked, begins=begins)


def from_ids(ids: tuple[int, ...], *, asked: str | None = None) -> Prompt:
    """A prompt of token ids."""
    text = texts_of(ids)
    return Prompt(text, len(ids), text if asked is None else asked, ids)


def completion_prompts(prompt: Any, *, begins: bool = False) -> list[Prompt]:
    """The prompts in a text completion's `prompt`, in order: text or token ids, one or several."""
    if isinstance(prompt, str):
        return [from_text(prompt, begins=begins)]
    if prompt and isinstance(prompt[0], (int, float)):
        return [from_ids(tuple(map(int, prompt)))]
    return [
        from_text(item, begins=begins) if isinstance(item, str) else from_ids(tuple(map(int, item))) for item in prompt
    ]
