"""`reasoning.*`: thoughts beside the answer. Under which name they come is `response.reasoning-field`'s and its twin's."""

import json
from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.choices import Told, told
from streamgauge.conformance.predicates import chunked, object_answer
from streamgauge.conformance.reasoning import TAG
from streamgauge.contract.contract import CHAT
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.sse import Event


def _asks_for_tags(case: Case) -> bool:
    """Whether the request itself has such a tag: the answer may speak of it."""
    sent = case.exchange.sent
    asked = {name: sent.get(name) for name in ("messages", "chat_template", "response_format", "structured_outputs")}
    return TAG.search(json.dumps(asked, ensure_ascii=False)) is not None


@check(
    "reasoning.tag",
    Level.SHOULD,
    "The text of a chat's answer is free of the tags of the model's reasoning",
    requirement="message.reasoning, delta.reasoning: what the model thought, beside `content`, which is what it says.",
    source=CLIENTS,
    applies=lambda case: (
        (object_answer(case) or chunked(case))
        and any(each.pieces for each in told(case.exchange).values())
        and not _asks_for_tags(case)
    ),
    concerns=lambda operation, contract: operation.family == CHAT,
    needs=(Evidence.REQUEST,),
)
def tag(case: Case) -> Iterator[Departure]:
    """Users read thoughts as the answer, and agents send them back as what was said."""
    for each in told(case.exchange).values():
        if found := TAG.search(each.text):
            yield Departure("no tag", f"{found[0]} in the content", event=_event_at(each, found.end()))
            return


def _event_at(each: Told, end: int) -> Event | None:
    """The event that completes the first `end` characters of a choice's text."""
    known = 0
    for piece in each.pieces:
        known += len(piece.text)
        if known >= end:
            return piece.chunk.event if piece.chunk else None
    return None
