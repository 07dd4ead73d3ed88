"""The tools that a request offers, and whether their calls are JSON."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["CHOICE", "CUT", "TOOLS", "functions_of", "is_json", "named", "unmeetable"]

CHOICE, TOOLS = "tool_choice", "tools"

CUT = ("length", "content_filter")
"""Why a choice ended that the model might have gone on with."""


def functions_of(asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The functions that a request offers, by name."""
    tools = asked.get(TOOLS) or []
    return {tool["function"]["name"]: tool["function"] for tool in tools if isinstance(tool.get("function"), dict)}


def named(asked: Mapping[str, Any]) -> str | None:
    """The function that a request names for the call, if it is among its tools."""
    choice = asked.get(CHOICE)
    name = choice["function"]["name"] if isinstance(choice, dict) else None
    return name if name in functions_of(asked) else None


def is_json(text: str) -> bool:
    """Whether a call's arguments can be read."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def unmeetable(asked: Mapping[str, Any]) -> str:
    """Why no tool can be called as a request wants it; empty where one can."""
    choice = asked.get(CHOICE)
    if isinstance(choice, dict) and named(asked) is None:
        return f"no tool has the name {choice['function']['name']}"
    return "there is no tool" if choice == "required" and not functions_of(asked) else ""
