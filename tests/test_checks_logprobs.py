"""`logprobs.*`: what answers tell of their tokens, made by hand, bent and judged."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import chunked, chunks, contract_of, exchange, http, outcomes, request, sse, usage, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.logprobs import spells
from streamgauge.outcomes import Outcome

IGNORED, FAIL, WARN, PASS = Outcome.IGNORED, Outcome.FAIL, Outcome.WARN, Outcome.PASS
UNJUDGED = (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE)

Answer = dict[str, Any]
Bend = Callable[[Answer], Any]

TOKENS = ["Sn", "ow", " falls", ".", " It", " is", " so", " white"]
TEXT = "".join(TOKENS)
NUMBERS = [-0.5, -0.25, -1.5, -0.75, -2.0, -0.1, -1.0, -3.5]
OTHERS = (" x", " y")
"""Two likely tokens that stand behind the one that was taken."""

CHAT, COMPLETIONS = "seekr-chat", "seekr-completions"


def entry(token: str, number: Any, others: tuple[str, ...] = OTHERS) -> dict[str, Any]:
    """A chat's report on one token, which stands first among the likeliest."""
    alone = {"token": token, "logprob": number, "bytes": list(token.encode())}
    tops = [{"token": other, "logprob": number - at - 1.0, "bytes": None} for at, other in enumerate(others)]
    return {**alone, "top_logprobs": [alone, *tops] if others else []}


def report_of(spec: str, tokens: list[str] = TOKENS, numbers: list[Any] = NUMBERS, *, base: int = 0) -> dict[str, Any]:
    """The same in either family's form."""
    if spec.endswith("chat"):
        return {"content": [entry(token, number) for token, number in zip(tokens, numbers, strict=True)]}
    offsets = [base + len("".join(tokens[:at])) for at in range(len(tokens))]
    tops = [
        {token: number, **{other: number - at - 1.0 for at, other in enumerate(OTHERS)}} if number is not None else None
        for token, number in zip(tokens, numbers, strict=True)
    ]
    return {"tokens": list(tokens), "token_logprobs": list(numbers), "top_logprobs": tops, "text_offset": offsets}


def answer_of(spec: str, text: str = TEXT, report: Any = None) -> Answer:
    """A whole answer that the limit of eight tokens cut."""
    operation = contract_of(spec)[1]
    answer = whole_answer(operation)
    choice = answer["choices"][0]
    (choice["message"].update(content=text) if spec.endswith("chat") else choice.update(text=text))
    choice["logprobs"] = report_of(spec) if report is None else report
    return answer


def judged(spec: str, answer: Answer, **asked: Any) -> dict[str, Outcome]:
    """What all checks say of the whole answer to such a request."""
    contract, operation = contract_of(spec)
    wanted = {"logprobs": True, "top_logprobs": 3} if spec.endswith("chat") else {"logprobs": 2}
    body = request(operation, **{**wanted, **asked})
    return outcomes(contract, operation, exchange(operation, body, http(200, json.dumps(answer).encode())))


def departed(found: dict[str, Outcome]) -> dict[str, Outcome]:
    """Of the log-probabilities' checks, those that do not pass."""
    mine = {id_: outcome for id_, outcome in found.items() if id_.startswith(("logprobs.", "prompt.echo-"))}
    return {id_: outcome for id_, outcome in mine.items() if outcome not in (*UNJUDGED, PASS)}


@pytest.mark.parametrize("spec", [CHAT, COMPLETIONS, "openai-chat", "openai-completions", "deepinfra-completions"])
def test_right_log_probabilities_pass(spec: str) -> None:
    """One report for each token of a text that the limit cut: nothing departs, and the laws have judged it."""
    found = judged(spec, answer_of(spec))

    assert departed(found) == {}
    for check in ("logprobs.given", "logprobs.finite", "logprobs.top-sampled", "logprobs.text", "logprobs.count"):
        assert found[check] is PASS
    assert found["logprobs.top-count" if spec.endswith("chat") else "logprobs.count-asked"] is PASS


def _entries(answer: Answer) -> list[Any]:
    found: list[Any] = answer["choices"][0]["logprobs"]["content"]
    return found


def _arrays(answer: Answer) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = answer["choices"][0]["logprobs"]
    return found


def _each(change: Callable[[dict[str, Any]], Any]) -> Bend:
    return lambda answer: [change(each) for each in _entries(answer)]


def _as_in_vocabulary(answer: Answer) -> None:
    for each in _entries(answer):
        each["token"] = each["token"].replace(" ", "Ġ")
        each["bytes"] = list(each["token"].encode())
        each["top_logprobs"][0]["token"] = each["token"]


