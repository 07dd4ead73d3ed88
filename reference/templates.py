"""The chat template: ours, or the one that a request brings."""

import json
from collections.abc import Callable
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.rules import Asked
from streamgauge.reference.tokens import BEGIN, END, SPECIAL

__all__ = ["chat_text", "content_of"]

_ANSWER = "assistant:"


class _Environment(ImmutableSandboxedEnvironment):
    """Nothing in it can grow without bounds: repeating a text and powers are refused."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not all(isinstance(side, (int, float)) for side in (left, right)):
            raise TemplateError("not here")
        return super().call_binop(context, operator, left, right)


_ENVIRONMENT = _Environment(undefined=StrictUndefined)

_MOST_STEPS = 10_000
"""Numbers that one template may count through in all: a loop in a loop would hold the endpoint for good."""


def _counting() -> Callable[..., range]:
    """The template's `range`, for one rendering."""
    left = _MOST_STEPS

    def counted(*bounds: int) -> range:
        nonlocal left
        steps = range(*bounds)
        left -= len(steps)
        if left < 0:
            raise TemplateError("too many steps")
        return steps

    return counted


def content_of(message: dict[str, Any]) -> str:
    """A message's text, its parts joined."""
    content = message.get("content") or ""
    return "".join(part["text"] for part in content) if isinstance(content, list) else str(content)


def chat_text(asked: Asked) -> str:
    """
    What the template makes of messages, tools and documents.

    Raises:
        Refusal: the request's own template is broken.
    """
    template = asked.get("chat_template")
    return _ours(asked) if template is None else _theirs(template, asked)


def _ours(asked: Asked) -> str:
    continues = bool(asked.get("continue_final_message"))
    documents, tools = asked.get("documents", []), asked.get("tools", [])
    lines = ["tools: " + json.dumps(tools, ensure_ascii=False)] if tools else []
    lines += [f"document: {document.get('title', '')}\n{document.get('text', '')}" for document in documents]
    lines += [_line(message) for message in asked["messages"]]
    if not continues and asked.get("add_generation_prompt", True):
        lines.append(_ANSWER)
    return "\n".join(lines)


def _theirs(template: str, asked: Asked) -> str:
    continues = bool(asked.get("continue_final_message"))
    known = {
        "messages": asked["messages"],
        "tools": asked.get("tools"),
        "documents": asked.get("documents"),
        "add_generation_prompt": not continues and bool(asked.get("add_generation_prompt", True)),
        "continue_final_message": continues,
        "bos_token": SPECIAL[BEGIN],
        "eos_token": SPECIAL[END],
        "range": _counting(),
    }
    try:
        return _ENVIRONMENT.from_string(template).render(**{**known, **asked.get("chat_template_kwargs", {})})
    except Exception:
        raise Refusal(Kind.UNPROCESSABLE, "`chat_template` cannot be rendered.", "chat_template") from None


def _line(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls")
    name = f" {message['name']}" if message.get("name") else ""
    return f"{message['role']}{name}: {content_of(message)}" + (json.dumps(calls, ensure_ascii=False) if calls else "")
