"""`calls.*`: calls that the request did not want, or wanted otherwise."""

from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, calls_of, declare, ignoring, parts_of
from streamgauge.reference.faults.fault import Stage, answers, fault, requests, wholes

__all__: list[str] = []

_CHOICE, _TOOLS = "tool_choice", "tools"


def _offers(draft: Draft) -> bool:
    """A request that the document allows, with tools."""
    return requests(draft) and bool(_functions(draft)) and _allowed(draft)


def _allowed(draft: Draft) -> bool:
    return draft.operation is not None and draft.operation.request.accepts(draft.asked)


def _functions(draft: Draft) -> list[dict[str, Any]]:
    tools = draft.asked.get(_TOOLS)
    return [tool["function"] for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _named(draft: Draft) -> str | None:
    choice = draft.asked.get(_CHOICE)
    return choice["function"]["name"] if isinstance(choice, dict) else None


def _unmeetable(draft: Draft) -> bool:
    """Whatever is called is not among the tools."""
    names = [each["name"] for each in _functions(draft)]
    if isinstance(draft.asked.get(_CHOICE), dict):
        return _named(draft) not in names
    return draft.asked.get(_CHOICE) == "required" and not names


def _answers_with_call(draft: Draft) -> bool:
    return answers(draft) and draft.chat and bool(calls_of(draft))


@fault(
    "calls.none-ignored",
    "The tool choice `none` is taken for `auto`",
    caught_by="calls.choice-none",
    stage=Stage.REQUEST,
    concerns=lambda draft: _offers(draft) and draft.asked.get(_CHOICE) == "none",
    seen=("tenstorrent/tt-inference-server#3084",),
)
def none_ignored(draft: Draft) -> None:
    """The model does what the message says."""
    ask(draft, {**draft.asked, _CHOICE: "auto"})


@fault(
    "calls.none-markup",
    "With the tool choice `none` a call stands in the text",
    caught_by="calls.none-markup",
    stage=Stage.ANSWER,
    concerns=lambda draft: wholes(draft) and draft.chat and draft.asked.get(_CHOICE) == "none",
    seen=("tenstorrent/tt-inference-server#3084",),
)
def none_markup(draft: Draft) -> None:
    """As the model wrote it."""
    for part in parts_of(draft):
        part["content"] = f'<tool_call>{{"name": "paint"}}</tool_call>{part["content"]}'


@fault(
    "calls.required-ignored",
    "Tools that have to be called are ignored",
    caught_by="calls.required",
    stage=Stage.REQUEST,
    concerns=lambda draft: _offers(draft) and draft.asked.get(_CHOICE) == "required",
)
def required_ignored(draft: Draft) -> None:
    """A word comes, and the model has said what it wanted to."""
    left = {name: value for name, value in draft.asked.items() if name not in (_TOOLS, _CHOICE)}
    ask(draft, {**left, "messages": [{"role": "user", "content": "Say one word."}]})


@fault(
    "calls.named-ignored",
    "Whichever tool is named, the first one is called",
    caught_by="calls.named",
    stage=Stage.REQUEST,
    concerns=lambda draft: _offers(draft) and _named(draft) is not None and not _unmeetable(draft),
    seen=("BerriAI/litellm#4655",),
)
def named_ignored(draft: Draft) -> None:
    """As if it were `required`."""
    ask(draft, {**draft.asked, _CHOICE: "required", "parallel_tool_calls": False})


@fault(
    "calls.unknown-tool",
    "A tool is called that the request does not have",
    caught_by="calls.unknown-tool",
    stage=Stage.ANSWER,
    concerns=_answers_with_call,
)
def unknown_tool(draft: Draft) -> None:
    """Its name is one letter longer."""
    for call in calls_of(draft):
        if call["function"].get("name"):
            call["function"]["name"] += "s"


@fault(
    "calls.strict-ignored",
    "The schema of a strict function is ignored",
    caught_by="calls.strict",
    stage=Stage.REQUEST,
    concerns=lambda draft: _offers(draft) and any(each.get("strict") for each in _functions(draft)),
)
def strict_ignored(draft: Draft) -> None:
    """Its arguments are an empty object."""
    _forget_parameters(draft, strict=True)


@fault(
    "calls.parameters-ignored",
    "The schema of a function that is not strict is ignored",
    caught_by="calls.arguments-valid",
    stage=Stage.REQUEST,
    concerns=lambda draft: _offers(draft) and any(not each.get("strict") for each in _functions(draft)),
)
def parameters_ignored(draft: Draft) -> None:
    """Its arguments are an empty object."""
    _forget_parameters(draft, strict=False)


def _forget_parameters(draft: Draft, *, strict: bool) -> None:
    asked = draft.asked
    for tool in asked[_TOOLS]:
        if bool(tool["function"].get("strict")) is strict:
            tool["function"].pop("parameters", None)
    ask(draft, asked)


ignoring(
    "calls.parallel-ignored",
    "Several tools are called although one at most was wanted",
    "calls.parallel-false",
    "parallel_tool_calls",
    seen=("sgl-project/sglang#9696", "vllm-project/vllm#9451"),
)


def _reasons(draft: Draft) -> set[Any]:
    return {choice["finish_reason"] for choice in draft.choices}


@fault(
    "calls.arguments-cut",
    "The closing brace of a call's arguments is lost",
    caught_by="calls.arguments-json",
    stage=Stage.ANSWER,
    concerns=lambda draft: _answers_with_call(draft) and "length" not in _reasons(draft),
    seen=("vllm-project/vllm#9693", "vllm-project/vllm#15274", "lmstudio-ai/lmstudio-bug-tracker#649"),
)
def arguments_cut(draft: Draft) -> None:
    """Clients find out when they parse them."""
    for call in calls_of(draft):
        if (arguments := call["function"].get("arguments")) and arguments.endswith("}"):
            call["function"]["arguments"] = arguments[:-1]


@fault(
    "calls.cut-untold",
    "A call that the limit cut ends with the reason tool_calls",
    caught_by="calls.cut-told",
    stage=Stage.ANSWER,
    concerns=lambda draft: _answers_with_call(draft) and "length" in _reasons(draft),
    seen=("vllm-project/vllm#46303", "vllm-project/vllm#9053"),
)
def cut_untold(draft: Draft) -> None:
    """Half a call is taken for a whole one."""
    for choice in draft.choices:
        if choice["finish_reason"] == "length":
            choice["finish_reason"] = "tool_calls"


@fault(
    "calls.ids-shared",
    "All calls have one id",
    caught_by="calls.ids",
    stage=Stage.ANSWER,
    concerns=lambda draft: _answers_with_call(draft) and any(call.get("index") or at for at, call in _numbered(draft)),
    seen=("InternLM/lmdeploy#3412",),
)
def ids_shared(draft: Draft) -> None:
    """Results cannot be told apart."""
    for call in calls_of(draft):
        if "id" in call:
            call["id"] = "0"


def _numbered(draft: Draft) -> list[tuple[int, dict[str, Any]]]:
    """Of a whole answer each call with its place; in a stream its index tells that."""
    return [
        (0 if draft.streamed else at, call)
        for part in parts_of(draft)
        for at, call in enumerate(part.get("tool_calls") or ())
    ]


@fault(
    "calls.id-empty",
    "A call's id is empty",
    caught_by="calls.ids",
    stage=Stage.ANSWER,
    concerns=lambda draft: wholes(draft) and _answers_with_call(draft),
    seen=("InternLM/lmdeploy#3412",),
)
def id_empty(draft: Draft) -> None:
    """A result cannot be sent back."""
    for call in calls_of(draft):
        call["id"] = ""


@fault(
    "calls.unmeetable-accepted",
    "A tool choice that no tool meets is ignored",
    caught_by="calls.unmeetable",
    stage=Stage.REQUEST,
    concerns=lambda draft: requests(draft) and _allowed(draft) and _CHOICE in draft.asked and _unmeetable(draft),
)
def unmeetable_accepted(draft: Draft) -> None:
    """Prose comes, as if nobody had wanted a call."""
    ask(draft, {name: value for name, value in draft.asked.items() if name != _CHOICE})


declare(
    "calls.default-auto",
    "Without a tool choice the model may call tools, whatever the document says",
    "calls.default",
    lambda draft: ask(draft, {**draft.asked, _CHOICE: "auto"}),
    concerns=lambda draft: (
        _offers(draft)
        and draft.asked.get(_CHOICE) is None
        and draft.operation is not None
        and draft.operation.properties[_CHOICE].get("default") == "none"
    ),
    stage=Stage.REQUEST,
)


def _sends_back(draft: Draft) -> bool:
    """A conversation with a call, among tools."""
    messages = draft.asked.get("messages")
    return (
        _offers(draft)
        and isinstance(messages, list)
        and any(message.get("tool_calls") for message in messages if isinstance(message, dict))
    )


@fault(
    "calls.sent-back-refused",
    "A conversation with a call in it is refused",
    caught_by="calls.round-trip",
    stage=Stage.REQUEST,
    concerns=_sends_back,
    seen=("vllm-project/vllm#47734", "langchain4j/langchain4j#1958", "openai/openai-node#1341"),
)
def sent_back_refused(draft: Draft) -> None:
    """As if it held no message."""
    ask(draft, {**draft.asked, "messages": []})
