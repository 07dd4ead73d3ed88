"""Stop strings and tokens: what is right on any server passes or is not judged, what is wrong departs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import (
    chunked,
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
from streamgauge.conformance.assembly import Choice
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of
from streamgauge.conformance.law import Law
from streamgauge.conformance.stopping import Stopped, most_stop_strings, stopped
from streamgauge.contract.contract import load_contracts
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

FULL = "alpha beta gamma delta epsilon zeta eta theta"
STOP = "ma de"
CUT = FULL[: FULL.index(STOP)]
PASS, NOT_RUN, IGNORED, FAIL, WARN = Outcome.PASS, Outcome.NOT_RUN, Outcome.IGNORED, Outcome.FAIL, Outcome.WARN


def whole(
    spec: str, text: str | None, *, finish: str = "length", spent: int = 8, told: Any = ..., **changes: Any
) -> Exchange:
    """A whole answer with this text; `told` is its members beside."""
    operation = contract_of(spec)[1]
    answer = whole_answer(operation)
    [choice] = answer["choices"]
    choice.get("message", choice)["content" if "message" in choice else "text"] = text
    choice |= {"finish_reason": finish, **({} if told is ... else told)}
    answer["usage"] = usage(completion=spent)
    return exchange(operation, request(operation, **changes), http(200, json.dumps(answer).encode()))


def stream(spec: str, text: str, *, finish: str = "length", spent: int = 8, **changes: Any) -> Exchange:
    """The same as a stream of three pieces."""
    operation = contract_of(spec)[1]
    chat = operation.family == "chat"
    base = {"id": "x", "object": "chat.completion.chunk" if chat else "text_completion", "created": 1, "model": "tiny"}
    third = len(text) // 3
    pieces = [text[:third], text[third : 2 * third], text[2 * third :]]
    parts = [
        {"index": 0, **({"delta": {"content": p}} if chat else {"text": p}), "finish_reason": None} for p in pieces
    ]
    end = {"index": 0, **({"delta": {}} if chat else {"text": ""}), "finish_reason": finish}
    payloads = [
        *({**base, "choices": [part]} for part in (*parts, end)),
        {**base, "choices": [], "usage": usage(5, spent)},
    ]
    return exchange(operation, stream_request(operation, **changes), chunked(sse(payloads)))


def bare(spec: str, text: str | None = FULL, **changes: Any) -> list[Exchange]:
    """The question without stop strings: whole twice and streamed, always with the same text."""
    return [whole(spec, text, **changes), whole(spec, text, **changes), stream(spec, text or "", **changes)]


def found(spec: str, *exchanges: Exchange) -> dict[str, Outcome]:
    """What the `stop.*` checks find."""
    every = outcomes(*contract_of(spec), *exchanges)
    return {id_: outcome for id_, outcome in every.items() if id_.startswith("stop.")}


def departed(spec: str, *exchanges: Exchange) -> set[str]:
    """Those that depart."""
    return {id_ for id_, outcome in found(spec, *exchanges).items() if outcome in (IGNORED, FAIL, WARN)}


OPEN = {
    "openapi": "3.1.0",
    "info": {"title": "Open", "version": "1"},
    "paths": {
        "/chat/completions": {
            "post": {
                "operationId": "chat",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {}}}}},
                "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {}}}}},
            }
        }
    },
}

SPECS = ("openai-chat", "openai-completions", "deepinfra-completions")

ANSWERS = [
    # what the answer says, its finish reason, its tokens, the checks that depart
    (CUT, "stop", 5, set()),
    (CUT.rstrip(), "stop", 5, set()),
    (CUT, "length", 8, set()),  # its limit may have come at the same place
    (FULL, "length", 8, {"stop.honoured"}),
    (CUT + STOP, "stop", 5, {"stop.honoured"}),
    (CUT + "ma d", "stop", 5, {"stop.no-prefix-leak"}),
    (CUT[:4], "stop", 5, {"stop.exact"}),
    (CUT[:4], "length", 8, set()),  # other limits are not the stop string's
    (CUT + FULL[len(CUT) + len(STOP) :], "length", 8, {"stop.exact"}),  # left out, and on it goes
    (CUT, "length", 5, {"stop.finish"}),
    ("", "stop", 5, set()),  # thoughts that nobody sees may have held it
    ("", "stop", 1, {"stop.exact"}),
    ("quite another text", "length", 8, set()),
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("form", [whole, stream])
@pytest.mark.parametrize(("text", "finish", "spent", "expected"), ANSWERS)
def test_an_answer_to_a_question_with_a_stop_string(
    spec: str, form: Any, text: str, finish: str, spent: int, expected: set[str]
) -> None:
    """OpenAI, create completion: stop. Each answer trips the one check that is about what is wrong with it, or none."""
    answer = form(spec, text, finish=finish, spent=spent, stop=STOP)

    assert departed(spec, *bare(spec), answer) == expected


@pytest.mark.parametrize(
    "known",
    [
        [],
        [whole("openai-chat", FULL)],  # once is no proof that it is always the same
        [whole("openai-chat", FULL), whole("openai-chat", FULL.replace("delta", "phi"))],
        [stream("openai-chat", FULL)] * 2,  # the other form may say something else
        bare("openai-chat", None),
        bare("openai-chat", temperature=1),
    ],
)
def test_without_a_steady_text_only_what_the_answer_itself_proves_is_judged(known: list[Exchange]) -> None:
    """The noise floor is unknown: neither a short text nor a stray beginning proves anything; a stop string does."""
    short = whole("openai-chat", CUT[:4], finish="stop", spent=3, stop=STOP)
    held = whole("openai-chat", FULL, stop=STOP)

    assert found("openai-chat", *known, short)["stop.exact"] is NOT_RUN
    assert departed("openai-chat", *known, short) == set()
    assert departed("openai-chat", *known, held) == {"stop.honoured"}


@pytest.mark.parametrize("form", [whole, stream])
@pytest.mark.parametrize(
    ("text", "expected"),
    [(FULL, PASS), (FULL + "\n", PASS), (FULL[:-2], FAIL), (FULL[:-5], FAIL), ("", NOT_RUN), ("other", NOT_RUN)],
)
def test_a_stop_string_that_does_not_come_up_takes_nothing_away(form: Any, text: str, expected: Outcome) -> None:
    """Of `theta!` the text ends with a part: what was held back is told in the end."""
    for stop in ("ta!", ["never", "ta!"]):
        answer = form("openai-chat", text, stop=stop)
        assert found("openai-chat", *bare("openai-chat"), answer)["stop.flush"] is expected


@pytest.mark.parametrize(
    ("stops", "text"),
    [
        (["gamma", "delta"], "alpha beta "),
        (["delta", "gamma"], "alpha beta "),
        (["amma d", "mma"], "alpha beta g"),  # the one that begins first is complete later
        (["amma d", "mma"], "alpha beta ga"),
        (["never", "gamma"], "alpha beta "),
    ],
)
def test_any_of_several_stop_strings_may_end_a_text(stops: list[str], text: str) -> None:
    """Overlapping ones may be complete with the same token; engines differ in which one they take."""
    answer = whole("openai-chat", text, finish="stop", spent=4, stop=stops)

    assert found("openai-chat", *bare("openai-chat"), answer)["stop.exact"] is PASS


@pytest.mark.parametrize(
    "changes",
    [
        {"echo": True, "prompt": "gamma: " + STOP},  # the prompt may hold it
        {"min_tokens": 8},  # it does not count before
        {"include_stop_str_in_output": True},
        {"model": "another"},
    ],
)
def test_stop_strings_in_what_is_not_to_be_stopped(changes: dict[str, Any]) -> None:
    """The prompt that `echo` repeats, and what `min_tokens` lets pass, may hold a stop string."""
    text = changes.get("prompt", "") + (CUT if "echo" in changes else FULL)

    assert "stop.honoured" not in departed("seekr-completions", whole("seekr-completions", text, stop=STOP, **changes))


def test_behind_an_echoed_prompt_the_stop_string_still_counts() -> None:
    """The text behind the prompt is what was generated."""
    answer = whole("openai-completions", "One" + FULL, stop=STOP, echo=True, prompt="One")
    unknown = whole("openai-completions", "One" + FULL, stop=STOP, echo=True, prompt=[1, 2])

    assert departed("openai-completions", answer) == {"stop.honoured"}
    assert departed("openai-completions", unknown) == set()


def test_reasoning_may_hold_the_stop_string() -> None:
    """Engines look for it in all that is generated: a choice that thinks says nothing about where its text had to end."""
    thinking = {"message": {"role": "assistant", "content": None, "reasoning": "I stop at " + CUT}}
    answer = whole("seekr-chat", "", finish="stop", spent=1, told=thinking, stop=STOP)

    assert departed("seekr-chat", *bare("seekr-chat"), answer) == set()


@pytest.mark.parametrize("spec", ["seekr-chat", "seekr-completions"])
@pytest.mark.parametrize(
    ("reason", "expected"), [(STOP, PASS), (None, FAIL), ("stop", FAIL), (5, FAIL), ("never", FAIL)]
)
def test_the_stop_reason_is_the_string_that_ended_the_text(spec: str, reason: Any, expected: Outcome) -> None:
    """Seekr: "The stop string or token id that caused the completion to stop"."""
    answer = whole(spec, CUT, finish="stop", spent=5, told={"stop_reason": reason}, stop=["never", STOP])

    assert found(spec, *bare(spec), answer)["stop.reason-told"] is expected


@pytest.mark.parametrize(("text", "finish", "expected"), [(FULL, "stop", IGNORED), (CUT + STOP, "length", IGNORED)])
def test_what_a_stop_string_did_not_end_ignores_it(text: str, finish: str, expected: Outcome) -> None:
    """A text that it ends, and which says so, has it in it all the same: that is wrong, and not ignored."""
    assert found("openai-chat", whole("openai-chat", text, finish=finish, stop=STOP))["stop.honoured"] is expected
    assert found("openai-chat", whole("openai-chat", CUT + STOP, finish="stop", stop=STOP))["stop.honoured"] is FAIL


@pytest.mark.parametrize(("reason", "expected"), [(None, PASS), ("length", FAIL), (2, FAIL), ("", FAIL)])
def test_what_the_limit_ended_has_no_stop_reason(reason: Any, expected: Outcome) -> None:
    """Seekr: "null if the completion finished for some other reason"."""
    answer = whole("seekr-chat", FULL, finish="length", told={"stop_reason": reason})

    assert found("seekr-chat", answer)["stop.reason-told"] is expected


def test_a_stop_string_may_come_up_in_white_space_that_is_trimmed() -> None:
    """The text begins behind the template's line break, which is a stop string as well."""
    full = "alpha\nbeta gamma"
    answer = whole("openai-chat", "", finish="stop", spent=1, stop="\n")

    assert departed("openai-chat", *bare("openai-chat", full), answer) == set()


