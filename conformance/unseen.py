"""Properties of requests of which no black box can tell whether they are honoured, and why."""

__all__ = ["UNSEEN", "unseen"]

UNSEEN: dict[str, str] = {
    "model": "names whom to ask: request.model-unknown and response.model judge it",
}
"""
Path of the property (`streamgauge.contract.paths`) → the reason.

A property below one of these has the same reason, unless it has its own or a law.
"""


def unseen(path: str) -> str | None:
    """The reason for a property, or for what it is a part of; None where it can be seen."""
    while path:
        if path in UNSEEN:
            return UNSEEN[path]
        path = path.rpartition(".")[0].removesuffix("[]")
    return None
