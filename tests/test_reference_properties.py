"""The reference endpoint honours what its documents offer: each request property shows in the answer."""

import itertools
import json
import math
import re
from typing import Any

import pytest
from reference_responder import CHAT, DEEP, OPEN_CHAT, OPEN_TEXT, OPERATIONS, TEXT, ask

from streamgauge.contract.contract import JSON, SSE
from streamgauge.reference.tokens import BEGIN, END, encode, texts_of
from streamgauge.reference.words import VOCABULARY
from streamgauge.wire.sse import read_events

GO = "Say go go go go go go"
BOTH = (CHAT, TEXT)


def answer(name: str, **changes: Any) -> Any:
    """The whole answer, judged by the document's schema."""
    response = ask(name, **{"max_tokens": 8, **changes})
    assert response.status == 200, response.body
    body = json.loads(response.body)
    assert OPERATIONS[name][1].response(200, JSON).problems(body) == []
    return body


def chunks(name: str, **changes: Any) -> list[Any]:
    """The chunks of the streamed answer, each judged by the document's schema."""
    response = ask(name, **{"max_tokens": 8, **changes, "stream": True})
    assert response.status == 200, response.body
    found = [json.loads(event.data) for event in read_events(response.body)[0][:-1]]
    for chunk in found:
        assert OPERATIONS[name][1].response(200, SSE).problems(chunk) == []
    return found


def prompted(name: str, text: str) -> dict[str, Any]:
    """The member that asks this."""
    if name in (CHAT, OPEN_CHAT):
        return {"messages": [{"role": "user", "content": text}]}
    return {"prompt": text}


def texts(body: Any) -> list[str]:
    """The text of each choice."""
    return [choice["text"] if "text" in choice else choice["message"]["content"] for choice in body["choices"]]


def ids(body: Any) -> list[list[int]]:
    """The tokens of each choice."""
    return [choice["token_ids"] for choice in body["choices"]]


@pytest.mark.parametrize("name", BOTH)
def test_token_ids_are_the_text(name: str) -> None:
    """`return_token_ids`: those of the text, and those of the prompt; nobody else gets any."""
    body = answer(name, return_token_ids=True, n=2)
    for tokens, text in zip(ids(body), texts(body), strict=True):
        assert texts_of(tokens) == text
        assert len(tokens) == 8
    place = body if name == CHAT else body["choices"][0]
    assert len(place["prompt_token_ids"]) == body["usage"]["prompt_tokens"]
    assert b"token_ids" not in ask(name).body


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("changes", [{}, {"stop": "e"}, {"stop_token_ids": [16, 9]}, {"n": 2}, {"logprobs": 1}])
def test_token_ids_in_a_stream(name: str, changes: dict[str, Any]) -> None:
    """Seekr: "prompt_token_ids is included only in the first chunk, and token_ids contains the delta tokens"."""
    if name == CHAT and "logprobs" in changes:
        changes = {"logprobs": True}
    whole = answer(name, return_token_ids=True, **changes)
    parts = chunks(name, return_token_ids=True, **changes)
    streamed: dict[int, list[int]] = {}
    for part in parts:
        for choice in part["choices"]:
            streamed.setdefault(choice["index"], []).extend(choice["token_ids"])
    assert list(streamed.values()) == ids(whole)
    if name == CHAT:
        assert [part.get("prompt_token_ids") for part in parts] == [
            whole["prompt_token_ids"],
            *[None] * (len(parts) - 1),
        ]
    else:
        told = [
            choice["prompt_token_ids"] for part in parts for choice in part["choices"] if "prompt_token_ids" in choice
        ]
        assert told == [choice["prompt_token_ids"] for choice in whole["choices"]]


@pytest.mark.parametrize("text", ["The river is", "", "größe 🙂\n\x00", " lamp lamp", "1 2 3"])
def test_prompt_of_its_own_ids_gets_the_same_answer(text: str) -> None:
    """The vocabulary can be turned round: ids mean the text that they were made of."""
    first = answer(TEXT, prompt=text, return_token_ids=True, echo=True)
    again = answer(TEXT, prompt=first["choices"][0]["prompt_token_ids"], return_token_ids=True, echo=True)
    assert texts(again) == texts(first)
    assert again["usage"] == first["usage"]


def test_prompt_text() -> None:
    """`return_prompt_text`: what the template made, on the first chunk only; its tokens are those of the usage."""
    body = answer(CHAT, return_prompt_text=True)
    assert body["prompt_text"] == "user: How wide is the river?\nassistant:"
    assert len(encode(body["prompt_text"])) == body["usage"]["prompt_tokens"]
    assert [part.get("prompt_text") for part in chunks(CHAT, return_prompt_text=True)][:2] == [
        body["prompt_text"],
        None,
    ]