def _of_the_place_before(answer: Answer) -> None:
    tops = [each["top_logprobs"] for each in _entries(answer)]
    for each, top in zip(_entries(answer), [*tops[-1:], *tops[:-1]], strict=True):
        each["top_logprobs"] = top


WRONG_IN_CHAT: dict[str, tuple[Bend, dict[str, Any], dict[str, Outcome]]] = {
    "no logprobs": (lambda a: a["choices"][0].update(logprobs=None), {}, {"logprobs.given": IGNORED}),
    "an empty list": (lambda a: _entries(a).clear(), {}, {"logprobs.given": IGNORED}),
    "no likeliest tokens": (_each(lambda e: e.update(top_logprobs=[])), {}, {"logprobs.top-count": IGNORED}),
    "fewer than asked": (_each(lambda e: e["top_logprobs"].pop()), {}, {"logprobs.top-count": FAIL}),
    "more than asked": (lambda a: None, {"top_logprobs": 2}, {"logprobs.top-count": FAIL}),
    "unasked": (lambda a: None, {"top_logprobs": 0}, {"logprobs.no-top": FAIL}),
    "unasked by default": (lambda a: None, {"top_logprobs": ...}, {"logprobs.no-top": FAIL}),
    "null": (lambda a: _entries(a)[3].update(logprob=None), {}, {"logprobs.finite": FAIL}),
    "above 0": (
        lambda a: _entries(a)[3].update(logprob=0.5),
        {},
        {"logprobs.finite": FAIL, "logprobs.top-sampled": FAIL},
    ),
    "lowest float": (lambda a: _entries(a)[3].update(logprob=-3.4e38), {}, {"logprobs.finite": FAIL}),
    "backwards": (
        _each(lambda e: e["top_logprobs"].reverse()),
        {},
        {"logprobs.top-order": WARN},
    ),
    "of the place before": (_of_the_place_before, {}, {"logprobs.top-sampled": FAIL}),
    "another number in the list": (
        lambda a: _entries(a)[3]["top_logprobs"][0].update(logprob=-1.2),
        {},
        {"logprobs.top-sampled": FAIL},
    ),
    "bytes of the vocabulary": (_each(lambda e: e.update(bytes=[196, 160])), {}, {"logprobs.bytes": FAIL}),
    "writing of the vocabulary": (_as_in_vocabulary, {}, {"logprobs.text": WARN}),
    "one token without a report": (
        lambda a: _entries(a).pop(),
        {},
        {"logprobs.text": WARN, "logprobs.count": WARN},
    ),
    "all the same at temperature 1": (
        _each(lambda e: (e.update(logprob=0.0), e["top_logprobs"][0].update(logprob=0.0))),
        {"temperature": 1},
        {"logprobs.varied": WARN},
    ),
}


@pytest.mark.parametrize("name", WRONG_IN_CHAT)
def test_wrong_log_probabilities_of_a_chat_are_found(name: str) -> None:
    """Each departs from its own requirement, and from no other where it need not."""
    bend, asked, expected = WRONG_IN_CHAT[name]
    answer = answer_of(CHAT)
    bend(answer)

    assert departed(judged(CHAT, answer, **asked)) == expected


def _vllm(answer: Answer) -> None:
    """The token that was taken stands first, though it is the least likely; see `captures/vllm/logprobs.http`."""
    for each in _entries(answer):
        own = each["top_logprobs"][0]
        own["logprob"] = each["logprob"] = -6.0 + each["logprob"]
        each["top_logprobs"][1:] = [{"token": " x", "logprob": -2.1}, {"token": " y", "logprob": -2.5}]


def _llama(answer: Answer) -> None:
    """The token that was taken is unlikely and not listed; see `captures/llamacpp-xllamacpp/logprobs.http`."""
    for each in _entries(answer):
        each["logprob"] -= 6.0
        each["top_logprobs"] = [{"token": f" x{at}", "logprob": -2.1 - at} for at in range(3)]


def _special(answer: Answer) -> None:
    """Tokens that a text does not show: the answer ends by one, and another stands within."""
    tokens = [*TOKENS[:3], "<s>", *TOKENS[3:], "<|eot_id|>"]
    answer["choices"][0].update(logprobs=report_of(CHAT, tokens, [*NUMBERS, -1.1, -1.2]), finish_reason="stop")
    answer["usage"] = usage(completion=10)


