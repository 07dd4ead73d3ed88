"""The log-probabilities of an answer, so that faults can bend them."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import answers, streams, wholes

__all__ = [
    "chat_tells",
    "completions_tell",
    "each_number",
    "each_report",
    "each_top",
    "has_tops",
    "reports_of",
    "streams_tell",
    "tells",
    "tells_plainly",
    "tops_of",
    "wholes_tell",
]

Reports = list[dict[str, Any]]
"""The `logprobs` of an answer's choices, chunk by chunk; each array has at least one entry."""


def reports_of(draft: Draft) -> Reports:
    """The `logprobs` of all choices, or pieces of them, that hold a token."""
    found = [choice.get("logprobs") for choice in draft.choices]
    return [each for each in found if each and (each.get("content") or each.get("tokens"))]


def tells(draft: Draft) -> bool:
    """An answer with log-probabilities."""
    return answers(draft) and bool(reports_of(draft))


def tells_plainly(draft: Draft) -> bool:
    """Tokens by their texts, of the answer alone."""
    return tells(draft) and not draft.asked.keys() & {"return_tokens_as_token_ids", "logprob_token_ids", "echo"}


def wholes_tell(draft: Draft) -> bool:
    """An answer in one piece that has them."""
    return wholes(draft) and tells(draft)


def streams_tell(draft: Draft) -> bool:
    """A streamed answer that has them."""
    return streams(draft) and tells(draft)


def chat_tells(draft: Draft) -> bool:
    """A chat's answer that has them."""
    return draft.chat and tells(draft)


def completions_tell(draft: Draft) -> bool:
    """A text completion that has them."""
    return not draft.chat and tells(draft)


def has_tops(draft: Draft) -> bool:
    """Tokens by their texts, with several of the likeliest at some place."""
    return tells_plainly(draft) and any(len(top) > 1 for report in reports_of(draft) for top in tops_of(report))


def tops_of(report: dict[str, Any]) -> list[Any]:
    """The likeliest tokens of each place that has any."""
    content = report.get("content")
    tops = report["top_logprobs"] if content is None else [entry["top_logprobs"] for entry in content]
    return [top for top in tops if top]


def each_report(change: Callable[[dict[str, Any]], Any]) -> Callable[[Draft], None]:
    """Every `logprobs` with a token in it; what the change returns counts for nothing."""

    def bend(draft: Draft) -> None:
        for report in reports_of(draft):
            change(report)

    return bend


def each_top(change: Callable[[Any], None]) -> Callable[[Draft], None]:
    """The lists, or objects, of the likeliest tokens."""

    def changed(report: dict[str, Any]) -> None:
        for top in tops_of(report):
            change(top)

    return each_report(changed)


def each_number(change: Callable[[float], float]) -> Callable[[Draft], None]:
    """Of the tokens and of the likeliest ones."""

    def changed(report: dict[str, Any]) -> None:
        if "content" in report:
            for entry in report["content"]:
                for each in (entry, *entry["top_logprobs"]):
                    each["logprob"] = change(each["logprob"])
            return
        report["token_logprobs"] = [None if each is None else change(each) for each in report["token_logprobs"]]
        for top in tops_of(report):
            top.update({token: change(each) for token, each in top.items()})

    return each_report(changed)
