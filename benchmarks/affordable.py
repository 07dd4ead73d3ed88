"""What both sides of the benchmark make of a drawn body before it is sent."""

from typing import Any

from streamgauge.reference import DEFAULT_MODEL

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