def _parts_of_a_character(answer: Answer) -> None:
    """A character of four bytes in two tokens, whose texts cannot show it."""
    pieces = [entry("\ufffd", number) for number in NUMBERS[:2]]
    pieces[0]["bytes"], pieces[1]["bytes"] = [240, 159], [152, 128]
    answer["choices"][0]["message"]["content"] = "😀"
    answer["choices"][0]["logprobs"] = {"content": pieces}
    answer["usage"] = usage(completion=2)


def _certain(answer: Answer) -> None:
    """A model that is sure of every greedy token."""
    for each in _entries(answer):
        each["logprob"] = each["top_logprobs"][0]["logprob"] = 0.0


def _thinks(answer: Answer) -> None:
    """The thoughts' tokens are told, and are not in the content."""
    answer["choices"][0]["message"].update(content=" white", reasoning="Snow falls. It is so")


RIGHT_IN_CHAT: dict[str, tuple[Bend, dict[str, Any]]] = {
    "vLLM's order": (_vllm, {}),
    "llama.cpp's lists": (_llama, {}),
    "special tokens": (_special, {}),
    "parts of a character": (_parts_of_a_character, {}),
    "a certain model": (_certain, {}),
    "a thinking model": (_thinks, {}),
    "nothing but special tokens": (
        lambda a: (
            a["choices"][0]["message"].update(content=""),
            a["choices"][0].update(logprobs={"content": [entry("</s>", -3.0)]}, finish_reason="stop"),
            a.update(usage=usage(completion=1)),
        ),
        {},
    ),
    "no text and null": (
        lambda a: (
            a["choices"][0]["message"].update(content=""),
            a["choices"][0].update(logprobs=None, finish_reason="stop"),
            a.update(usage=usage(completion=0)),
        ),
        {},
    ),
    "trimmed white space": (
        lambda a: a["choices"][0].update(logprobs=report_of(CHAT, ["\n", *TOKENS[:-1], "."][:8], NUMBERS)),
        {"stop": [" white"]},
    ),
    "a calling model": (
        lambda a: a["choices"][0]["message"].update(
            tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}], content=None
        ),
        {},
    ),
    "-9999 for very unlikely": (lambda a: _entries(a)[0].update(logprob=-9999.0), {}),
    "none of the likeliest asked": (_each(lambda e: e.update(top_logprobs=[])), {"top_logprobs": 0}),
    "no bytes": (_each(lambda e: e.update(bytes=None)), {}),
    "a rounded 0": (
        lambda a: (_entries(a)[5].update(logprob=1e-6), _entries(a)[5]["top_logprobs"][0].update(logprob=1e-6)),
        {},
    ),
}


@pytest.mark.parametrize("name", RIGHT_IN_CHAT)
def test_right_but_unusual_log_probabilities_of_a_chat_pass(name: str) -> None:
    """What right servers do in their own ways."""
    bend, asked = RIGHT_IN_CHAT[name]
    answer = answer_of(CHAT)
    bend(answer)

    assert departed(judged(CHAT, answer, **asked)) == {}


def _shift(by: int, start: int = 1) -> Bend:
    def bend(answer: Answer) -> None:
        offsets = _arrays(answer)["text_offset"]
        offsets[start:] = [offset + by for offset in offsets[start:]]

    return bend


WRONG_IN_COMPLETIONS: dict[str, tuple[Bend, dict[str, Any], dict[str, Outcome]]] = {
    "no logprobs": (lambda a: a["choices"][0].update(logprobs=None), {}, {"logprobs.given": IGNORED}),
    "no likeliest tokens": (
        lambda a: _arrays(a).update(top_logprobs=[None] * 8),
        {},
        {"logprobs.count-asked": IGNORED},
    ),
    "more than asked": (lambda a: None, {"logprobs": 1}, {"logprobs.count-asked": FAIL}),
    "fewer than asked": (lambda a: None, {"logprobs": 5}, {"logprobs.count-asked": FAIL}),
    "unasked": (lambda a: None, {"logprobs": 0}, {"logprobs.no-top": FAIL}),
    "arrays that differ": (lambda a: _arrays(a)["text_offset"].pop(), {}, {"logprobs.lengths": FAIL}),
    "a missing array": (lambda a: _arrays(a).pop("text_offset"), {}, {"logprobs.shape": FAIL}),
    "all offsets -1": (
        lambda a: _arrays(a).update(text_offset=[-1] * 8),
        {},
        {"logprobs.offsets": WARN},
    ),
    "offsets that restart": (_shift(-3), {}, {"logprobs.offsets": WARN}),
    "offsets from elsewhere": (_shift(4, start=0), {}, {"logprobs.offsets": WARN}),
    "the first of an answer null": (
        lambda a: _arrays(a)["token_logprobs"].__setitem__(0, None),
        {},
        {"logprobs.finite": FAIL},
    ),
}


