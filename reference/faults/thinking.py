"""`thinking.*`: reasoning that is not as asked for."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, ignoring
from streamgauge.reference.faults.fault import Stage, requests

__all__: list[str] = []


def _wants_none(draft: Draft) -> bool:
    return requests(draft) and draft.asked.get("reasoning_effort") == "none"


def _some(draft: Draft) -> None:
    ask(draft, {**draft.asked, "reasoning_effort": "low"})


declare(
    "thinking.none-ignored",
    "The model reasons although it should not",
    "thinking.none",
    _some,
    "vllm-project/vllm#55382",
    concerns=_wants_none,
    stage=Stage.REQUEST,
)
ignoring("thinking.shown", "Reasoning is told that should be hidden", "thinking.hidden", "include_reasoning")
ignoring(
    "thinking.budget-ignored",
    "The model reasons beyond its budget",
    "thinking.budget",
    "thinking_token_budget",
    seen=("earendil-works/pi#7640",),
)
