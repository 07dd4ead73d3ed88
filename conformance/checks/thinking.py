"""`thinking.*`: is there as much reasoning as the request says?"""

from collections.abc import Iterator

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import given, ignored, law
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import is_chat
from streamgauge.conformance.tokens import detail, final_usage
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Exchange

__all__: list[str] = []

_SLACK = 32
"""Tokens of a choice beyond its budget that an engine may put in to end the reasoning in words."""


def _reasoning(case: Case) -> str:
    return _told(case.exchange)


def _told(exchange: Exchange) -> str:
    return "".join(choice.reasoning for choice in answer_in(exchange).choices.values())


def _counted(exchange: Exchange) -> int | None:
    found = final_usage(exchange)
    return detail(found[0], "completion_tokens_details", "reasoning_tokens") if found else None


@once
def _reasons(case: Case) -> bool:
    """Whether any answer tells reasoning, or counts it."""
    answers = (each for each in case.others if each.status == 200)
    return any(bool(_told(each).strip()) or bool(_counted(each)) for each in answers)


def _unclear(case: Case) -> Iterator[Departure]:
    """Of a model that never reasons nobody can tell whether it was told not to."""
    if not _reasons(case):
        yield Departure("reasoning in some answer", "none in any", outcome=Outcome.INCONCLUSIVE)


@law(
    "thinking.none",
    Level.SHOULD,
    "With reasoning_effort none, an answer tells no reasoning",
    properties="reasoning_effort",
    requirement="none: the model does not reason before it answers.",
    source="OpenAI, create chat completion: reasoning_effort",
    asks=lambda asked: asked.get("reasoning_effort") == "none",
    concerns=is_chat,
)
def none(case: Case) -> Iterator[Departure]:
    """What is told proves it; what is only thought nobody sees."""
    if told := _reasoning(case).strip():
        yield ignored("no reasoning", repr(told[:80]))
    yield from _unclear(case)


@law(
    "thinking.effort",
    Level.MAY,
    "With a reasoning_effort, an answer shows that there was reasoning",
    properties="reasoning_effort",
    requirement="Constrains effort on reasoning for reasoning models.",
    source="OpenAI, create chat completion: reasoning_effort",
    asks=lambda asked: (
        asked.get("reasoning_effort", "none") != "none"
        and "thinking_token_budget" not in asked
        and asked.get("include_reasoning") is not False
    ),
    concerns=is_chat,
)
def effort(case: Case) -> Iterator[Departure]:
    """A model that does not reason at all takes the parameter as well; nobody can tell the two apart."""
    if not _reasoning(case) and not _counted(case.exchange):
        yield Departure("reasoning, or a count of it", "neither", outcome=Outcome.INCONCLUSIVE)


@law(
    "thinking.hidden",
    Level.MUST,
    "With include_reasoning false, an answer tells no reasoning",
    properties="include_reasoning",
    requirement="include_reasoning: false leaves the reasoning out of the answer (plain meaning of the parameter).",
    source="/requestBody/content/application~1json/schema/properties/include_reasoning",
    asks=lambda asked: asked.get("include_reasoning") is False,
    needs_also=("reasoning_effort",),
    concerns=is_chat,
)
def hidden(case: Case) -> Iterator[Departure]:
    """Passing needs a model that reasons: `reasoning_effort` asks for it."""
    if told := _reasoning(case).strip():
        yield ignored("no reasoning", repr(told[:80]))
    yield from _unclear(case)


@law(
    "thinking.budget",
    Level.MUST,
    "Reasoning keeps to its budget of tokens",
    properties="thinking_token_budget",
    requirement="Maximum number of tokens allowed for thinking operations (reasoning models).",
    source="/requestBody/content/application~1json/schema/properties/thinking_token_budget/description",
    asks=lambda asked: type(asked.get("thinking_token_budget")) is int and asked["thinking_token_budget"] >= 0,
    needs_also=("reasoning_effort",),
)
def budget(case: Case) -> Iterator[Departure]:
    """Counted by the server; an engine ends the reasoning with words of its own, for which there is some room."""
    choices = max(1, len(answer_in(case.exchange).choices))
    allowed, slack = given(case)["thinking_token_budget"] * choices, _SLACK * choices
    counted = _counted(case.exchange)
    if counted is not None and counted > allowed + slack:
        yield ignored(f"{allowed} tokens of reasoning at most", f"{counted}")
    elif counted is None and len(_reasoning(case).split()) > allowed + slack:
        yield ignored(f"{allowed} tokens of reasoning at most", f"{len(_reasoning(case).split())} words of it")
    yield from _unclear(case)
