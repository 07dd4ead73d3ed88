"""Every outcome that a client can see, from bytes; and for each something close to it that is another one."""

import json
from typing import Any

import pytest
from load_endpoint import DONE, chunk, data, json_answer, stream, whole

from streamgauge.contract.contract import SSE, Operation, load_contracts
from streamgauge.load.facts import Facts
from streamgauge.load.judge import End, judge
from streamgauge.load.reading import reading_for
from streamgauge.load.response import ResponseReader
from streamgauge.metrics.record import Outcome
from streamgauge.wire.sse import MOST_LINES

(CHAT,) = load_contracts(["seekr-chat"])[0].operations
(TEXT,) = load_contracts(["deepinfra-completions"])[0].operations

ROLE = chunk({"role": "assistant", "content": ""})
WORD = chunk({"content": "Hi"})
FINISH = chunk({}, finish="stop")
USAGE = chunk(usage={"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10})


def verdict(
    wire: bytes, *, streamed: bool = True, end: End | None = None, operation: Operation = CHAT
) -> tuple[Outcome, str, Facts]:
    """The judgement on bytes that come in reads of 11, at times 0, 1, 2, ..."""
    reader, reading = ResponseReader(), None
    for time, start in enumerate(range(0, len(wire), 11)):
        body = reader.feed(wire[start : start + 11])
        if reader.status:
            reading = reading or reading_for(
                operation, stream=streamed, status=reader.status, media_type=reader.media_type
            )
            reading.feed([(body, time, 0)])
    if end is None:
        reader.close()
        end = End.NOT_HTTP if reader.error else End.COMPLETE if reader.complete else End.CUT
    if reading is not None:
        reading.close(complete=end is End.COMPLETE)
    facts = reading.facts if reading else Facts()
    outcome, detail = judge(
        end, "said", status=reader.status, reason=reader.reason, headers=reader.headers, facts=facts
    )
    return outcome, detail, facts


def without(payload: bytes, name: str) -> bytes:
    """An event without one of its members."""
    value = json.loads(payload[6:])
    return data({key: item for key, item in value.items() if key != name})


STREAMS: list[tuple[str, bytes, Outcome]] = [
    ("a right stream", stream(ROLE, WORD, FINISH, USAGE, DONE), Outcome.OK),
    ("without usage", stream(ROLE, WORD, FINISH, DONE), Outcome.OK),
    ("reasoning only", stream(chunk({"reasoning": "so"}), FINISH, DONE), Outcome.OK),
    ("reasoning_content only", stream(chunk({"reasoning_content": "so"}), FINISH, DONE), Outcome.OK),
    ("a refusal only", stream(chunk({"refusal": "no"}), FINISH, DONE), Outcome.OK),
    ("a legacy function call only", stream(chunk({"function_call": {"name": "f"}}), FINISH, DONE), Outcome.OK),
    ("reasoning_details only", stream(chunk({"reasoning_details": [{"text": "so"}]}), FINISH, DONE), Outcome.OK),
    ("empty kinds of content", stream(chunk({"function_call": {}, "refusal": ""}), FINISH, DONE), Outcome.EMPTY),
    ("byte order mark", stream(b"\xef\xbb\xbf" + ROLE, WORD, FINISH, DONE), Outcome.OK),
    ("comments between", stream(b": ping\n\n", ROLE, b": ping\n\n", WORD, FINISH, DONE), Outcome.OK),
    ("CRLF line ends", stream((ROLE + WORD + FINISH + DONE).replace(b"\n", b"\r\n")), Outcome.OK),
    (
        "two choices, both finished",
        stream(chunk({"content": "a"}, {"content": "b"}), chunk({}, {}, finish="stop"), DONE),
        Outcome.OK,
    ),
    ("two choices, one finished", stream(chunk({"content": "a"}, {"content": "b"}), FINISH, DONE), Outcome.TRUNCATED),
    (
        "a choice that begins late and never ends",
        stream(WORD, FINISH, chunk({}).replace(b'"index": 0', b'"index": 1'), DONE),
        Outcome.TRUNCATED,
    ),
    ("an empty delta behind the finish", stream(WORD, FINISH, chunk({}), DONE), Outcome.OK),
    ("content behind the finish", stream(WORD, FINISH, WORD, DONE), Outcome.TRUNCATED),
    ("no finish reason", stream(ROLE, WORD, DONE), Outcome.TRUNCATED),
    ("no [DONE]", stream(ROLE, WORD, FINISH), Outcome.TRUNCATED),
    ("no choice at all", stream(DONE), Outcome.TRUNCATED),
    ("cut inside", stream(ROLE, WORD, end=False), Outcome.TRUNCATED),
    ("cut behind [DONE]", stream(ROLE, WORD, FINISH, DONE, end=False), Outcome.TRUNCATED),
    ("bad chunk size", stream(ROLE, end=False) + b"zz\r\n", Outcome.TRUNCATED),
    ("no HTTP", b"220 mail ready\r\n\r\n", Outcome.TRUNCATED),
    ("role only", stream(ROLE, FINISH, DONE), Outcome.EMPTY),
    ("empty content", stream(ROLE, chunk({"content": ""}), FINISH, DONE), Outcome.EMPTY),
    ("error event", stream(ROLE, WORD, data({"error": {"message": "boom"}}), DONE), Outcome.IN_BAND_ERROR),
    ("error event, then cut", stream(ROLE, data({"error": "boom"}), end=False), Outcome.IN_BAND_ERROR),
    ("event: error", stream(ROLE, b'event: error\ndata: {"message": "boom"}\n\n'), Outcome.IN_BAND_ERROR),
    ("error is null", stream(ROLE, WORD, chunk({}, finish="stop", error=None), DONE), Outcome.OK),
    ("error as JSON body", json_answer({"error": {"message": "boom"}}), Outcome.IN_BAND_ERROR),
    ("a whole answer instead", json_answer(whole()), Outcome.MALFORMED_SSE),
    ("no blank line at the end", stream(ROLE, WORD, FINISH, DONE[:-1]), Outcome.MALFORMED_SSE),
    ("not UTF-8", stream(ROLE, WORD.replace(b"Hi", b"\xff\xfe"), FINISH, DONE), Outcome.MALFORMED_SSE),
    ("a real U+FFFD", stream(ROLE, WORD.replace(b"Hi", "\ufffd".encode()), FINISH, DONE), Outcome.OK),
    ("broken JSON", stream(ROLE, data(b'{"choices": ['), WORD, FINISH, DONE), Outcome.MALFORMED_JSON),
    ("NaN", stream(ROLE, WORD.replace(b'"created": 1', b'"created": NaN'), FINISH, DONE), Outcome.MALFORMED_JSON),
    ("null event", stream(ROLE, WORD, data(b"null"), FINISH, DONE), Outcome.SCHEMA_VIOLATION),
    ("no id", stream(without(ROLE, "id"), WORD, FINISH, DONE), Outcome.SCHEMA_VIOLATION),
    (
        "created is text",
        stream(ROLE, WORD, FINISH.replace(b'"created": 1', b'"created": "x"'), DONE),
        Outcome.SCHEMA_VIOLATION,
    ),
    ("429", json_answer({"error": "slow down"}, "429 Too Many Requests"), Outcome.RATE_LIMITED),
    ("503 with Retry-After", json_answer({}, "503 Busy", retry_after="1"), Outcome.RATE_LIMITED),
    ("503 without", json_answer({}, "503 Busy"), Outcome.HTTP_5XX),
    ("500", json_answer(b"oops", "500 Internal"), Outcome.HTTP_5XX),
    ("401", json_answer({"error": "who?"}, "401 Unauthorized"), Outcome.HTTP_4XX),
    ("302", json_answer(b"", "302 Found", location="/x"), Outcome.HTTP_4XX),
    ("401, then cut", json_answer(b"who", "401 Unauthorized", content_length="99"), Outcome.HTTP_4XX),
]

WHOLES: list[tuple[str, bytes, Outcome]] = [
    ("a right answer", json_answer(whole()), Outcome.OK),
    ("no finish reason", json_answer(whole(finish=None)), Outcome.TRUNCATED),
    ("no choices", json_answer(whole(choices=[])), Outcome.TRUNCATED),
    ("empty body", json_answer(b""), Outcome.TRUNCATED),
    ("cut", json_answer(json.dumps(whole()).encode()[:-9], content_length="999"), Outcome.TRUNCATED),
    ("no token", json_answer(whole(content="")), Outcome.EMPTY),
    ("broken JSON", json_answer(b'{"choices": '), Outcome.MALFORMED_JSON),
    ("not UTF-8", json_answer(json.dumps(whole()).encode().replace(b"Hi", b"\xff")), Outcome.MALFORMED_JSON),
    ("error in a 200", json_answer({"error": {"message": "boom"}}), Outcome.IN_BAND_ERROR),
    ("a stream instead", stream(ROLE, WORD, FINISH, DONE), Outcome.MALFORMED_JSON),
    (
        "model missing",
        json_answer({key: value for key, value in whole().items() if key != "model"}),
        Outcome.SCHEMA_VIOLATION,
    ),
    ("no object", json_answer([1]), Outcome.SCHEMA_VIOLATION),
]

ENDS = {
    End.RESET: Outcome.RESET,
    End.REFUSED: Outcome.REFUSED,
    End.TLS: Outcome.TLS,
    End.TIMEOUT_CONNECT: Outcome.TIMEOUT_CONNECT,
    End.TIMEOUT_FIRST_TOKEN: Outcome.TIMEOUT_FIRST_TOKEN,
    End.TIMEOUT_IDLE: Outcome.TIMEOUT_IDLE,
    End.TIMEOUT_TOTAL: Outcome.TIMEOUT_TOTAL,
    End.OVERLOAD: Outcome.CLIENT_OVERLOAD,
    End.STOPPED: Outcome.UNFINISHED_AT_STOP,
}


@pytest.mark.parametrize(("wire", "expected"), [case[1:] for case in STREAMS], ids=[case[0] for case in STREAMS])
def test_streams(wire: bytes, expected: Outcome) -> None:
    """What a streamed request came to; every failure says something about itself."""
    outcome, detail, _ = verdict(wire)
    assert outcome is expected
    assert bool(detail) is (outcome is not Outcome.OK)


@pytest.mark.parametrize(("wire", "expected"), [case[1:] for case in WHOLES], ids=[case[0] for case in WHOLES])
def test_whole_answers(wire: bytes, expected: Outcome) -> None:
    """What a request for a whole answer came to; such an answer has no token times."""
    outcome, _, facts = verdict(wire, streamed=False)
    assert outcome is expected
    assert facts.token_times == []


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("wire", [b"", stream(ROLE, WORD, end=False)], ids=["before", "inside"])
def test_ends_of_the_transfer(end: End, wire: bytes) -> None:
    """A transfer that broke off is named after what broke it, whether or not anything had come."""
    assert verdict(wire, end=end)[0] is ENDS[end]


def test_every_outcome_is_proved() -> None:
    """The tables hold every outcome but those that no closed loop can have."""
    proved = {case[2] for case in [*STREAMS, *WHOLES]} | set(ENDS.values())
    assert set(Outcome) - proved == {Outcome.DROPPED, Outcome.CANCELLED}


def test_facts_of_a_stream() -> None:
    """Role-only and usage-only chunks stop no clock; reasoning is a token, and not a visible one."""
    think = chunk({"reasoning": "hm"})
    _, _, facts = verdict(stream(ROLE, think, WORD, FINISH, USAGE, DONE))
    assert facts.first_event is not None
    assert len(facts.token_times) == 2
    assert facts.first_event < facts.token_times[0] < facts.token_times[1] == facts.first_visible
    assert facts.finish is not None
    assert facts.done is not None
    assert facts.first_visible < facts.finish < facts.done
    assert (facts.finish_reason, facts.prompt_tokens, facts.completion_tokens) == ("stop", 3, 7)


def test_tool_calls_are_tokens() -> None:
    """A tool call's delta is a token, and not a visible one."""
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}
    outcome, detail, facts = verdict(stream(ROLE, chunk({"tool_calls": [call]}), chunk({}, finish="tool_calls"), DONE))
    assert (outcome, detail) == (Outcome.OK, "")
    assert len(facts.token_times) == 1
    assert facts.first_visible is None


@pytest.mark.parametrize(
    ("asked", "told", "expected"),
    [(1, 1, Outcome.OK), (2, 1, Outcome.EMPTY), (1, 0, Outcome.EMPTY), (1, None, Outcome.EMPTY)],
)
def test_a_single_token_without_text(asked: int, told: int | None, expected: Outcome) -> None:
    """Who asks for one token may get half a character, or the end of the text: with usage 1 that is no empty answer."""
    facts = Facts(completion_tokens=told, defects={Outcome.EMPTY: "no token"})
    found = judge(End.COMPLETE, "", status=200, reason="", headers={}, facts=facts, max_tokens=asked)
    assert found[0] is expected


def test_the_lag_of_a_whole_answer_is_that_of_its_last_read() -> None:
    """It is there with its last byte, which may have come so much earlier."""
    reading = reading_for(CHAT, stream=False, status=200, media_type="application/json")
    reading.feed([(b"{", 1, 9)])
    reading.feed([(b"}", 2, 5)])
    assert reading.facts.lag_us == 5


def test_completions_have_text() -> None:
    """In the other family the token is the choice's own text."""

    def event(text: str, finish: str | None) -> bytes:
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
        return data({"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]})

    outcome, detail, facts = verdict(stream(event("Hi", None), event("", "stop"), DONE), operation=TEXT)
    assert (outcome, detail) == (Outcome.OK, "")
    assert len(facts.token_times) == 1
    assert facts.token_times[0] == facts.first_visible


def test_what_our_limits_cut_is_our_own_failure() -> None:
    """An event of more lines than the reader keeps is no fault of the server's: `client_overload` names the limit."""
    wire = stream(ROLE, b":\n" * (MOST_LINES + 1) + WORD, FINISH, DONE)
    reader, reading = ResponseReader(), reading_for(CHAT, stream=True, status=200, media_type=SSE)
    reading.feed([(reader.feed(wire), 0, 0)])
    reading.close(complete=True)

    outcome, detail = judge(End.COMPLETE, "", status=200, reason="OK", headers={}, facts=reading.facts)

    assert outcome is Outcome.CLIENT_OVERLOAD
    assert "MOST_LINES" in detail
