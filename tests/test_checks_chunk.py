"""What a stream's chunks hold: right streams that look odd pass, wrong ones depart. Sources are clients that broke on them."""

from collections.abc import Callable
from typing import Any

import pytest
from transcripts import CREATED, MODEL, chunked, chunks, contract_of, exchange, outcomes, sse, stream_request, usage

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome

Payloads = list[dict[str, Any]]

IDS = (
    "chunk.choices-present",
    "chunk.created-integer",
    "chunk.created-seconds",
    "chunk.delta-cumulative",
    "chunk.model",
    "chunk.no-empty-calls",
    "chunk.role-null",
    "chunk.text",
)


def found(spec: str, payloads: Payloads, **changes: Any) -> dict[str, Outcome]:
    """The outcomes of the checks above for one stream."""
    contract, operation = contract_of(spec)
    each = exchange(operation, stream_request(operation, **changes), chunked(sse(payloads)))
    every = outcomes(contract, operation, each)
    return {id_: every[id_] for id_ in IDS}


def departed(spec: str, payloads: Payloads, **changes: Any) -> set[str]:
    """Those of them that depart."""
    return {id_ for id_, outcome in found(spec, payloads, **changes).items() if outcome in (Outcome.FAIL, Outcome.WARN)}


def saying(spec: str, *texts: str, counted: int = 8) -> Payloads:
    """A right stream that says these pieces."""
    operation = contract_of(spec)[1]
    right = chunks(operation)
    piece = next(each for each in right if _text(each))
    told = [{**piece, "choices": [_with_text(piece["choices"][0], text)]} for text in texts]
    first = [each for each in right if "role" in str(each["choices"])][:1]
    return [*first, *told, right[-2], {**right[-1], "usage": usage(completion=counted)}]


def _text(payload: dict[str, Any]) -> str:
    [choice] = payload["choices"] or [{}]
    return str(choice.get("delta", {}).get("content") or choice.get("text") or "")


def _with_text(choice: dict[str, Any], text: str) -> dict[str, Any]:
    return {**choice, "delta": {"content": text}} if "delta" in choice else {**choice, "text": text}


SPECS = ("seekr-chat", "openai-completions")

# --- chunks that repeat what was said ----------------------------------------------------------------------------------

NOT_CUMULATIVE: dict[str, tuple[str, ...]] = {
    "ordinary": (" one", " two", " three", " four"),
    "the same token again": (" no", " no", " no", " no"),
    "a run of dashes in tokens of growing length": ("-", "--", "---", "----"),
    "several tokens of a loop in each piece": ("ha ", "ha ha ", "ha ha ha "),
    "white space of growing length": (" ", "  ", "    "),
    "two pieces": ("a", "ab"),
    "two different pieces": ("a", "ab", "ab"),
    "a loop that grows and rests": ("ha ", "ha ", "ha ha ", "ha ha ", "ha ha ha "),
    "growth that ends": (" a", " a b", " a b c", " d"),
    "one begins like the one before it": ("in", "into", "x", "y"),
    "one piece": ("all of it",),
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("case", NOT_CUMULATIVE)
def test_a_model_that_repeats_itself_is_not_cumulative(spec: str, case: str) -> None:
    """Tokens may begin alike, repeat and grow: only pieces that repeat a text of several words are no deltas."""
    assert departed(spec, saying(spec, *NOT_CUMULATIVE[case])) == set()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "texts",
    [
        ("one", "one two", "one two three"),
        ("1", "1,", "1, 2", "1, 2,", "1, 2, 3"),
        ("one", "one two", "one two three", "one two three"),  # the last chunk says it once more
        ("one", "one", "one two", "one two", "one two three"),  # tokens without text
    ],
)
def test_pieces_that_repeat_all_of_the_text_are_found(spec: str, texts: tuple[str, ...]) -> None:
    """`delta` and `text` are what is new: clients put the pieces one behind the other."""
    assert departed(spec, saying(spec, *texts)) == {"chunk.delta-cumulative"}


def test_two_choices_are_judged_apart() -> None:
    """Pieces of two choices alternate; either one may be cumulative."""
    operation = contract_of("seekr-chat")[1]
    right = chunks(operation, 2)
    [first, second, *_] = [each for each in right if _text(each)]
    told = [
        {**each, "choices": [_with_text(each["choices"][0], text)]}
        for text in ("a", "ab", "abc")
        for each in (first, second)
    ]
    payloads = [*right[:2], *told, *right[-3:]]

    assert departed("seekr-chat", payloads, n=2) == {"chunk.delta-cumulative"}


# --- tokens without a text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_tokens_that_show_nothing_are_found(spec: str) -> None:
    """Eight tokens and no character: nobody knows what was paid for."""
    assert departed(spec, saying(spec)) == {"chunk.text"}


SILENT: dict[str, tuple[Payloads, dict[str, Any]]] = {
    "the model ended at once": (saying("openai-chat", counted=1), {}),
    "control tokens": (saying("openai-chat", counted=3), {}),
    "a stop string came first": (
        [
            {**each, "choices": [{**choice, "finish_reason": "stop"} for choice in each["choices"]]}
            if "'length'" in str(each)
            else each
            for each in saying("openai-chat")
        ],
        {"stop": ["one"]},
    ),
    "a filter took it": (
        [
            {**each, "choices": [{**choice, "finish_reason": "content_filter"} for choice in each["choices"]]}
            if "'length'" in str(each)
            else each
            for each in saying("openai-chat")
        ],
        {},
    ),
    "all tokens are reasoning, which is counted and not shown": (
        [
            *saying("openai-chat")[:-1],
            {
                **saying("openai-chat")[-1],
                "usage": usage() | {"completion_tokens_details": {"reasoning_tokens": 8}},
            },
        ],
        {},
    ),
}


