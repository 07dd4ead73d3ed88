"""`logprobs.*`: right answers in the ways of servers that write tokens otherwise, beside what is wrong in any of them."""

import json
from typing import Any

import pytest
from test_checks_logprobs import (
    CHAT,
    COMPLETIONS,
    FAIL,
    IGNORED,
    NUMBERS,
    PASS,
    WARN,
    Answer,
    Bend,
    answer_of,
    departed,
    entry,
    judged,
    report_of,
)
from transcripts import contract_of, exchange, http, outcomes, request, usage

from streamgauge.outcomes import Outcome


def _entries(answer: Answer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer["choices"][0]["logprobs"]["content"]
    return found


def _cut_pieces(answer: Answer) -> None:
    """llama.cpp cuts a part of a character off a token's text; its bytes have all of it."""
    pieces = [entry(" ", -0.5), entry("", -0.25)]
    pieces[0]["bytes"], pieces[1]["bytes"] = [32, 226, 128], [156]
    answer["choices"][0]["message"]["content"] = " “"
    answer["choices"][0]["logprobs"] = {"content": pieces}
    answer["usage"] = usage(completion=2)


def _likeliest_without_spaces(answer: Answer) -> None:
    """TGI has tokens as they stand in the text, and the likeliest ones each decoded alone."""
    for each in _entries(answer):
        each["top_logprobs"] = [
            {"token": top["token"].strip(), "logprob": top["logprob"], "bytes": None} for top in each["top_logprobs"]
        ]


def _likeliest_in_parts(answer: Answer) -> None:
    """The token that completes a character is told by it; decoded alone, it is a part."""
    each = _entries(answer)[3]
    each["token"], each["bytes"] = "é", list("é".encode())
    each["top_logprobs"][0]["token"] = "\ufffd"
    answer["choices"][0]["message"]["content"] = "Snow fallsé It is so white"


def _refusal(answer: Answer) -> None:
    """OpenAI: the tokens of a refusal stand apart, and content is null."""
    choice = answer["choices"][0]
    choice["logprobs"] = {"content": None, "refusal": choice["logprobs"]["content"]}
    choice["message"].update(content=None, refusal="No.")


DIALECTS: dict[str, tuple[Bend, str]] = {
    "a part of a character cut off": (_cut_pieces, CHAT),
    "likeliest tokens without spaces": (_likeliest_without_spaces, CHAT),
    "likeliest tokens in parts": (_likeliest_in_parts, CHAT),
    "a refusal": (_refusal, "openai-chat"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_right_answers_of_a_chat_in_other_ways_pass(name: str) -> None:
    """What a text cannot show may be told in several ways."""
    bend, spec = DIALECTS[name]
    answer = answer_of(spec)
    bend(answer)

    assert departed(judged(spec, answer)) == {}


@pytest.mark.parametrize("data", [[196, 160], [32], [256], [-1], ["x"], [None], [83, 110, 33]])
def test_bytes_of_something_else_are_none_of_the_token(data: list[Any]) -> None:
    """The token is `Sn`: what its bytes have beside can only be a part of a character."""
    answer = answer_of(CHAT)
    _entries(answer)[0]["bytes"] = data

    assert judged(CHAT, answer)["logprobs.bytes"] is FAIL


def _named_bytes(text: str, tokens: list[str], offsets: list[int]) -> Answer:
    report = report_of(COMPLETIONS, tokens, NUMBERS[: len(tokens)]) | {"text_offset": offsets}
    return answer_of(COMPLETIONS, text, report) | {"usage": usage(completion=len(tokens))}


def test_text_completions_may_name_the_bytes_of_a_part() -> None:
    """As OpenAI's do: `bytes:\\xf0\\x9f` is no text of the answer, and takes up no characters of it."""
    answer = _named_bytes("Hi 😀 so", ["Hi", " ", "bytes:\\xf0\\x9f", "bytes:\\x98\\x80", " so"], [0, 2, 3, 3, 4])

    assert departed(judged(COMPLETIONS, answer)) == {}


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [([0, 2, 4], {}), ([0, 3, 5], {}), ([0, 1, 3], {"logprobs.offsets": WARN})],
)
def test_the_first_token_may_have_lost_its_space(offsets: list[int], expected: dict[str, Outcome]) -> None:
    """A server that trims its texts counts in what is left of them."""
    assert departed(judged(COMPLETIONS, _named_bytes("Hi it is", [" Hi", " i", "t is"], offsets))) == expected


def test_offsets_may_count_the_bytes_of_a_prompt() -> None:
    """No document says what they count."""
    answer = answer_of(COMPLETIONS, report=report_of(COMPLETIONS, base=len("Où ?".encode())))

    assert judged(COMPLETIONS, answer, prompt="Où ?")["logprobs.offsets"] is PASS


@pytest.mark.parametrize(
    ("tokens", "tops", "expected"),
    [
        (["S", "n", "o", "w"], {" x": -1.0, "\ufffd": -2.0}, PASS),  # several parts have one text
        (["S", "n", "o", "w"], {" x": -1.0, "": -2.0}, PASS),
        (["S", "n", "o", "w"], {" x": -1.0, " y": -2.0}, FAIL),
        (["S", "n"], {" x": -1.0, " y": -2.0}, PASS),  # at two places, two pairs may have one text
        (["S", "n"], {}, IGNORED),
    ],
)
def test_a_list_by_texts_may_be_shorter(tokens: list[str], tops: dict[str, float], expected: Outcome) -> None:
    """One entry stands for all tokens of the same text."""
    report = report_of(COMPLETIONS, tokens, NUMBERS[: len(tokens)]) | {"top_logprobs": [tops] * len(tokens)}
    answer = answer_of(COMPLETIONS, "".join(tokens), report)

    assert judged(COMPLETIONS, answer, logprobs=3)["logprobs.count-asked"] is expected


def test_where_one_token_is_left_the_model_is_sure() -> None:
    """At any temperature, by what the request asks for: a number that is told after that is 0."""
    answer = answer_of(CHAT)
    for each in _entries(answer):
        each["logprob"] = each["top_logprobs"][0]["logprob"] = 0.0

    for asked in ({"top_k": 1}, {"top_p": 1e-6}, {"structured_outputs": {"regex": "Snow falls. It is so white"}}):
        assert departed(judged(CHAT, answer, temperature=1, **asked)) == {}


def test_an_echo_alone_has_no_log_probabilities_of_its_own() -> None:
    """The model ended at once; that the prompt has none is `prompt.echo-logprobs`'."""
    contract, operation = contract_of(COMPLETIONS)
    answer = answer_of(COMPLETIONS, "The sky is")
    answer["choices"][0].update(logprobs=None, finish_reason="stop")
    body = request(operation, prompt="The sky is", echo=True, logprobs=1)
    found = outcomes(contract, operation, exchange(operation, body, http(200, json.dumps(answer).encode())))

    assert found["logprobs.given"] is Outcome.NOT_RUN


def test_an_absent_list_is_like_null() -> None:
    """`logprobs: 0` of text completions."""
    answer = answer_of(COMPLETIONS)
    del answer["choices"][0]["logprobs"]["top_logprobs"]

    assert departed(judged(COMPLETIONS, answer, logprobs=0)) == {}
    assert departed(judged(COMPLETIONS, answer)) == {"logprobs.shape": FAIL, "logprobs.count-asked": IGNORED}
