"""`reasoning.*`: what goes wrong with thoughts."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import Bend, declare, parts_of
from streamgauge.reference.faults.fault import answers, streams, wholes

_FIELDS = ("reasoning", "reasoning_content")


def _field(part: dict[str, Any]) -> str | None:
    return next((name for name in _FIELDS if part.get(name)), None)


def _thinks(draft: Draft) -> bool:
    return answers(draft) and any(_field(part) for part in parts_of(draft))


def _declare(
    name: str,
    title: str,
    check: str,
    bend: Bend,
    *seen: str,
    among: Callable[[Draft], bool] = answers,
) -> None:
    def concerns(draft: Draft) -> bool:
        return among(draft) and _thinks(draft)

    declare(name, title, check, bend, *seen, concerns=concerns)


def _rename(draft: Draft) -> None:
    for part in parts_of(draft):
        if name := _field(part):
            part[next(other for other in _FIELDS if other != name)] = part.pop(name)


def _as_content(opening: str, closing: str) -> Bend:
    """The reasoning stands in front of the content, between tags."""

    def bend(draft: Draft) -> None:
        thoughts = [(part, name) for part in parts_of(draft) if (name := _field(part))]
        for number, (part, name) in enumerate(thoughts):
            before = opening if number == 0 or not draft.streamed else ""
            after = closing if number == len(thoughts) - 1 or not draft.streamed else ""
            part["content"] = before + part.pop(name) + after + part.get("content", "")

    return bend


def _closing_tag(draft: Draft) -> None:
    """What ends the reasoning is taken for the beginning of the content."""
    for part in parts_of(draft):
        if part.get("content"):
            part["content"] = "</think>" + part["content"]
            return


_declare(
    "reasoning.renamed",
    "The reasoning of a whole answer has the other name",
    "response.reasoning-field",
    _rename,
    "run-llama/llama_index#21075",
    "vllm-project/vllm#36730",
    among=wholes,
)
_declare(
    "reasoning.renamed-streamed",
    "The reasoning of a stream has the other name",
    "chunk.reasoning-field",
    _rename,
    "run-llama/llama_index#21075",
    among=streams,
)
_declare(
    "reasoning.think-tags",
    "The reasoning stands in the content, between tags",
    "reasoning.tag",
    _as_content("<think>\n", "\n</think>\n\n"),
    "BerriAI/litellm#20246",
)
_declare(
    "reasoning.tags-streamed",
    "The reasoning of a stream stands in the content, between tags",
    "reasoning.tag",
    _as_content("<mm:think>", "</mm:think>"),
    "vllm-project/vllm#45687",
    "BerriAI/litellm#15233",
    among=streams,
)
_declare(
    "reasoning.closing-tag",
    "The tag that ends the reasoning stands in the content",
    "reasoning.tag",
    _closing_tag,
    "vllm-project/vllm#39885",
)