def test_a_limit_at_the_same_place_is_as_good_a_reason() -> None:
    """Then nothing stopped it, as far as its reason says."""
    answer = whole("seekr-chat", CUT, finish="length", spent=8, told={"stop_reason": None}, stop=STOP)

    assert departed("seekr-chat", *bare("seekr-chat"), answer) == set()


def test_a_stop_reason_of_the_models_own_is_not_judged() -> None:
    """The id of a further end-of-text token that the model's configuration names, as vLLM tells it."""
    answer = whole("seekr-chat", CUT, finish="stop", spent=5, told={"stop_reason": 128009})

    assert departed("seekr-chat", *bare("seekr-chat"), answer) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CUT + STOP, PASS),
        (CUT, IGNORED),
        (CUT + STOP + "lt", FAIL),
        (FULL, NOT_RUN),  # the stop string itself is ignored, as `stop.honoured` tells
        ("something else", NOT_RUN),
    ],
)
def test_a_stop_string_that_is_to_be_included(text: str, expected: Outcome) -> None:
    """The text ends with it."""
    answer = whole("seekr-chat", text, finish="stop", spent=5, stop=STOP, include_stop_str_in_output=True)

    assert found("seekr-chat", *bare("seekr-chat"), answer)["stop.included"] is expected


IDS = [11, 12, 13, 14, 15, 16, 17, 18]