@pytest.mark.parametrize("name", [CHAT, TEXT, OPEN_CHAT, OPEN_TEXT])
@pytest.mark.parametrize("form", [answer, chunks])
def test_bias(name: str, form: Any) -> None:
    """`logit_bias`: 100 makes a token the only one, -100 bans it."""
    token = encode("#")[0]
    said = json.dumps(form(name, logit_bias={str(token): 100}), ensure_ascii=False)
    assert said.count("#") == 8
    usual = texts(answer(name))[0].split()[0]
    banned = texts(answer(name, logit_bias={str(VOCABULARY.index(f" {usual}")): -100}))[0]
    assert usual not in banned.split()


@pytest.mark.parametrize("name", BOTH)
def test_allowed_tokens(name: str) -> None:
    """`allowed_token_ids`: no other token comes, however it is sampled."""
    for changes in ({}, {"temperature": 2, "n": 4}, {"use_beam_search": True, "n": 2}):
        body = answer(name, allowed_token_ids=[3, 40 + 64, 7], return_token_ids=True, **changes)
        assert set(itertools.chain(*ids(body))) <= {3, 104, 7}


@pytest.mark.parametrize("name", BOTH)
def test_bad_words(name: str) -> None:
    """`bad_words`: none comes about, be it a word, a part of one or two together."""
    text = texts(answer(name))[0]
    for bad in (text.split()[2], text[3:5], " ".join(text.split()[1:3]), " "):
        said = texts(answer(name, bad_words=[bad]))[0]
        assert bad not in said
        assert said


@pytest.mark.parametrize("name", BOTH)
def test_stop_tokens(name: str) -> None:
    """`stop_token_ids`: the text ends before the token, or behind it on request; the reason is its id."""
    whole = answer(name, return_token_ids=True)
    (tokens,) = ids(whole)
    stop = tokens[4]
    body = answer(name, stop_token_ids=[stop], return_token_ids=True)
    assert ids(body) == [tokens[:5]]
    assert texts(body) == [texts_of(tokens[:4])]
    assert (body["choices"][0]["finish_reason"], body["choices"][0]["stop_reason"]) == ("stop", stop)
    kept = answer(name, stop_token_ids=[stop], include_stop_str_in_output=True)
    assert texts(kept) == [texts_of(tokens[:5])]
    late = answer(name, stop_token_ids=[stop], min_tokens=7, return_token_ids=True)
    assert stop not in ids(late)[0][:7]


@pytest.mark.parametrize("name", [CHAT, TEXT, DEEP, OPEN_CHAT, OPEN_TEXT])
def test_sampling(name: str) -> None:
    """Temperature makes choices differ; a seed makes answers equal; what leaves one token makes them greedy."""
    greedy = texts(answer(name, temperature=0))[0]
    seeds = [texts(answer(name, temperature=1, seed=seed, n=3)) for seed in (1, 2, 1)]
    assert seeds[0] == seeds[2] != seeds[1]
    assert len(set(seeds[0])) == 3
    assert texts(answer(name)) == [greedy]
    properties = OPERATIONS[name][1].properties
    for narrow in ({"top_k": 1}, {"top_p": 0.0001}, {"min_p": 1}, {"temperature": 1e-300}):
        if narrow.keys() <= properties.keys():
            assert texts(answer(name, **{"temperature": 2, **narrow})) == [greedy]


def test_top_k_keeps_to_the_likeliest() -> None:
    """With `top_k` 2 every sampled token is one of the two that its place reports first."""
    (choice,) = answer(CHAT, temperature=2, top_k=2, logprobs=True, top_logprobs=2, max_tokens=60)["choices"]
    taken = [
        [top["token"] for top in entry["top_logprobs"]].index(entry["token"]) for entry in choice["logprobs"]["content"]
    ]
    assert set(taken) == {0, 1}


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "penalty", [{"presence_penalty": 2}, {"frequency_penalty": 0.3}, {"repetition_penalty": 1.3}], ids=str
)
def test_penalties(name: str, penalty: dict[str, float]) -> None:
    """A prompt that repeats a word is continued with it, until a penalty says otherwise; below nothing they invite it."""
    asked = prompted(name, GO)
    assert texts(answer(name, **asked))[0] == " go" * 8
    assert texts(answer(name, **asked, **penalty))[0].count(" go") < 5
    usual = answer(name, return_token_ids=True, max_tokens=40)
    if "presence_penalty" in penalty:
        invited = answer(name, return_token_ids=True, max_tokens=40, presence_penalty=-2)
        assert len(set(ids(invited)[0])) < len(set(ids(usual)[0]))


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"max_pattern_size": 1, "min_count": 3}, 3),
        ({"max_pattern_size": 3, "min_pattern_size": 2, "min_count": 2}, 4),
        ({"max_pattern_size": 0, "min_count": 2}, 8),
        ({}, 8),
    ],
)
def test_repetition_detection(name: str, wanted: dict[str, int], count: int) -> None:
    """\"If such repetition is detected, generation ends early.\" A greatest size of 0 disables it."""
    body = answer(name, **prompted(name, GO), repetition_detection=wanted)
    assert body["usage"]["completion_tokens"] == count
    assert body["choices"][0]["finish_reason"] == ("stop" if count < 8 else "length")
    assert body["choices"][0]["stop_reason"] is None


