"""`prompt.*`: prompts that are not read, or not told as they were asked for."""

import json
from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, ignoring
from streamgauge.reference.faults.fault import Stage, answers, requests, wholes
from streamgauge.reference.faults.telling import PLAIN, tell_raw

__all__: list[str] = []

Asked = dict[str, Any]


def _taking(
    name: str, title: str, check: str, asked: Callable[[Asked], bool], instead: Callable[[Asked], Asked], *seen: str
) -> None:
    """A fault of text completions that takes a request for another one."""

    def concerned(draft: Draft) -> bool:
        valid = requests(draft) and draft.operation is not None and draft.operation.request.accepts(draft.asked)
        return valid and not draft.chat and asked(draft.asked)

    def bend(draft: Draft) -> None:
        ask(draft, {**draft.asked, **instead(draft.asked)})

    declare(name, title, check, bend, *seen, concerns=concerned, stage=Stage.REQUEST)


def _is_ids(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and type(prompt[0]) is int


def _echoes(asked: Asked) -> bool:
    return asked.get("echo") is True


_taking(
    "prompt.cut",
    "Of a long prompt only the beginning is read",
    "prompt.read",
    lambda asked: isinstance(asked.get("prompt"), str) and 200 <= len(asked["prompt"]) <= 1000 and not _echoes(asked),
    lambda asked: {"prompt": "Repeat: 「雪」 мир 🙂"},
)
_taking(
    "prompt.ids-as-text",
    "Token ids are read as their digits",
    "prompt.token-ids",
    lambda asked: _is_ids(asked.get("prompt")) and not _echoes(asked),
    lambda asked: {"prompt": json.dumps(asked["prompt"], indent=4)},
    "InternLM/lmdeploy#4186",
    "sgl-project/sglang#736",
)
_taking(
    "prompt.list-backwards",
    "Several prompts are answered from the last to the first",
    "prompt.order",
    lambda asked: isinstance(asked.get("prompt"), list) and len(asked["prompt"]) > 1 and not _is_ids(asked["prompt"]),
    lambda asked: {"prompt": asked["prompt"][::-1]},
    "EleutherAI/lm-evaluation-harness#2595",
)
_taking(
    "prompt.echo-ignored",
    "`echo` is ignored",
    "prompt.echo",
    lambda asked: _echoes(asked) and asked.get("max_tokens") != 0,
    lambda asked: {"echo": False},
    "vllm-project/vllm#3145",
)
_taking(
    "prompt.echo-generates",
    "With `echo` a token is generated though none is wanted",
    "prompt.echo-only",
    lambda asked: _echoes(asked) and asked.get("max_tokens") == 0,
    lambda asked: {"max_tokens": 1},
    "vllm-project/vllm#9336",
)


def _only_text(draft: Draft) -> bool:
    """Nothing else is asked for that the text of the prompt shows."""
    return draft.asked.keys() <= {"model", "messages", "max_tokens", "temperature", "return_prompt_text"}


ignoring("prompt.suffix-ignored", "`suffix` is ignored", "prompt.suffix", "suffix", seen=("vllm-project/vllm#9976",))
ignoring("prompt.text-ignored", "`return_prompt_text` is ignored", "prompt.text", "return_prompt_text")
declare(
    "prompt.text-empty",
    "The text of the prompt is told as an empty one",
    "prompt.text",
    lambda draft: (draft.body or {}).update(prompt_text=""),
    concerns=lambda draft: wholes(draft) and bool((draft.body or {}).get("prompt_text")) and _only_text(draft),
)
declare(
    "prompt.echo-ids-breaks",
    "The echo of token ids makes the server fail",
    "error.no-5xx",
    lambda draft: tell_raw(draft, 500, b"Internal Server Error", PLAIN),
    "vllm-project/vllm#2706",
    concerns=lambda draft: answers(draft) and _echoes(draft.asked) and _is_ids(draft.asked.get("prompt")),
    stage=Stage.TEXT,
)


def _scored(draft: Draft) -> bool:
    return wholes(draft) and _echoes(draft.asked) and any(choice.get("logprobs") for choice in draft.choices)


def _prompt_unscored(draft: Draft) -> None:
    """The offsets count from the text that is left."""
    for choice in draft.choices:
        given = choice["logprobs"]
        prompt = len(draft.asked["prompt"])
        left = [at for at, offset in enumerate(given["text_offset"]) if offset >= prompt]
        for name, values in given.items():
            given[name] = [values[at] for at in left]
        given["text_offset"] = [offset - prompt for offset in given["text_offset"]]


declare(
    "prompt.echo-unscored",
    "An echoed prompt has no log-probabilities",
    "prompt.echo-logprobs",
    _prompt_unscored,
    "vllm-project/vllm#3145",
    concerns=lambda draft: _scored(draft) and isinstance(draft.asked["prompt"], str),
)


def _first_scored(draft: Draft) -> None:
    for choice in draft.choices:
        choice["logprobs"]["token_logprobs"][0] = -1.0


declare(
    "prompt.echo-first-scored",
    "The first token of an echoed prompt has a log-probability",
    "logprobs.prompt-first",
    _first_scored,
    "vllm-project/vllm#5334",
    concerns=_scored,
)
