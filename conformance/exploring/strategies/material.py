"""What a strategy makes its requests of."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.others import Others
from streamgauge.conformance.probes.probe import worst_case_tokens
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request, prompt_member
from streamgauge.wire.exchange import Exchange, reports_error

__all__ = ["Answered", "Material", "answered_in"]

MOST_ANSWERS = 4
"""How many earlier answers a strategy is given: the cheapest ones."""

LONG = 16
"""From how many characters on a text has a middle to cut a string out of; shorter ones come last."""

_ORDINARY = {"model", "messages", "prompt", "max_tokens", "temperature", "seed"}
_FORM = {"stream", "stream_options"}


@dataclass(frozen=True, slots=True)
class Answered:
    """
    An ordinary request without sampling.

    Attributes:
        body: the request.
        text: what it was answered with.
        exchanges: all that asked the same, in either form.
    """

    body: dict[str, Any]
    text: str
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """
    What a strategy is given.

    Attributes:
        operation: what is asked.
        model: id of the model to ask for.
        answered: requests that were answered with a text before.
        departed: requests of the covering array that departed where no other probe did.
    """

    operation: Operation
    model: str
    answered: tuple[Answered, ...] = ()
    departed: tuple[dict[str, Any], ...] = ()

    def plain(self, text: str, max_tokens: int) -> dict[str, Any]:
        """The plain request with another prompt."""
        return {
            **plain_request(self.operation, self.model, max_tokens=max_tokens),
            **prompt_member(self.operation, text),
        }


def answered_in(exchanges: Iterable[Exchange], operation: Operation, model: str) -> tuple[Answered, ...]:
    """
    The questions that are ordinary, allowed, and were answered with a text: the cheapest, in a fixed order.

    A server may also answer what it should have refused: nothing is drawn from that.
    """
    found = []
    for group in Others(exchanges).groups.values():
        body = group[0].sent
        if not isinstance(body, dict) or not body.keys() - _FORM <= _ORDINARY or body.get("temperature") != 0:
            continue
        if body.get("model") != model or not operation.request.accepts(body):
            continue
        bare = {name: value for name, value in body.items() if name not in _FORM}
        if text := next(filter(None, map(_text, group)), ""):
            found.append(Answered(bare, text, group))
    found.sort(key=lambda each: (len(each.text) < LONG, worst_case_tokens(each.body), json.dumps(each.body)))
    return tuple(found[:MOST_ANSWERS])


def _text(exchange: Exchange) -> str:
    """What a whole answer says first; empty where it says nothing."""
    fit = exchange.status == 200 and exchange.request.credential.usual and not exchange.wants_stream
    if not fit or reports_error(exchange.json.value):
        return ""
    return next((choice.text for choice in answer_in(exchange).choices.values() if choice.text.strip()), "")
