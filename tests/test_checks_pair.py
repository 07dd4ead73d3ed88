"""The two forms of one answer: what differs between them departs as far as the answers of one form do not."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

CONTRACT, CHAT = contract_of("openai-chat")
_, TEXT = contract_of("openai-completions")
IDS = tuple(id_ for id_ in CHECKS if id_.startswith(("pair.", "tools.")))
FAIL, WARN, UNCLEAR = Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE
QUIET = (Outcome.PASS, Outcome.NOT_RUN, Outcome.NOT_APPLICABLE)

Body = dict[str, Any]
Made = Callable[[], list[Exchange]]

_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


class Server:
    """Exchanges of one question: as many answers of each form as wanted, each numbered."""

    def __init__(self, spec: str = "openai-chat", **asked: Any) -> None:
        self.contract, self.operation = contract_of(spec)
        self.asked = {"temperature": 0, **asked}
        self.exchanges: list[Exchange] = []

    def whole(self, *bodies: Body) -> "Server":
        """The question was asked once for each body."""
        for body in bodies:
            content = json.dumps(body).encode()
            self._add(request(self.operation, **self.asked), http(200, content))
        return self

    def streamed(self, *streams: list[Body], done: bool = True) -> "Server":
        """The question was asked once for each stream."""
        for payloads in streams:
            asked = {**self.asked, "stream": True, "stream_options": {"include_usage": True}}
            self._add(request(self.operation, **asked), chunked(sse(payloads, done=done)))
        return self

    def _add(self, body: Body, wire: bytes) -> None:
        self.exchanges.append(exchange(self.operation, body, wire, probe=f"p{len(self.exchanges):03d}"))

    def loud(self) -> dict[str, Outcome]:
        """What these checks say beside passing."""
        found = outcomes(self.contract, self.operation, *self.exchanges)
        return {id_: found[id_] for id_ in IDS if found[id_] not in QUIET}


def whole(text: str = "one two", finish: str = "length", tokens: int = 8, **message: Any) -> Body:
    """A chat's whole answer."""
    body = copy.deepcopy(whole_answer(CHAT))
    body["choices"][0]["message"] |= {"content": text, **message}
    body["choices"][0]["finish_reason"] = finish
    body["usage"] = usage(completion=tokens)
    return body


