"""`utf8.*`: what happens to text beyond ASCII."""

import dataclasses
import re
from collections.abc import Callable

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import texts_of
from streamgauge.reference.faults.fault import Stage, answers, fault, streams

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_TEXT = re.compile(rb'("(?:content|text)":") ')


def _change(draft: Draft, change: Callable[[str], str]) -> None:
    """Change every text of a stream."""
    for _, part, name in texts_of(draft):
        if part.get(name):
            part[name] = change(part[name])


@fault(
    "utf8.replacement-character",
    "A stream has U+FFFD for each character beyond ASCII",
    caught_by="utf8.replacement-character",
    stage=Stage.ANSWER,
    concerns=streams,
    seen=(
        "vllm-project/vllm#931",
        "triton-inference-server/server#8039",
        "oobabooga/textgen#6778",
        "paiml/aprender#2019",
    ),
)
def replacement_character(draft: Draft) -> None:
    """Decoded token by token."""
    _change(draft, lambda text: _BEYOND_ASCII.sub("\ufffd", text))


@fault(
    "utf8.character-lost",
    "A stream lacks the characters beyond ASCII",
    caught_by="pair.text",
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("BerriAI/litellm#18842",),
)
def character_lost(draft: Draft) -> None:
    """Dropped where they were split."""
    _change(draft, lambda text: _BEYOND_ASCII.sub("", text))


@fault(
    "utf8.lone-surrogate",
    "Texts have half of a surrogate pair",
    caught_by=("response.interoperable-json", "sse.interoperable-json"),
    stage=Stage.TEXT,
    concerns=answers,
    seen=("NousResearch/hermes-agent#11628", "Aider-AI/aider#3693", "simonguo/evidenceloom#50"),
)
def lone_surrogate(draft: Draft) -> None:
    """As an escape, which is how it passes through UTF-8; in both forms at the beginning."""
    draft.text = _TEXT.sub(rb"\1\\ud83d ", draft.text)
    events = list(draft.events)
    first = next((at for at, event in enumerate(events) if _TEXT.search(event.data)), None)
    if first is not None:
        events[first] = dataclasses.replace(events[first], data=_TEXT.sub(rb"\1\\ud83d ", events[first].data))
    draft.events = events
