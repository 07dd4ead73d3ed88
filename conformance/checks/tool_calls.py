"""`calls.*`: are tools called as the request says?"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import Call, Choice, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.declining import declines
from streamgauge.conformance.law import given, ignored, law
from streamgauge.conformance.offered import (
    CHOICE,
    CUT,
    TOOLS,
    functions_alone,
    functions_of,
    is_json,
    named,
    unmeetable,
)
from streamgauge.conformance.posting import judged_by_body, shown
from streamgauge.conformance.predicates import ended, object_answer, valid_request
from streamgauge.conformance.textforms import Fit, json_form
from streamgauge.contract.contract import Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence

__all__: list[str] = []

Asked = Mapping[str, Any]

_PARALLEL = "parallel_tool_calls"
_OPENAI = "OpenAI, create chat completion"
_NO_CALL = "no answer with a tool call"


def _choices(case: Case) -> list[Choice]:
    return list(answer_in(case.exchange).choices.values())


def _ends_or_calls(case: Case) -> bool:
    """Whether any choice calls a tool, or was ended by the model without a call."""
    return any(each.calls or _has_none(each) for each in _choices(case))


def _has_none(choice: Choice) -> bool:
    """
    Whether the model ended a choice without a call.

    One that was cut may have been on its way to it, one with the reason `tool_calls` is `finish.tool-calls`', and a model
    that refuses says that in a member of its own.
    """
    return not choice.calls and choice.finish == "stop" and not declines(choice)


def _called(case: Case) -> bool:
    return any(each.calls for each in _choices(case))


def _told(calls: tuple[Call, ...]) -> str:
    return ", ".join(f"{call.name}({call.arguments})" for call in calls) or "no call"


def _within(*names: str) -> tuple[str, ...]:
    return tuple(f"{TOOLS}[].{name}" for name in names)


@law(
    "calls.choice-none",
    Level.MUST,
    "With the tool choice `none` no tool is called",
    properties=CHOICE,
    needs_also=(TOOLS,),
    requirement="none means the model will not call any tool and instead generates a message.",
    source=f"{_OPENAI}: tool_choice",
    asks=lambda asked: bool(functions_of(asked)) and asked.get(CHOICE) == "none",
)
def choice_none(case: Case) -> Iterator[Departure]:
    """The caller has no way to run it."""
    for each in _choices(case):
        if each.calls:
            yield ignored("no call", _told(each.calls))


_MARKUP = re.compile(
    r"</?tool_calls?>|</?function_calls?>|<function=\w"  # Hermes, Qwen; Llama
    r"|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls?(?:_section)?_begin\|>"  # Mistral, Llama, Kimi
    r"|<\uff5ctool\u2581call"  # DeepSeek
)
"""What models write around a call, in the text where nobody reads it."""


@law(
    "calls.none-markup",
    Level.SHOULD,
    "With the tool choice `none` no raw call stands in the text",
    properties=CHOICE,
    needs_also=(TOOLS,),
    requirement="none means the model will not call any tool and instead generates a message.",
    source=CLIENTS,
    asks=lambda asked: bool(functions_of(asked)) and asked.get(CHOICE) == "none",
)
def none_markup(case: Case) -> Iterator[Departure]:
    """The model was shown the tools all the same, and nobody read what it wrote."""
    for each in _choices(case):
        if found := _MARKUP.search(each.text):
            yield Departure("a message", f"{found.group()} in {each.text!r}")


@law(
    "calls.required",
    Level.MUST,
    "With the tool choice `required` a tool is called",
    properties=(CHOICE, TOOLS, *_within("type", "function")),
    requirement="required means the model must call one or more tools.",
    source=f"{_OPENAI}: tool_choice",
    asks=lambda asked: bool(functions_of(asked)) and asked.get(CHOICE) == "required",
    applies=_ends_or_calls,
)
def required(case: Case) -> Iterator[Departure]:
    """Agents wait for a call, and get prose."""
    for each in _choices(case):
        if _has_none(each):
            yield ignored("a call", f"no call, and the text {each.text!r}")


@law(
    "calls.named",
    Level.MUST,
    "The tool that the request names is called",
    properties=(CHOICE, f"{CHOICE}.function", f"{CHOICE}.function.name", f"{CHOICE}.type"),
    needs_also=(TOOLS,),
    requirement="Specifying a particular tool forces the model to call that tool.",
    source=f"{_OPENAI}: tool_choice",
    asks=lambda asked: named(asked) is not None,
    applies=_ends_or_calls,
)
def names_one(case: Case) -> Iterator[Departure]:
    """A name that is no tool's is `calls.unknown-tool`'s."""
    asked = given(case)
    wanted, functions = named(asked), functions_of(asked)
    for each in _choices(case):
        others = [call for call in each.calls if call.name != wanted and call.name in functions]
        if others or _has_none(each):
            yield ignored(f"a call of {wanted}", _told(each.calls))


@law(
    "calls.unknown-tool",
    Level.MUST,
    "Only tools of the request are called",
    properties=_within("function.name"),
    needs_also=(CHOICE, _PARALLEL),
    requirement="tools: A list of tools the model may call.",
    source=f"{_OPENAI}: tools",
    asks=lambda asked: functions_alone(asked) and not unmeetable(asked),
    applies=_called,
    absent=_NO_CALL,
)
def unknown_tool(case: Case) -> Iterator[Departure]:
    """Agents look the name up, and break off."""
    names = functions_of(given(case))
    for call in (call for each in _choices(case) for call in each.calls):
        if call.name not in names:
            yield Departure(f"a call of {' or '.join(names)}", _told((call,)))


def _judged_calls(case: Case, strict: bool) -> Iterator[tuple[Call, Fit]]:
    """The whole calls of functions that have parameters and are strict or not, and how their arguments stand to these."""
    functions = functions_of(given(case))
    for choice in _choices(case):
        for call in choice.calls if choice.finish not in CUT else ():
            function = functions.get(call.name, {})
            parameters = function.get("parameters")
            if isinstance(parameters, dict) and bool(function.get("strict")) is strict:
                form = json_form(parameters, "")
                if form is not None and is_json(call.arguments):
                    yield call, form.fit(call.arguments, True)


def _calls_by_schema(strict: bool) -> Callable[[Case], bool]:
    return lambda case: any(True for _ in _judged_calls(case, strict))


def _strict_one(asked: Asked) -> bool:
    return any(each.get("strict") is True for each in functions_of(asked).values())


@law(
    "calls.strict",
    Level.MUST,
    "The arguments of a strict function keep its schema",
    properties=_within("function.strict", "function.parameters"),
    needs_also=(CHOICE, _PARALLEL),
    requirement="strict: If set to true, the model will follow the exact schema defined in the parameters field.",
    source=f"{_OPENAI}: tools",
    asks=lambda asked: _strict_one(asked) and not unmeetable(asked),
    applies=_calls_by_schema(True),
    absent="no whole call of a strict function, with arguments that are JSON",
)
def strict(case: Case) -> Iterator[Departure]:
    """Programs take the arguments without looking at them."""
    for call, fit in _judged_calls(case, True):
        if fit not in (Fit.HAS, Fit.OPEN):
            yield ignored("arguments by the schema of `parameters`", _told((call,)))


def _forces(asked: Asked) -> bool:
    return bool(functions_of(asked)) and (asked.get(CHOICE) == "required" or named(asked) is not None)


@law(
    "calls.arguments-valid",
    Level.SHOULD,
    "The arguments of a forced call keep the function's schema, strict or not",
    properties=_within("function.parameters"),
    needs_also=(CHOICE, _PARALLEL),
    requirement="parameters: The parameters the functions accepts, described as a JSON Schema object.",
    source=CLIENTS,
    asks=_forces,
    applies=_calls_by_schema(False),
    absent="no whole call that was forced of a function that is not strict, with arguments that are JSON",
)
def arguments_valid(case: Case) -> Iterator[Departure]:
    """Who constrains the call's form might as well constrain it by the schema; the model's own mistakes are not judged."""
    for call, fit in _judged_calls(case, False):
        if fit not in (Fit.HAS, Fit.OPEN):
            yield Departure("arguments by the schema of `parameters`", _told((call,)))


@law(
    "calls.parallel-false",
    Level.MUST,
    "Without parallel calls a choice makes one at most",
    properties=_PARALLEL,
    needs_also=(TOOLS, CHOICE),
    requirement="parallel_tool_calls: Whether to enable parallel function calling during tool use.",
    source=f"{_OPENAI}: parallel_tool_calls",
    asks=lambda asked: bool(functions_of(asked)) and asked.get(_PARALLEL) is False and not unmeetable(asked),
    applies=_called,
    absent="no answer to a request without parallel calls has a call",
)
def parallel_false(case: Case) -> Iterator[Departure]:
    """Callers ask for it where the second call depends on the first one's result."""
    for each in _choices(case):
        if len(each.calls) > 1:
            yield ignored("one call", _told(each.calls))


