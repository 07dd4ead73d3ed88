"""The tools that a request offers, and whether their calls are JSON."""

import json
from collections.abc import Mapping
from typing import Any

from streamgauge.wire.json import objects_in

__all__ = [
    "CHOICE",
    "CUT",
    "TOOLS",
    "functions_alone",
    "functions_of",
    "is_json",
    "named",
    "unmeetable",
]

CHOICE, TOOLS = "tool_choice", "tools"

CUT = ("length", "content_filter")
"""Why a choice ended that the model might have gone on with."""


def _name_in(tool: Any) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def functions_of(asked: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The functions that a request offers, by name."""
    named_ones = [(_name_in(tool), tool) for tool in objects_in(asked.get(TOOLS))]
    return {name: tool["function"] for name, tool in named_ones if name is not None}


def functions_alone(asked: Mapping[str, Any]) -> bool:
    """Whether a request offers functions and nothing else: a vendor's own tools are called by names of the vendor's."""
    return 0 < len(functions_of(asked)) == len(asked[TOOLS])


def named(asked: Mapping[str, Any]) -> str | None:
    """The function that a request names for the call, if it is among its tools."""
    name = _name_in(asked.get(CHOICE))
    return name if name in functions_of(asked) else None


def is_json(text: Any) -> bool:
    """Whether a call's arguments can be read."""
    try:
        json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def unmeetable(asked: Mapping[str, Any]) -> str:
    """Why no tool can be called as a request wants it; empty where one can."""
    choice = asked.get(CHOICE)
    name = _name_in(choice)
    if name is not None and name not in functions_of(asked):
        return f"no tool has the name {name}"
    return "there is no tool" if choice == "required" and not asked.get(TOOLS) else ""
