"""Sampling parameters: what proves that they were ignored, and what right servers do that proves nothing."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.contract.contract import load_contracts
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

IGNORED, WARN, FAIL = Outcome.IGNORED, Outcome.WARN, Outcome.FAIL
UNCLEAR, PASS, REFUSED, NOT_RUN = Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.REFUSED, Outcome.NOT_RUN

COLD = "Once upon a time a small fox lived"
DRAWN = ("A heron stood in the reeds alone", "My cat has never liked the rain", "Deep under the hill slept a badger")
HOT: dict[str, Any] = {"temperature": 2}
LONG = f"{COLD} behind the mill, where nobody ever came to look for it, "


class Server:
    """Exchanges of one operation, each with the texts of its choices."""

    def __init__(self, spec: str = "seekr-completions") -> None:
        self.contract, self.operation = contract_of(spec)
        self.exchanges: list[Exchange] = []

    def said(self, *texts: str, reports: Iterable[Any] = (), **asked: Any) -> "Server":
        """One whole answer; `n` is as many as there are texts, where there are several."""
        body = copy.deepcopy(whole_answer(self.operation, len(texts)))
        for choice, text in zip(body["choices"], texts, strict=True):
            if self.operation.family == "chat":
                choice["message"]["content"] = text
            else:
                choice["text"] = text
        for choice, report in zip(body["choices"], reports, strict=False):
            choice["logprobs"] = report
        return self.answered(
            http(200, json.dumps(body).encode()), **({"n": len(texts)} if len(texts) > 1 else {}) | asked
        )

    def answered(self, wire: bytes, **asked: Any) -> "Server":
        """One exchange."""
        sent = request(self.operation, **asked)
        self.exchanges.append(exchange(self.operation, sent, wire, probe=f"p{len(self.exchanges):03d}"))
        return self

    def finds(self, check: str) -> Outcome:
        """What the check finds in all of them."""
        return outcomes(self.contract, self.operation, *self.exchanges)[check]


def cold(times: int = 2) -> Server:
    """Temperature 0 said the same each time."""
    server = Server()
    for _ in range(times):
        server.said(COLD)
    return server


def lively() -> Server:
    """Beside that, temperature 2 said other things."""
    return cold().said(*DRAWN, **HOT)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server().said("a b", "a c"), PASS),
        (Server().said("a b", n=3), IGNORED),
        (Server().said("a b", "a c", n=3), FAIL),
        (Server().said("a b", prompt=["one", "two"], n=2), FAIL),
        (Server().said("a", "b", "c", "d", prompt=["one", "two"], n=2), PASS),
        (Server().said("a", "b", prompt=["one", "two"], n=2), IGNORED),
        (Server().answered(http(400, b'{"detail": "n must be 1"}'), n=2), REFUSED),
        (cold().answered(http(500, b"{}"), n=2), FAIL),
        (Server().said("a b"), NOT_RUN),
        (Server().said(n=2), PASS),  # an answer without choices is another check's
    ],
)
def test_number_of_choices(server: Server, expected: Outcome) -> None:
    """`n`, whole: each prompt has so many choices."""
    assert server.finds("sampling.n") is expected


@pytest.mark.parametrize(("made", "expected"), [(2, PASS), (1, IGNORED)])
def test_number_of_streamed_choices(made: int, expected: Outcome) -> None:
    """`n`, streamed: the indexes of all chunks count."""
    server = Server("openai-chat")
    wire = chunked(sse(chunks(server.operation, made)))
    server.answered(wire, n=2, stream=True, stream_options={"include_usage": True})
    assert server.finds("sampling.n") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server().answered(http(400, b'{"detail": "n"}'), n=0), PASS),
        (Server().answered(http(422, b'{"detail": "n"}'), n=-1), PASS),
        (Server().said("a b", n=0), WARN),
        (Server().answered(http(500, b"{}"), n=0), NOT_RUN),
        (Server().answered(http(401, b"{}"), n=0), NOT_RUN),
        (Server().said("a b", n=1), NOT_RUN),
    ],
)
def test_fewer_choices_than_one(server: Server, expected: Outcome) -> None:
    """No schema of these documents forbids 0; a failure of the server is another check's."""
    assert server.finds("sampling.n-below-one") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (cold(3), PASS),
        (Server().said(COLD, COLD, COLD), PASS),
        (cold(2), NOT_RUN),
        (Server().said(*DRAWN), IGNORED),
        (Server().said(DRAWN[0]).said(DRAWN[1]).said(DRAWN[2]), IGNORED),
        (cold(2).said(f"{COLD[:-5]} went"), UNCLEAR),
        (Server().said("", "", ""), NOT_RUN),
        (Server().said("a", "b", "c", prompt=["one", "two", "three"], n=1), NOT_RUN),
        (Server().said(*DRAWN, **HOT), NOT_RUN),
        (Server().said(*(LONG + each for each in DRAWN)), PASS),  # noise makes long answers part
    ],
)
def test_temperature_of_zero(server: Server, expected: Outcome) -> None:
    """Answers at temperature 0 that all differ are drawn; some that differ may be noise, which batching makes."""
    assert server.finds("sampling.greedy") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (lively(), PASS),
        (cold().said(COLD, COLD, DRAWN[0], **HOT), PASS),
        (cold().said(COLD, COLD, COLD, **HOT), IGNORED),
        (cold().said(COLD, **HOT).said(COLD, seed=1, **HOT).said(COLD, seed=2, **HOT), IGNORED),
        (cold().said(COLD, **HOT), UNCLEAR),
        (Server().said("Yes.").said("Yes.", "Yes.", "Yes.", **HOT), UNCLEAR),
        (Server().said(COLD, COLD, COLD, **HOT), NOT_RUN),
        (cold().said(*DRAWN, temperature=3), NOT_RUN),
        (cold().said("", "", "", **HOT), UNCLEAR),
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[0], **HOT), PASS),
        (cold().said(COLD, COLD, COLD, top_k=1, **HOT), NOT_RUN),
        (
            Server().said(COLD, echo=True).said(COLD, COLD, COLD, echo=True, **HOT),
            NOT_RUN,
        ),  # it may be the prompt alone
    ],
)
def test_high_temperature(server: Server, expected: Outcome) -> None:
    """Only a long text, the same as at temperature 0 with each of three draws, shows that nothing is drawn."""
    assert server.finds("sampling.temperature") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[0], **HOT), WARN),
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[1], **HOT), PASS),
        (cold().said("Yes.", "Yes.", "Yes.", **HOT), UNCLEAR),
        (cold().said(DRAWN[0], DRAWN[0], **HOT), NOT_RUN),
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[0], seed=1, **HOT), NOT_RUN),
        (cold().said(COLD, COLD, COLD, **HOT), NOT_RUN),  # a sure model, or a temperature that is ignored
        (Server().said(DRAWN[0], DRAWN[0], DRAWN[0], **HOT), NOT_RUN),
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[0], top_k=2, **HOT), NOT_RUN),
        (cold().said(DRAWN[0], DRAWN[0], DRAWN[0]), NOT_RUN),
    ],
)
def test_choices_that_are_copies(server: Server, expected: Outcome) -> None:
    """`n` draws at a high temperature, of a question that has other answers, are not one text three times."""
    assert server.finds("sampling.n-drawn") is expected


