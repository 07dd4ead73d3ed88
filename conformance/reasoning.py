"""Where an answer holds the model's reasoning."""

from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.contract.contract import CHAT, Contract, Operation
from streamgauge.contract.profile import ANY

__all__ = ["REASONING_FIELDS", "has_reasoning", "misnamed", "names_field"]

REASONING_FIELDS = ("reasoning", "reasoning_content")
"""The names that servers give to it."""


def _names(part: Any) -> list[str]:
    return [
        name for name in REASONING_FIELDS if isinstance(part, dict) and isinstance(part.get(name), str) and part[name]
    ]


def has_reasoning(part: Any) -> bool:
    """Whether a message or delta holds reasoning: a text that is not empty, under one of the names."""
    return bool(_names(part))


def misnamed(case: Case, part: Any) -> str:
    """The name under which a message or delta holds reasoning, where the profile says another; else empty."""
    names = _names(part)
    return "" if not names or case.contract.profile.dialect.reasoning_field in names else names[0]


def names_field(operation: Operation, contract: Contract) -> bool:
    """Whether the profile says under which name a chat tells its reasoning."""
    return operation.family == CHAT and contract.profile.dialect.reasoning_field != ANY
