"""`logprobs.*`: log-probabilities that lack, or do not fit the answer."""

import math
from collections.abc import Callable
from typing import Any

from streamgauge.contract.contract import JSON
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import declare, each_choice, ignoring
from streamgauge.reference.faults.fault import Stage, answers, streams, wholes
from streamgauge.reference.faults.telling import PLAIN, tell_raw

__all__: list[str] = []

_ARRAYS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
_LOWEST = -3.4028234663852886e38
"""The least 32-bit float."""

Reports = list[dict[str, Any]]
"""The `logprobs` of an answer's choices, chunk by chunk; each array has at least one entry."""


def _reports(draft: Draft) -> Reports:
    found = [choice.get("logprobs") for choice in draft.choices]
    return [each for each in found if each and (each.get("content") or each.get("tokens"))]


def _told(draft: Draft) -> bool:
    return answers(draft) and bool(_reports(draft))


def _plainly(draft: Draft) -> bool:
    """Tokens by their texts, of the answer alone."""
    return _told(draft) and not draft.asked.keys() & {"return_tokens_as_token_ids", "logprob_token_ids", "echo"}


def _whole(draft: Draft) -> bool:
    return wholes(draft) and _told(draft)


def _streamed(draft: Draft) -> bool:
    return streams(draft) and _told(draft)


def _in_chat(draft: Draft) -> bool:
    return draft.chat and _told(draft)


def _in_completions(draft: Draft) -> bool:
    return not draft.chat and _told(draft)


def _has_tops(draft: Draft) -> bool:
    return _plainly(draft) and any(len(top) > 1 for report in _reports(draft) for top in _tops(report))


def _tops(report: dict[str, Any]) -> list[Any]:
    content = report.get("content")
    tops = report["top_logprobs"] if content is None else [entry["top_logprobs"] for entry in content]
    return [top for top in tops if top]


def _lost(draft: Draft) -> None:
    for choice in draft.choices:
        choice["logprobs"] = None


def _each_report(change: Callable[[dict[str, Any]], Any]) -> Callable[[Draft], None]:
    def bend(draft: Draft) -> None:
        for report in _reports(draft):
            change(report)

    return bend


def _each_top(change: Callable[[Any], None]) -> Callable[[Draft], None]:
    """The lists, or objects, of the likeliest tokens."""

    def changed(report: dict[str, Any]) -> None:
        for top in _tops(report):
            change(top)

    return _each_report(changed)


def _each_entry(change: Callable[[dict[str, Any]], Any]) -> Callable[[Draft], None]:
    """Of chat."""
    return _each_report(lambda report: [change(entry) for entry in report["content"]])


def _each_number(change: Callable[[float], float]) -> Callable[[Draft], None]:
    """Of the tokens and of the likeliest ones."""

    def changed(report: dict[str, Any]) -> None:
        if "content" in report:
            for entry in report["content"]:
                for each in (entry, *entry["top_logprobs"]):
                    each["logprob"] = change(each["logprob"])
            return
        report["token_logprobs"] = [None if each is None else change(each) for each in report["token_logprobs"]]
        for top in _tops(report):
            top.update({token: change(each) for token, each in top.items()})

    return _each_report(changed)


ignoring(
    "logprobs.ignored",
    "Log-probabilities are not told, whoever asks for them",
    "logprobs.given",
    "logprobs",
    "top_logprobs",
    "logprob_token_ids",
    seen=("huggingface/text-generation-inference#2211", "InternLM/lmdeploy#2802"),
)
declare("logprobs.whole-lost", "Whole answers have no log-probabilities", "logprobs.given", _lost, concerns=_whole)
declare(
    "logprobs.stream-lost",
    "Streams have no log-probabilities",
    "logprobs.given",
    _lost,
    "abetlen/llama-cpp-python#197",
    concerns=_streamed,
)
declare(
    "logprobs.stream-base-two",
    "The log-probabilities of streams are to base 2, those of whole answers are not",
    "pair.logprobs",
    _each_number(lambda number: number / math.log(2)),
    concerns=_streamed,
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
    concerns=lambda draft: _told(draft) and draft.operation is not None and draft.operation.documents_body(200, JSON),
)
declare(
    "logprobs.uneven",
    "The arrays of the log-probabilities differ in length",
    "logprobs.lengths",
    _each_report(_uneven),
    "NVIDIA/TensorRT-LLM#18190",
    concerns=lambda draft: _in_completions(draft) and wholes(draft),
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
    _each_report(_no_tops),
    concerns=_in_completions,
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
    _each_top(_two_more),
    concerns=_has_tops,
)
declare(
    "logprobs.one-fewer",
    "Fewer of the likeliest tokens are told than were asked for",
    ("logprobs.top-count", "logprobs.count-asked"),
    _each_top(_two_less),
    concerns=_has_tops,
)


