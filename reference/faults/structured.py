"""`structured.*`: forms that are not kept."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, texts_of
from streamgauge.reference.faults.fault import Stage, answers, fault, requests

__all__: list[str] = []

Wanted = dict[str, Any]

_FORMAT, _OUTPUTS = "response_format", "structured_outputs"
_SEVERAL = ("regex", "choice")
"""The constraints of which the probes set two."""


def _wanted(draft: Draft, name: str) -> Wanted:
    value = draft.asked.get(name)
    return value if isinstance(value, dict) else {}


def _allowed(draft: Draft) -> bool:
    """What the document does not allow stays refused."""
    return requests(draft) and draft.operation is not None and draft.operation.request.accepts(draft.asked)


def _without(draft: Draft, *names: str) -> None:
    ask(draft, {name: value for name, value in draft.asked.items() if name not in names})


def _ignoring(
    name: str, title: str, param: str, holds: Callable[[Wanted], Any], *seen: str, check: str | None = None
) -> None:
    """Takes a whole property, where it asks for one thing, and does as if it were not there."""
    declare(
        f"structured.{name}-ignored",
        title,
        check or f"structured.{name}",
        lambda draft: _without(draft, param),
        *seen,
        concerns=lambda draft: _allowed(draft) and bool(holds(_wanted(draft, param))) and not _contradicts(draft),
        stage=Stage.REQUEST,
    )


def _contradicts(draft: Draft) -> bool:
    """What is refused for another reason stays refused."""
    return _both(draft) or _several(draft) or _lacks_schema(draft)


def _both(draft: Draft) -> bool:
    return bool(_wanted(draft, _FORMAT) and _wanted(draft, _OUTPUTS))


def _several(draft: Draft) -> bool:
    return all(_wanted(draft, _OUTPUTS).get(name) is not None for name in _SEVERAL)


def _lacks_schema(draft: Draft) -> bool:
    wanted = _wanted(draft, _FORMAT)
    return wanted.get("type") == "json_schema" and not (wanted.get("json_schema") or {}).get("schema")


def _set(name: str) -> Callable[[Wanted], bool]:
    return lambda wanted: wanted.get(name) is not None


def _typed(kind: str) -> Callable[[Wanted], bool]:
    return lambda wanted: wanted.get("type") == kind


_ignoring(
    "json-object",
    "The format json_object is ignored",
    _FORMAT,
    _typed("json_object"),
    "waybarrios/vllm-mlx#538",
    "ggml-org/llama.cpp#24096",
    "BerriAI/litellm#3853",
)
_ignoring(
    "json-schema",
    "The format json_schema is ignored",
    _FORMAT,
    _typed("json_schema"),
    "ggml-org/llama.cpp#24097",
    "ogx-ai/ogx#529",
)
_ignoring(
    "format-tag",
    "The format of a structural tag is ignored",
    _FORMAT,
    lambda wanted: wanted.get("type") == "structural_tag" and "format" in wanted,
)
_ignoring(
    "format-tags",
    "Structural tags are ignored",
    _FORMAT,
    lambda wanted: wanted.get("type") == "structural_tag" and "structures" in wanted,
)
for _name, _constraint in {
    "json": "json",
    "regex": "regex",
    "choice": "choice",
    "grammar": "grammar",
    "any-object": "json_object",
    "structural-tag": "structural_tag",
}.items():
    _ignoring(
        _name,
        f"The constraint `{_constraint}` is ignored",
        _OUTPUTS,
        _set(_constraint),
    )


@fault(
    "structured.format-regex-ignored",
    "The format regex is ignored",
    caught_by="structured.format-regex",
    stage=Stage.REQUEST,
    concerns=lambda draft: _allowed(draft) and _wanted(draft, _FORMAT).get("type") == "regex",
    proof="tests/test_checks_structured.py",
)
def format_regex_ignored(draft: Draft) -> None:
    """DeepInfra's page says of it both that it exists and that it does not."""
    _without(draft, _FORMAT)


def _unflagged(name: str, title: str, flag: str) -> None:
    """Takes a flag and does as if it were not there."""
    declare(
        f"structured.{name}-ignored",
        title,
        f"structured.{name}",
        lambda draft: ask(
            draft,
            {
                **draft.asked,
                _OUTPUTS: {key: value for key, value in _wanted(draft, _OUTPUTS).items() if key != flag},
            },
        ),
        concerns=lambda draft: _allowed(draft) and bool(_wanted(draft, _OUTPUTS).get(flag)),
        stage=Stage.REQUEST,
    )


_unflagged("tight", "JSON has white space all the same", "disable_any_whitespace")
_unflagged("closed", "JSON has further members all the same", "disable_additional_properties")
_unflagged("spacing", "JSON has other white space than is wanted", "whitespace_pattern")


@fault(
    "structured.schema-as-object",
    "A schema is taken for the wish for any JSON object",
    caught_by="structured.json-schema",
    stage=Stage.REQUEST,
    concerns=lambda draft: (
        _allowed(draft) and _wanted(draft, _FORMAT).get("type") == "json_schema" and not _contradicts(draft)
    ),
    seen=("NVIDIA/TensorRT#4855",),
)
def schema_as_object(draft: Draft) -> None:
    """What comes is JSON, and that is all."""
    ask(draft, {**draft.asked, _FORMAT: {"type": "json_object"}})


def _has_schema(draft: Draft) -> bool:
    return answers(draft) and _wanted(draft, _FORMAT).get("type") == "json_schema"


@fault(
    "structured.escaped-twice",
    "In JSON by a schema characters outside of ASCII are escaped twice",
    caught_by="structured.json-schema",
    stage=Stage.ANSWER,
    concerns=_has_schema,
    seen=("vllm-project/vllm#8805",),
)
def escaped_twice(draft: Draft) -> None:
    """The text says `u96ea` behind two backslashes: JSON, but other words."""
    places = (
        [(part, member) for _, part, member in texts_of(draft)]
        if draft.streamed
        else [(choice["message"], "content") if draft.chat else (choice, "text") for choice in draft.choices]
    )
    for part, member in places:
        if isinstance(part.get(member), str):
            part[member] = "".join(
                each if each.isascii() else f"\\\\u{ord(each) & 0xFFFF:04x}" for each in part[member]
            )


@fault(
    "structured.several-accepted",
    "Of several constraints one is kept, and the others are not",
    caught_by="structured.exactly-one",
    stage=Stage.REQUEST,
    concerns=lambda draft: _allowed(draft) and _several(draft),
)
def several_accepted(draft: Draft) -> None:
    """Nobody is told which one."""
    kept = {name: value for name, value in _wanted(draft, _OUTPUTS).items() if name != _SEVERAL[1]}
    ask(draft, {**draft.asked, _OUTPUTS: kept})


@fault(
    "structured.schema-missing-accepted",
    "The format json_schema without a schema is answered with prose",
    caught_by="structured.schema-missing",
    stage=Stage.REQUEST,
    concerns=lambda draft: _allowed(draft) and _lacks_schema(draft),
)
def schema_missing_accepted(draft: Draft) -> None:
    """As if there were no format."""
    _without(draft, _FORMAT)


@fault(
    "structured.both-accepted",
    "Beside a constraint the format is ignored",
    caught_by="structured.both",
    stage=Stage.REQUEST,
    concerns=lambda draft: _allowed(draft) and _both(draft),
)
def both_accepted(draft: Draft) -> None:
    """The constraint wins, and nobody is told."""
    _without(draft, _FORMAT)