@check(
    "calls.unmeetable",
    Level.SHOULD,
    "A tool choice that no tool of the request meets is refused",
    requirement="tool_choice: required means the model must call one or more tools.",
    source=CLIENTS,
    applies=lambda case: valid_request(case) and judged_by_body(case) and bool(unmeetable(given(case))),
    concerns=lambda operation, contract: CHOICE in operation.properties,
    absent="no request demanded a tool that it does not have",
    needs=(Evidence.REQUEST,),
)
def meets_none(case: Case) -> Iterator[Departure]:
    """The caller's mistake (a misspelt name) is answered with prose, or with a call that nobody can run."""
    if case.exchange.status == 200:
        yield Departure(f"4xx, since {unmeetable(given(case))}", shown(case), outcome=Outcome.IGNORED)


def _told_default(operation: Operation) -> Any:
    return operation.schemas.resolved(operation.properties[CHOICE]).get("default")


def _no_choice(case: Case) -> bool:
    return bool(functions_of(given(case))) and given(case).get(CHOICE) is None


@check(
    "calls.default",
    Level.MAY,
    "Where the document has tool_choice as `none` by default, tools alone bring no call",
    requirement="tool_choice: default: none",
    source="/requestBody/content/application~1json/schema/properties/tool_choice",
    applies=lambda case: valid_request(case) and (object_answer(case) or ended(case)) and _no_choice(case),
    concerns=lambda operation, contract: CHOICE in operation.properties and _told_default(operation) == "none",
    absent="no request had tools and no tool choice",
    needs=(Evidence.REQUEST,),
)
def default(case: Case) -> Iterator[Departure]:
    """OpenAI's default is `auto` then, and most servers have that; a client of either kind should know."""
    for each in _choices(case):
        if each.calls:
            yield Departure("no call, as the document says", f"{_told(each.calls)}, as by OpenAI's default")
