"""Prompts as the pseudo-model sees them: pieces of text, one per token."""

import json
import re
from dataclasses import dataclass
from typing import Any

from streamgauge.reference.words import word

__all__ = ["Prompt", "chat_prompt", "completion_prompts"]

# One token is up to eight characters with the white space before them: joined, tokens are the text again.
_TOKEN = re.compile(r"\s*\S{1,8}|\s+")


@dataclass(frozen=True, slots=True)
class Prompt:
    """
    One prompt.

    Attributes:
        text: what the model reads; also what `echo` repeats in text completions.
        tokens: its pieces, which joined give the text.
    """

    text: str
    tokens: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of tokens; the beginning-of-sequence token makes an empty prompt one long."""
        return max(1, len(self.tokens))


def completion_prompts(prompt: Any) -> list[Prompt]:
    """The prompts in a text completion's `prompt`, in order: text or token ids, one or several."""
    if isinstance(prompt, str):
        return [_from_text(prompt)]
    if prompt and isinstance(prompt[0], (int, float)):
        return [_from_ids(prompt)]
    return [_from_text(item) if isinstance(item, str) else _from_ids(item) for item in prompt]


def chat_prompt(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Prompt:
    """The one prompt that our chat template makes of messages and tools."""
    lines = [_line(message) for message in messages]
    if tools:
        lines.insert(0, "tools: " + json.dumps(tools, ensure_ascii=False))
    return _from_text("\n".join(lines))


def _from_text(text: str) -> Prompt:
    return Prompt(text, tuple(_TOKEN.findall(text)))


def _from_ids(ids: list[int]) -> Prompt:
    tokens = tuple(word(int(token)) for token in ids)
    return Prompt("".join(tokens), tokens)


def _line(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    calls = message.get("tool_calls")
    return f"{message['role']}: {content}" + (json.dumps(calls, ensure_ascii=False) if calls else "")