@pytest.mark.parametrize("name", WRONG_IN_COMPLETIONS)
def test_wrong_log_probabilities_of_a_text_completion_are_found(name: str) -> None:
    """The four arrays are parallel, and offsets count characters."""
    bend, asked, expected = WRONG_IN_COMPLETIONS[name]
    answer = answer_of(COMPLETIONS)
    bend(answer)

    assert departed(judged(COMPLETIONS, answer, **asked)) == expected


PROMPT = "The sky is"


def test_offsets_may_count_from_the_prompt() -> None:
    """As OpenAI did where the prompt is not echoed; `xorbitsai/inference#5245`."""
    answer = answer_of(COMPLETIONS, report=report_of(COMPLETIONS, base=len(PROMPT)))

    assert judged(COMPLETIONS, answer, prompt=PROMPT)["logprobs.offsets"] is PASS


def test_characters_of_several_bytes_have_no_length_of_their_own() -> None:
    """Whether servers count characters or bytes shows in ASCII only as far as nothing else has been written."""
    tokens = ["é", "x"] * 4
    answer = answer_of(COMPLETIONS, "".join(tokens), report_of(COMPLETIONS, tokens))
    _arrays(answer)["text_offset"] = [0, 2, 3, 5, 6, 8, 9, 11]

    assert judged(COMPLETIONS, answer)["logprobs.offsets"] is PASS


def test_no_likeliest_tokens_may_be_null() -> None:
    """`logprobs: 0` of text completions: no list, or only the token that was taken."""
    for tops in (None, [None] * 8, [{token: number} for token, number in zip(TOKENS, NUMBERS, strict=True)]):
        answer = answer_of(COMPLETIONS)
        _arrays(answer).update(top_logprobs=tops)

        assert departed(judged(COMPLETIONS, answer, logprobs=0)) == {}


def echoed(numbers: list[Any], tokens: list[str] | None = None, read: int = 0) -> dict[str, Outcome]:
    """An echo of `The sky is` with these numbers for its tokens, of which so many were read."""
    prompt = ["The", " sky", " is", " a"][:3] if tokens is None else tokens
    report = report_of(COMPLETIONS, [*prompt, *TOKENS], [*numbers, *NUMBERS])
    answer = answer_of(COMPLETIONS, PROMPT + TEXT, report) | {"usage": usage(read or len(prompt))}
    return judged(COMPLETIONS, answer, prompt=PROMPT, echo=True)


def test_an_echo_is_scored_from_its_second_token_on() -> None:
    """The first token follows nothing; `vllm-project/vllm#5334`."""
    assert departed(echoed([None, -1.0, -2.0])) == {}
    assert departed(echoed([-1.0, -1.5, -2.0])) == {"logprobs.prompt-first": WARN}
    assert departed(echoed([-1.0, -1.5, -2.0], read=4)) == {}  # it follows a mark that is not shown
    assert departed(echoed([None, None, -2.0])) == {"logprobs.finite": FAIL}
    assert departed(echoed([], [])) == {"prompt.echo-logprobs": WARN}


def test_one_number_for_all_of_an_echo_is_found() -> None:
    """No model is equally sure of every word of a prompt; `mobilint/vllm-mblt#8`."""
    pieces = ["The", " s", "ky", " i", "s"]

    assert departed(echoed([None, -1.0, -1.0, -1.0, -1.0], pieces)) == {"logprobs.varied": WARN}
    assert departed(echoed([None, -1.0, -1.5, -1.0, -1.0], pieces)) == {}


def place(number: float, *others: float) -> dict[str, Any]:
    """A prompt's report on one token."""
    return {str(at): {"logprob": value, "rank": at + 1} for at, value in enumerate((number, *others))}


PLACES = [place(-1.0, -2.0), place(-1.5, -2.0), place(-0.5, -3.0), place(-4.0, -4.5)]
"""For the second to the fifth token of a prompt of five."""

