import dataclasses
import json

import pytest
from reference_responder import (
    BODIES,
    CHAT,
    DEEP,
    OPEN_CHAT,
    OPEN_TEXT,
    OPERATIONS,
    RESPONDER,
    TEXT,
    USER,
    ask,
    request_for,
    send,
)

from streamgauge.contract.contract import JSON, SSE
from streamgauge.errors import DocumentError
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.messages import Request
from streamgauge.reference.parameters import MUCH_REASONING, REASONING_TOKENS
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.reference.tokens import END
from streamgauge.reference.validation import MAX_DEPTH
from streamgauge.wire.sse import DONE, read_events

BRIEF = [{"role": "user", "content": "In one word, please."}]


def answer(name, **changes):
    """The whole answer, judged by the document's schema."""
    response = ask(name, **changes)
    assert (response.status, response.media_type) == (200, JSON), response.body
    body = json.loads(response.body)
    assert OPERATIONS[name][1].response(200, JSON).problems(body) == []
    return body


def chunks(name, **changes):
    """The streamed answer's chunks, each judged by the document's schema."""
    response = ask(name, stream=True, **changes)
    assert (response.status, response.media_type) == (200, SSE), response.body
    events, reader = read_events(response.body)
    assert reader.unfinished == []
    assert [event.type for event in events] == ["message"] * len(events)
    assert events[-1].data == DONE
    found = [json.loads(event.data) for event in events[:-1]]
    for chunk in found:
        assert OPERATIONS[name][1].response(200, SSE).problems(chunk) == []
    return found


def text_of(choice):
    """The text that a choice brings, in whichever shape."""
    if "text" in choice:
        return choice["text"]
    return choice.get("message", choice.get("delta", {})).get("content", "")


def reasoning_of(choice):
    """The reasoning that a choice brings."""
    return choice.get("message", choice.get("delta", {})).get("reasoning", "")


@pytest.mark.parametrize("name", BODIES)
def test_plain_request_is_answered(name):
    """The least request of each document gets one choice and true counts."""
    body = answer(name, max_tokens=5)
    [choice] = body["choices"]
    assert (choice["index"], choice["finish_reason"], choice["stop_reason"]) == (0, "length", None)
    assert len(text_of(choice).split()) == 5
    assert body["usage"]["completion_tokens"] == 5
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 5
    assert (body["created"], body["model"]) == (1_800_000_000, DEFAULT_MODEL)


@pytest.mark.parametrize(
    ("name", "changes", "tokens", "reason"),
    [
        (TEXT, {}, 16, "length"),
        (OPEN_TEXT, {}, 16, "length"),
        (OPEN_CHAT, {}, 64, "stop"),
        (TEXT, {"max_tokens": None}, 16, "length"),
        (TEXT, {"max_tokens": 7.0}, 7, "length"),
        (CHAT, {}, 64, "stop"),
        (CHAT, {"max_tokens": None, "min_tokens": 80}, 81, "stop"),
        (CHAT, {"max_tokens": 3, "max_completion_tokens": 5}, 5, "length"),
        (CHAT, {"ignore_eos": True, "messages": [{"role": "user", "content": "x"}]}, 8187, "length"),
        (DEEP, {}, 64, "stop"),
        (DEEP, {"max_tokens": None}, 64, "stop"),
        (DEEP, {"max_tokens": 9, "min_tokens": 20}, 9, "length"),
        (CHAT, {"messages": BRIEF}, 2, "stop"),
        (CHAT, {"messages": BRIEF, "max_tokens": 1}, 1, "length"),
        (CHAT, {"messages": BRIEF, "max_tokens": 9}, 2, "stop"),
        (CHAT, {"messages": BRIEF, "max_tokens": 9, "min_tokens": 5}, 6, "stop"),
        (CHAT, {"messages": BRIEF, "max_tokens": 9, "ignore_eos": True}, 9, "length"),
        (CHAT, {"messages": BRIEF, "max_tokens": 9, "logit_bias": {str(END): -100}}, 9, "length"),
    ],
)
def test_number_of_tokens(name, changes, tokens, reason):
    """The limit is met exactly; without one, or where one word is wanted, a token that is no word ends the text."""
    body = answer(name, **changes)
    assert body["choices"][0]["finish_reason"] == reason
    assert body["usage"]["completion_tokens"] == tokens
    assert len(text_of(body["choices"][0]).split()) == tokens - (reason == "stop")


