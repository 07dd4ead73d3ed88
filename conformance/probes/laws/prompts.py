"""Prompts in all their forms, echoed and not."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.laws.token_ids import read_back
from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request

__all__ = ["prompts"]

_TOKENS = 4
_LONG = " ".join(
    f"{word} and one make a little more." for word in ("One", "Two", "Three", "Four", "Five", "Six", "Seven")
)
_SUFFIX = " That is how a child counts on the fingers of two hands, and then begins again."
_LIST = ["Count from one to five.", "Name the seven days of the week.", "Say the alphabet."]
_IDS = [[5, 6], [7, 8, 9]]
"""In every vocabulary."""


def prompts(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """As far as the document has them."""
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    table: dict[str, dict[str, Any]] = {"text": {"return_prompt_text": True}}
    if operation.family == COMPLETIONS:
        table = _of_texts()
    table["special-tokens"] = {"add_special_tokens": operation.family != COMPLETIONS, "max_tokens": 1}
    for name, changes in table.items():
        body = {**plain, **changes}
        if changes.keys() - {"max_tokens"} <= operation.properties.keys() and operation.request.accepts(body):
            yield Probe(f"law.prompt.{name}", body)
            if name in ("text", "echo", "echo-logprobs") and operation.streams:
                yield Probe(f"law.prompt.{name}-stream", {**body, "stream": True})
    if operation.family == COMPLETIONS and "return_token_ids" in operation.properties:
        yield read_back("law.prompt.echo-ids", {**plain, "echo": True})


def _of_texts() -> dict[str, dict[str, Any]]:
    """Name of the probe → what it changes in the plain request."""
    return {
        "long": {"prompt": _LONG, "max_tokens": 1},
        "echo": {"echo": True},
        "echo-logprobs": {"echo": True, "logprobs": 2},
        "echo-only": {"echo": True, "max_tokens": 0},
        "echo-list": {"prompt": _LIST, "echo": True, "max_tokens": 2},
        "echo-choices": {"prompt": _LIST[:2], "echo": True, "n": 2, "temperature": 1, "max_tokens": 2},
        "ids": {"prompt": _IDS[1], "max_tokens": 1},
        "ids-list": {"prompt": _IDS, "max_tokens": 1},
        "suffix": {"suffix": _SUFFIX},
        "empty": {"prompt": "", "max_tokens": 1},
        "null": {"prompt": None, "max_tokens": 1},
    }
