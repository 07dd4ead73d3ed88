"""Whose answer a capture is: by its path, else by what the answer says of itself."""

from collections.abc import Sequence
from typing import Any

from streamgauge.captures.capture import Capture
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.errors import UsageError
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange

__all__ = ["match"]

_ENDS = {"/chat/completions": CHAT, "/completions": COMPLETIONS}
"""How the path of a family ends, the longer one first."""

_OBJECTS = {"chat.completion": CHAT, "chat.completion.chunk": CHAT, "text_completion": COMPLETIONS}
"""Value of `object` in an answer → family."""

_PREFLIGHT = ("OPTIONS", "HEAD")


def match(capture: Capture, target: Target) -> Operation | str:
    """
    The operation that a capture answers, or why it answers none.

    Raises:
        UsageError: it could be any of several operations.
    """
    operations = target.contract.operations
    if capture.method in _PREFLIGHT:
        return f"{capture.method} asks about the endpoint, not for an answer"
    if not capture.path:
        return _by_answer(capture, target)
    exact = [each for each in operations if target.path(each) == capture.path or each.path == capture.path]
    if exact:
        return _only(exact, capture, target)
    path = capture.path.rstrip("/")
    family = next((family for end, family in _ENDS.items() if path.endswith(end)), None)
    found = [each for each in operations if each.family == family and each.name not in target.paths]
    if not found:
        return "its path is none of the operations'"
    return _only(found, capture, target)


def _by_answer(capture: Capture, target: Target) -> Operation | str:
    probe = capture.exchange("", target="", operation="", method="POST")
    if probe.status != 200:
        return "its request is unknown, and the answer does not tell the operation"
    family = _family(probe)
    operations = target.contract.operations
    if family is None and probe.is_stream and probe.stream.done:
        # A failed stream has no `object`: what there is to judge in it is the same for every operation that streams.
        found = [each for each in operations if each.streams]
        if found:
            return found[0]
    found = [each for each in operations if each.family == family]
    if not found:
        return "its request is unknown, and the answer does not tell the operation"
    return _only(found, capture, target)


def _family(answer: Exchange) -> str | None:
    payloads: list[Any] = [chunk.object for chunk in answer.stream.chunks] if answer.is_stream else [answer.json.value]
    names = [payload.get("object") for payload in payloads if isinstance(payload, dict)]
    return next((_OBJECTS[name] for name in names if isinstance(name, str) and name in _OBJECTS), None)


def _only(found: Sequence[Operation], capture: Capture, target: Target) -> Operation:
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"could be an answer of {len(found)} operations: {', '.join(each.name for each in found)}",
        where=capture.name,
        hint=f"Say which path is whose, by --path {found[0].name}={capture.path or '/PATH'}, or name one document by --spec.",
    )
