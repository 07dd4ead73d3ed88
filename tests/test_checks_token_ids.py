"""`tokens.*`, `usage.tokens-told` and `usage.prompt-stable`: token ids in answers made by hand."""

import json
from typing import Any

import pytest
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

IGNORED, FAIL, WARN, PASS = Outcome.IGNORED, Outcome.FAIL, Outcome.WARN, Outcome.PASS
UNJUDGED = (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE, PASS)

CHAT, COMPLETIONS = "seekr-chat", "seekr-completions"
PROMPT_IDS = [1, 20, 30, 40, 50]
TEXT_IDS = [11, 12, 13, 14, 15, 16, 17, 18]
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def departed(spec: str, *exchanges: Exchange) -> dict[str, Outcome]:
    """Of the checks of token ids, those that do not pass."""
    contract, operation = contract_of(spec)
    found = outcomes(contract, operation, *exchanges)
    mine = {id_: each for id_, each in found.items() if id_.startswith(("tokens.", "usage.tokens", "usage.prompt-"))}
    return {id_: outcome for id_, outcome in mine.items() if outcome not in UNJUDGED}


def told(spec: str, prompt: Any = PROMPT_IDS, text: Any = TEXT_IDS, **changes: Any) -> dict[str, Any]:
    """A whole answer with these ids."""
    answer = {**whole_answer(contract_of(spec)[1]), **changes}
    answer["choices"][0]["token_ids"] = text
    (answer if spec == CHAT else answer["choices"][0])["prompt_token_ids"] = prompt
    return answer


def whole(spec: str, answer: dict[str, Any], **asked: Any) -> Exchange:
    """The exchange of a whole answer."""
    operation = contract_of(spec)[1]
    return exchange(operation, request(operation, **asked), http(200, json.dumps(answer).encode()))


WHOLES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Outcome]]] = {
    "right": ({}, {}, {}),
    "none": ({"prompt": None, "text": None}, {}, {"tokens.ids": IGNORED}),
    "text alone": ({"prompt": None}, {}, {"tokens.ids": FAIL}),
    "prompt alone": ({"text": None}, {}, {"tokens.ids": FAIL}),
    "a text as ids": ({"prompt": "1, 20", "text": "11, 12"}, {}, {"tokens.ids": IGNORED}),
    "one token fewer": ({"text": TEXT_IDS[:-1]}, {}, {"usage.tokens-told": FAIL}),
    "one token more": ({"text": [*TEXT_IDS, 1]}, {}, {"usage.tokens-told": FAIL}),
    "prompt without its first": ({"prompt": PROMPT_IDS[1:]}, {}, {"usage.tokens-told": FAIL}),
    "unasked": ({}, {"return_token_ids": None}, {"tokens.not-requested": WARN}),
    "unasked and null": ({"prompt": None, "text": None}, {"return_token_ids": False}, {}),
}


@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.parametrize("spec", [CHAT, COMPLETIONS])
def test_token_ids_of_whole_answers(spec: str, name: str) -> None:
    """Asked for they are there, all of them and no others; unasked they are not."""
    ids, asked, expected = WHOLES[name]

    assert departed(spec, whole(spec, told(spec, **ids), **{"return_token_ids": True, **asked})) == expected


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (TEXT_IDS[:-1], {}),
        ([*TEXT_IDS, 2], {}),
        (TEXT_IDS[:-2], {"usage.tokens-told": FAIL}),
        ([*TEXT_IDS, 2, 2], {"usage.tokens-told": FAIL}),
    ],
)
def test_the_token_that_ends_a_text_may_be_counted_or_told_alone(ids: list[int], expected: dict[str, Outcome]) -> None:
    """An answer that ended by itself; servers differ in whether its end is one of its tokens."""
    answer = told(CHAT, text=ids)
    answer["choices"][0]["finish_reason"] = "stop"

    assert departed(CHAT, whole(CHAT, answer, return_token_ids=True)) == expected


