"""Why and when a choice ended: right answers that look odd pass, wrong ones depart."""

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

IDS = tuple(id_ for id_ in CHECKS if id_.startswith("finish."))

TOOLS = [{"type": "function", "function": {"name": "f"}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
NAMED = {"type": "function", "function": {"name": "f"}}


def outcomes_of(spec: str, *exchanges: Exchange) -> dict[str, Outcome]:
    """What the `finish.*` checks find."""
    every = outcomes(*contract_of(spec), *exchanges)
    return {id_: every[id_] for id_ in IDS}


def departed(spec: str, *exchanges: Exchange) -> set[str]:
    """Those that depart."""
    return {id_ for id_, outcome in outcomes_of(spec, *exchanges).items() if outcome in (Outcome.FAIL, Outcome.WARN)}


def whole(spec: str, change: Callable[[dict[str, Any]], Any] = lambda answer: None, **changes: Any) -> Exchange:
    """A whole answer, bent."""
    operation = contract_of(spec)[1]
    answer = copy.deepcopy(whole_answer(operation))
    change(answer)
    return exchange(operation, request(operation, **changes), http(200, json.dumps(answer).encode()))


def stream(spec: str, change: Callable[[list[Any]], Any] = lambda payloads: None, **changes: Any) -> Exchange:
    """A stream, bent."""
    operation = contract_of(spec)[1]
    payloads = copy.deepcopy(chunks(operation))
    change(payloads)
    return exchange(operation, stream_request(operation, **changes), chunked(sse(payloads)))


def _reasons(payloads: list[Any], interim: Any, last: Any) -> None:
    for payload in payloads:
        for choice in payload["choices"]:
            choice["finish_reason"] = interim if choice["finish_reason"] is None else last


# --- the word, and when it comes ---------------------------------------------------------------------------------------

STREAMS: dict[str, tuple[Callable[[list[Any]], Any], set[str]]] = {
    "null until the end": (lambda payloads: None, set()),
    "with the last text": (lambda payloads: payloads.pop(-2) and _reasons(payloads[-2:-1], "length", None), set()),
    "empty until the end": (lambda payloads: _reasons(payloads, "", "length"), {"finish.null-until-end"}),
    "empty at the end as well": (
        lambda payloads: _reasons(payloads, "", ""),
        {"finish.null-until-end", "finish.stream-once"},
    ),
    "null at the end": (lambda payloads: _reasons(payloads, None, None), {"finish.stream-once"}),
    "on every chunk": (
        lambda payloads: _reasons(payloads, "stop", "stop"),
        {"finish.stream-once", "finish.nothing-after"},
    ),
    "no key until the end": (
        lambda payloads: [payload["choices"][0].pop("finish_reason") for payload in payloads[:2]],
        {"finish.key-present"},
    ),
    "a word of another vendor": (lambda payloads: _reasons(payloads, None, "end_turn"), {"finish.stream-reason"}),
    "no text": (lambda payloads: _reasons(payloads, None, 7), {"finish.stream-reason"}),
}


@pytest.mark.parametrize("case", STREAMS)
def test_when_a_streamed_choice_ends(case: str) -> None:
    """Null until the end, then one known word, and nothing behind it (ollama 4357, sglang 3912, gcli2api 403)."""
    change, expected = STREAMS[case]

    assert departed("seekr-chat", stream("seekr-chat", change)) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({}, Outcome.WARN), ({"repetition_detection": {"max_pattern_size": 1, "min_count": 4}}, Outcome.NOT_RUN)],
)
def test_who_asks_for_an_end_at_repetitions_may_get_a_word_for_it(asked: dict[str, Any], expected: Outcome) -> None:
    """Clients' lists have none (vLLM says `repetition`)."""
    answer = whole("seekr-chat", lambda body: body["choices"][0].update(finish_reason="repetition"), **asked)
    streamed = stream("seekr-chat", lambda payloads: _reasons(payloads, None, "repetition"), **asked)

    assert outcomes_of("seekr-chat", answer)["finish.whole"] is expected
    assert outcomes_of("seekr-chat", streamed)["finish.stream-reason"] is expected


def test_a_stream_without_choices_says_nothing_about_their_reasons() -> None:
    """Where no chunk has a choice, `chunk.choice-indexes` says so, and nothing is known of the key."""
    found = outcomes_of("seekr-chat", stream("seekr-chat", lambda payloads: payloads.__delitem__(slice(0, -1))))

    assert found["finish.key-present"] is found["finish.null-until-end"] is Outcome.NOT_RUN


# --- tool calls --------------------------------------------------------------------------------------------------------


def _calls(reason: str, calls: Any = (CALL,)) -> Callable[[dict[str, Any]], Any]:
    def change(answer: dict[str, Any]) -> None:
        message = {"role": "assistant", "content": None, **({"tool_calls": list(calls)} if calls is not None else {})}
        answer["choices"][0].update(message=message, finish_reason=reason)

    return change


def _streams_calls(reason: str, *deltas: Any) -> Callable[[list[Any]], Any]:
    def change(payloads: list[Any]) -> None:
        for payload, delta in zip(payloads[1:3], deltas or ({"tool_calls": [{"index": 0, **CALL}]}, {}), strict=True):
            payload["choices"][0]["delta"] = delta
        _reasons(payloads, None, reason)

    return change