FORMS = [
    (CHAT, {}),
    (CHAT, {"n": 3, "max_tokens": 4, "logprobs": True, "top_logprobs": 3}),
    (CHAT, {"max_tokens": 40, "stop": ["e", "zzz"], "n": 2}),
    (
        CHAT,
        {"max_tokens": 9, "echo": True, "messages": [*USER, {"role": "assistant", "content": "It's \u2028"}]},
    ),
    (TEXT, {"prompt": ["a b", "", "ночь 🙂\n\u0000"], "n": 2, "echo": True, "logprobs": 2}),
    (TEXT, {"prompt": [[1, 2], [3]], "max_tokens": 6, "echo": True}),
    (TEXT, {"prompt": [10, 4], "max_tokens": 30, "stop": "n", "include_stop_str_in_output": True}),
    (DEEP, {"prompt": "a b", "n": 2, "logprobs": 0, "stop": [" "]}),
    (OPEN_TEXT, {"prompt": [[1, 2], [3]], "n": 2, "logprobs": 2}),
    (OPEN_CHAT, {"reasoning_effort": "low", "n": 2, "max_tokens": 6, "logprobs": True, "top_logprobs": 2}),
    (CHAT, {"reasoning_effort": "max", "max_tokens": 12, "stop": "e"}),
    (CHAT, {"reasoning_effort": "max", "max_tokens": 2}),
]


@pytest.mark.parametrize(("name", "changes"), FORMS)
def test_stream_and_whole_agree(name, changes):
    """The streamed form put together has the whole one's texts, reasons, log-probabilities and usage."""
    whole = answer(name, **changes)
    parts = chunks(name, stream_options={"include_usage": True}, **changes)
    assert {(part["id"], part["created"], part["model"]) for part in parts} == {
        (whole["id"], whole["created"], whole["model"])
    }
    assert (parts[-1]["choices"], parts[-1]["usage"]) == ([], whole["usage"])
    assert all("usage" not in part for part in parts[:-1])
    for choice in whole["choices"]:
        own = [part for chunk in parts for part in chunk["choices"] if part["index"] == choice["index"]]
        assert "".join(map(text_of, own)) == text_of(choice)
        assert "".join(map(reasoning_of, own)) == reasoning_of(choice)
        assert [part["finish_reason"] for part in own] == [None] * (len(own) - 1) + [choice["finish_reason"]]
        assert own[-1]["stop_reason"] == choice["stop_reason"]
        joined = {}
        for part in own:
            for key, values in (part["logprobs"] or {}).items():
                joined.setdefault(key, []).extend(values)
        assert joined == {key: values for key, values in (choice["logprobs"] or {}).items() if values}


@pytest.mark.parametrize("name", BODIES)
def test_stream_has_one_event_for_each_token(name):
    """Between the role and the finish there is one event per token, choices taking turns."""
    parts = [part for chunk in chunks(name, max_tokens=3, n=2) for part in chunk["choices"]]
    if name in (CHAT, OPEN_CHAT):
        assert [part["delta"] for part in parts[:2]] == [{"role": "assistant", "content": ""}] * 2
        assert [part["delta"] for part in parts if part["finish_reason"]] == [{}, {}]
        parts = parts[2:]
    tokens = [part["index"] for part in parts if part["finish_reason"] is None]
    assert tokens == [0, 1] * 3
    assert all(text_of(part).strip() for part in parts if part["finish_reason"] is None)


@pytest.mark.parametrize("name", BODIES)
def test_continuous_usage_is_monotone(name):
    """Usage stands in every chunk, never falls and ends with the whole's."""
    options = {"continuous_usage_stats": True}
    parts = chunks(name, max_tokens=5, n=2, stream_options=options)
    counts = [part["usage"]["completion_tokens"] for part in parts]
    assert counts == sorted(counts)
    assert parts[-1]["usage"] == answer(name, max_tokens=5, n=2)["usage"]
    assert parts[-1]["choices"]


def test_writes_are_paced():
    """Token k is due at TTFT + k·ITL, the role before it, and a whole answer with its last token."""
    body = {**BODIES[CHAT], "max_tokens": 3, "stream": True}
    _, writes = send(request_for(CHAT, body))
    assert [write.due_ms for write in writes if write.tokens] == [200, 210, 220]
    assert [write.due_ms for write in writes[:2]] == [0, 0]
    assert [write.due_ms for write in writes] == sorted(write.due_ms for write in writes)
    _, [write] = send(request_for(CHAT, {**body, "stream": False}))
    assert (write.due_ms, write.tokens) == (220, 3)


