"""What an answer says it cost: right counts that look odd pass, wrong ones depart."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from transcripts import (
    chunked,
    chunks,
    contract_of,
    exchange,
    http,
    outcomes,
    request,
    sse,
    stream_request,
    usage,
    whole_answer,
)

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

IDS = tuple(id_ for id_ in CHECKS if id_.startswith("usage."))
WRONG = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN)

CONTINUOUS = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}


def outcomes_of(spec: str, *exchanges: Exchange) -> dict[str, Outcome]:
    """What the `usage.*` checks find."""
    every = outcomes(*contract_of(spec), *exchanges)
    return {id_: every[id_] for id_ in IDS}


def departed(spec: str, *exchanges: Exchange) -> set[str]:
    """Those that depart."""
    return {id_ for id_, outcome in outcomes_of(spec, *exchanges).items() if outcome in WRONG}


def whole(spec: str, change: Callable[[dict[str, Any]], Any], n: int = 1, **changes: Any) -> Exchange:
    """A whole answer, bent."""
    operation = contract_of(spec)[1]
    answer = copy.deepcopy(whole_answer(operation, n))
    change(answer)
    body = request(operation, **({"n": n} if n > 1 else {}), **changes)
    return exchange(operation, body, http(200, json.dumps(answer).encode()))


def counting(spec: str, counts: dict[str, Any], n: int = 1, reason: str = "length", **changes: Any) -> Exchange:
    """A whole answer with this usage, all of whose choices ended for one reason."""

    def change(answer: dict[str, Any]) -> None:
        answer["usage"] = counts
        for choice in answer["choices"]:
            choice["finish_reason"] = reason

    return whole(spec, change, n, **changes)


# --- the counts --------------------------------------------------------------------------------------------------------

WHOLES: dict[str, tuple[Exchange, set[str]]] = {
    "as many as the limit": (counting("seekr-chat", usage()), set()),
    "one token too few": (counting("seekr-chat", usage(completion=7)), {"usage.length"}),
    "one token of two choices too few": (counting("seekr-chat", usage(completion=15), n=2), {"usage.length"}),
    "one choice of two counted": (counting("seekr-chat", usage(completion=8), n=2), {"usage.all-choices"}),
    "an end of its own": (counting("seekr-chat", usage(completion=5), reason="stop"), set()),
    "a large limit, which the context undercuts": (
        counting("seekr-chat", usage(completion=900), max_tokens=4000),
        set(),
    ),
    "two limits that differ": (
        counting("seekr-chat", usage(completion=3), max_tokens=8, max_completion_tokens=4),
        set(),
    ),
    "more candidates than choices": (
        counting("openai-completions", usage(completion=15), best_of=2),
        set(),
    ),
    "no prompt tokens": (counting("seekr-chat", usage(prompt=0)), {"usage.counted"}),
    "nothing counted": (counting("seekr-chat", usage(0, 0)), {"usage.counted"}),
    "no token and no text": (
        whole(
            "seekr-chat",
            lambda answer: (
                answer["choices"][0].update(message={"role": "assistant", "content": ""}, finish_reason="stop")
                or answer.update(usage=usage(completion=0))
            ),
        ),
        set(),
    ),
    "no token and the prompt's text": (
        counting("seekr-completions", usage(completion=0), reason="stop", echo=True),
        set(),
    ),
    "a filter answered, so that no model read or wrote": (
        counting("seekr-chat", usage(0, 0), reason="content_filter"),
        set(),
    ),
    "an empty prompt": (counting("seekr-completions", usage(prompt=0), prompt=""), set()),
    "empty prompts": (counting("seekr-completions", usage(prompt=0), prompt=["", ""]), set()),
    "an empty prompt and one that is not": (
        counting("seekr-completions", usage(prompt=0), prompt=["", "a"]),
        {"usage.counted"},
    ),
    "the first token alone": (counting("seekr-completions", usage(prompt=0), prompt=[[0]]), {"usage.counted"}),
    "parts without text": (
        counting("seekr-chat", usage(prompt=0), messages=[{"role": "user", "content": [{"type": "text", "text": ""}]}]),
        set(),
    ),
    "parts with text": (
        counting(
            "seekr-chat", usage(prompt=0), messages=[{"role": "user", "content": [{"type": "text", "text": "a"}]}]
        ),
        {"usage.counted"},
    ),
    "messages without content": (
        counting("seekr-chat", usage(prompt=0), messages=[{"role": "user", "content": ""}]),
        set(),
    ),
    "a prompt of token ids": (counting("seekr-completions", usage(prompt=0), prompt=[1, 2]), {"usage.counted"}),
    "all of the prompt cached": (
        counting("seekr-chat", usage() | {"prompt_tokens_details": {"cached_tokens": 5}}),
        set(),
    ),
    "more cached than there is": (
        counting("seekr-chat", usage() | {"prompt_tokens_details": {"cached_tokens": 6}}),
        {"usage.cached"},
    ),
    "fewer than none cached": (
        counting("seekr-chat", usage() | {"prompt_tokens_details": {"cached_tokens": -1}}),
        {"usage.cached"},
    ),
    "null details": (
        counting("seekr-chat", usage() | {"prompt_tokens_details": None, "completion_tokens_details": None}),
        set(),
    ),
    "null in the details": (
        counting("seekr-chat", usage() | {"prompt_tokens_details": {"cached_tokens": None}}),
        set(),
    ),
    "nothing but reasoning": (
        counting("seekr-chat", usage() | {"completion_tokens_details": {"reasoning_tokens": 8}}),
        set(),
    ),
    "reasoning beside the completion": (
        counting(
            "seekr-chat",
            {
                "prompt_tokens": 21,
                "completion_tokens": 0,
                "total_tokens": 81,
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
        ),
        {"usage.reasoning", "usage.sum", "usage.counted"},
    ),
}


@pytest.mark.parametrize("case", WHOLES)
def test_what_a_whole_answer_counts(case: str) -> None:
    """Sums, limits and parts (lmstudio 2335, llama.cpp 27318, dify 2144, CLIProxyAPI 5733)."""
    each, expected = WHOLES[case]

    assert departed(each.operation, each) == expected


# --- where a stream brings it -------------------------------------------------------------------------------------------


def stream(change: Callable[[list[Any]], Any], n: int = 1, **changes: Any) -> Exchange:
    """A stream, bent."""
    operation = contract_of("seekr-chat")[1]
    payloads = copy.deepcopy(chunks(operation, n))
    change(payloads)
    body = stream_request(operation, **({"n": n} if n > 1 else {}), **changes)
    return exchange(operation, body, chunked(sse(payloads)))


def _counts(*completions: int | None) -> Callable[[list[Any]], Any]:
    """The completion tokens that each chunk tells; None for none at all."""

    def change(payloads: list[Any]) -> None:
        for payload, completion in zip(payloads, completions, strict=True):
            payload.pop("usage", None)
            if completion is not None:
                payload["usage"] = usage(completion=completion)

    return change


def _null_elsewhere(payloads: list[Any]) -> None:
    for payload in payloads[:-1]:
        payload["usage"] = None


def _uneven(payloads: list[Any]) -> None:
    _counts(0, 0, 4, 2, 8, 2, 8, 2, 10)(payloads)
    payloads[-2]["choices"][0]["finish_reason"] = "stop"


def _other_prompt(payloads: list[Any]) -> None:
    _counts(0, 4, 8, 8, 8)(payloads)
    payloads[1]["usage"] = usage(prompt=4, completion=4)


STREAMS: dict[str, tuple[Exchange, set[str]]] = {
    "once": (stream(lambda payloads: None), set()),
    "null in all others": (stream(_null_elsewhere), set()),
    "in every chunk": (stream(_counts(0, 4, 8, 8, 8)), {"usage.stream-once"}),
    "beside the end and apart": (stream(_counts(None, None, None, 8, 8)), {"usage.stream-once"}),
    "continuous": (stream(_counts(0, 4, 8, 8, 8), **CONTINUOUS), set()),
    "continuous, two tokens in a chunk": (stream(_counts(2, 2, 8, 8, 8), **CONTINUOUS), set()),
    "continuous, by choice as vLLM counts": (
        stream(_counts(0, 0, 4, 4, 8, 8, 8, 8, 16), n=2, **CONTINUOUS),
        set(),
    ),
    "continuous, over all choices": (
        stream(_counts(0, 0, 4, 8, 12, 16, 16, 16, 16), n=2, **CONTINUOUS),
        set(),
    ),
    "continuous, one of two choices ends first": (
        stream(_uneven, n=2, **CONTINUOUS),
        set(),
    ),
    "continuous ignored": (stream(lambda payloads: None, **CONTINUOUS), {"usage.stream-continuous"}),
    "continuous but for the first": (
        stream(_counts(None, 4, 8, 8, 8), **CONTINUOUS),
        {"usage.stream-continuous"},
    ),
    "continuous, falling": (stream(_counts(0, 8, 4, 8, 8), **CONTINUOUS), {"usage.stream-continuous"}),
    "continuous, stuck": (stream(_counts(0, 0, 0, 0, 8), **CONTINUOUS), {"usage.stream-continuous"}),
    "continuous, fewer at the end": (
        stream(_counts(0, 0, 8, 8, 16, 16, 16, 16, 8), n=2, **CONTINUOUS),
        {"usage.stream-continuous", "usage.all-choices"},
    ),
    "continuous, another prompt": (stream(_other_prompt, **CONTINUOUS), {"usage.stream-continuous"}),
}


@pytest.mark.parametrize("case", STREAMS)
def test_where_a_stream_brings_its_usage(case: str) -> None:
    """Once, at its end; in every chunk where that was asked for (vllm 7262, sglang 12241)."""
    each, expected = STREAMS[case]

    assert departed("seekr-chat", each) == expected


@pytest.mark.parametrize(("prompts", "trips"), [(["a b c", "a b c d"], False), ("a b c", True)])
def test_each_of_several_prompts_may_be_counted_apart(prompts: Any, trips: bool) -> None:
    """By vLLM each chunk counts the prompt that it belongs to, and the last one all of them."""
    operation = contract_of("seekr-completions")[1]
    base = {name: value for name, value in chunks(operation)[0].items() if name != "choices"}

    def piece(index: int, tokens: int, reason: str | None) -> dict[str, Any]:
        choice = {"index": index, "text": " x", "finish_reason": reason}
        return {**base, "choices": [choice], "usage": usage(3 + index, tokens)}

    indexes = range(len(prompts)) if isinstance(prompts, list) else range(1)
    payloads = [piece(index, 1, None) for index in indexes] + [piece(index, 2, "length") for index in indexes]
    payloads.append({**base, "choices": [], "usage": usage(7, 2 * len(indexes))})
    body = stream_request(operation, prompt=prompts, max_tokens=2, **CONTINUOUS)
    each = exchange(operation, body, chunked(sse(payloads)))

    assert departed("seekr-completions", each) == ({"usage.stream-continuous"} if trips else set())


@pytest.mark.parametrize(
    ("interim", "expected"),
    [((None, None, None), Outcome.IGNORED), ((None, 4, 8), Outcome.FAIL), ((0, 4, 8), Outcome.PASS)],
)
def test_usage_at_the_end_of_a_choice_is_none_in_every_chunk(
    interim: tuple[int | None, ...], expected: Outcome
) -> None:
    """Ignored is what llama.cpp does, which tells usage with the end of each choice, asked for or not."""
    operation = contract_of("seekr-completions")[1]
    base = {name: value for name, value in chunks(operation)[0].items() if name != "choices"}
    payloads = [
        {
            **base,
            "choices": [{"index": 0, "text": " x", "finish_reason": reason}],
            "usage": spent if spent is None else usage(3, spent),
        }
        for spent, reason in (*((each, None) for each in interim), (8, "length"))
    ]
    payloads.append({**base, "choices": [], "usage": usage(3, 8)})
    each = exchange(operation, stream_request(operation, **CONTINUOUS), chunked(sse(payloads)))

    assert outcomes_of("seekr-completions", each)["usage.stream-continuous"] is expected


def test_continuous_usage_is_no_promise_of_a_document_without_it() -> None:
    """OpenAI's API has no `continuous_usage_stats`: whoever ignores it is right."""
    operation = contract_of("openai-chat")[1]
    each = exchange(operation, stream_request(operation, **CONTINUOUS), chunked(sse(chunks(operation))))

    assert outcomes_of("openai-chat", each)["usage.stream-continuous"] is Outcome.NOT_APPLICABLE