@pytest.mark.parametrize("name", BOTH)
def test_beams(name: str) -> None:
    """`use_beam_search`: choices are distinct, the same each time, and the first is the greedy one."""
    found = texts(answer(name, use_beam_search=True, n=3, length_penalty=2))
    assert len(set(found)) == 3
    assert found == texts(answer(name, use_beam_search=True, n=3, temperature=1))
    assert found[0] == texts(answer(name))[0]


def test_best_of() -> None:
    """`best_of`: the likeliest are shown, and all are counted."""
    shown = {"temperature": 2, "seed": 3, "logprobs": 1}
    every = answer(OPEN_TEXT, n=4, **shown)
    best = answer(OPEN_TEXT, n=2, best_of=4, **shown)
    sums = {choice["text"]: sum(choice["logprobs"]["token_logprobs"]) for choice in every["choices"]}
    assert texts(best) == sorted(sums, key=lambda text: -sums[text])[:2]
    assert best["usage"]["completion_tokens"] == every["usage"]["completion_tokens"] == 32


@pytest.mark.parametrize("name", BOTH)
def test_special_tokens(name: str) -> None:
    """The end is shown where special tokens are not skipped; the beginning is counted where it is added."""
    brief = prompted(name, "One word, please")
    (hidden,), (shown,) = (texts(answer(name, **brief, skip_special_tokens=skip)) for skip in (True, False))
    assert shown == hidden + "<|end|>"
    body = answer(name, **brief, return_token_ids=True)
    assert ids(body)[0][-1] == END
    with_it, without = (answer(name, add_special_tokens=wanted, return_token_ids=True) for wanted in (True, False))
    assert with_it["usage"]["prompt_tokens"] == without["usage"]["prompt_tokens"] + 1
    assert (with_it if name == CHAT else with_it["choices"][0])["prompt_token_ids"][0] == BEGIN


@pytest.mark.parametrize("name", BOTH)
def test_truncation(name: str) -> None:
    """`truncate_prompt_tokens`: so many of the last tokens, or of the first; -1 is what the context holds."""
    place = (lambda body: body) if name == CHAT else (lambda body: body["choices"][0])
    whole = place(answer(name, return_token_ids=True))["prompt_token_ids"]
    for side, kept in ((None, whole[-3:]), ("left", whole[-3:]), ("right", whole[:3])):
        body = answer(name, return_token_ids=True, truncate_prompt_tokens=3, truncation_side=side)
        assert place(body)["prompt_token_ids"] == kept
        assert body["usage"]["prompt_tokens"] == 3
    long = prompted(name, "1 " * 9000)
    assert ask(name, **long, max_tokens=8).status == 422
    assert answer(name, **long, truncate_prompt_tokens=-1)["usage"]["prompt_tokens"] == 8184


