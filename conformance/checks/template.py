"""`template.*`: is the prompt built from the conversation as the request says?"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import BESIDE, given, ignored, law, refuses
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import shown
from streamgauge.conformance.predicates import valid_request
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence, Exchange
from streamgauge.wire.json import objects_in

__all__: list[str] = []

_TOLD = ("messages", "return_prompt_text")
_UNTOLD = Departure("prompt_text, which would show it", "none is told", outcome=Outcome.INCONCLUSIVE)


def _prompt_text(exchange: Exchange) -> str | None:
    """The prompt as the answer tells it; None where it does not."""
    bodies = [chunk.object for chunk in exchange.stream.payloads] if exchange.wants_stream else [exchange.json.value]
    told = [body.get("prompt_text") for body in bodies if isinstance(body, dict)]
    return next((text for text in told if isinstance(text, str)), None)


def _tells(asked: Mapping[str, Any]) -> bool:
    return asked.get("return_prompt_text") is True


def _last(asked: Mapping[str, Any]) -> str:
    content = (objects_in(asked.get("messages")) or [{}])[-1].get("content")
    return content if isinstance(content, str) else ""


@law(
    "template.continued",
    Level.MUST,
    "With continue_final_message, the prompt ends with that message",
    properties="continue_final_message",
    requirement="If this is set, the chat will be formatted so that the final message in the chat is open-ended, without any "
    "EOS tokens.",
    source="/requestBody/content/application~1json/schema/properties/continue_final_message/description",
    asks=lambda asked: asked.get("continue_final_message") is True and _tells(asked) and bool(_last(asked).strip()),
    needs_also=(*_TOLD, "add_generation_prompt"),
)
def continued(case: Case) -> Iterator[Departure]:
    """White space at its end is the template's own affair."""
    text, last = _prompt_text(case.exchange), _last(given(case)).rstrip()
    if text is None:
        yield _UNTOLD
    elif not text.rstrip().endswith(last):
        yield ignored(f"a prompt that ends with {last!r}", repr(text[-len(last) - 40 :]))


@check(
    "template.exclusive",
    Level.MUST,
    "To continue a message and to begin a new one at once is refused",
    requirement="Cannot be used at the same time as `add_generation_prompt`.",
    source="/requestBody/content/application~1json/schema/properties/continue_final_message/description",
    applies=lambda case: _asks_both(case) and (case.exchange.status == 200 or refuses(case)),
    concerns=lambda operation, contract: "continue_final_message" in operation.properties,
    absent="no request asked for both in so many words",
    needs=(Evidence.REQUEST,),
)
def exclusive(case: Case) -> Iterator[Departure]:
    """Only where both are said: what is left out is true by default, and its being so is no contradiction of the caller's."""
    if case.exchange.status == 200:
        yield ignored("a 4xx", shown(case))


def _asks_both(case: Case) -> bool:
    asked = given(case)
    both = asked.get("continue_final_message") is True and asked.get("add_generation_prompt") is True
    return both and valid_request(case)


@once
def _with_generation_prompt(case: Case) -> dict[str, str]:
    """The prompt of each conversation as it is by default."""
    found: dict[str, str] = {}
    for exchange in case.others:
        sent = exchange.sent
        if exchange.status != 200 or not isinstance(sent, dict) or sent.get("continue_final_message"):
            continue
        text = _prompt_text(exchange) if sent.get("add_generation_prompt", True) is True else None
        if text is not None:
            found[_conversation(sent)] = text
    return found


_SHAPING = ("messages", "tools", "documents", "chat_template", "chat_template_kwargs", "add_special_tokens")
"""What makes a prompt, beside the generation prompt."""


def _conversation(asked: Mapping[str, Any]) -> str:
    return json.dumps({name: asked.get(name) for name in _SHAPING}, sort_keys=True)


@law(
    "template.generation-prompt",
    Level.MAY,
    "Without a generation prompt, the prompt is shorter",
    properties="add_generation_prompt",
    requirement="If true, the generation prompt will be added to the chat template.",
    source="/requestBody/content/application~1json/schema/properties/add_generation_prompt/description",
    asks=lambda asked: (
        asked.get("add_generation_prompt") is False and _tells(asked) and not asked.get("continue_final_message")
    ),
    applies=lambda case: _conversation(given(case)) in _with_generation_prompt(case),
    needs_also=_TOLD,
)
def generation_prompt(case: Case) -> Iterator[Departure]:
    """Templates of models that were never trained on chats have none: hence a MAY."""
    text = _prompt_text(case.exchange)
    usual = _with_generation_prompt(case)[_conversation(given(case))]
    if text is None:
        yield _UNTOLD
    elif len(text) >= len(usual):
        yield ignored(f"a prompt shorter than {usual[-60:]!r}", repr(text[-60:]))


def _literal(template: Any) -> str:
    """What a template of text without any expression makes of every conversation; empty where it has one."""
    return template.rstrip() if isinstance(template, str) and not {"{", "\r"} & set(template) else ""


@law(
    "template.own",
    Level.MUST,
    "The prompt is what the request's own template makes",
    properties="chat_template",
    requirement="A Jinja template to use for this conversion.",
    source="/requestBody/content/application~1json/schema/properties/chat_template/description",
    asks=lambda asked: bool(_literal(asked.get("chat_template"))) and _tells(asked),
    needs_also=_TOLD,
)
def own(case: Case) -> Iterator[Departure]:
    """A template of mere text says what the prompt is, whatever the conversation; special tokens may stand around it."""
    text, wanted = _prompt_text(case.exchange), _literal(given(case)["chat_template"])
    if text is None:
        yield _UNTOLD
    elif wanted not in text:
        yield ignored(f"a prompt of {wanted!r}", repr(text[:80]))


@law(
    "template.arguments",
    Level.MUST,
    "The template can use the request's own arguments",
    properties="chat_template_kwargs",
    requirement="Additional keyword args to pass to the template renderer. Will be accessible by the chat template.",
    source="/requestBody/content/application~1json/schema/properties/chat_template_kwargs/description",
    asks=lambda asked: bool(_shown_arguments(asked)) and _tells(asked),
    needs_also=(*_TOLD, "chat_template"),
    beside=BESIDE,
)
def arguments(case: Case) -> Iterator[Departure]:
    """Seen through a template that prints them."""
    text = _prompt_text(case.exchange)
    if text is None:
        yield _UNTOLD
        return
    for name, value in _shown_arguments(given(case)).items():
        if value not in text:
            yield ignored(f"{name}: {value!r} in the prompt", repr(text[:80]))


def _shown_arguments(asked: Mapping[str, Any]) -> dict[str, str]:
    """The arguments that the request's template prints."""
    template, given_ = asked.get("chat_template"), asked.get("chat_template_kwargs")
    if not isinstance(template, str) or not isinstance(given_, dict):
        return {}
    return {name: value for name, value in given_.items() if isinstance(value, str) and f"{{{{ {name} }}}}" in template}
