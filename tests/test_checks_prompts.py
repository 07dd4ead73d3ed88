"""`prompt.*`: prompts in all their forms, with answers made by hand."""

import json
from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

IGNORED, FAIL, WARN, PASS = Outcome.IGNORED, Outcome.FAIL, Outcome.WARN, Outcome.PASS
UNJUDGED = (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, PASS)

COMPLETIONS = "seekr-completions"
SKY, SEA = "The sky is", "The sea is deep and"
LONG = "All work and no play makes Jack a dull boy. " * 6


def answered(texts: list[str], *, read: int = 5, generated: int = 8, **asked: Any) -> Exchange:
    """An answer with these texts, that costs so much."""
    operation = contract_of(COMPLETIONS)[1]
    answer = {**whole_answer(operation, n=len(texts)), "usage": usage(read, generated)}
    for choice, text in zip(answer["choices"], texts, strict=True):
        choice["text"] = text
    body = request(operation, **asked)
    return exchange(operation, body, http(200, json.dumps(answer).encode()), probe=str(len(json.dumps(body))))


def departed(*exchanges: Exchange, spec: str = COMPLETIONS) -> dict[str, Outcome]:
    """Of the checks of prompts, those that do not pass."""
    found = outcomes(*contract_of(spec), *exchanges)
    return {id_: each for id_, each in found.items() if id_.startswith("prompt.") and each not in UNJUDGED}


ECHOES: dict[str, tuple[list[str], dict[str, Any], dict[str, Outcome]]] = {
    "right": ([SKY + " blue"], {"prompt": SKY}, {}),
    "ignored": ([" blue"], {"prompt": SKY}, {"prompt.echo": IGNORED}),
    "nothing": ([""], {"prompt": SKY}, {"prompt.echo": IGNORED}),
    "behind a mark": (["<s> " + SKY + " blue"], {"prompt": SKY}, {}),
    "behind a text": (["You said: " + SKY + " blue"], {"prompt": SKY}, {"prompt.echo": IGNORED}),
    "alone": ([SKY], {"prompt": SKY}, {}),
    "ids of an unknown text": ([" blue"], {"prompt": [1, 2]}, {"prompt.token-ids": WARN}),
    "each its own": ([SKY + " a", SEA + " b"], {"prompt": [SKY, SEA]}, {}),
    "swapped": ([SEA + " b", SKY + " a"], {"prompt": [SKY, SEA]}, {"prompt.order": FAIL}),
    "the last for all": ([SEA + " b", SEA + " c"], {"prompt": [SKY, SEA]}, {"prompt.order": FAIL}),
    "prompts ignored": ([" a", " b"], {"prompt": [SKY, SEA]}, {"prompt.echo": IGNORED}),
    "two choices each": ([SKY + " a", SKY + " b", SEA, SEA], {"prompt": [SKY, SEA], "n": 2, "temperature": 1}, {}),
    "choices by turns": (
        [SKY + " a", SEA + " b", SKY, SEA],
        {"prompt": [SKY, SEA], "n": 2, "temperature": 1},
        {"prompt.order": FAIL},
    ),
    "a prompt that begins another": ([SKY + " a", SKY + " blue b"], {"prompt": [SKY, SKY + " blue"]}, {}),
    "equal prompts": ([SKY + " a", SKY + " b"], {"prompt": [SKY, SKY]}, {}),
    "not asked": ([" blue"], {"prompt": SKY, "echo": False}, {}),
}


@pytest.mark.parametrize("name", ECHOES)
def test_echoes(name: str) -> None:
    """The text begins with its prompt, and of several prompts choice i*n + j with the i-th one."""
    texts, asked, expected = ECHOES[name]

    assert departed(answered(texts, **{"echo": True, **asked})) == expected


def test_streams_echo_too() -> None:
    """The prompt may come in pieces."""
    operation = contract_of(COMPLETIONS)[1]
    asked = {"echo": True, "stream": True, "stream_options": {"include_usage": True}}
    for prompt, expected in (("one two", {}), ("on", {}), ("two", {"prompt.echo": IGNORED})):
        stream = exchange(operation, request(operation, prompt=prompt, **asked), chunked(sse(chunks(operation))))

        assert departed(stream) == expected


def test_token_ids_are_echoed_as_the_text_that_they_are() -> None:
    """Where an answer told them as the ids of a prompt's text; `vllm-project/vllm#2706`."""
    operation = contract_of(COMPLETIONS)[1]
    told = whole_answer(operation)
    told["choices"][0].update(token_ids=[3] * 8, prompt_token_ids=[1, 2, 3, 4, 5])
    body = request(operation, prompt=SKY, return_token_ids=True)
    known = exchange(operation, body, http(200, json.dumps(told).encode()))

    for text, expected in ((SKY + " blue", {}), ("<s>" + SKY, {}), (" blue", {"prompt.echo": IGNORED})):
        assert departed(known, answered([text], prompt=[1, 2, 3, 4, 5], echo=True)) == expected