@pytest.mark.parametrize(
    ("ids", "text", "expected"),
    [
        (IDS[:4], CUT, PASS),
        (IDS[:3], CUT, PASS),  # without the stop token
        (IDS, FULL, IGNORED),
        (IDS[:5], CUT, IGNORED),
        (IDS[:2], "alpha", FAIL),
        ([21, 22], "other", NOT_RUN),
        ([21, 14], "other", PASS),
        (None, FULL, IGNORED),
        (None, CUT, NOT_RUN),
    ],
)
def test_a_stop_token_ends_the_answer(ids: list[int] | None, text: str, expected: Outcome) -> None:
    """Its id is the last one; where no ids are told, a text that goes on as without it proves that it does not."""
    known = [whole("seekr-chat", FULL, told={"token_ids": IDS}, return_token_ids=True)] * 2
    told = {"token_ids": ids, "stop_reason": 14}
    answer = whole(
        "seekr-chat", text, finish="stop", spent=4, told=told, return_token_ids=True, stop_token_ids=[14, 99]
    )

    assert found("seekr-chat", *known, answer)["stop.token-ids"] is expected


@pytest.mark.parametrize(("reason", "expected"), [(14, PASS), ("14", FAIL), (None, FAIL), (99, FAIL)])
def test_the_stop_reason_is_the_token_that_ended_the_answer(reason: Any, expected: Outcome) -> None:
    """Seekr: "or token id"."""
    known = [whole("seekr-completions", FULL, told={"token_ids": IDS}, return_token_ids=True)] * 2
    told = {"token_ids": IDS[:4], "stop_reason": reason}
    changes = {"return_token_ids": True, "stop_token_ids": [14, 99]}
    answer = whole("seekr-completions", CUT, finish="stop", spent=4, told=told, **changes)

    assert found("seekr-completions", *known, answer)["stop.reason-told"] is expected