@pytest.mark.parametrize("case", SILENT)
def test_answers_may_be_empty_for_a_reason(case: str) -> None:
    """A right server has nothing to show where the model ended, was stopped, filtered, or only thought."""
    payloads, changes = SILENT[case]

    assert "chunk.text" not in departed("openai-chat", payloads, **changes)


def test_reasoning_that_is_to_be_hidden_is_no_silence() -> None:
    """`include_reasoning: false`: the tokens are counted, and the request itself hides them."""
    assert departed("seekr-chat", saying("seekr-chat"), include_reasoning=False) == set()


@pytest.mark.parametrize("delta", [{"reasoning": "hm"}, {"reasoning_content": "hm"}, {"refusal": "no"}])
def test_anything_that_is_said_counts(delta: dict[str, str]) -> None:
    """Reasoning under either name, and a refusal, are an answer."""
    payloads = saying("openai-chat")
    payloads.insert(1, {**payloads[0], "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    assert departed("openai-chat", payloads) == set()


# --- the frame ---------------------------------------------------------------------------------------------------------


def _bent(change: Callable[[dict[str, Any]], Any]) -> Payloads:
    payloads = saying("seekr-chat", "one", " two", " three")
    for each in payloads:
        change(each)
    return payloads


FRAMES: dict[str, tuple[Payloads, set[str]]] = {
    "the model's version": (_bent(lambda each: each.update(model=f"{MODEL}-2024-08-06")), set()),
    "the model's older version": (_bent(lambda each: each.update(model=f"{MODEL}-0613")), set()),
    "a larger model": (_bent(lambda each: each.update(model=f"{MODEL}-70b")), {"chunk.model"}),
    "a file": (_bent(lambda each: each.update(model=f"/models/{MODEL}.gguf")), {"chunk.model"}),
    "no model": (_bent(lambda each: each.pop("model")), set()),
    "a float": (_bent(lambda each: each.update(created=float(CREATED))), {"chunk.created-integer"}),
    "a text": (_bent(lambda each: each.update(created=str(CREATED))), {"chunk.created-integer"}),
    "a truth value": (_bent(lambda each: each.update(created=True)), {"chunk.created-integer"}),
    "milliseconds": (_bent(lambda each: each.update(created=CREATED * 1000)), {"chunk.created-seconds"}),
    "an immense number": (_bent(lambda each: each.update(created=10**400)), {"chunk.created-seconds"}),
    "a slow clock": (_bent(lambda each: each.update(created=CREATED - 3600)), set()),
    "null usage in every chunk": (_bent(lambda each: each.setdefault("usage", None)), set()),
}


@pytest.mark.parametrize("case", FRAMES)
def test_the_frame_of_a_chunk(case: str) -> None:
    """OpenAI answers with a dated version of the model; `created` is an integer of seconds (Rust and .NET clients)."""
    payloads, expected = FRAMES[case]

    assert departed("seekr-chat", payloads) == expected


# --- choices and deltas ------------------------------------------------------------------------------------------------


def test_a_chunk_without_choice_and_usage_is_found() -> None:
    """Azure's first chunk, before the model said anything: clients take the first choice without looking."""
    payloads = saying("seekr-chat", "one")
    payloads.insert(0, {**payloads[0], "choices": [], "prompt_filter_results": []})

    assert departed("seekr-chat", payloads) == {"chunk.choices-present"}


DELTAS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "null role": ({"role": None, "content": "x"}, {"chunk.role-null"}),
    "no role": ({"content": "x"}, set()),
    "null content": ({"content": None}, set()),
    "an empty array of calls": ({"content": "x", "tool_calls": []}, {"chunk.no-empty-calls"}),
    "a call": ({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f"}}]}, set()),
    "nothing": ({}, set()),
}


@pytest.mark.parametrize("case", DELTAS)
def test_deltas_leave_out_what_is_not_new(case: str) -> None:
    """Strict clients (AI SDK up to 3.3, Spring AI) stop at a null role and at an empty array of calls."""
    delta, expected = DELTAS[case]
    payloads = saying("seekr-chat", "one")
    payloads.insert(2, {**payloads[1], "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    assert departed("seekr-chat", payloads) == expected


def test_the_first_delta_with_a_null_role_is_one_fault() -> None:
    """`chunk.role-first` judges the first delta, `chunk.role-null` the others."""
    payloads = saying("seekr-chat", "one")
    payloads[0]["choices"][0]["delta"]["role"] = None

    assert departed("seekr-chat", payloads) == set()


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        ({}, Outcome.WARN),
        ({"add_generation_prompt": True}, Outcome.WARN),
        ({"add_generation_prompt": None}, Outcome.WARN),
        ({"add_generation_prompt": False}, Outcome.NOT_RUN),
    ],
)
def test_only_a_stream_that_goes_on_with_the_users_message_may_have_its_role(
    asked: dict[str, Any], outcome: Outcome
) -> None:
    """Asked by `add_generation_prompt: false`, vLLM names the role of the last message, and rightly so."""
    contract, operation = contract_of("seekr-chat")
    payloads = saying("seekr-chat", "one")
    payloads[0]["choices"][0]["delta"]["role"] = "user"
    each = exchange(operation, stream_request(operation, **asked), chunked(sse(payloads)))

    assert outcomes(contract, operation, each)["chunk.role-first"] is outcome
