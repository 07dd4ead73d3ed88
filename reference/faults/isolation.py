"""`isolation.*`, `cancel.*`: requests that get at each other, and answers that nobody reads."""

import json
import re
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, each_body
from streamgauge.reference.faults.fault import Stage, answers, fault, requests, streams
from streamgauge.reference.faults.telling import PLAIN, tell_raw

_NONCE = re.compile(r"sg-nonce-[0-9a-f]{16}")
_ALONE = "tests/test_isolation_alone.py"
_SOCKETS = "tests/test_isolation_sockets.py"


def _nonce(draft: Draft) -> str:
    found = _NONCE.search(draft.request.body.decode("utf-8", "replace"))
    return found[0] if found else ""


def _bare_nonce(draft: Draft) -> bool:
    """An answer to a request with a nonce whose text nothing else binds."""
    return answers(draft) and bool(_nonce(draft)) and not draft.asked.keys() & {"echo", "response_format"}


def _named(draft: Draft) -> bool:
    return requests(draft) and bool(_nonce(draft))


@fault(
    "isolation.foreign-text",
    "Text of one request comes up in the answer to another",
    caught_by="isolation.foreign-nonce",
    stage=Stage.ANSWER,
    concerns=_bare_nonce,
    seen=("vllm-project/vllm#9910", "inferencerlabs/inferencer-feedback#127"),
)
def foreign_text(draft: Draft) -> None:
    """What the request before had in its prompt."""
    previous = draft.memory.get("isolation.foreign-text", "")
    draft.memory["isolation.foreign-text"] = _nonce(draft)
    for choice in draft.choices:
        part = choice.get("delta", choice.get("message")) if draft.chat else choice
        name = "content" if draft.chat else "text"
        if previous and isinstance(part, dict) and part.get(name):
            part[name] = previous
            return


def _shape(asked: dict[str, Any]) -> str:
    """What two requests have in common that differ in their texts only."""
    return json.dumps({key: value for key, value in asked.items() if not isinstance(value, (str, list, dict))}) + str(
        sorted(asked)
    )


@fault(
    "isolation.answers-other",
    "A request gets the answer to another one",
    caught_by="isolation.foreign-nonce",
    stage=Stage.REQUEST,
    concerns=_named,
    seen=("vllm-project/vllm#13408", "ggml-org/llama.cpp#10072", "ggml-org/llama.cpp#6681"),
)
def answers_other(draft: Draft) -> None:
    """The slot was another's: that of the last request that differed in its texts only."""
    shapes = draft.memory.setdefault("isolation.answers-other", {})
    asked = draft.asked
    other = shapes.get(_shape(asked))
    shapes[_shape(asked)] = asked
    if other:
        ask(draft, other)


def _chosen_id(draft: Draft) -> bool:
    return answers(draft) and draft.asked.get("request_id") is None


@fault(
    "isolation.same-id",
    "All answers have the same id",
    caught_by="isolation.ids-unique",
    stage=Stage.ANSWER,
    concerns=_chosen_id,
    seen=("ggml-org/llama.cpp#10072",),
)
def same_id(draft: Draft) -> None:
    """As of a server that makes ids of the time, or of nothing."""
    each_body(lambda body: body.update(id="cmpl-0"))(draft)


def _too_much(draft: Draft) -> bool:
    seed = draft.asked.get("seed")
    return type(seed) is int and seed >= 2**63


@fault(
    "isolation.lost-to-seed",
    "A seed beyond 63 bits takes the engine down for everybody",
    caught_by="isolation.survives",
    stage=Stage.TEXT,
    concerns=requests,
    seen=("vllm-project/vllm#4529", "vllm-project/vllm-omni#6598"),
    proof=_ALONE,
)
def lost_to_seed(draft: Draft) -> None:
    """Nothing is answered from then on."""
    draft.memory["isolation.lost-to-seed"] = draft.memory.get("isolation.lost-to-seed", False) or _too_much(draft)
    if draft.memory["isolation.lost-to-seed"]:
        tell_raw(draft, 500, b"EngineDeadError", PLAIN)


@fault(
    "cancel.keeps-generating",
    "An answer is generated to its end although its client has left",
    caught_by="cancel.frees-capacity",
    stage=Stage.WIRE,
    concerns=streams,
    seen=(
        "ggml-org/llama.cpp#24496",
        "vllm-project/vllm#54947",
        "vllm-project/vllm#24584",
        "sgl-project/mini-sglang#15",
    ),
    proof=_SOCKETS,
)
def keeps_generating(draft: Draft) -> None:
    """Nobody told the engine."""
    draft.goes_on = True