def test_stop_tokens_may_be_in_an_echoed_prompt() -> None:
    """Told by their ids, its tokens stand before those of the answer."""
    report = {"tokens": [f"token_id:{each}" for each in IDS[2:]], "token_logprobs": [-1.0] * 6}
    asked = {"echo": True, "logprobs": 1, "return_tokens_as_token_ids": True, "stop_token_ids": [14]}
    answer = whole("seekr-completions", FULL, finish="stop", told={"logprobs": report}, **asked)

    assert found("seekr-completions", answer)["stop.token-ids"] is NOT_RUN


def _refusal(spec: str, status: int, **changes: Any) -> Exchange:
    operation = contract_of(spec)[1]
    body = json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode()
    return exchange(operation, request(operation, **changes), http(status, body))


@pytest.mark.parametrize(
    ("spec", "count", "expected"),
    [
        ("deepinfra-completions", 16, FAIL),
        ("deepinfra-completions", 15, NOT_RUN),
        ("openai-chat", 4, FAIL),
        ("seekr-chat", 16, Outcome.NOT_APPLICABLE),
    ],
)
def test_as_many_stop_strings_as_the_document_allows_are_taken(spec: str, count: int, expected: Outcome) -> None:
    """DeepInfra: "Sequences, 16 at most"."""
    stops = [f"<{number}>" for number in range(count)]
    taken = whole(spec, FULL, stop=stops)

    assert found(spec, *bare(spec), _refusal(spec, 400, stop=stops))["stop.most-strings"] is expected
    assert found(spec, _refusal(spec, 400), _refusal(spec, 400, stop=stops))["stop.most-strings"] in (
        NOT_RUN,
        Outcome.NOT_APPLICABLE,
    )
    assert found(spec, *bare(spec), taken)["stop.most-strings"] is (PASS if expected is FAIL else expected)


def test_an_empty_list_is_taken_like_none() -> None:
    """It is the default of Seekr's documents; an empty text is nobody's."""
    for spec in ("seekr-chat", "openai-completions"):
        assert found(spec, *bare(spec), _refusal(spec, 422, stop=[]))["stop.empty-list"] is FAIL
        assert found(spec, *bare(spec), _refusal(spec, 408, stop=[]))["stop.empty-list"] is NOT_RUN
        assert found(spec, *bare(spec), whole(spec, FULL, stop=[]))["stop.empty-list"] is PASS
        assert departed(spec, *bare(spec), _refusal(spec, 400, stop="")) == set()
        options = _refusal(spec, 400, stop=[], stream_options={"include_usage": True})
        assert found(spec, *bare(spec), options)["stop.empty-list"] is NOT_RUN