def stream(*deltas: Body, finish: str = "length", tokens: int = 8) -> list[Body]:
    """A chat's stream of these deltas."""
    payloads = copy.deepcopy(chunks(CHAT))
    first, middle, last, total = payloads[0], payloads[1], payloads[-2], payloads[-1]
    made = [{**middle, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last["choices"][0]["finish_reason"] = finish
    total["usage"] = usage(completion=tokens)
    return [first, *made, last, total]


def said(text: str, **changes: Any) -> list[Body]:
    """A stream that says a text, word by word."""
    return stream(*({"content": piece} for piece in text.split("|")), **changes)


def with_logprobs(payload: Body, *numbers: float) -> Body:
    """The payload with one token for each number."""
    changed = copy.deepcopy(payload)
    entries = [{"token": f"t{at}", "logprob": number, "top_logprobs": []} for at, number in enumerate(numbers)]
    changed["choices"][0]["logprobs"] = {"content": entries}
    return changed


def told_logprobs(*numbers: float) -> list[Body]:
    """A stream whose chunks bring a token each."""
    payloads = said("|".join(["one", " two"][: len(numbers)]))
    for at, number in enumerate(numbers):
        entry = {"token": f"t{at}", "logprob": number, "top_logprobs": []}
        payloads[1 + at]["choices"][0]["logprobs"] = {"content": [entry]}
    return payloads


def calling(arguments: str = '{"x": 1}', name: str = "f", finish: str = "tool_calls") -> Body:
    """A whole answer that calls a tool."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return whole(None, finish, tool_calls=[call])


def calls(*pieces: Body, finish: str = "tool_calls") -> list[Body]:
    """A stream of pieces of calls."""
    return stream(*({"tool_calls": [piece]} for piece in pieces), finish=finish)


FIRST = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
ARGUMENTS = {"index": 0, "function": {"arguments": '{"x":1}'}}
TOOLS = {"tools": [_TOOL], "tool_choice": "required"}

RIGHT: dict[str, Callable[[], Server]] = {
    "one of each, equal": lambda: Server().whole(whole()).streamed(said("one| two")),
    "four of each, equal": lambda: Server().whole(*[whole()] * 4).streamed(*[said("one| two")] * 4),
    "in other pieces, some of them empty": lambda: Server().whole(whole()).streamed(said("o||ne |two")),
    "an empty answer": lambda: Server().whole(whole("")).streamed(said("")),
    "content null": lambda: Server().whole(whole(None)).streamed(stream({"content": None})),
    "noise that both forms share": lambda: (
        Server()
        .whole(whole(), whole(), whole("one six"))
        .streamed(said("one| two"), said("one| two"), said("one| ten"))
    ),
    "one stream diverges": lambda: Server().whole(*[whole()] * 4).streamed(*[said("one| two")] * 3, said("one| six")),
    "sampled": lambda: Server(temperature=1).whole(*[whole()] * 4).streamed(*[said("one| six")] * 4),
    "temperature not told": lambda: Server(temperature=...).whole(*[whole()] * 4).streamed(*[said("one| six")] * 4),
    "a stream that was cut": lambda: Server().whole(whole(), whole()).streamed(said("one"), said("one"), done=False),
    "a stream that failed": lambda: (
        Server().whole(whole(), whole()).streamed(*[[*said("one")[:2], {"error": {"message": "x"}}]] * 2)
    ),
    "a whole answer that failed": lambda: (
        Server().whole(*[{"error": {"message": "x"}}] * 2).streamed(*[said("one| two")] * 2)
    ),
    "one form only": lambda: Server().whole(whole(), whole()),
    "no usage in the stream": lambda: Server().whole(*[whole()] * 2).streamed(*[said("one| two")[:-1]] * 2),
    "a call": lambda: Server(**TOOLS).whole(*[calling()] * 2).streamed(*[calls(FIRST, ARGUMENTS)] * 2),
    "a call in one piece": lambda: (
        Server(**TOOLS)
        .whole(*[calling()] * 2)
        .streamed(*[calls({**FIRST, "function": {"name": "f", "arguments": '{"x": 1}'}})] * 2)
    ),
    "a call whose id comes again": lambda: (
        Server(**TOOLS).whole(calling()).streamed(calls(FIRST, {**ARGUMENTS, "id": "c1"}))
    ),
    "a call that the limit cut": lambda: (
        Server(**TOOLS)
        .whole(*[calling('{"x"', finish="length")] * 2)
        .streamed(*[calls(FIRST, {"index": 0, "function": {"arguments": '{"x"'}}, finish="length")] * 2)
    ),
    "reasoning in both": lambda: (
        Server()
        .whole(*[whole(reasoning="hm")] * 2)
        .streamed(*[stream({"reasoning": "h"}, {"reasoning": "m"}, {"content": "one two"})] * 2)
    ),
    "log-probabilities that round": lambda: (
        Server(logprobs=True)
        .whole(*[with_logprobs(whole(), -0.5, -0.25)] * 2)
        .streamed(*[told_logprobs(-0.5004, -0.2501)] * 2)
    ),
    "log-probabilities as noisy as those of whole answers": lambda: (
        Server(logprobs=True)
        .whole(with_logprobs(whole(), -0.5, -0.25), with_logprobs(whole(), -0.53, -0.25))
        .streamed(told_logprobs(-0.47, -0.26), told_logprobs(-0.55, -0.25))
    ),
}


@pytest.mark.parametrize("made", RIGHT.values(), ids=RIGHT)
def test_right_servers_pass(made: Callable[[], Server]) -> None:
    """No false alarm, and no doubt either."""
    assert made().loud() == {}


WRONG: dict[str, tuple[dict[str, Outcome], Callable[[], Server]]] = {
    "another text": (
        {"pair.text": FAIL},
        lambda: Server().whole(*[whole()] * 2).streamed(*[said("one| six")] * 2),
    ),
    "a seed in place of temperature 0": (
        {"pair.text": FAIL},
        lambda: Server(temperature=1, seed=7).whole(*[whole()] * 2).streamed(*[said("one| six")] * 2),
    ),
    "one pair that differs": ({"pair.text": UNCLEAR}, lambda: Server().whole(whole()).streamed(said("one| six"))),
    "a part missing in one stream of four": (
        {"pair.text": UNCLEAR},
        lambda: Server().whole(*[whole()] * 4).streamed(*[said("one| two")] * 3, said("| two")),
    ),
    "a part missing in half of thirteen": (
        {"pair.text": FAIL},
        lambda: Server().whole(*[whole()] * 13).streamed(*[said("one| two")] * 5, *[said("| two")] * 8),
    ),
    "another finish reason": (
        {"pair.finish": FAIL},
        lambda: Server().whole(*[whole()] * 2).streamed(*[said("one| two", finish="stop")] * 2),
    ),
    "other tokens": (
        {"pair.usage": WARN},
        lambda: Server().whole(*[whole()] * 2).streamed(*[said("one| two", tokens=7)] * 2),
    ),
    "arguments cut": (
        {"pair.tool-calls": FAIL},
        lambda: (
            Server(**TOOLS)
            .whole(*[calling()] * 2)
            .streamed(*[calls(FIRST, {"index": 0, "function": {"arguments": '{"x"'}})] * 2)
        ),
    ),
    "another function": (
        {"pair.tool-calls": FAIL},
        lambda: Server(**TOOLS).whole(*[calling(name="g")] * 2).streamed(*[calls(FIRST, ARGUMENTS)] * 2),
    ),
    "no call in the stream": (
        {"pair.tool-calls": FAIL, "pair.text": FAIL},
        lambda: Server(**TOOLS).whole(*[calling()] * 2).streamed(*[said('{"', finish="tool_calls")] * 2),
    ),
    "a call without type": (
        {"tools.stream-first-delta": FAIL},
        lambda: Server(**TOOLS).whole(calling()).streamed(calls({**FIRST, "type": None}, ARGUMENTS)),
    ),
    "a call without name": (
        {"tools.stream-first-delta": FAIL, "pair.tool-calls": UNCLEAR},
        lambda: Server(**TOOLS).whole(calling()).streamed(calls({**FIRST, "function": {}}, ARGUMENTS)),
    ),
    "two calls at one index": (
        {"tools.stream-index": FAIL},
        lambda: Server(**TOOLS).streamed(calls(FIRST, ARGUMENTS, {**FIRST, "id": "c2"}, ARGUMENTS)),
    ),
    "reasoning lost": (
        {"pair.reasoning": FAIL},
        lambda: Server().whole(*[whole(reasoning="hm")] * 2).streamed(*[said("one| two")] * 2),
    ),
    "log-probabilities of other tokens": (
        {"pair.logprobs": FAIL},
        lambda: (
            Server(logprobs=True)
            .whole(*[with_logprobs(whole(), -0.5, -0.25)] * 2)
            .streamed(*[told_logprobs(-0.25, -0.5)] * 2)
        ),
    ),
}


@pytest.mark.parametrize(("expected", "made"), WRONG.values(), ids=WRONG)
def test_wrong_servers_depart(expected: dict[str, Outcome], made: Callable[[], Server]) -> None:
    """Each difference trips its own check and no other of these."""
    assert made().loud() == expected


@pytest.mark.parametrize("spec", ["openai-completions", "seekr-completions", "deepinfra-completions"])
def test_text_completions(spec: str) -> None:
    """The same for text: equal answers pass, a lost piece fails."""
    _, operation = contract_of(spec)
    right = Server(spec).whole(*[whole_answer(operation)] * 2).streamed(*[chunks(operation)] * 2)
    lost = [
        payload for payload in chunks(operation) if payload["choices"][:1] and payload["choices"][0]["text"] != "one"
    ]
    wrong = Server(spec).whole(*[whole_answer(operation)] * 2).streamed(*[lost] * 2)

    assert right.loud() == {}
    assert wrong.loud() == {"pair.text": FAIL}


def test_choices_are_compared_by_their_indexes() -> None:
    """Two choices, greedy: the pieces of one choice given to the other are seen."""
    right = chunks(CHAT, 2)
    swapped = copy.deepcopy(right)
    for payload in swapped:
        for choice in payload["choices"]:
            choice["index"] = 0 if choice["delta"].get("content") else choice["index"]

    assert Server(n=2).whole(*[whole_answer(CHAT, 2)] * 2).streamed(*[right] * 2).loud() == {}
    assert Server(n=2).whole(*[whole_answer(CHAT, 2)] * 2).streamed(*[swapped] * 2).loud() == {"pair.text": FAIL}


def _finding(server: Server, id_: str) -> Any:
    cases = cases_of(server.exchanges, server.operation, server.contract, target="t", model="tiny")
    return judge(CHECKS[id_], cases, server.operation, server.contract, "t")


def test_a_question_is_judged_once() -> None:
    """However often it was asked: the finding shows one example, which says k of n and the floor."""
    finding = _finding(Server().whole(*[whole()] * 4).streamed(*[said("one| six")] * 4), "pair.text")
    (example,) = finding.examples

    assert finding.counts == {Outcome.FAIL: 1}
    assert example["exchange"] == "test-p004"
    assert "4 of 4 streamed answers" in example["actual"]
    assert "answers of one form differ in 0 of 12 pairs" in example["actual"]
    assert "two" in example["expected"]
    assert "six" in example["actual"]


def test_doubt_says_how_to_remove_it() -> None:
    """It tells k of n, the floor, and the option that asks more often."""
    finding = _finding(Server().whole(*[whole()] * 4).streamed(*[said("one| two")] * 3, said("| two")), "pair.text")

    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "1 of 4 streamed answers" in finding.reason
    assert "3 of 12 pairs; --detect-rate asks more often" in finding.reason


def test_single_pairs_do_not_count_beside_repeated_questions() -> None:
    """One pair cannot tell noise from a fault: where others can, it says nothing."""
    repeated = Server().whole(*[whole()] * 2).streamed(*[said("one| two")] * 2)
    single = Server(max_tokens=5).whole(whole()).streamed(said("one| six"))
    both = Server()
    for each in (*repeated.exchanges, *single.exchanges):
        both._add(each.sent, each.wire)

    assert single.loud() == {"pair.text": UNCLEAR}
    assert both.loud() == {}
