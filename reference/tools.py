"""Calls of tools: which one a request forces, and arguments that its schema accepts."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.validator import Validator
from streamgauge.errors import DocumentError
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.rules import Asked
from streamgauge.reference.words import VOCABULARY

__all__ = ["Call", "forced_call"]

_PIECE = 4
"""Characters of the arguments that one token brings."""

_SILENT = ("$schema", "$comment")
"""Keywords with a `$` that constrain nothing. All others refer to somewhere: nothing is fetched, so they are refused."""


@dataclass(frozen=True, slots=True)
class Call:
    """
    A call that the request forces.

    Attributes:
        name: of the function.
        arguments: a JSON object, cut into what each token brings.
        finish_reason: of a choice that makes the call: OpenAI's word is another where the request names the function.
    """

    name: str
    arguments: tuple[str, ...]
    finish_reason: str


def forced_call(asked: Asked, seed: str) -> Call | None:
    """
    The call that `tool_choice` forces; None where it leaves the choice to the model, which then answers with text.

    Args:
        asked: a request that keeps the rules: whatever it names is among its tools.
        seed: of the arguments' values.

    Raises:
        Refusal: no arguments for the function can be made here.
    """
    choice = asked.get("tool_choice", "none")
    if choice in ("none", "auto"):
        return None
    functions = [tool["function"] for tool in asked["tools"]]
    if isinstance(choice, dict):
        function = next(each for each in functions if each["name"] == choice["function"]["name"])
    else:
        function = functions[0]
    text = json.dumps(_arguments(function.get("parameters"), seed), ensure_ascii=False, separators=(",", ":"))
    pieces = tuple(text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return Call(function["name"], pieces, "stop" if isinstance(choice, dict) else "tool_calls")


def _arguments(parameters: Any, seed: str) -> dict[str, Any]:
    """An object that the schema accepts: tried first, since many a keyword is met by chance."""
    schema: dict[str, Any] = parameters or {}
    if any(name.startswith("$") and name not in _SILENT for name in _names(schema)):
        raise _refusal("refers to another schema")
    bare = {name: value for name, value in schema.items() if name not in _SILENT}
    value = _value({"type": "object", **bare}, random.Random(seed))  # noqa: S311 - no secret
    try:
        accepted = isinstance(value, dict) and Validator(bare).accepts(value)
    except DocumentError:
        raise _refusal("is no JSON Schema") from None
    if not accepted:
        raise _refusal("asks for values that the reference endpoint cannot make")
    return dict(value)


def _refusal(why: str) -> Refusal:
    return Refusal(Kind.UNPROCESSABLE, f"The schema of the function's `parameters` {why}.", "tools")


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _names(each)


def _value(schema: Any, draws: random.Random) -> Any:
    """What `const`, `enum`, `type`, `properties` and `required` ask for; the validator judges whether that was enough."""
    if not isinstance(schema, dict):
        return ""
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return draws.choice(schema["enum"])
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            properties, required = schema.get("properties"), schema.get("required")
            members = properties if isinstance(properties, dict) else {}
            names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
            return {name: _value(members.get(name), draws) for name in names}
        case "array":
            return []
        case "integer" | "number":
            return draws.randrange(100)
        case "boolean":
            return draws.random() < 0.5
        case "null":
            return None
        case _:
            return draws.choice(VOCABULARY).strip()
