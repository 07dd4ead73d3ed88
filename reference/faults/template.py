"""`template.*`: prompts that are not built as asked for."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, ignoring
from streamgauge.reference.faults.fault import Stage, requests

__all__: list[str] = []


def _close_message(draft: Draft) -> None:
    left_out = ("continue_final_message", "add_generation_prompt")
    ask(draft, {name: value for name, value in draft.asked.items() if name not in left_out})


def _empty_arguments(draft: Draft) -> None:
    ask(draft, {**draft.asked, "chat_template_kwargs": dict.fromkeys(draft.asked["chat_template_kwargs"], "")})


declare(
    "template.continue-ignored",
    "A message that is to be continued is closed like any other",
    "template.continued",
    _close_message,
    concerns=lambda draft: (
        requests(draft)
        and draft.asked.get("continue_final_message") is True
        and draft.asked.get("add_generation_prompt") is not True
    ),
    stage=Stage.REQUEST,
)
declare(
    "template.generation-prompt-always",
    "The generation prompt is there whatever the request says",
    "template.generation-prompt",
    lambda draft: ask(draft, {**draft.asked, "add_generation_prompt": True}),
    concerns=lambda draft: (
        requests(draft)
        and draft.asked.get("add_generation_prompt") is False
        and not draft.asked.get("continue_final_message")
    ),
    stage=Stage.REQUEST,
)


def _both(draft: Draft) -> bool:
    both = requests(draft) and draft.asked.get("continue_final_message") is True
    return both and draft.asked.get("add_generation_prompt") is True


declare(
    "template.contradiction-taken",
    "A message is continued although a new one was asked for, too",
    "template.exclusive",
    lambda draft: ask(draft, {**draft.asked, "add_generation_prompt": False}),
    concerns=_both,
    stage=Stage.REQUEST,
)
ignoring("template.own-ignored", "The request's own template is not used", "template.own", "chat_template")
declare(
    "template.arguments-lost",
    "The template gets its arguments empty",
    "template.arguments",
    _empty_arguments,
    concerns=lambda draft: requests(draft) and isinstance(draft.asked.get("chat_template_kwargs"), dict),
    stage=Stage.REQUEST,
)
