"""Answers in which the model says that it will not do what was asked."""

from streamgauge.conformance.assembly import Choice

__all__ = ["declines"]


def declines(choice: Choice) -> bool:
    """Whether a choice tells a refusal, in the member that OpenAI has for it: no form and no tool binds that."""
    parts = (part.get("delta", part.get("message")) for part in choice.parts)
    return any(isinstance(part, dict) and bool(part.get("refusal")) for part in parts)