@pytest.mark.parametrize(
    ("text", "generated", "expected"),
    [
        (SKY, 0, {}),
        ("<s>" + SKY, 0, {}),
        (SKY + "\n", 0, {}),
        (SKY + " blue", 1, {"prompt.echo-only": WARN}),
        (SKY, 1, {"prompt.echo-only": WARN}),
        (" blue", 0, {"prompt.echo": IGNORED}),
    ],
)
def test_the_echo_alone(text: str, generated: int, expected: dict[str, Outcome]) -> None:
    """No token is wanted, and none comes; `vllm-project/vllm#9336`."""
    assert departed(answered([text], generated=generated, prompt=SKY, echo=True, max_tokens=0)) == expected


def test_the_echo_alone_may_be_refused() -> None:
    """Then the row of the honour table says so."""
    operation = contract_of(COMPLETIONS)[1]
    refusal = http(400, json.dumps({"error": {"message": "no", "type": "t", "code": 400}}).encode())
    refused = exchange(operation, request(operation, prompt=SKY, echo=True, max_tokens=0), refusal)

    assert departed(refused) == {"prompt.echo-only": Outcome.REFUSED}


@pytest.mark.parametrize(
    ("long", "expected"),
    [(70, {}), (6, {}), (5, {"prompt.read": IGNORED}), (4, {"prompt.read": Outcome.INCONCLUSIVE})],
)
def test_a_long_prompt_costs_more_than_a_short_one(long: int, expected: dict[str, Outcome]) -> None:
    """A server that reads something else charges the same; how much more it has to be is the vocabulary's."""
    short, other = answered([" blue"], prompt=SKY), answered([" blue"], read=7, prompt=SEA)

    assert departed(short, other, answered([" boy"], read=long, prompt=LONG)) == expected


def test_who_always_counts_the_same_or_nothing_may_have_read_it_all() -> None:
    """Then the count is wrong, and says nothing of what was read; no count is `usage.counted`'s."""
    for read, expected in ((5, {"prompt.read": FAIL}), (0, {})):
        short, long = (answered([" a"], read=read, prompt=prompt) for prompt in (SKY, LONG))
        filled = answered([" a"], read=read, prompt=SKY, suffix=SUFFIX)

        assert departed(short, long, filled) == expected


def test_a_long_prompt_alone_tells_nothing() -> None:
    """There is no other to compare it with, or none without usage."""
    assert departed(answered([" boy"], prompt=LONG)) == {}


@pytest.mark.parametrize(
    ("prompt", "read", "expected"),
    [
        ([40, 41, 42], 3, {}),
        ([40, 41, 42], 4, {}),
        ([40, 41, 42], 9, {"prompt.token-ids": WARN}),
        ([40, 41, 42], 1, {"prompt.token-ids": WARN}),
        ([[40, 41], [42]], 3, {}),
        ([[40, 41], [42]], 5, {}),
        ([[40, 41], [42]], 6, {"prompt.token-ids": WARN}),
        (["40, 41", "42"], 9, {}),
    ],
)
def test_token_ids_cost_as_many_as_they_are(prompt: Any, read: int, expected: dict[str, Outcome]) -> None:
    """One token before each prompt is allowed; `InternLM/lmdeploy#4186` read them as text."""
    texts = [" a"] * (2 if isinstance(prompt[0], (list, str)) else 1)

    assert departed(answered(texts, read=read, prompt=prompt)) == expected


SUFFIX = " and that is why it is blue."


@pytest.mark.parametrize(
    ("read", "expected"),
    [(12, {}), (5, {"prompt.suffix": IGNORED}), (2, {"prompt.suffix": Outcome.INCONCLUSIVE})],
)
def test_a_suffix_is_read(read: int, expected: dict[str, Outcome]) -> None:
    """What a model is given it has to read, and reading costs."""
    plain, other = answered([" blue"], prompt=SKY), answered([" blue"], read=7, prompt=SEA)

    assert departed(plain, other, answered([" blue"], read=read, prompt=SKY, suffix=SUFFIX)) == expected


def test_a_suffix_to_another_prompt_tells_nothing() -> None:
    """Only the same prompt without it can be compared."""
    assert departed(answered([" blue"], prompt=SEA), answered([" blue"], prompt=SKY, suffix=SUFFIX)) == {}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("<user>Count from one to five.<assistant>", {}),
        ("Count from one to five.", {}),
        (None, {"prompt.text": IGNORED}),
        ("", {"prompt.text": FAIL}),
        ("<user>Something else<assistant>", {"prompt.text": FAIL}),
    ],
)
def test_the_text_of_a_chat_prompt(told: str | None, expected: dict[str, Outcome]) -> None:
    """It holds what the user said (Seekr's chat: return_prompt_text), whatever the template has around it."""
    operation = contract_of("seekr-chat")[1]
    answer = {**whole_answer(operation), "prompt_text": told}
    payloads = chunks(operation)
    payloads[0]["prompt_text"] = told
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    for wire, asked in ((http(200, json.dumps(answer).encode()), {}), (chunked(sse(payloads)), stream)):
        one = exchange(operation, request(operation, return_prompt_text=True, **asked), wire)

        assert departed(one, spec="seekr-chat") == expected


def test_echo_of_a_chat_means_something_else() -> None:
    """Its last message is continued: no law of text completions looks at it."""
    operation = contract_of("seekr-chat")[1]
    one = exchange(operation, request(operation, echo=True), http(200, json.dumps(whole_answer(operation)).encode()))

    assert outcomes(*contract_of("seekr-chat"), one)["prompt.echo"] is Outcome.NOT_APPLICABLE
