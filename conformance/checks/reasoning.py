"""`reasoning.*`: thoughts beside the answer. Under which name they come is `response.reasoning-field`'s and its twin's."""

import json
import re
from collections.abc import Iterator

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.predicates import chunked, is_chat, object_answer
from streamgauge.conformance.reasoning import TAG
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.sse import Event

_QUOTED = re.compile(r"`[^`\n]+`")
"""Code within a line of Markdown: who writes about tags puts them there; who thinks does not."""


def _tag(text: str) -> re.Match[str] | None:
    return TAG.search(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))


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
        and any(each.pieces for each in answer_in(case.exchange).choices.values())
        and not _asks_for_tags(case)
    ),
    concerns=is_chat,
    needs=(Evidence.REQUEST,),
)
def tag(case: Case) -> Iterator[Departure]:
    """Users read thoughts as the answer, and agents send them back as what was said."""
    for each in answer_in(case.exchange).choices.values():
        if found := _tag(each.text):
            yield Departure("no tag", f"{found[0]} in the content", event=_event_at(each, found.end()))
            return


def _event_at(each: Choice, end: int) -> Event | None:
    """The event that completes the first `end` characters of a choice's text."""
    known = 0
    for piece in each.pieces:
        known += len(piece.text)
        if known >= end:
            return piece.chunk.event if piece.chunk else None
    return None