# --- the times ---------------------------------------------------------------------------------------------------------

TIMES: dict[str, tuple[Any, Outcome]] = {
    "times that can be": ({"time_to_first_token_ms": 8.0, "generation_time_ms": 2, "mean_itl_ms": 0.3}, Outcome.PASS),
    "clocks that differ a little": ({"time_to_first_token_ms": 40.0}, Outcome.PASS),
    "nulls": ({"time_to_first_token_ms": None, "queue_time_ms": None}, Outcome.PASS),
    "a rate is no time": ({"tokens_per_second": 4000.0}, Outcome.PASS),
    "negative": ({"queue_time_ms": -0.1}, Outcome.WARN),
    "a negative rate": ({"tokens_per_second": -1.0}, Outcome.WARN),
    "longer than the exchange": ({"generation_time_ms": 10_000.0}, Outcome.WARN),
    "no metrics": (None, Outcome.NOT_RUN),
}


@pytest.mark.parametrize("case", TIMES)
def test_the_times_that_a_server_tells_can_be_true(case: str) -> None:
    """The exchange took 10 ms: what happened inside of it took no longer."""
    metrics, expected = TIMES[case]

    found = outcomes_of("seekr-chat", whole("seekr-chat", lambda answer: answer.update(metrics=metrics)))

    assert found["usage.metrics"] is expected


def test_the_metrics_of_a_stream_are_those_of_its_last_chunk() -> None:
    """Both forms tell them."""
    each = stream(lambda payloads: payloads[-1].update(metrics={"queue_time_ms": -1}))

    assert departed("seekr-chat", each) == {"usage.metrics"}
