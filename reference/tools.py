"""Calls of tools: which one a request forces, and arguments that its schema accepts."""

import random
from dataclasses import dataclass
from typing import Any

from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.patterns import CannotMakeError
from streamgauge.reference.rules import Asked
from streamgauge.reference.schemas import instance, to_text
from streamgauge.reference.templates import content_of

__all__ = ["Call", "calls_of"]


@dataclass(frozen=True, slots=True)
class Call:
    """
    A call that a choice makes.

    Attributes:
        name: of the function.
        arguments: a JSON object.
        finish_reason: of a choice that makes the call: OpenAI's word is another where the request names the function.
    """

    name: str
    arguments: str
    finish_reason: str


def calls_of(asked: Asked, seed: str) -> tuple[Call, ...]:
    """
    The calls that `tool_choice` forces, or that the last message asks for (`call NAME`); none where the model answers with text.

    With several tools and no word against it two calls are made where one is `required`.

    Args:
        asked: a request that keeps the rules: whatever it names is among its tools.
        seed: of the arguments' values.

    Raises:
        Refusal: no arguments for the function can be made here.
    """
    functions = [tool["function"] for tool in asked.get("tools", [])]
    choice = asked.get("tool_choice", "none")
    finish_reason = "tool_calls"
    if isinstance(choice, dict):
        wanted = [next(each for each in functions if each["name"] == choice["function"]["name"])]
        finish_reason = "stop"
    elif choice == "required":
        wanted = functions[: 2 if asked.get("parallel_tool_calls", True) else 1]
    elif choice == "auto":
        wanted = _invited(asked, functions)
    else:
        return ()
    return tuple(
        Call(function["name"], to_text(_arguments(function.get("parameters"), seed)), finish_reason)
        for function in wanted
    )


def _invited(asked: Asked, functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The functions that the user's last message says to call, one where it says no more may be."""
    last = asked["messages"][-1]
    said = content_of(last) if last["role"] == "user" else ""
    wanted = [each for each in functions if f"call {each['name']}" in said]
    return wanted if asked.get("parallel_tool_calls", True) else wanted[:1]


def _arguments(parameters: Any, seed: str) -> dict[str, Any]:
    """An object that the schema accepts."""
    schema = {"type": "object", **(parameters or {})}
    try:
        made = instance(schema, random.Random(seed))  # noqa: S311 - no secret
    except CannotMakeError as reason:
        raise _refusal(str(reason)) from None
    if not isinstance(made, dict):
        raise _refusal("accepts no object")
    return made


def _refusal(why: str) -> Refusal:
    return Refusal(Kind.UNPROCESSABLE, f"The schema of the function's `parameters` {why}.", "tools")
