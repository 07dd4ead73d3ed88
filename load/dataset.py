"""Prompts out of a file of JSON lines."""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streamgauge.errors import UsageError

__all__ = ["Prompt", "position", "read_prompts"]

_HINT = (
    'A line is {"prompt": "..."}, with "system": "..." if wanted, or {"messages": [{"role": ..., "content": ...}, ...]}; '
    'either may have "max_tokens": N.'
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """
    One line of the file.

    Attributes:
        text: the prompt; empty where there are messages.
        messages: what chat takes; empty for a bare prompt.
        max_tokens: limit of the answer; None where the line does not say.
        line: its number in the file, from 1.
    """

    text: str
    messages: tuple[dict[str, Any], ...]
    max_tokens: int | None
    line: int


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """
    Every line of the file; empty ones are skipped, and so are members that mean nothing here.

    Raises:
        UsageError: the file cannot be read, or a line is no prompt.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        said = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise UsageError(f"cannot be read: {said}", where=str(path)) from None
    # Split at LF alone: a prompt may hold U+2028 and its like, which are no ends of lines in JSON.
    lines = enumerate(text.split("\n"), 1)
    prompts = tuple(_prompt(line, f"{path}:{number}", number) for number, line in lines if line.strip())
    if not prompts:
        raise UsageError("holds no prompt", where=str(path), hint=_HINT)
    return prompts


def _prompt(line: str, where: str, number: int) -> Prompt:
    def wrong(what: str) -> UsageError:
        return UsageError(what, where=where, hint=_HINT)

    try:
        data = orjson.loads(line)  # refuses half of a surrogate pair, which no body could carry
    except ValueError as problem:
        raise wrong(f"not JSON: {problem}") from None
    if not isinstance(data, dict) or ("prompt" in data) == ("messages" in data):
        raise wrong('has to be an object with either "prompt" or "messages"')
    limit = data.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise wrong("max_tokens has to be a whole number of at least 1")
    if "prompt" in data:
        prompt, system = data["prompt"], data.get("system")
        if not isinstance(prompt, str) or not isinstance(system, str | None):
            raise wrong("prompt and system have to be texts")
        if system is None:
            return Prompt(prompt, (), limit, number)
        told = ({"role": "system", "content": system}, {"role": "user", "content": prompt})
        return Prompt("", told, limit, number)
    messages = data["messages"]
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise wrong("messages has to be a list of objects with a role")
    if not isinstance(messages[0].get("content"), str | list):
        raise wrong("the first message has to have a content: a text, or a list of parts")
    return Prompt("", tuple(messages), limit, number)


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("role"), str)


def position(count: int, index: int, seed: int) -> int:
    """
    Which of `count` prompts the request of this index takes.

    Each is taken once before any is taken again; every round has an order of its own.
    """
    done, place = divmod(index, count)
    return _order(count, done, seed)[place]


@functools.lru_cache(maxsize=4)
def _order(count: int, done: int, seed: int) -> Sequence[int]:
    return random.Random(f"{seed}/prompts/{done}").sample(range(count), count)  # noqa: S311 - an order, no secret