def _alone(draft: Draft) -> bool:
    """Log-probabilities without likeliest tokens."""
    if draft.chat:
        return _told(draft) and draft.asked.get("logprobs") is True and not draft.asked.get("top_logprobs")
    return _told(draft) and draft.asked.get("logprobs") == 0


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
    _each_report(_top_all_the_same),
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


def _taken_lowest(report: dict[str, Any]) -> None:
    for entry in report.get("content") or ():
        entry["logprob"] = _LOWEST
    if "tokens" in report:
        report["token_logprobs"] = [None if each is None else _LOWEST for each in report["token_logprobs"]]


declare(
    "logprobs.lowest-float",
    "A taken token has the least number of a type as its log-probability",
    "logprobs.finite",
    _each_report(_taken_lowest),
    "sgl-project/sglang#5761",
    "sgl-project/sglang#5984",
    concerns=_told,
)
declare(
    "logprobs.probabilities",
    "Probabilities are told in the place of their logarithms",
    "logprobs.finite",
    _each_number(math.exp),
    concerns=_told,
)


def _backwards(report: dict[str, Any]) -> None:
    for entry in report["content"]:
        entry["top_logprobs"].reverse()


declare(
    "logprobs.top-backwards",
    "The least likely of the likeliest tokens stands first",
    "logprobs.top-order",
    _each_report(_backwards),
    concerns=lambda draft: _in_chat(draft) and any(len(top) > 2 for each in _reports(draft) for top in _tops(each)),
)


def _of_other_places(draft: Draft) -> None:
    """Each place has the likeliest tokens of the one before it."""
    rows: list[tuple[Any, Any]] = []
    for report in _reports(draft):
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
    concerns=_has_tops,
)
declare(
    "logprobs.zeros",
    "Every log-probability is 0",
    "logprobs.varied",
    _each_number(lambda number: 0.0),
    "NVIDIA/TensorRT-LLM#2406",
    concerns=_told,
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
    concerns=_in_chat,
)
declare(
    "logprobs.tokens-of-vocabulary",
    "Tokens are told in the vocabulary's own writing",
    "logprobs.text",
    _each_report(_as_in_vocabulary),
    "InternLM/lmdeploy#2802",
    concerns=_plainly,
)


def _last_lost(draft: Draft) -> None:
    report = _reports(draft)[-1]
    for name in ("content",) if "content" in report else _ARRAYS:
        report[name].pop()


declare(
    "logprobs.last-lost",
    "The last token has no entry",
    "logprobs.count",
    _last_lost,
    "vllm-project/vllm#37737",
    concerns=_plainly,
)


def _left_of_prompt(draft: Draft) -> None:
    for report in _reports(draft)[1:]:
        report["text_offset"] = [offset - len(draft.asked["prompt"]) for offset in report["text_offset"]]


declare(
    "logprobs.offsets-restart",
    "Behind an echoed prompt a stream's offsets begin anew",
    "logprobs.offsets",
    _left_of_prompt,
    "vllm-project/vllm#47815",
    concerns=lambda draft: (
        _in_completions(draft)
        and streams(draft)
        and bool(draft.asked.get("echo"))
        and isinstance(draft.asked["prompt"], str)
    ),
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
