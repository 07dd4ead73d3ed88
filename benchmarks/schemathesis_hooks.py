"""What `schemathesis run` is told in the benchmark: the requests that ours sends as well, and how a stream is read."""

import json
from typing import Any

import schemathesis
from affordable import affordable

from streamgauge.reference import DEFAULT_KEY


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
