"""`stop.*`: answers that go on where the request says to stop, or stop elsewhere."""

from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import Bend, declare, each_choice, ignoring, rewriting, texts_of
from streamgauge.reference.faults.fault import answers, streams, wholes

__all__: list[str] = []

Choice = dict[str, Any]


def _strings(asked: dict[str, Any]) -> list[str]:
    stop = asked.get("stop") or []
    return [stop] if isinstance(stop, str) else stop


def _stops_by_string(draft: Draft) -> bool:
    return answers(draft) and any(isinstance(choice.get("stop_reason"), str) for choice in draft.choices)


def _holder(draft: Draft, choice: Choice) -> tuple[dict[str, Any], str]:
    """The object that has a whole choice's text, and under which name."""
    return (choice["message"], "content") if draft.chat else (choice, "text")


def _last_texts(draft: Draft) -> dict[int, tuple[dict[str, Any], str]]:
    """Where the end of each choice's text is: in the whole choice, or in the last piece that has any."""
    if not draft.streamed:
        holders = {choice["index"]: _holder(draft, choice) for choice in draft.choices}
        return {index: (holder, name) for index, (holder, name) in holders.items() if holder[name]}
    return {index: (holder, name) for index, holder, name in texts_of(draft) if holder.get(name)}


def _at_the_end(change: Any) -> Bend:
    """Changes the end of the text of each choice that a stop string ended: the text and that string → the text."""

    def bend(draft: Draft) -> None:
        reasons = {choice["index"]: choice["stop_reason"] for choice in draft.choices if choice.get("stop_reason")}
        for index, (holder, name) in _last_texts(draft).items():
            if isinstance(reasons.get(index), str):
                holder[name] = change(holder[name], reasons[index])

    return bend


def _stopped(change: Any) -> Bend:
    """Changes the part of each choice that says which stop string ended it."""
    return each_choice(lambda choice: isinstance(choice.get("stop_reason"), str) and change(choice))


def _lose_held(draft: Draft) -> None:
    """What might have become a stop string is held back, and forgotten when the text ends."""
    ended = {choice["index"] for choice in draft.choices if choice.get("stop_reason")}
    for index, (holder, name) in _last_texts(draft).items():
        if index not in ended:
            holder[name] = _without_beginning(holder[name], _strings(draft.asked))


def _without_beginning(text: str, stops: list[str]) -> str:
    """The text without the beginning of a stop string at its end."""
    kept = (text[:-size] for stop in stops for size in range(len(stop) - 1, 0, -1) if text.endswith(stop[:size]))
    return next(kept, text)


ignoring(
    "stop.ignored", "Stop strings are ignored", "stop.honoured", "stop", seen=("jundot/omlx#1054", "dphnAI/sonar#742")
)
rewriting(
    "stop.ignored-in-streams",
    "Stop strings are ignored in streams",
    "stop.honoured",
    lambda asked: asked.get("stream") and _strings(asked),
    lambda asked: {**asked, "stop": None},
    seen=("mzau/mlx-knife#68",),
)
rewriting(
    "stop.only-first",
    "Of several stop strings only the first one counts",
    "stop.honoured",
    lambda asked: len(_strings(asked)) > 1,
    lambda asked: {**asked, "stop": _strings(asked)[:1]},
)
rewriting(
    "stop.one-token",
    "A stop string that several tokens make up is ignored",
    "stop.honoured",
    lambda asked: any(" " in stop[1:] for stop in _strings(asked)),
    lambda asked: {**asked, "stop": [stop for stop in _strings(asked) if " " not in stop[1:]]},
    seen=("ggml-org/llama.cpp#11538", "mzau/mlx-knife#68"),
)
declare(
    "stop.told-whole",
    "The stop string is left at the end of the text",
    "stop.honoured",
    _at_the_end(lambda text, stop: text + stop),
    "mzau/mlx-knife#68",
    concerns=lambda draft: _stops_by_string(draft) and not draft.asked.get("include_stop_str_in_output"),
)
declare(
    "stop.prefix-leaked",
    "A stream has sent the beginning of a stop string before it knows that it is one",
    "stop.no-prefix-leak",
    _at_the_end(lambda text, stop: text + stop[:-1]),
    "lm-sys/FastChat#1048",
    "vllm-project/vllm#3574",
    "SharpAI/SwiftLM#126",
    "huggingface/text-generation-inference#1254",
    concerns=lambda draft: (
        streams(draft) and _stops_by_string(draft) and not draft.asked.get("include_stop_str_in_output")
    ),
)
declare(
    "stop.held-lost",
    "What might have become a stop string is held back, and lost when the text ends",
    "stop.flush",
    _lose_held,
    "ggml-org/llama.cpp#15007",
    concerns=answers,
)
declare(
    "stop.too-early",
    "A stop string takes text with it that stands before it",
    "stop.exact",
    _at_the_end(lambda text, stop: text[: len(text) // 2]),
    concerns=lambda draft: wholes(draft) and _stops_by_string(draft),
)
declare(
    "stop.finish-length",
    "A choice that a stop string ended has the finish reason length",
    "stop.finish",
    _stopped(lambda choice: choice.update(finish_reason="length")),
    concerns=_stops_by_string,
)
declare(
    "stop.reason-missing",
    "Nobody tells which stop string ended a choice",
    "stop.reason-told",
    each_choice(lambda choice: choice.update(stop_reason=None)),
    concerns=answers,
)
declare(
    "stop.reason-other",
    "The stop reason is another text than the stop string",
    "stop.reason-told",
    _stopped(lambda choice: choice.update(stop_reason="stop")),
    concerns=_stops_by_string,
)
declare(
    "stop.reason-of-limit",
    "A choice that its limit ended has a stop reason",
    "stop.reason-told",
    each_choice(lambda choice: choice.get("finish_reason") == "length" and choice.update(stop_reason="length")),
    concerns=lambda draft: answers(draft) and not _strings(draft.asked),
)
ignoring(
    "stop.include-ignored",
    "A stop string that is to be included is not",
    "stop.included",
    "include_stop_str_in_output",
)
ignoring("stop.token-ids-ignored", "Stop tokens are ignored", "stop.token-ids", "stop_token_ids")
rewriting(
    "stop.many-refused",
    "More than three stop strings are refused",
    "stop.most-strings",
    lambda asked: len(_strings(asked)) > 3,
    lambda asked: {**asked, "stop": 3},
)
rewriting(
    "stop.empty-list-refused",
    "An empty list of stop strings is refused",
    "stop.empty-list",
    lambda asked: asked.get("stop") == [],
    lambda asked: {**asked, "stop": 0},
)