def test_stop_string_ends_the_text():
    """The text ends before the stop string, which is named; on request it ends behind it."""
    full = text_of(answer(TEXT, max_tokens=30)["choices"][0])
    stop = full[40:44]
    cut = answer(TEXT, max_tokens=30, stop=[stop, "\0never"])
    [choice] = cut["choices"]
    assert choice["text"] == full[: full.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    assert cut["usage"]["completion_tokens"] == len(full[: full.index(stop) + len(stop)].split())
    kept = answer(TEXT, max_tokens=30, stop=stop, include_stop_str_in_output=True)["choices"][0]
    assert kept["text"] == full[: full.index(stop)] + stop


def test_min_tokens_keeps_stop_strings_waiting():
    """A stop string counts only once the least number of tokens is there."""
    body = answer(TEXT, max_tokens=30, min_tokens=12, stop=" ")
    assert body["usage"]["completion_tokens"] == 12


def test_stop_that_never_occurs():
    """A stop string outside of the vocabulary changes nothing."""
    assert answer(TEXT, stop="#")["choices"] == answer(TEXT)["choices"]


def test_text_depends_on_the_request_only():
    """Equal requests get equal texts, and so do greedy choices of one request; another prompt or suffix gets another."""
    texts = [
        text_of(choice)
        for changes in ({}, {"prompt": "Another"}, {"suffix": "."}, {"n": 2}, {"seed": 1})
        for choice in answer(TEXT, **changes)["choices"]
    ]
    assert texts[0] == text_of(answer(TEXT)["choices"][0]) == texts[3] == texts[4] == texts[5]
    assert len(set(texts)) == 3


def test_batch_of_prompts():
    """Choices come prompt by prompt, n for each, and the usage is their sum."""
    body = answer(TEXT, prompt=["one", "two words"], n=2, max_tokens=3, echo=True)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    prefixes = [choice["text"].rsplit(" ", 3)[0] for choice in body["choices"]]
    assert prefixes == ["one", "one", "two words", "two words"]
    counts = {name: count for name, count in body["usage"].items() if type(count) is int}
    assert counts == {"prompt_tokens": 6, "completion_tokens": 12, "total_tokens": 18}


def test_the_details_of_the_usage_are_those_of_the_document():
    """Seekr's UsageInfo has details of the prompt, OpenAI's Usage of both, DeepInfra's page says nothing of either."""
    counts = {"prompt_tokens", "completion_tokens", "total_tokens"}
    told = {name: answer(name)["usage"].keys() - counts for name in (CHAT, OPEN_CHAT, DEEP)}

    assert told[CHAT] == {"prompt_tokens_details"}
    assert told[OPEN_CHAT] == {"prompt_tokens_details", "completion_tokens_details"}
    assert told[DEEP] == set()


def test_reasoning_is_counted_in_the_details():
    """Reasoning tokens are a part of the completion's."""
    usage = answer(OPEN_CHAT, reasoning_effort="low", max_tokens=8)["usage"]

    assert (usage["completion_tokens"], usage["completion_tokens_details"]) == (
        8,
        {"reasoning_tokens": REASONING_TOKENS},
    )


def test_times_are_told_where_the_document_has_a_place_for_them():
    """Seekr's PerRequestTimingMetrics, in milliseconds: the pace that the endpoint was set to."""
    assert answer(CHAT, max_tokens=3)["metrics"]["queue_time_ms"] == 0
    assert "metrics" not in answer(OPEN_CHAT)


def test_logprobs_cover_the_text():
    """The tokens of the log-probabilities joined are the text, at the offsets that they state."""
    [choice] = answer(TEXT, logprobs=3, echo=True, max_tokens=8)["choices"]
    logprobs = choice["logprobs"]
    assert "".join(logprobs["tokens"]) == choice["text"]
    for offset, token in zip(logprobs["text_offset"], logprobs["tokens"], strict=True):
        assert choice["text"].startswith(token, offset)
    assert logprobs["token_logprobs"][0] is logprobs["top_logprobs"][0] is None
    assert all(len(top) == 3 for top in logprobs["top_logprobs"][1:])
    [choice] = answer(CHAT, logprobs=True, max_tokens=8)["choices"]
    entries = choice["logprobs"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == choice["message"]["content"]
    assert all(entry["top_logprobs"] == [] for entry in entries)


def test_non_ascii_text_is_raw_utf8():
    """JSON holds characters, not escapes."""
    body = ask(TEXT, max_tokens=200).body
    assert b"\\u" not in body
    assert not body.isascii()


@pytest.mark.parametrize(("name", "prefix"), [(CHAT, "chatcmpl-"), (TEXT, "cmpl-"), (DEEP, "cmpl-")])
def test_id(name, prefix):
    """The id has its family's prefix, and Seekr's holds the request's own id if there is one."""
    assert answer(name)["id"] == f"{prefix}u1"
    expected = "u1" if name == DEEP else "mine ✓"
    assert answer(name, request_id="mine ✓")["id"] == prefix + expected


ACCEPTED = [
    (CHAT, {"tools": [{"function": {"name": "f"}}]}),
    (CHAT, {"tools": [{"function": {"name": "f"}}], "tool_choice": "auto"}),
    (CHAT, {"tools": [], "tool_choice": "none"}),
    (CHAT, {"n": None, "tool_choice": None, "response_format": {"type": "text"}}),
    (CHAT, {"messages": [{"role": "user", "content": [{"text": "a"}, {"type": "text", "text": "b"}]}]}),
    (
        CHAT,
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ""}}]}]},
    ),
    (CHAT, {"continue_final_message": True}),
    (CHAT, {"thinking_token_budget": -1, "reasoning_effort": "low"}),
    (CHAT, {"repetition_detection": {"max_pattern_size": 4, "min_count": 2}}),
    (CHAT, {"repetition_detection": {}}),
    (CHAT, {"data": {"image": ["x"]}, "service_tier": "nonsense", "mystery": [{}]}),
    (TEXT, {"temperature": 0, "top_p": 1, "top_k": -1, "seed": -5, "presence_penalty": -2, "user": "u"}),
    (TEXT, {"logit_bias": {}, "stop_token_ids": [], "bad_words": [], "use_beam_search": False}),
    (TEXT, {"stop": None, "stream": None, "stream_options": None, "echo": None}),
    (DEEP, {"priority": 3, "messages": [], "tool_choice": "required"}),
    (DEEP, {"response_format": {}, "data": {}, "service_tier": "flex", "fail_fast": True}),
]


