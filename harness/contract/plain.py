"""The plainest request of an operation: what every right server answers."""

from typing import Any

from streamgauge.contract.contract import CHAT, Operation

__all__ = ["plain_request", "prompt_member"]


def prompt_member(operation: Operation, text: str) -> dict[str, Any]:
    """The text as the operation takes it: one user message, or a prompt."""
    return {"messages": [{"role": "user", "content": text}]} if operation.family == CHAT else {"prompt": text}


def plain_request(operation: Operation, model: str, *, max_tokens: int) -> dict[str, Any]:
    """A request with a model, a prompt, a limit and no sampling."""
    prompt = prompt_member(operation, "Count from one to five.")
    return {"model": model, **prompt, "max_tokens": max_tokens, "temperature": 0}
