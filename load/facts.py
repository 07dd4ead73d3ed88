"""What an answer's body showed, and how a piece of it is looked at: shared by whole answers and streams. Decides nothing."""

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from streamgauge.contract.validator import Validator
from streamgauge.metrics.record import Judged, Outcome

__all__ = ["EXCERPT", "Facts", "Piece", "note_violation", "read_json", "tokens_of"]

Piece = tuple[bytes, int, int]
"""Bytes of a body, when they were read, and for how long they may have been there (both in microseconds)."""

EXCERPT = 4000
"""So many bytes of a refusal are kept for its detail."""


_TEXTS = (("content", True), ("text", True), ("refusal", True), ("reasoning_content", False), ("reasoning", False))
"""What bears a text, and whether users see it."""

_PARTS = ("tool_calls", "function_call", "reasoning_details")


@dataclass(slots=True)
class Facts:
    """
    What a body showed.

    Attributes:
        defects: kind of failure → what was seen first of it.
        tokens: whether anything was generated at all.
        excerpt: the beginning of a refusal's body.

    The others are the fields of :class:`streamgauge.metrics.record.Record`.
    """

    first_event: int | None = None
    first_visible: int | None = None
    token_times: list[int] = field(default_factory=list)
    finish: int | None = None
    done: int | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    tokens: bool = False
    judged: Judged = Judged.ALL
    violations: int = 0
    first_lag_us: int = 0
    lag_us: int = 0
    defects: dict[Outcome, str] = field(default_factory=dict)
    excerpt: bytes = b""

    def usage(self, usage: Any) -> None:
        """Take the server's usage, where it has one."""
        if isinstance(usage, dict):
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.prompt_tokens = prompt if type(prompt) is int else self.prompt_tokens
            self.completion_tokens = completion if type(completion) is int else self.completion_tokens


def tokens_of(part: Any) -> tuple[bool, bool]:
    """Whether a delta, message or text choice holds visible text, and whether it holds anything generated."""
    if not isinstance(part, dict):
        return False, False
    for name, is_visible in _TEXTS:
        value = part.get(name)
        if isinstance(value, str) and value != "":
            return is_visible, True
    for name in _PARTS:
        value = part.get(name)
        if isinstance(value, list | dict) and value:
            return False, True
    return False, False


def note_violation(validator: Validator, payload: Any, where: str, facts: Facts) -> None:
    """Count a value that its schema does not allow; only the first one is put into words."""
    # Words take a hundred times as long as the yes or no.
    facts.violations += 1
    if Outcome.SCHEMA_VIOLATION not in facts.defects:
        said = validator.problems(payload)
        facts.defects[Outcome.SCHEMA_VIOLATION] = f"{where}: {said[0] if said else 'not valid'}"


def read_json(text: str, where: str, facts: Facts) -> Any:
    """The text's value; None, with the defect noted, where it has none."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as problem:
        facts.defects.setdefault(Outcome.MALFORMED_JSON, f"{where}: {problem}")
        return None
    if value is None:
        facts.violations += 1
        facts.defects.setdefault(Outcome.SCHEMA_VIOLATION, f"{where}: null")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON (RFC 8259, section 6)")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