def test_an_empty_list_of_ids_tells_none() -> None:
    """Nobody asked for them, and nobody gets any."""
    assert departed(CHAT, whole(CHAT, told(CHAT, [], []))) == {}


def test_surplus_is_told_in_percent() -> None:
    """Whoever pays by tokens wants to know how much."""
    from streamgauge.conformance.check import CHECKS
    from streamgauge.conformance.judge import cases_of

    contract, operation = contract_of(CHAT)
    one = whole(CHAT, told(CHAT, text=TEXT_IDS[:4]), return_token_ids=True)
    (case,) = cases_of([one], operation, contract, target="t", model="tiny")

    (found,) = CHECKS["usage.tokens-told"].judge(case)

    assert found.actual == "8, +100%"


def test_choices_of_several_prompts_count_each_prompt_once() -> None:
    """Two prompts with two choices each: the ids of a prompt stand in each of its choices."""
    operation = contract_of(COMPLETIONS)[1]
    answer = {**whole_answer(operation, n=4), "usage": usage(prompt=5, completion=32)}
    for choice in answer["choices"]:
        choice["token_ids"] = TEXT_IDS
        choice["prompt_token_ids"] = [1, 2] if choice["index"] < 2 else [1, 2, 3]
    asked = {"prompt": ["a", "b c"], "n": 2, "temperature": 1, "return_token_ids": True}

    assert departed(COMPLETIONS, whole(COMPLETIONS, answer, **asked)) == {}


def streamed(
    spec: str, places: tuple[int, ...], pieces: tuple[list[int], ...] = (TEXT_IDS[:3], TEXT_IDS[3:])
) -> Exchange:
    """A stream whose prompt's ids are in the chunks at these places, and the text's in the two that have text."""
    operation = contract_of(spec)[1]
    payloads = chunks(operation)
    texts = [each for each in payloads if each["choices"] and each["choices"][0]["finish_reason"] is None][-2:]
    for body, ids in zip(texts, pieces, strict=False):
        body["choices"][0]["token_ids"] = ids
    for at in places:
        (payloads[at] if spec == CHAT else payloads[at]["choices"][0])["prompt_token_ids"] = PROMPT_IDS
    return exchange(operation, request(operation, return_token_ids=True, **STREAM), chunked(sse(payloads)))


def test_streams_tell_their_prompt_once() -> None:
    """In streaming mode, prompt_token_ids is included only in the first chunk (Seekr's chat: return_token_ids)."""
    assert departed(CHAT, streamed(CHAT, (0,))) == {}
    assert departed(CHAT, streamed(CHAT, (0, 1))) == {"tokens.first-chunk": FAIL}
    assert departed(CHAT, streamed(CHAT, (1,))) == {"tokens.first-chunk": FAIL}
    assert departed(CHAT, streamed(CHAT, (), ())) == {"tokens.ids": IGNORED}
    assert departed(CHAT, streamed(CHAT, (0,), ())) == {"tokens.ids": FAIL}
    assert departed(COMPLETIONS, streamed(COMPLETIONS, (0,))) == {}
    assert departed(COMPLETIONS, streamed(COMPLETIONS, (0, 1))) == {}


def named(ids: list[int], *, last: str = "", top: str = "token_id:9") -> dict[str, Any]:
    """Log-probabilities of tokens that are told by ids."""
    tokens = [f"token_id:{each}" for each in ids]
    tokens[-1:] = [last or tokens[-1]]
    entries = [{"token": token, "logprob": -1.0, "top_logprobs": []} for token in tokens]
    entries[0]["top_logprobs"] = [{"token": tokens[0], "logprob": -1.0}, {"token": top, "logprob": -2.0}]
    return {"content": entries}


