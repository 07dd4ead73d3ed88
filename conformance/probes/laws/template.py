"""How a conversation becomes a prompt, which `return_prompt_text` shows."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request

__all__ = ["template"]

_PREFILLED: list[dict[str, Any]] = [
    {"role": "user", "content": "Count from one to five."},
    {"role": "assistant", "content": "One, two,"},
]

_ASKED: dict[str, dict[str, Any]] = {
    "usual": {},
    "no-generation-prompt": {"add_generation_prompt": False},
    "continued": {"messages": _PREFILLED, "continue_final_message": True, "add_generation_prompt": False},
    "continued-alone": {"messages": _PREFILLED, "continue_final_message": True},
    "own": {"chat_template": "Say the word green and no other."},
    "own-arguments": {
        "chat_template": "Say {{ streamgauge_word }}.",
        "chat_template_kwargs": {"streamgauge_word": "silver"},
    },
    "arguments": {"chat_template_kwargs": {"streamgauge_word": "silver"}},
}
"""Name → what is asked for beside the plain conversation."""


_CONTRADICTION = {"messages": _PREFILLED, "continue_final_message": True, "add_generation_prompt": True}
"""What no server can do at once."""


def template(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """As far as the operation knows the properties."""
    known = operation.properties
    plain = plain_request(operation, model, max_tokens=1)
    shown = {"return_prompt_text": True} if "return_prompt_text" in known else {}
    for name, asked in _ASKED.items():
        body = {**plain, **shown, **asked}
        if (
            "messages" in known
            and asked.keys() <= known.keys()
            and (asked or shown)
            and operation.request.accepts(body)
        ):
            yield Probe(f"law.template.{name}", body)
    if _CONTRADICTION.keys() <= known.keys():
        yield Probe("law.template.contradiction", {**plain, **_CONTRADICTION}, free=True)