@pytest.mark.parametrize(("name", "changes"), ACCEPTED)
def test_accepted(name, changes):
    """What asks for nothing that is missing here is answered, extra fields included."""
    answer(name, **changes)


def test_nesting_within_the_limit():
    """Brackets inside of strings do not count, and those below the limit do no harm."""
    deep = json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    assert answer(TEXT, extra=deep, user='["\\' + "[" * 200)["choices"]


def test_duplicate_keys_are_tolerated():
    """The last of two members with one name counts, as in most readers."""
    body = json.dumps({**BODIES[TEXT], "max_tokens": 3}).encode()
    response, _ = send(request_for(TEXT, b'{"max_tokens": 2, ' + body[1:]))
    assert json.loads(response.body)["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("target", ["/health", "/health?x=1", "http://somewhere/health"])
def test_health(target):
    """Health needs no key, and the absolute form of a target means the same."""
    response, _ = send(Request("GET", target))
    assert (response.status, response.body) == (200, b"ok\n")


@pytest.mark.parametrize(
    ("target", "credential"), [("/v1/models", f"Bearer {DEFAULT_KEY}"), ("/v1/inference/models", DEFAULT_KEY)]
)
def test_list_of_models(target, credential):
    """The list stands beside the operations, behind the same key."""
    response, _ = send(Request("GET", target, (("authorization", credential),)))
    listed = json.loads(response.body)
    assert (listed["object"], [model["id"] for model in listed["data"]]) == ("list", [DEFAULT_MODEL])
    without, _ = send(Request("GET", target))
    assert without.status == 401


def test_http_1_0_stream_ends_with_the_connection():
    """A client of HTTP/1.0 knows no chunks: the end of the connection ends the body."""
    request = request_for(TEXT, {**BODIES[TEXT], "stream": True}, version="1.0")
    response, _ = send(request)
    assert response.header("transfer-encoding") is None
    assert response.header("connection") == "close"
    assert response.body.endswith(b"data: [DONE]\n\n")


def test_connection_close_is_honoured():
    """A client that wants to close is told so."""
    reply = RESPONDER.reply(Request("GET", "/health", (("connection", "TE,Close"),)))
    assert not reply.keep_alive
    assert b"\r\nConnection: close\r\n" in b"".join(write.data for write in reply.writes)


def test_profiles_can_be_chosen():
    """An endpoint of one vendor serves that vendor's paths only, each that its profile names."""
    responder = Responder(Settings(profiles=("deepinfra",)))
    assert responder.paths == {DEEP: ("/v1/completions", "/v1/openai/completions")}
    for path in ("/v1/models", "/v1/openai/models"):
        assert responder.reply(Request("GET", path)).status == 401
    assert responder.reply(Request("GET", "/v1/inference/models")).status == 404


def test_path_that_two_want():
    """Beside an operation that can only be there, another takes what is left of its profile's paths; none is no way."""
    assert RESPONDER.paths[OPEN_TEXT] == ("/v1/completions",)
    assert RESPONDER.paths[DEEP] == ("/v1/openai/completions",)
    contract, _ = OPERATIONS[DEEP]
    bare = dataclasses.replace(contract, profile=dataclasses.replace(contract.profile, operations={}))
    with pytest.raises(DocumentError, match="two operations want the path"):
        Responder(Settings(), contracts=[OPERATIONS[OPEN_TEXT][0], bare])


@pytest.mark.parametrize(
    ("name", "changes", "tokens"),
    [
        (CHAT, {}, 0),
        (CHAT, {"reasoning_effort": "none"}, 0),
        (CHAT, {"reasoning_effort": None}, 0),
        (CHAT, {"reasoning_effort": "minimal"}, REASONING_TOKENS),
        (CHAT, {"reasoning_effort": "low", "max_tokens": 2}, 2),
        (CHAT, {"reasoning_effort": "low", "thinking_token_budget": 0}, 0),
        (CHAT, {"reasoning_effort": "low", "thinking_token_budget": 1}, 1),
        (CHAT, {"reasoning_effort": "low", "thinking_token_budget": -1}, REASONING_TOKENS),
        (OPEN_CHAT, {"reasoning_effort": "medium"}, REASONING_TOKENS),
        (OPEN_CHAT, {"reasoning_effort": "xhigh"}, 8),
        (CHAT, {"reasoning_effort": "high", "max_tokens": 64}, MUCH_REASONING),
    ],
)
def test_reasoning(name, changes, tokens):
    """Whoever asks for effort gets reasoning before the text, within the limit and counted: no token more than asked."""
    body = answer(name, **{"max_tokens": 8, **changes})
    [choice] = body["choices"]
    limit = changes.get("max_tokens", 8)
    assert len(reasoning_of(choice).split()) == tokens
    assert len(text_of(choice).split()) == limit - tokens
    assert body["usage"]["completion_tokens"] == limit
    assert ("reasoning" in choice["message"]) == bool(tokens)


def test_reasoning_can_be_kept_back():
    """`include_reasoning: false` (Seekr) hides what was thought; it is counted all the same."""
    shown = answer(CHAT, reasoning_effort="low", max_tokens=8)
    kept = answer(CHAT, reasoning_effort="low", max_tokens=8, include_reasoning=False)
    assert "reasoning" not in kept["choices"][0]["message"]
    assert text_of(kept["choices"][0]) == text_of(shown["choices"][0])
    assert kept["usage"] == shown["usage"]
    parts = chunks(CHAT, reasoning_effort="low", max_tokens=8, include_reasoning=False)
    assert "".join(text_of(part) for chunk in parts for part in chunk["choices"]) == text_of(shown["choices"][0])
    assert all("reasoning" not in part["delta"] for chunk in parts for part in chunk["choices"])


def test_stop_strings_leave_reasoning_alone():
    """A stop string ends the text, not the reasoning before it."""
    [choice] = answer(CHAT, reasoning_effort="low", max_tokens=9, stop=" ")["choices"]
    assert (text_of(choice), choice["finish_reason"]) == ("", "stop")
    assert len(reasoning_of(choice).split()) == REASONING_TOKENS


def test_stream_headers():
    """A stream says what it is and that nobody may store it."""
    response = ask(CHAT, stream=True)
    assert response.header("content-type") == "text/event-stream; charset=utf-8"
    assert response.header("cache-control") == "no-cache"
    assert response.header("transfer-encoding") == "chunked"
    assert response.header("date") == "Fri, 15 Jan 2027 08:00:00 GMT"
