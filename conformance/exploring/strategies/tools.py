"""Definitions of tools, and calls that the request demands."""

import string
from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Material
from streamgauge.conformance.exploring.strategies.schemas import objects

__all__ = ["bodies", "names"]

_TOKENS = 40
_LETTERS = string.ascii_letters + string.digits + "_-"


def names() -> st.SearchStrategy[str]:
    """Names that OpenAI's reference allows: letters, digits, underscores and dashes, up to 64."""
    return st.text(_LETTERS, min_size=1, max_size=24)


def _tool(drawn: tuple[str, Any]) -> dict[str, Any]:
    name, (schema, _) = drawn
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _name_of(tool: dict[str, Any]) -> str:
    return str(tool["function"]["name"])


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """The plain request with one or two tools, of which it demands some, or a certain one."""
    plain = material.plain("Note it.", _TOKENS)
    tools = st.tuples(names(), objects(most=2, nested=False)).map(_tool)
    several = st.lists(tools, min_size=1, max_size=2, unique_by=_name_of)
    return several.flatmap(lambda drawn: _demanding(material, {**plain, "tools": drawn}))


def _demanding(material: Material, body: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = [{"type": "function", "function": {"name": _name_of(tool)}} for tool in body["tools"]]
    choice = st.sampled_from(["required", *named])
    optional = {"stream": st.just(True)} if material.operation.streams else {}
    options = st.fixed_dictionaries({"tool_choice": choice}, optional=optional)
    return options.map(lambda drawn: {**body, **drawn})
