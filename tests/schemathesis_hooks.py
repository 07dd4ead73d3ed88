"""
What Schemathesis has to be told to test these endpoints: loaded by itself, by `SCHEMATHESIS_HOOKS`.

Requests are made sensible (a model, a small limit), and a stream is read as its payloads: both documented in
docs/schemathesis.md.
"""

import json
import os
from typing import Any

import schemathesis
from schemathesis.core import NOT_SET

MODEL = os.environ["STREAMGAUGE_MODEL"]
LIMITED = ("max_tokens", "max_completion_tokens", "n", "best_of")


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case) -> schemathesis.Case:
    """In every phase; Schemathesis judges anew whether the body is valid."""
    if isinstance(case.body, dict):
        body = dict(case.body)
        if body.get("model") is None or isinstance(body["model"], str):
            body["model"] = MODEL
        for name in LIMITED:
            if isinstance(body.get(name), (int, float)) and not isinstance(body[name], bool) and body[name] > 2:
                body[name] = 2
        case.body = body
    return case


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case) -> bool:
    """A request without a body names no media type and gets 415, of which no document speaks: not ours to judge either."""
    return case.body is not NOT_SET


@schemathesis.deserializer("text/event-stream")
def payloads(context: Any, response: Any) -> list[Any]:
    """The document's schema is that of a chunk, not that of `{data, event, id}`."""
    blocks = response.content.decode().split("\n\n")
    told = [block.removeprefix("data: ") for block in blocks if block.startswith("data: ")]
    return [json.loads(text) for text in told if text != "[DONE]"]