_NARROW = [("sampling.top-k", "top_k", 1), ("sampling.top-p", "top_p", 1e-6), ("sampling.min-p", "min_p", 1)]


@pytest.mark.parametrize(("check", "name", "value"), _NARROW)
@pytest.mark.parametrize(
    ("server", "told", "expected"),
    [
        (lively(), (COLD, COLD, COLD), PASS),
        (lively(), (COLD, COLD, f"{COLD[:-5]} went"), PASS),
        (lively(), DRAWN, IGNORED),
        (lively(), (DRAWN[0], DRAWN[0], DRAWN[0]), UNCLEAR),
        (lively(), (f"{COLD[:-5]} went",), UNCLEAR),
        (lively(), ("", "", ""), UNCLEAR),
        (cold().said(COLD, COLD, COLD, **HOT), (COLD, COLD, COLD), UNCLEAR),
        (Server(), DRAWN, UNCLEAR),
        (lively().said(f"{LONG} and then"), (f"{LONG} or so", f"{LONG} as before"), PASS),  # they part late
    ],
)
def test_one_token_left(
    check: str, name: str, value: float, server: Server, told: tuple[str, ...], expected: Outcome
) -> None:
    """With one token to choose from, two answers that are neither each other nor that of temperature 0 are drawn."""
    mine = Server()
    mine.exchanges = [*server.exchanges]
    mine.said(*told, **HOT, **{name: value})
    assert mine.finds(check) is expected