def test_refusals_of_stop_strings_are_the_laws() -> None:
    """A 4xx is a refusal, a 5xx a failure; each is told once."""
    refused = found("openai-chat", *bare("openai-chat"), _refusal("openai-chat", 400, stop=STOP))
    failed = found("openai-chat", *bare("openai-chat"), _refusal("openai-chat", 500, stop=STOP))

    assert refused["stop.honoured"] is Outcome.REFUSED
    assert [id_ for id_, outcome in failed.items() if outcome is FAIL] == ["stop.honoured"]


def test_which_properties_the_laws_are_about() -> None:
    """Each property of the topic has a row in the honour table."""
    laws = [each for each in CHECKS.values() if isinstance(each, Law) and each.topic == "stop"]

    assert {path for law in laws for path in law.properties} == {"stop", "stop_token_ids", "include_stop_str_in_output"}
    assert [most_stop_strings(contract_of(spec)[1]) for spec in SPECS] == [4, 4, 16]
    assert most_stop_strings(contract_of("seekr-chat")[1]) is None


@given(
    st.text("ab ", min_size=1, max_size=12), st.lists(st.text("ab ", min_size=1, max_size=3), min_size=1, max_size=3)
)
def test_a_text_may_end_before_the_stop_string_that_is_complete_first(full: str, stops: list[str]) -> None:
    """Whatever the tokens are: of one character each, the first one that completes a stop string ends the text."""
    end = next((end for end in range(1, len(full) + 1) if any(full[:end].endswith(stop) for stop in stops)), None)
    choice = Choice((), "", (), (), None, speaks=True)
    cuts = Stopped(choice, "", full, stops).cuts

    if end is None:
        assert cuts == []
    else:
        ended_by = [stop for stop in stops if full[:end].endswith(stop)]
        assert {end - len(stop) for stop in ended_by} & {cut.at for cut in cuts}
        assert all(stop not in full[: cut.at] for cut in cuts for stop in stops)


def test_stopped_leaves_out_what_it_cannot_compare() -> None:
    """A choice with a call has no text that a stop string could end."""
    contract, operation = contract_of("openai-chat")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = whole("openai-chat", None, told={"message": {"role": "assistant", "tool_calls": [call]}}, stop=STOP)
    cases = cases_of([*bare("openai-chat"), calling], operation, contract, target="t", model="tiny")

    assert list(stopped(cases[-1])) == []


@pytest.mark.parametrize("value", [5, True, 1.5, "x", ["a", 5, None, ""], {"a": 1}, [], [{}]])
def test_a_document_may_leave_these_properties_open(tmp_path: Any, value: Any) -> None:
    """A request that such a document allows may hold anything there: no check fails over it."""
    names = ("stop", "stop_token_ids", "include_stop_str_in_output", "echo", "messages", "min_tokens", "ignore_eos")
    names += (
        "max_completion_tokens",
        "truncate_prompt_tokens",
        "truncation_side",
        "repetition_detection",
        "n",
        "max_tokens",
    )
    document = json.loads(json.dumps(OPEN))
    schema = document["paths"]["/chat/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema["properties"] |= dict.fromkeys(names, True)
    (tmp_path / "open.json").write_text(json.dumps(document))
    contract = load_contracts([str(tmp_path / "open.json")])[0]
    operation = contract.operations[0]
    for name in names:
        for beside in ({}, {"echo": True}, {"stop": "one"}, {"truncate_prompt_tokens": 2}, {"n": 2}):
            body = {**beside, name: value}
            answer = exchange(
                operation, request(operation, **body), http(200, json.dumps(whole_answer(operation)).encode())
            )
            every = outcomes(contract, operation, answer, answer)
            assert not [id_ for id_, outcome in every.items() if outcome is Outcome.ERROR and _ours(id_)], body


def _ours(id_: str) -> bool:
    return id_.startswith(("stop.", "lengths."))
