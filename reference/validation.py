"""From body bytes to the documented parameters of a request, or to a refusal."""

from collections.abc import Collection
from typing import Any

from streamgauge.contract.contract import COMPLETIONS, Operation
from streamgauge.contract.profile import Profile
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.features import refuse_unsupported
from streamgauge.reference.rules import Asked, enforce
from streamgauge.wire.json import is_shallow, read_json

__all__ = ["MAX_DEPTH", "read_request"]

MAX_DEPTH = 100
"""How deep a body's arrays and objects may nest (RFC 8259, section 9, lets a reader set a limit)."""

# Naming the defect takes jsonschema seconds per megabyte, and every other client waits meanwhile.
_DIAGNOSED_BYTES = 2**16
_TOLERATED = {"duplicate-key"}


def read_request(operation: Operation, body: bytes, models: Collection[str], profile: Profile) -> Asked:
    """
    Judge a request's body: JSON, schema, model, prose rules, features, in this order.

    Returns:
        The parameters that the document has and that are not null.

    Raises:
        Refusal: what is wrong first.
    """
    value = _parse(body)
    _require_schema(operation, value, len(body))
    asked = {name: item for name, item in value.items() if name in operation.properties and item is not None}
    if "model" not in asked:
        raise Refusal(Kind.MALFORMED, "`model` is missing.", "model")
    if asked["model"] not in models:
        raise Refusal(Kind.UNKNOWN_MODEL, "Deployment not found: no such model is served here.", "model")
    if operation.family == COMPLETIONS and "prompt" not in asked:
        raise Refusal(Kind.MALFORMED, "`prompt` is missing.", "prompt")
    enforce(asked)
    refuse_unsupported(asked, profile)
    return asked


def _parse(body: bytes) -> Any:
    if not is_shallow(body.decode("latin-1"), MAX_DEPTH):  # what nests is ASCII, whatever stands between
        raise Refusal(Kind.MALFORMED, f"The body nests deeper than {MAX_DEPTH} levels.")
    text = read_json(body)
    defects = [defect.kind for defect in text.defects if defect.kind not in _TOLERATED]
    if defects or not text.valid:
        raise Refusal(Kind.MALFORMED, f"The body is not JSON by RFC 8259 ({defects[0]}).")
    if text.infinite:
        raise Refusal(Kind.MALFORMED, "The body holds a number beyond the range of a double.")
    return text.value


def _require_schema(operation: Operation, value: Any, size: int) -> None:
    if operation.request.accepts(value):
        return
    if size > _DIAGNOSED_BYTES:
        raise Refusal(Kind.MALFORMED, "The body breaks the documented schema.")
    problems = operation.request.problems(value)
    top = problems[0].pointer.split("/")[1:2]
    param = top[0] if top and top[0] in operation.properties else ""
    place = f"`{param}`" if param else "The body"
    # The validator's own words quote the request: they stay here.
    raise Refusal(Kind.MALFORMED, f"{place} breaks the documented schema ({problems[0].keyword}).", param)