@pytest.mark.parametrize(
    ("asked", "told", "expected"),
    [
        ({"top_k": 0}, DRAWN, PASS),
        ({"min_p": 0}, DRAWN, PASS),
        ({"top_k": 0}, (COLD, COLD, DRAWN[0]), PASS),
        ({"top_k": 0}, (COLD, COLD, COLD), FAIL),
        ({"top_k": 0, "min_p": 0}, (COLD, COLD, COLD), FAIL),
        ({"top_k": 0}, (COLD,), UNCLEAR),
        ({"top_k": 0, "top_p": 0.1}, (COLD, COLD, COLD), NOT_RUN),
        ({"top_k": 0, "top_p": 0}, (COLD, COLD, COLD), NOT_RUN),
    ],
)
def test_zero_turns_off(asked: dict[str, Any], told: tuple[str, ...], expected: Outcome) -> None:
    """What DeepInfra's document says of `top_k` and `min_p`."""
    assert lively().said(*told, **HOT, **asked).finds("sampling.zero-is-off") is expected


def test_a_model_that_is_often_sure_may_be_so_three_times() -> None:
    """A high temperature alone leaves some of its answers as they are."""
    server = cold().said(COLD, COLD, DRAWN[0], **HOT).said(COLD, COLD, COLD, top_k=0, **HOT)
    assert server.finds("sampling.zero-is-off") is UNCLEAR


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([(11, DRAWN[0]), (11, DRAWN[0]), (11, DRAWN[0]), (12, DRAWN[1]), (13, DRAWN[2])], PASS),
        ([(11, DRAWN[0]), (11, DRAWN[1]), (11, DRAWN[2])], IGNORED),
        ([(11, DRAWN[0]), (11, DRAWN[0]), (11, DRAWN[2])], UNCLEAR),
        ([(11, DRAWN[0]), (11, DRAWN[0]), (12, DRAWN[0]), (13, DRAWN[0])], IGNORED),
        ([(11, DRAWN[0]), (11, DRAWN[0]), (12, DRAWN[0])], PASS),
        ([(11, COLD), (11, COLD), (12, COLD), (13, COLD)], UNCLEAR),
        ([(11, DRAWN[0]), (12, DRAWN[1])], NOT_RUN),
        ([(11, DRAWN[0]), (11, DRAWN[0])], UNCLEAR),
    ],
)
def test_seed(texts: list[tuple[int, str]], expected: Outcome) -> None:
    """Three answers to one seed that all differ, or three seeds with one text: the seed has no part in it."""
    server = cold()
    for seed, text in texts:
        server.said(text, seed=seed, **HOT)
    assert server.finds("sampling.seed") is expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (DRAWN, PASS),
        ((COLD, COLD, DRAWN[0]), PASS),
        ((COLD, COLD, COLD), IGNORED),
        (("", "", ""), UNCLEAR),
        ((COLD, COLD), NOT_RUN),
        (("1", " 1", "\n1"), PASS),
        (("\ufffd", "\ufffd", "\ufffd"), UNCLEAR),  # parts of different characters
    ],
)
def test_beams(texts: tuple[str, ...], expected: Outcome) -> None:
    """Beams are different sequences, though two of them may have one text."""
    assert Server().said(*texts, use_beam_search=True).finds("sampling.beams") is expected


