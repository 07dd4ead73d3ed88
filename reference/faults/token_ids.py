"""`tokens.*`: token ids that lack, or are not those of the answer."""

from collections import Counter
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, each_choice, ignoring
from streamgauge.reference.faults.fault import Stage, answers, requests, streams, wholes

__all__: list[str] = []


def _asked(draft: Draft) -> bool:
    return answers(draft) and draft.asked.get("return_token_ids") is True


ignoring("tokens.ids-ignored", "`return_token_ids` is ignored", "tokens.ids", "return_token_ids")
declare(
    "tokens.ids-of-text-lost",
    "A stream tells the ids of its prompt, and none of its text",
    "tokens.ids",
    each_choice(lambda choice: choice.pop("token_ids", None)),
    concerns=lambda draft: streams(draft) and _asked(draft),
)


def _unasked(draft: Draft) -> bool:
    known = draft.operation is not None and "return_token_ids" in draft.operation.properties
    return wholes(draft) and known and not draft.asked.get("return_token_ids")


def _tell_prompt(draft: Draft) -> None:
    assert draft.answer is not None
    prompts, n = draft.answer.parameters.prompts, draft.answer.parameters.n
    for index, holder in enumerate([draft.body or {}] if draft.chat else draft.choices):
        holder["prompt_token_ids"] = list(prompts[index // n].ids)


declare(
    "tokens.ids-unasked",
    "The token ids of prompts are told to everybody",
    "tokens.not-requested",
    _tell_prompt,
    "vllm-project/vllm#27336",
    concerns=_unasked,
)


def _prompt_in_each(draft: Draft) -> None:
    told = draft.payloads[0].get("prompt_token_ids")
    for body in draft.payloads:
        body["prompt_token_ids"] = told


declare(
    "tokens.prompt-in-each-chunk",
    "Every chunk tells the ids of the prompt",
    "tokens.first-chunk",
    _prompt_in_each,
    concerns=lambda draft: streams(draft) and draft.chat and _asked(draft),
)
ignoring(
    "tokens.as-ids-ignored",
    "`return_tokens_as_token_ids` is ignored",
    "tokens.as-ids",
    "return_tokens_as_token_ids",
)


def _next_ids(choice: dict[str, Any]) -> None:
    report = choice.get("logprobs") or {}
    for entry in report.get("content") or ():
        for each in (entry, *entry["top_logprobs"]):
            each["token"] = _next(each["token"])
    if "tokens" in report:
        report["tokens"] = list(map(_next, report["tokens"]))
        report["top_logprobs"] = [{_next(token): each for token, each in top.items()} for top in report["top_logprobs"]]


def _next(token: str) -> str:
    return f"token_id:{int(token.partition(':')[2]) + 1}"


declare(
    "tokens.as-other-ids",
    "Tokens are told by ids that are one too high",
    "tokens.as-ids",
    each_choice(_next_ids),
    concerns=lambda draft: _asked(draft) and draft.asked.get("return_tokens_as_token_ids") is True,
)
declare(
    "tokens.more-counted",
    "More completion tokens are counted than ids are told",
    "usage.tokens-told",
    each_choice(lambda choice: choice.update(token_ids=choice["token_ids"][:-1])),
    concerns=lambda draft: wholes(draft) and _asked(draft) and "repetition_detection" not in draft.asked,
)


def _first_hidden(draft: Draft) -> None:
    for holder in (draft.body or {}, *draft.choices):
        if holder.get("prompt_token_ids"):
            holder["prompt_token_ids"] = holder["prompt_token_ids"][1:]


declare(
    "tokens.first-of-prompt-hidden",
    "The ids of a prompt lack the first one",
    "usage.tokens-told",
    _first_hidden,
    "vllm-project/vllm#27477",
    concerns=lambda draft: wholes(draft) and _asked(draft),
)


def _by_ids(draft: Draft) -> bool:
    prompt = draft.asked.get("prompt") if requests(draft) else None
    return isinstance(prompt, list) and len(prompt) > 3 and type(prompt[0]) is int and not draft.asked.get("echo")


declare(
    "tokens.read-backwards",
    "The token ids of a prompt are read backwards",
    "tokens.roundtrip",
    lambda draft: ask(draft, {**draft.asked, "prompt": draft.asked["prompt"][::-1]}),
    concerns=_by_ids,
    stage=Stage.REQUEST,
)


def _cached_not_counted(draft: Draft) -> None:
    """From the third time on, a question's prompt has been cached."""
    known = draft.memory.setdefault("tokens.cached-not-counted", Counter())
    known[draft.request.body] += 1
    bodies = draft.payloads if draft.streamed else [draft.body or {}]
    for usage in [body["usage"] for body in bodies if body.get("usage")] if known[draft.request.body] > 2 else ():
        usage["prompt_tokens"] -= 1
        usage["total_tokens"] -= 1


declare(
    "tokens.cached-not-counted",
    "A prompt that has been read twice before costs less",
    "usage.prompt-stable",
    _cached_not_counted,
    concerns=lambda draft: answers(draft) and "seed" in draft.asked,  # and nothing is asked but the same again
)
