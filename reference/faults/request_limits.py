"""`limit.*`: what happens to a request that is too large."""

from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind
from streamgauge.reference.faults.bends import ask
from streamgauge.reference.faults.fault import Stage, fault, refusals, requests
from streamgauge.reference.faults.telling import PLAIN, tell, tell_raw, turn

_LONG = 8000
"""Characters of a prompt that is too long."""

_KEPT = 200
_LARGE = 2**20


def _too_long(draft: Draft) -> bool:
    return (
        refusals(draft) and draft.refusal is not None and draft.refusal.kind is Kind.CONTEXT and _length(draft) > _LONG
    )


def _length(draft: Draft) -> int:
    return len(_text(draft.asked))


def _text(asked: dict[str, Any]) -> str:
    messages = asked.get("messages")
    text = messages[0].get("content") if isinstance(messages, list) and len(messages) == 1 else asked.get("prompt")
    return text if isinstance(text, str) else ""


@fault(
    "limit.context-status-varies",
    "A prompt beyond the context is refused with another status every second time",
    caught_by="limit.context-status",
    stage=Stage.ANSWER,
    concerns=_too_long,
    seen=("ggml-org/llama.cpp#19774",),
)
def context_status_varies(draft: Draft) -> None:
    """It depends on who notices first."""
    if turn(draft, "limit.context-status-varies", 2):
        tell(draft, 413, "The prompt is too long.")


@fault(
    "limit.context-fails",
    "The server fails at a prompt beyond the context",
    caught_by="limit.context-status",
    stage=Stage.TEXT,
    concerns=_too_long,
    seen=("ikawrakow/ik_llama.cpp#2420",),
)
def context_fails(draft: Draft) -> None:
    """The engine finds out, not the door."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "limit.context-code-lost",
    "The error of a prompt beyond the context looks like any other",
    caught_by="limit.context-code",
    stage=Stage.ANSWER,
    concerns=refusals,
    seen=("NVIDIA/TensorRT-LLM#19457",),
)
def context_code_lost(draft: Draft) -> None:
    """Only its message is its own."""
    error = (draft.body or {}).get("error")
    if not isinstance(error, dict):
        return
    if not _too_long(draft):
        if draft.refusal is not None and draft.refusal.kind is Kind.UNKNOWN_MODEL:
            draft.memory["limit.context-code-lost"] = (draft.status, error)
    elif "limit.context-code-lost" in draft.memory and draft.body is not None:
        draft.status, other = draft.memory["limit.context-code-lost"]
        draft.body["error"] = {**other, "message": error["message"]}


def _asks_long(draft: Draft) -> bool:
    return requests(draft) and len(draft.request.body) < _LARGE and _length(draft) > _LONG


@fault(
    "limit.context-cut",
    "A prompt beyond the context is cut without a word",
    caught_by="limit.silent-truncation",
    stage=Stage.REQUEST,
    concerns=_asks_long,
    seen=("ollama/ollama#4967", "ollama/ollama#17889", "esengine/DeepSeek-Reasonix#10245"),
)
def context_cut(draft: Draft) -> None:
    """What is left of it is answered."""
    asked, text = draft.asked, _text(draft.asked)[-_KEPT:]
    kept = {"messages": [{"role": "user", "content": text}]} if draft.chat else {"prompt": text}
    ask(draft, {**asked, **kept})


@fault(
    "limit.body-cut",
    "Of a large body only the beginning is read, and the JSON is blamed",
    caught_by="limit.body-status",
    stage=Stage.ANSWER,
    concerns=lambda draft: refusals(draft) and len(draft.request.body) > _LARGE,
    seen=("helixml/helix#3244", "rockswang/wild-work#30"),
    proof="tests/test_isolation_alone.py",
)
def body_cut(draft: Draft) -> None:
    """A proxy in front has a limit of its own."""
    tell(draft, 400, "The body is no JSON.")