Tokens = list[tuple[str, float, dict[str, float]]]
"""Tokens with their log-probabilities and those of their rivals."""


def close(lead: float, words: str = "river river river river") -> Tokens:
    """One word again and again, which leads by so many nats over one that came nowhere."""
    return [(f" {word}", -0.5, {f" {word}": -0.5, " bridge": -0.5 - lead}) for word in words.split()]


def told(server: Server, tokens: Tokens, times: int = 1, **asked: Any) -> Server:
    """An answer of these tokens, with its report."""
    report = {
        "tokens": [token for token, _, _ in tokens],
        "token_logprobs": [value for _, value, _ in tokens],
        "top_logprobs": [top for _, _, top in tokens],
        "text_offset": [0] * len(tokens),
    }
    for _ in range(times):
        server.said("".join(report["tokens"]), reports=[report], logprobs=5, prompt="stone river", **asked)
    return server


_OTHER = close(0.1, "river river bridge paper")
_PRESENCE, _FREQUENCY, _REPETITION = {"presence_penalty": 2}, {"frequency_penalty": 2}, {"repetition_penalty": 5}


@pytest.mark.parametrize(
    ("asked", "plain", "penalised", "expected"),
    [
        (_PRESENCE, close(0.5), close(0.5), IGNORED),
        (_PRESENCE, close(0.5), close(3.0), IGNORED),  # what the penalised answer reports may be anything
        (_PRESENCE, close(0.5), _OTHER, IGNORED),  # the second river came all the same
        (_PRESENCE, close(0.5), close(0.5, "river bridge paper stone"), PASS),
        (_PRESENCE, close(1.9), close(1.9), UNCLEAR),
        (_PRESENCE, close(4.0), close(4.0), UNCLEAR),
        (_PRESENCE, close(0.5, "river bridge stone paper"), close(0.5, "river bridge stone paper"), UNCLEAR),
        (_FREQUENCY, close(5.0), close(5.0), IGNORED),  # the fourth river costs 6
        (_FREQUENCY, close(7.0), close(7.0), UNCLEAR),
        (_FREQUENCY, close(5.0), close(5.0, "river river river bridge"), PASS),
        (_REPETITION, close(0.5), close(0.5), IGNORED),
        (_REPETITION, close(0.5), close(0.5, "river river river bridge"), PASS),
        (_REPETITION, close(2.0), close(2.0), UNCLEAR),
        ({"repetition_penalty": 1.1}, close(0.5), close(0.5), NOT_RUN),  # takes a tenth of a logit away
    ],
)
def test_penalty(asked: dict[str, Any], plain: Tokens, penalised: Tokens, expected: Outcome) -> None:
    """A token that came already comes again, though its lead is less than the penalty."""
    server = told(told(Server(), plain, 2), penalised, **asked)
    (name,) = asked
    assert server.finds(f"sampling.{name.replace('_', '-')}") is expected


@pytest.mark.parametrize(
    "tokens",
    [
        [(" river", -0.5, {" river": -0.5, " stone": -0.6})] * 4,  # the prompt has it: some count that as well
        [(" river", -0.5, {" river": -0.5, "<|end|>": -0.6})] * 4,  # some templates have it
        [(" river", -0.5, {" river": -0.5, "\n": -0.6})] * 4,
        [("\ufffd", -0.5, {"\ufffd": -0.5, " bridge": -0.6})] * 4,  # no two need be the same token
        [(" river", -0.5, {})] * 4,
    ],
)
def test_penalty_that_need_not_show(tokens: Tokens) -> None:
    """Rivals that may be penalised themselves prove nothing."""
    server = told(told(Server(), tokens, 2), tokens, presence_penalty=2)
    assert server.finds("sampling.presence-penalty") is UNCLEAR


def test_penalty_of_an_echoed_prompt() -> None:
    """Its tokens have log-probabilities as well, and were not chosen."""
    server = told(told(Server(), close(0.5), 2, echo=True), close(0.5), echo=True, presence_penalty=2)
    assert server.finds("sampling.presence-penalty") is NOT_RUN