NAMED: dict[str, tuple[dict[str, Any], dict[str, Outcome]]] = {
    "right": (named(TEXT_IDS), {}),
    "texts": ({"content": [{"token": " a", "logprob": -1.0, "top_logprobs": []}] * 8}, {"tokens.as-ids": IGNORED}),
    "one text": (named(TEXT_IDS, last=" a"), {"tokens.as-ids": FAIL}),
    "a text among the likeliest": (named(TEXT_IDS, top=" a"), {"tokens.as-ids": FAIL}),
    "no number": (named(TEXT_IDS, last="token_id:x"), {"tokens.as-ids": FAIL}),
    "other ids": (named([each + 1 for each in TEXT_IDS]), {"tokens.as-ids": FAIL}),
}


@pytest.mark.parametrize("name", NAMED)
def test_tokens_told_by_their_ids(name: str) -> None:
    """The form is `token_id:N`, and the ids are those of `token_ids`."""
    logprobs, expected = NAMED[name]
    answer = told(CHAT)
    answer["choices"][0]["logprobs"] = logprobs
    asked = {"logprobs": True, "top_logprobs": 2, "return_tokens_as_token_ids": True, "return_token_ids": True}

    assert departed(CHAT, whole(CHAT, answer, **asked)) == expected


def roundtrip(by_text: list[str], by_ids: list[str]) -> dict[str, Outcome]:
    """The plain prompt's answers, and those to its ids."""
    operation = contract_of(COMPLETIONS)[1]

    def answered(text: str, number: int, **asked: Any) -> Exchange:
        answer = whole_answer(operation)
        answer["choices"][0]["text"] = text
        body = request(operation, **asked)
        return exchange(operation, body, http(200, json.dumps(answer).encode()), probe=f"{len(asked)}-{number}")

    texts = [answered(text, at) for at, text in enumerate(by_text)]
    ids = [answered(text, at, prompt=PROMPT_IDS) for at, text in enumerate(by_ids)]
    return departed(COMPLETIONS, whole(COMPLETIONS, told(COMPLETIONS), return_token_ids=True), *texts, *ids)


@pytest.mark.parametrize(
    ("by_text", "by_ids", "expected"),
    [
        (["a"] * 3, ["a"] * 2, {}),
        (["a"] * 3, ["b"] * 2, {"tokens.roundtrip": FAIL}),
        (["a"] * 2, ["b"] * 2, {"tokens.roundtrip": Outcome.INCONCLUSIVE}),
        (["a", "a", "c"], ["b"] * 2, {"tokens.roundtrip": Outcome.INCONCLUSIVE}),
        (["a"] * 3, ["b", "a"], {}),
        (["a"] * 3, ["b"], {"tokens.roundtrip": Outcome.INCONCLUSIVE}),
        (["a", "b", "c"], ["b"] * 2, {}),
        ([], ["b"] * 2, {}),
    ],
)
def test_a_prompt_read_back_by_its_ids(by_text: list[str], by_ids: list[str], expected: dict[str, Outcome]) -> None:
    """A difference counts where both ways of asking are always answered alike, each in its own way."""
    assert roundtrip(by_text, by_ids) == expected


def test_an_answer_that_was_cut_off_need_not_have_counted_its_prompt() -> None:
    """Some have zeros in each chunk before the last one, where the client went away before that."""
    operation = contract_of(CHAT)[1]
    body, payloads = request(operation, **STREAM), chunks(operation)
    cut = [{**each, "usage": usage(0, 0)} for each in payloads[:2]]
    whole_streams = [exchange(operation, body, chunked(sse(payloads))) for _ in range(2)]

    assert departed(CHAT, *whole_streams, exchange(operation, body, chunked(sse(cut, done=False)))) == {}


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ([5, 5, 5], {}),
        ([5, 5, 4], {"usage.prompt-stable": WARN}),
        ([5], {}),
        ([5, 0, 0], {"usage.prompt-stable": WARN}),
    ],
)
def test_the_same_prompt_costs_the_same(counted: list[int], expected: dict[str, Outcome]) -> None:
    """What a server had cached is read all the same."""
    operation = contract_of(CHAT)[1]
    answers = [{**whole_answer(operation), "usage": usage(prompt=each)} for each in counted]

    assert departed(CHAT, *[whole(CHAT, answer) for answer in answers]) == expected
