"""`logprobs.*`: numbers, tokens and offsets of log-probabilities that are wrong in themselves."""

import math
from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import declare
from streamgauge.reference.faults.fault import streams
from streamgauge.reference.faults.reports import (
    chat_tells,
    completions_tell,
    each_number,
    each_report,
    has_tops,
    reports_of,
    tells,
    tells_plainly,
    tops_of,
)

__all__: list[str] = []

_ARRAYS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
_LOWEST = -3.4028234663852886e38
"""The least 32-bit float."""


def _each_entry(change: Callable[[dict[str, Any]], Any]) -> Callable[[Draft], None]:
    """Of chat."""
    return each_report(lambda report: [change(entry) for entry in report["content"]])


def _taken_lowest(report: dict[str, Any]) -> None:
    for entry in report.get("content") or ():
        entry["logprob"] = _LOWEST
    if "tokens" in report:
        report["token_logprobs"] = [None if each is None else _LOWEST for each in report["token_logprobs"]]


declare(
    "logprobs.lowest-float",
    "A taken token has the least number of a type as its log-probability",
    "logprobs.finite",
    each_report(_taken_lowest),
    "sgl-project/sglang#5761",
    "sgl-project/sglang#5984",
    concerns=tells,
)
declare(
    "logprobs.probabilities",
    "Probabilities are told in the place of their logarithms",
    "logprobs.finite",
    each_number(math.exp),
    concerns=tells,
)


def _backwards(report: dict[str, Any]) -> None:
    for entry in report["content"]:
        entry["top_logprobs"].reverse()


declare(
    "logprobs.top-backwards",
    "The least likely of the likeliest tokens stands first",
    "logprobs.top-order",
    each_report(_backwards),
    concerns=lambda draft: (
        chat_tells(draft) and any(len(top) > 2 for each in reports_of(draft) for top in tops_of(each))
    ),
)


def _of_other_places(draft: Draft) -> None:
    """Each place has the likeliest tokens of the one before it."""
    rows: list[tuple[Any, Any]] = []
    for report in reports_of(draft):
        if "content" in report:
            rows += [(entry, "top_logprobs") for entry in report["content"]]
        else:
            rows += [(report["top_logprobs"], at) for at, top in enumerate(report["top_logprobs"]) if top]
    tops = [row[name] for row, name in rows]
    for (row, name), top in zip(rows, [*tops[-1:], *tops[:-1]], strict=True):
        row[name] = top


declare(
    "logprobs.top-of-other-places",
    "The likeliest tokens are those of the place before",
    "logprobs.top-sampled",
    _of_other_places,
    "sgl-project/sglang#2825",
    concerns=has_tops,
)
declare(
    "logprobs.zeros",
    "Every log-probability is 0",
    "logprobs.varied",
    each_number(lambda number: 0.0),
    "NVIDIA/TensorRT-LLM#2406",
    concerns=tells,
)


def _bytes_as_in_vocabulary(entry: dict[str, Any]) -> None:
    entry["bytes"] = list(entry["token"].replace(" ", "Ġ").encode())


def _as_in_vocabulary(report: dict[str, Any]) -> None:
    for entry in report.get("content") or ():
        entry["token"] = entry["token"].replace(" ", "Ġ")
        entry["bytes"] = None
        for each in entry["top_logprobs"]:
            each["token"] = each["token"].replace(" ", "Ġ")
    if "tokens" in report:
        report["tokens"] = [token.replace(" ", "Ġ") for token in report["tokens"]]
        report["top_logprobs"] = [
            top and {token.replace(" ", "Ġ"): each for token, each in top.items()} for top in report["top_logprobs"]
        ]


declare(
    "logprobs.bytes-of-vocabulary",
    "The bytes of tokens are those of the vocabulary's own writing",
    "logprobs.bytes",
    _each_entry(_bytes_as_in_vocabulary),
    "InternLM/lmdeploy#2802",
    concerns=chat_tells,
)
declare(
    "logprobs.tokens-of-vocabulary",
    "Tokens are told in the vocabulary's own writing",
    "logprobs.text",
    each_report(_as_in_vocabulary),
    "InternLM/lmdeploy#2802",
    concerns=tells_plainly,
)


def _last_lost(draft: Draft) -> None:
    report = reports_of(draft)[-1]
    for name in ("content",) if "content" in report else _ARRAYS:
        report[name].pop()


declare(
    "logprobs.last-lost",
    "The last token has no entry",
    "logprobs.count",
    _last_lost,
    "vllm-project/vllm#37737",
    concerns=tells_plainly,
)


def _left_of_prompt(draft: Draft) -> None:
    for report in reports_of(draft)[1:]:
        report["text_offset"] = [offset - len(draft.asked["prompt"]) for offset in report["text_offset"]]


declare(
    "logprobs.offsets-restart",
    "Behind an echoed prompt a stream's offsets begin anew",
    "logprobs.offsets",
    _left_of_prompt,
    "vllm-project/vllm#47815",
    concerns=lambda draft: (
        completions_tell(draft)
        and streams(draft)
        and bool(draft.asked.get("echo"))
        and isinstance(draft.asked["prompt"], str)
    ),
)