CALLS: dict[str, tuple[Exchange, set[str]]] = {
    "calls": (whole("seekr-chat", _calls("tool_calls"), tools=TOOLS), set()),
    "no member for calls": (whole("seekr-chat", _calls("tool_calls", None), tools=TOOLS), {"finish.tool-calls"}),
    "no call in the array": (whole("seekr-chat", _calls("tool_calls", ())), {"finish.tool-calls"}),
    "stop behind calls": (whole("seekr-chat", _calls("stop"), tools=TOOLS), {"finish.calls-told"}),
    "stop behind calls that the model must make": (
        whole("seekr-chat", _calls("stop"), tools=TOOLS, tool_choice="required"),
        {"finish.calls-told"},
    ),
    "stop behind the call that the request names": (
        whole("seekr-chat", _calls("stop"), tools=TOOLS, tool_choice=NAMED),
        set(),
    ),
    "tool_calls behind the call that the request names": (
        whole("seekr-chat", _calls("tool_calls"), tools=TOOLS, tool_choice=NAMED),
        set(),
    ),
    "a call that the limit cut": (whole("seekr-chat", _calls("length"), tools=TOOLS), set()),
    "a function by its older name": (
        whole(
            "seekr-chat",
            lambda answer: answer["choices"][0].update(
                message={"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                finish_reason="function_call",
            ),
        ),
        set(),
    ),
    "stop behind the function that the request names": (
        whole(
            "seekr-chat",
            lambda answer: answer["choices"][0].update(
                message={"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                finish_reason="stop",
            ),
            functions=[{"name": "f"}],
            function_call={"name": "f"},
        ),
        set(),
    ),
    "calls in a stream": (stream("seekr-chat", _streams_calls("tool_calls"), tools=TOOLS), set()),
    "stop behind calls in a stream": (
        stream("seekr-chat", _streams_calls("stop"), tools=TOOLS),
        {"finish.calls-told"},
    ),
    "no calls in a stream": (
        stream("seekr-chat", _streams_calls("tool_calls", {"content": "x"}, {}), tools=TOOLS),
        {"finish.tool-calls"},
    ),
    "an empty array in a stream": (
        stream("seekr-chat", _streams_calls("tool_calls", {"tool_calls": []}, {}), tools=TOOLS),
        {"finish.tool-calls"},
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_tool_calls_and_their_reason_come_together(case: str) -> None:
    """Not so for a function that the request names: OpenAI and vLLM answer `stop` there (vllm 25054)."""
    each, expected = CALLS[case]

    assert departed("seekr-chat", each) == expected


# --- the limit ---------------------------------------------------------------------------------------------------------


def _stopped(tokens: int, text: str = "one two") -> Callable[[dict[str, Any]], Any]:
    def change(answer: dict[str, Any]) -> None:
        answer["choices"][0].update(message={"role": "assistant", "content": text}, finish_reason="stop")
        answer["usage"] = usage(completion=tokens)

    return change


LIMITS: dict[str, tuple[Exchange, Outcome]] = {
    "one visible token": (whole("seekr-chat", _stopped(1), max_tokens=1), Outcome.FAIL),
    "min_tokens keeps the model from ending": (whole("seekr-chat", _stopped(8), min_tokens=8), Outcome.FAIL),
    "the last token ends the answer": (whole("seekr-chat", _stopped(8)), Outcome.NOT_RUN),
    "the only token ends the answer": (whole("seekr-chat", _stopped(1, ""), max_tokens=1), Outcome.NOT_RUN),
    "ignore_eos may be ignored": (whole("seekr-chat", _stopped(8), ignore_eos=True), Outcome.NOT_RUN),
    "a stop string ends it": (whole("seekr-chat", _stopped(1), max_tokens=1, stop=["x"]), Outcome.NOT_RUN),
    "a grammar ends it": (
        whole("seekr-chat", _stopped(1), max_tokens=1, structured_outputs={"choice": ["one"]}),
        Outcome.NOT_RUN,
    ),
    "a prompt in the answer": (whole("seekr-chat", _stopped(1), max_tokens=1, echo=True), Outcome.NOT_RUN),
    "fewer tokens than allowed": (whole("seekr-chat", _stopped(7), min_tokens=8), Outcome.NOT_RUN),
    "two limits": (whole("seekr-chat", _stopped(1), max_tokens=1, max_completion_tokens=4), Outcome.NOT_RUN),
    "an invalid request": (whole("seekr-chat", _stopped(1), max_tokens=1, temperature="x"), Outcome.NOT_RUN),
    "an unknown property": (whole("seekr-chat", _stopped(1), max_tokens=1, x_unknown=1), Outcome.FAIL),
    "length": (
        whole("seekr-chat", lambda answer: answer.update(usage=usage(completion=1)), max_tokens=1),
        Outcome.PASS,
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_what_only_the_limit_can_have_ended_says_length(case: str) -> None:
    """A natural end may fall on the last token that is allowed: the check judges where it cannot have."""
    each, expected = LIMITS[case]

    assert outcomes_of("seekr-chat", each)["finish.length"] is expected


def test_the_limit_of_a_stream_says_length() -> None:
    """The streamed form is a code path of its own."""

    def change(payloads: list[Any]) -> None:
        _reasons(payloads, None, "stop")
        payloads[-1]["usage"] = usage(completion=1)

    assert departed("seekr-chat", stream("seekr-chat", change, max_tokens=1)) == {"finish.length"}