def test_suffix_is_read() -> None:
    """`suffix`: it counts among the prompt's tokens and changes the text, and `echo` does not repeat it."""
    body, plain = answer(TEXT, suffix=" and so on", echo=True), answer(TEXT, echo=True)
    assert body["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + len(encode(" and so on"))
    assert body["choices"][0]["text"].startswith("The river is ")
    assert texts(body) != texts(plain)


@pytest.mark.parametrize("name", [TEXT, OPEN_TEXT])
def test_scoring_of_a_prompt(name: str) -> None:
    """\"0 with `echo` only scores the prompt\": its tokens and nothing else."""
    body = answer(name, max_tokens=0, echo=True, logprobs=1)
    (choice,) = body["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("The river is", "length")
    assert "".join(choice["logprobs"]["tokens"]) == "The river is"
    assert body["usage"]["completion_tokens"] == 0
    parts = chunks(name, max_tokens=0, echo=True, logprobs=1)
    assert "".join(part["text"] for chunk in parts for part in chunk["choices"]) == "The river is"
    assert parts[-1]["choices"][0]["finish_reason"] == "length"


PROCESSED = [{}, {"temperature": 2, "seed": 1}, {"allowed_token_ids": [70, 2]}, {"presence_penalty": 2}, {"top_k": 3}]


@pytest.mark.parametrize("changes", PROCESSED)
def test_logprobs_add_up(changes: dict[str, Any]) -> None:
    """At each place: sorted, not above 0, no more than 1 together, the taken token among them and never another's value."""
    (choice,) = answer(CHAT, logprobs=True, top_logprobs=20, max_tokens=20, **changes)["choices"]
    for entry in choice["logprobs"]["content"]:
        values = [top["logprob"] for top in entry["top_logprobs"]]
        assert len(values) == 20
        assert values == sorted(values, reverse=True)
        assert max(values) <= 0
        assert sum(map(math.exp, values)) <= 1
        assert {top["token"]: top["logprob"] for top in entry["top_logprobs"]}[entry["token"]] == entry["logprob"]
    (choice,) = answer(TEXT, logprobs=3, max_tokens=20, **changes)["choices"]
    arrays = choice["logprobs"]
    for token, logprob, top in zip(*(arrays[key] for key in ("tokens", "token_logprobs", "top_logprobs")), strict=True):
        assert top[token] == logprob
        assert 3 <= len(top) <= 4


@pytest.mark.parametrize("name", BOTH)
def test_further_logprobs(name: str) -> None:
    """`logprob_token_ids` are reported at each place beside the taken token; `return_tokens_as_token_ids` names all by id."""
    further = {"logprobs": True} if name == CHAT else {"logprobs": 0}
    body = answer(name, logprob_token_ids=[70, 5], return_tokens_as_token_ids=True, return_token_ids=True, **further)
    (choice,) = body["choices"]
    logprobs = choice["logprobs"]
    if name == CHAT:
        names = [entry["token"] for entry in logprobs["content"]]
        tops = [{top["token"] for top in entry["top_logprobs"]} for entry in logprobs["content"]]
    else:
        names, tops = logprobs["tokens"], [set(top) for top in logprobs["top_logprobs"]]
    assert names == [f"token_id:{token}" for token in choice["token_ids"]]
    assert all({"token_id:70", "token_id:5"} <= top for top in tops)


@pytest.mark.parametrize("name", BOTH)
def test_prompt_logprobs(name: str) -> None:
    """`prompt_logprobs`: one object for each token of the prompt, null for the first; it cannot be streamed."""
    body = answer(name, prompt_logprobs=2, return_token_ids=True)
    place = body if name == CHAT else body["choices"][0]
    first, *rest = place["prompt_logprobs"]
    assert first is None
    for token, told in zip(place["prompt_token_ids"][1:], rest, strict=True):
        assert told[str(token)]["decoded_token"] == texts_of([token])
        assert {entry["rank"] for entry in told.values()} >= {1, 2}
    assert ask(name, prompt_logprobs=2, stream=True).status == 422


TEMPLATE = (
    "{% for message in messages %}[{{ message.content }}]{% endfor %}{{ mood }}{{ '>' if add_generation_prompt }}"
)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"add_generation_prompt": False}, "user: How wide is the river?"),
        ({"continue_final_message": True}, "user: How wide is the river?"),
        ({"documents": [{"title": "T", "text": "x"}]}, "document: T\nx\nuser: How wide is the river?\nassistant:"),
        ({"chat_template": TEMPLATE, "chat_template_kwargs": {"mood": "!"}}, "[How wide is the river?]!>"),
        (
            {"chat_template": TEMPLATE, "chat_template_kwargs": {"mood": ""}, "add_generation_prompt": False},
            "[How wide is the river?]",
        ),
        ({"messages": [{"role": "user", "name": "Ann", "content": "Hi"}]}, "user Ann: Hi\nassistant:"),
    ],
)
def test_template(changes: dict[str, Any], wanted: str) -> None:
    """What the chat template makes of the request."""
    assert answer(CHAT, return_prompt_text=True, **changes)["prompt_text"] == wanted


def test_service_tier() -> None:
    """It is told where both the request's and the answer's part of the document have it."""
    assert answer(OPEN_CHAT, service_tier="flex")["service_tier"] == "flex"
    assert "service_tier" not in answer(OPEN_CHAT)


