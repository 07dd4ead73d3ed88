"""`logprobs.*`: log-probabilities that lack, or do not fit the answer."""

import math
from collections.abc import Callable
from typing import Any

from streamgauge.contract.contract import JSON
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import declare, each_choice, ignoring
from streamgauge.reference.faults.fault import Stage, wholes
from streamgauge.reference.faults.reports import (
    completions_tell,
    each_number,
    each_report,
    each_top,
    has_tops,
    streams_tell,
    tells,
    tells_plainly,
    wholes_tell,
)
from streamgauge.reference.faults.telling import PLAIN, tell_raw

__all__: list[str] = []


def _lost(draft: Draft) -> None:
    for choice in draft.choices:
        choice["logprobs"] = None


ignoring(
    "logprobs.ignored",
    "Log-probabilities are not told, whoever asks for them",
    "logprobs.given",
    "logprobs",
    "top_logprobs",
    "logprob_token_ids",
    seen=("huggingface/text-generation-inference#2211", "InternLM/lmdeploy#2802"),
)
declare("logprobs.whole-lost", "Whole answers have no log-probabilities", "logprobs.given", _lost, concerns=wholes_tell)
declare(
    "logprobs.stream-lost",
    "Streams have no log-probabilities",
    "logprobs.given",
    _lost,
    "abetlen/llama-cpp-python#197",
    concerns=streams_tell,
)
declare(
    "logprobs.stream-base-two",
    "The log-probabilities of streams are to base 2, those of whole answers are not",
    "pair.logprobs",
    each_number(lambda number: number / math.log(2)),
    concerns=streams_tell,
)


def _of_other_family(choice: dict[str, Any]) -> None:
    """As if the operation were of the other family."""
    given = choice.get("logprobs")
    if not given:
        return
    if "content" in given:
        entries = given["content"]
        choice["logprobs"] = {
            "tokens": [entry["token"] for entry in entries],
            "token_logprobs": [entry["logprob"] for entry in entries],
            "top_logprobs": [{each["token"]: each["logprob"] for each in entry["top_logprobs"]} for entry in entries],
            "text_offset": [0] * len(entries),
        }
        return
    rows = zip(given["tokens"], given["token_logprobs"], given["top_logprobs"], strict=True)
    choice["logprobs"] = {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "bytes": None,
                "top_logprobs": [
                    {"token": other, "logprob": value, "bytes": None} for other, value in (top or {}).items()
                ],
            }
            for token, logprob, top in rows
        ]
    }


def _uneven(report: dict[str, Any]) -> None:
    report["text_offset"] = report["text_offset"][:-1]


declare(
    "logprobs.other-family",
    "Log-probabilities come in the form of the other family",
    "logprobs.shape",
    each_choice(_of_other_family),
    "vllm-project/vllm#2918",
    concerns=lambda draft: tells(draft) and draft.operation is not None and draft.operation.documents_body(200, JSON),
)
declare(
    "logprobs.uneven",
    "The arrays of the log-probabilities differ in length",
    "logprobs.lengths",
    each_report(_uneven),
    "NVIDIA/TensorRT-LLM#18190",
    concerns=lambda draft: completions_tell(draft) and wholes(draft),
)

ignoring("logprobs.top-ignored", "The likeliest tokens are not told", "logprobs.top-count", "top_logprobs")


def _no_tops(report: dict[str, Any]) -> None:
    report["top_logprobs"] = [None] * len(report["tokens"])


def _two_less(top: Any) -> None:
    for _ in range(2) if len(top) > 3 else ():
        top.pop() if isinstance(top, list) else top.popitem()


declare(
    "logprobs.likeliest-lost",
    "The likeliest tokens are not told beside the one that was taken",
    "logprobs.count-asked",
    each_report(_no_tops),
    concerns=lambda draft: not draft.chat and tells_plainly(draft),
)


def _two_more(top: Any) -> None:
    for number in range(2):
        if isinstance(top, list):
            top.append({"token": f" more{number}", "logprob": -30.0 - number, "bytes": None})
        else:
            top[f" more{number}"] = -30.0 - number


declare(
    "logprobs.too-many",
    "More of the likeliest tokens are told than were asked for",
    ("logprobs.top-count", "logprobs.count-asked"),
    each_top(_two_more),
    concerns=has_tops,
)
declare(
    "logprobs.one-fewer",
    "Fewer of the likeliest tokens are told than were asked for",
    ("logprobs.top-count", "logprobs.count-asked"),
    each_top(_two_less),
    concerns=has_tops,
)


def _alone(draft: Draft) -> bool:
    """Log-probabilities without likeliest tokens."""
    if draft.chat:
        return tells(draft) and draft.asked.get("logprobs") is True and not draft.asked.get("top_logprobs")
    return tells(draft) and draft.asked.get("logprobs") == 0


def _top_all_the_same(report: dict[str, Any]) -> None:
    for entry in report.get("content") or ():
        entry["top_logprobs"] = [{name: entry[name] for name in ("token", "logprob", "bytes")}]
    if "tokens" in report:
        report["top_logprobs"] = [
            {token: logprob, " more": logprob - 30}
            for token, logprob in zip(report["tokens"], report["token_logprobs"], strict=True)
        ]


declare(
    "logprobs.top-unasked",
    "Likeliest tokens are told where none were asked for",
    "logprobs.no-top",
    each_report(_top_all_the_same),
    concerns=_alone,
)
declare(
    "logprobs.zero-breaks",
    "Asking for no likeliest tokens makes the server fail",
    ("logprobs.no-top", "error.no-5xx"),
    lambda draft: tell_raw(draft, 500, b"Internal Server Error", PLAIN),
    "vllm-project/vllm#4795",
    "vllm-project/tpu-inference#3572",
    concerns=_alone,
    stage=Stage.TEXT,
)


ignoring("logprobs.ids-ignored", "`logprob_token_ids` is ignored", "logprobs.ids-requested", "logprob_token_ids")
ignoring("logprobs.prompt-ignored", "`prompt_logprobs` is ignored", "logprobs.prompt", "prompt_logprobs")


def _on_prompts(draft: Draft) -> list[dict[str, Any]]:
    """What holds the reports on the prompts: a chat's answer, a text completion's choices."""
    holders = draft.choices if not draft.chat else [draft.body or {}]
    return [each for each in holders if each.get("prompt_logprobs")]


def _with_prompts(draft: Draft) -> bool:
    return wholes(draft) and bool(_on_prompts(draft))


def _each_on_prompts(change: Callable[[list[Any]], list[Any]]) -> Callable[[Draft], None]:
    def bend(draft: Draft) -> None:
        for holder in _on_prompts(draft):
            holder["prompt_logprobs"] = change(holder["prompt_logprobs"])

    return bend


declare(
    "logprobs.prompt-short",
    "The last token of a prompt has no report",
    "logprobs.prompt",
    _each_on_prompts(lambda report: report[:-1]),
    concerns=_with_prompts,
)
declare(
    "logprobs.prompt-first-told",
    "The first token of a prompt has log-probabilities",
    "logprobs.prompt-first",
    _each_on_prompts(lambda report: [report[1], *report[1:]]),
    "vllm-project/vllm#5334",
    concerns=_with_prompts,
)
declare(
    "logprobs.prompt-one-row",
    "Every token of a prompt has the same report",
    "logprobs.varied",
    _each_on_prompts(lambda report: [None, *report[1:2] * (len(report) - 1)]),
    "mobilint/vllm-mblt#8",
    concerns=_with_prompts,
)
