"""Where an answer holds the model's reasoning."""

import re
from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.contract.contract import CHAT, Contract, Operation
from streamgauge.contract.profile import ANY

__all__ = ["REASONING_FIELDS", "TAG", "has_reasoning", "misnamed", "names_field"]

REASONING_FIELDS = ("reasoning", "reasoning_content")
"""The names that servers give to it."""

TAG = re.compile(
    r"</?(?:\w+:)?think(?:ing)?>"  # DeepSeek, Qwen and most others; <mm:think> of MiniMax, <seed:think> of Seed-OSS
    r"|</?thought>|</?reasoning>"
    r"|\[/?THINK\]"  # Mistral
    r"|◁/?think▷"  # Kimi
    r"|<\|channel\|>analysis"  # gpt-oss
    r"|<\|(?:START|END)_THINKING\|>"  # Command A of Cohere
    r"|<\|(?:begin|end)_of_thought\|>"  # OpenThinker, Sky-T1
)
"""What models write where their reasoning begins and ends; whoever takes the reasoning out takes this out."""


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