PROMPTS: dict[str, tuple[Any, dict[str, Outcome]]] = {
    "right": ([None, *PLACES], {}),
    "the own token beside": ([None, *PLACES[:3], place(-4.0, -4.5, -9.0)], {}),
    "none": (None, {"logprobs.prompt": IGNORED}),
    "empty": ([], {"logprobs.prompt": IGNORED}),
    "too short": ([None, *PLACES[:3]], {"logprobs.prompt": FAIL}),
    "too many": ([None, *PLACES[:3], place(-1.0, -2.0, -3.0, -4.0)], {"logprobs.prompt": FAIL}),
    "the first told": ([PLACES[2], *PLACES], {"logprobs.prompt-first": WARN}),
    "one row": ([None, *PLACES[:1] * 4], {"logprobs.varied": WARN}),
}


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("spec", [CHAT, COMPLETIONS])
def test_reports_on_prompts_are_judged(spec: str, name: str) -> None:
    """A chat has them beside its choices, a text completion in each; one entry for each prompt token."""
    report, expected = PROMPTS[name]
    answer = whole_answer(contract_of(spec)[1])
    (answer if spec == CHAT else answer["choices"][0])["prompt_logprobs"] = report

    found = judged(spec, answer, logprobs=None, top_logprobs=None, prompt_logprobs=2)

    assert departed(found) == expected


def test_requested_ids_are_sought_at_every_place() -> None:
    """`logprob_token_ids`, told by ids; told by texts, nobody can tell."""
    asked = {"logprob_token_ids": [7, 5], "return_tokens_as_token_ids": True}
    tokens = [f"token_id:{at}" for at in range(100, 108)]
    likely = ("token_id:7", "token_id:5")
    entries = [entry(token, number, likely) for token, number in zip(tokens, NUMBERS, strict=True)]
    answer = answer_of(CHAT, report={"content": entries})
    lacking, partly, texts = copy.deepcopy(answer), copy.deepcopy(answer), answer_of(CHAT)
    _each(lambda e: e["top_logprobs"].__delitem__(slice(1, None)))(lacking)
    _entries(partly)[4]["top_logprobs"].pop()

    def found(given: Answer) -> Outcome:
        return judged(CHAT, given, **asked)["logprobs.ids-requested"]

    _each(lambda e: e["top_logprobs"].reverse())(answer)  # they are no ranking
    assert departed(judged(CHAT, answer, **asked)) == {}
    assert [found(answer), found(lacking), found(partly), found(texts)] == [PASS, IGNORED, FAIL, Outcome.INCONCLUSIVE]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("spec", [CHAT, COMPLETIONS])
def test_streams_have_to_tell_them_too(spec: str, told: bool) -> None:
    """In whichever chunk; `abetlen/llama-cpp-python#197`."""
    contract, operation = contract_of(spec)
    payloads = chunks(operation)
    texts = [each["choices"][0] for each in payloads if each["choices"] and each["choices"][0]["finish_reason"] is None]
    for choice, tokens in zip(texts[-2:], (["o", "ne"], [" ", "t", "w", "o", "", ""]), strict=True):
        choice["logprobs"] = report_of(spec, tokens, NUMBERS[: len(tokens)]) if told else None
        if told and spec == COMPLETIONS and tokens[0] == " ":
            choice["logprobs"]["text_offset"] = [3, 4, 5, 6, 7, 7]
    wanted = {"logprobs": True, "top_logprobs": 3} if spec == CHAT else {"logprobs": 2}
    body = request(operation, stream=True, stream_options={"include_usage": True}, **wanted)

    found = outcomes(contract, operation, exchange(operation, body, chunked(sse(payloads))))

    assert departed(found) == ({} if told else {"logprobs.given": IGNORED})


@pytest.mark.parametrize(("status", "expected"), [(400, Outcome.REFUSED), (500, FAIL)])
def test_refusals_and_failures_are_classed(status: int, expected: Outcome) -> None:
    """`logprobs: true` alone: `vllm-project/vllm#4795`; `logprobs: 0`: `vllm-project/tpu-inference#3572`."""
    for spec, asked in ((CHAT, {"logprobs": True}), (COMPLETIONS, {"logprobs": 0})):
        contract, operation = contract_of(spec)
        error = http(status, json.dumps({"error": {"message": "no", "type": "t", "code": status}}).encode())
        right = exchange(
            operation, request(operation), http(200, json.dumps(whole_answer(operation)).encode()), probe="r"
        )
        found = outcomes(contract, operation, right, exchange(operation, request(operation, **asked), error))

        assert found["logprobs.no-top"] is expected


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Zs", "Cc", "Zl", "Zp"]), min_size=1)), st.data()
)
def test_tokens_spell_their_text(tokens: list[str], data: st.DataObject) -> None:
    """Any cut of a text spells it, special tokens in between or not; another text it does not."""
    text = "".join(tokens)
    at = data.draw(st.integers(0, len(tokens)))

    assert spells(tokens, text)
    assert spells([*tokens[:at], "", *tokens[at:]], text)
    assert not spells(tokens, text + "!")