SCHEMA = {
    "type": "object",
    "properties": {"x": {"const": "zq7"}, "y": {"type": "array", "items": {"type": "integer"}, "minItems": 2}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
TAG = {"begin": "<f>", "schema": {"const": 7}, "end": "</f>"}
FORMS: list[tuple[dict[str, Any], str]] = [
    ({"structured_outputs": {"choice": ["zq1", "zq2"]}}, r"zq[12]"),
    ({"structured_outputs": {"regex": r"z\d{3}(a|bc)?"}}, r"z\d{3}(a|bc)?"),
    ({"structured_outputs": {"grammar": 'root ::= "zq" tail+\ntail ::= "1" | "2" "3"'}}, r"zq(1|23)+"),
    ({"structured_outputs": {"json": {"const": "zq"}}}, r'"zq"'),
    ({"structured_outputs": {"json": '{"const": 7}'}}, "7"),
    ({"structured_outputs": {"json_object": True}}, r"\{.*\}"),
    ({"structured_outputs": {"structural_tag": json.dumps({"structures": [TAG], "triggers": ["<"]})}}, "<f>7</f>"),
    ({"response_format": {"type": "structural_tag", "structures": [TAG], "triggers": ["<f"]}}, "<f>7</f>"),
    (
        {"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "zq"}}},
        "zq",
    ),
    ({"response_format": {"type": "json_object"}}, r"\{.*\}"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, r'\{"x":"zq7",.*\}'),
]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(("changes", "pattern"), FORMS)
def test_structured(name: str, changes: dict[str, Any], pattern: str) -> None:
    """The text has the form, ends by itself, and is cut where the limit is lower; sampled choices have it too."""
    body = answer(name, **changes, max_tokens=200, temperature=1, n=3)
    for text, choice in zip(texts(body), body["choices"], strict=True):
        assert re.fullmatch(pattern, text)
        assert choice["finish_reason"] == "stop"
    cut = answer(name, **changes, max_tokens=1)
    (whole,) = texts(answer(name, **changes, max_tokens=200))
    assert (cut["choices"][0]["finish_reason"] == "length") == (texts(cut) != [whole])
    parts = [part for chunk in chunks(name, **changes, max_tokens=200) for part in chunk["choices"]]
    said = "".join(part.get("text") or part.get("delta", {}).get("content") or "" for part in parts)
    assert said == whole


def test_structured_behind_reasoning() -> None:
    """What is thought first is free; white space fills JSON up to a least number of tokens."""
    wanted = {"response_format": {"type": "json_object"}, "reasoning_effort": "low", "max_tokens": 60}
    (choice,) = answer(CHAT, **wanted, min_tokens=50)["choices"]
    assert isinstance(json.loads(choice["message"]["content"]), dict)
    assert choice["message"]["reasoning"]
    assert choice["message"]["content"].endswith("   ")


def tool(name: str) -> dict[str, Any]:
    """A tool without arguments."""
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"tool_choice": "required"}, ["f", "g"]),
        ({"tool_choice": "required", "parallel_tool_calls": False}, ["f"]),
        ({"tool_choice": "auto", "messages": [{"role": "user", "content": "Please call g."}]}, ["g"]),
        ({"tool_choice": "auto", "messages": [{"role": "user", "content": "call f, call g"}]}, ["f", "g"]),
        ({"tool_choice": "none", "messages": [{"role": "user", "content": "Please call g."}]}, []),
        ({"tool_choice": "auto"}, []),
    ],
)
@pytest.mark.parametrize("name", [CHAT, OPEN_CHAT])
def test_calls(name: str, changes: dict[str, Any], wanted: list[str]) -> None:
    """Which tools are called, and that each call has an id and an index of its own."""
    body = answer(name, tools=[tool("f"), tool("g")], **changes)
    calls = body["choices"][0]["message"].get("tool_calls", [])
    assert [call["function"]["name"] for call in calls] == wanted
    assert len({call["id"] for call in calls}) == len(calls)
    parts = chunks(name, tools=[tool("f"), tool("g")], **changes)
    deltas = [
        call
        for chunk in parts
        for part in chunk["choices"]
        for call in part["delta"].get("tool_calls", ())
        if "id" in call
    ]
    assert [(call["index"], call["function"]["name"]) for call in deltas] == list(enumerate(wanted))


UNSEEN = [
    {"cache_salt": "x"},
    {"kv_transfer_params": {"a": 1}},
    {"vllm_xargs": {"a": 1}},
    {"user": "u"},
    {"priority": 0},
    {"spaces_between_special_tokens": False},
    {"length_penalty": 2},
]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("changes", UNSEEN)
def test_taken_without_an_effect_on_the_answer(name: str, changes: dict[str, Any]) -> None:
    """Accepted, and nothing outside shows it."""
    assert answer(name, **changes) == answer(name)