def test_penalty_of_what_came_long_ago() -> None:
    """llama.cpp looks at the last 64 tokens."""
    between = [(f" w{at}", -0.5, {f" w{at}": -0.5}) for at in range(70)]
    tokens = [*close(0.1, "river"), *between, *close(0.1, "river")]
    server = told(told(Server(), tokens, 2), tokens, presence_penalty=2)
    assert server.finds("sampling.presence-penalty") is UNCLEAR


def test_penalty_of_tokens_without_their_spaces() -> None:
    """As vocabularies like Llama 2's are decoded token by token: with and without a space they are different ones."""
    tokens = [(text.strip(), number, top) for text, number, top in close(0.5)]
    server = Server()
    for asked in ({}, {}, {"presence_penalty": 2}):
        report = {
            "tokens": [token for token, _, _ in tokens],
            "token_logprobs": [value for _, value, _ in tokens],
            "top_logprobs": [top for _, _, top in tokens],
            "text_offset": [0] * len(tokens),
        }
        server.said("river river river river", reports=[report], logprobs=5, prompt="stone", **asked)
    assert server.finds("sampling.presence-penalty") is UNCLEAR


def test_penalty_of_an_answer_without_choices() -> None:
    """Nothing to compare, and `response.choices` says so."""
    server = Server()
    for asked in ({}, {}, {"presence_penalty": 2}):
        body = {**whole_answer(server.operation), "choices": []}
        server.answered(http(200, json.dumps(body).encode()), logprobs=5, **asked)
    assert server.finds("sampling.presence-penalty") is UNCLEAR


def test_penalty_where_the_model_is_unsteady() -> None:
    """Asked twice without it, it said two things; asked once, nobody knows."""
    once = told(told(Server(), close(0.5)), close(0.5), presence_penalty=2)
    twice = told(told(told(Server(), close(0.5)), _OTHER), close(0.5), presence_penalty=2)
    assert once.finds("sampling.presence-penalty") is UNCLEAR
    assert twice.finds("sampling.presence-penalty") is UNCLEAR


_ANYTHING = (True, 1.5, "x", [1], {"a": 1}, 10**400, -1)
_NAMES = ("n", "temperature", "seed", "top_k", "top_p", "min_p", "logit_bias", "bad_words", "allowed_token_ids")
_NAMES += ("presence_penalty", "use_beam_search", "skip_special_tokens", "logprobs", "prompt")


@pytest.mark.parametrize("name", _NAMES)
def test_a_document_may_leave_a_property_open(tmp_path: Path, name: str) -> None:
    """Then a request may hold anything there: no check of these topics fails over it."""
    schema = {"type": "object", "properties": {each: {} for each in ("model", "max_tokens", *_NAMES)}}
    operation = {
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }
    file = tmp_path / "open.json"
    file.write_text(json.dumps({"openapi": "3.1.0", "paths": {"/completions": {"post": operation}}}))
    (contract,) = load_contracts([str(file)])
    server = cold()
    server.contract, server.operation = contract, contract.operations[0]
    server.exchanges = []
    for value in _ANYTHING:
        for others in ({}, HOT, {**HOT, "seed": 1}, {"logprobs": 5, "presence_penalty": 2}):
            server.said("a", **{"n": ..., **others, name: value})

    found = outcomes(server.contract, server.operation, *server.exchanges)
    assert [id_ for id_ in found if id_.startswith(("sampling", "steering")) and found[id_] is Outcome.ERROR] == []


def test_every_law_of_sampling_is_tried_here() -> None:
    """No check of the topic without a case above."""
    tried = {
        "n",
        "n-below-one",
        "n-drawn",
        "greedy",
        "temperature",
        "top-k",
        "top-p",
        "min-p",
        "zero-is-off",
        "seed",
        "beams",
    }
    tried |= {"presence-penalty", "frequency-penalty", "repetition-penalty"}
    assert {id_ for id_ in CHECKS if id_.startswith("sampling.")} == {f"sampling.{name}" for name in tried}
