"""Stop strings: taken out of what the model says without them, so that they surely come up."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request

__all__ = ["stop"]

_TOKENS = 16


def stop(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """The text, then the same with a string from its middle as the stop."""
    if "stop" not in operation.properties:
        return
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    yield Probe("law.stop.text", plain)

    def middle(answered: Answered) -> dict[str, Any] | str:
        text = _text(answered)
        return {**plain, "stop": text[len(text) // 2 :][:4]} if len(text) >= 8 else "no text to take a stop string from"

    yield FollowUp("law.stop.string", worst_case_tokens(plain), middle)


def _text(answered: Answered) -> str:
    source = answered.get("law.stop.text")
    choices = answer_in(source).choices if source is not None else {}
    return choices[0].text if 0 in choices else ""
