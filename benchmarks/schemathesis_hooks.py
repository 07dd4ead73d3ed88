"""What `schemathesis run` is told in the benchmark: the requests that ours sends as well, and how a stream is read."""

import json
from typing import Any

import schemathesis

from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL

LIMITED = ("max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of")
LIMIT = 2


def affordable(body: Any) -> Any:
    """A case's body with the real model and small limits."""
    if not isinstance(body, dict):
        return body
    made = dict(body)
    if made.get("model") is None or isinstance(made["model"], str):
        made["model"] = DEFAULT_MODEL
    for name in LIMITED:
        value = made.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > LIMIT:
            made[name] = LIMIT
    return made


def key_for(path: str) -> str:
    """Seekr takes the key alone."""
    return DEFAULT_KEY if path.startswith("/v1/inference") else f"Bearer {DEFAULT_KEY}"


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case[Any]) -> schemathesis.Case[Any]:
    """In every phase."""
    case.body = affordable(case.body)
    case.headers = {**(case.headers or {}), "Authorization": key_for(case.path)}
    return case


@schemathesis.deserializer("text/event-stream")
def payloads(context: Any, response: Any) -> list[Any]:
    """The schema is that of a chunk."""
    blocks = response.content.decode().split("\n\n")
    told = [block.removeprefix("data: ") for block in blocks if block.startswith("data: ")]
    return [json.loads(text) for text in told if text != "[DONE]"]
