"""The lean reader beside the strict one, and what `ends` may leave unread."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_endpoint import DONE, chunk, data

from streamgauge.contract.contract import CHAT, SSE, load_contracts
from streamgauge.load.facts import Facts
from streamgauge.load.judge import End, judge
from streamgauge.load.likeness import Likeness
from streamgauge.load.reading import reading_for
from streamgauge.metrics.record import Judged, Outcome

OPERATIONS = {
    family: next(operation for operation in load_contracts([name])[0].operations)
    for family, name in ((CHAT, "seekr-chat"), ("completions", "seekr-completions"))
}
ROLE, FINISH = chunk({"role": "assistant", "content": ""}), chunk({}, finish="stop")
USAGE = chunk(usage={"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10})
STRICTLY = b":\n\n"
"""A comment in front: it makes the strict reader read all of the stream, and counts for nothing."""


def read(body: bytes, *, judged: Judged = Judged.ALL, size: int = 1 << 20, family: str = CHAT) -> Facts:
    """What a stream shows that comes `size` bytes at a time, at times 0, 1, 2, ..., each up to 7 µs before."""
    reading = reading_for(OPERATIONS[family], stream=True, status=200, media_type="text/event-stream", judged=judged)
    for time, start in enumerate(range(0, len(body), size)):
        reading.feed(body[start : start + size], time, 7)
    reading.close(complete=True)
    return reading.facts


def outcome(facts: Facts) -> Outcome:
    """The outcome of a transfer that ended as it should."""
    return judge(End.COMPLETE, "", status=200, reason="OK", headers={}, facts=facts)[0]


def words(*texts: str, **members: Any) -> list[bytes]:
    """One event for each text."""
    return [chunk({"content": text}, **members) for text in texts]


PIECES = [
    ROLE,
    FINISH,
    USAGE,
    DONE,
    *words("Hi", "", "\u00e9\u4e2d", '"finish_reason":"stop"', 'a\n\ndata: "b"', "\\"),
    chunk({"content": "a"}, {"content": "b"}),
    chunk({"reasoning_content": "so"}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}),
    chunk({"content": 3}),
    data({"error": {"message": "no", "code": 1}}),
    data(b"[1]"),
    data(b"null"),
    data(b"{"),
    data(b'{"choices": NaN}'),
    data(b'{"choices": [], "a": "\\ud800"}'),
    data(b'{"choices": [], "a": "\xff"}'),
    data(b'{"choices": [], "a": 123456789012345678901234567890}'),
    b"data:" + FINISH[6:],
    b"event: error\n" + ROLE,
    b"id: 1\n" + ROLE,
    b": ping\n\n",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"retry: 3\n\n",
    ROLE.replace(b"\n", b"\r\n"),
    b"data: {\ndata: }\n\n",
    b"data: half",
]
"""What a stream may be made of, right and wrong."""


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 400))
def test_lean_and_strict_see_the_same(pieces: list[bytes], size: int) -> None:
    """Whichever reader reads it, and however it is split, a stream shows the same (all but the times of a split)."""
    body = b"".join(pieces)
    lean, strict = read(body), read(STRICTLY + body if not body.startswith(b"\xef\xbb\xbf") else body)
    assert lean == strict
    split = read(body, size=size)
    assert (split.defects, split.violations, len(split.token_times)) == (
        lean.defects,
        lean.violations,
        len(lean.token_times),
    )
    assert outcome(split) is outcome(lean)


@given(st.lists(st.text(max_size=8), max_size=20), st.integers(1, 3000))
def test_right_streams_look_alike_at_the_ends(texts: list[str], size: int) -> None:
    """On a right stream `ends` sees what `all` sees, whatever the text says."""
    body = b"".join([ROLE, *words(*texts), FINISH, USAGE, DONE])
    whole, ends = read(body, size=size), read(body, judged=Judged.ENDS, size=size)
    assert (whole.judged, ends.judged) == (Judged.ALL, Judged.ENDS)
    ends.judged = Judged.ALL
    assert ends == whole


WRONG: dict[str, tuple[list[bytes], Outcome]] = {
    "cut short": ([ROLE, *words(*"abcdef")], Outcome.TRUNCATED),
    "no finish reason": ([ROLE, *words(*"abcdef"), USAGE, DONE], Outcome.TRUNCATED),
    "no end mark": ([ROLE, *words(*"abcdef"), FINISH], Outcome.TRUNCATED),
    "error in the middle": (
        [ROLE, *words(*"abc"), data({"error": {"message": "no"}}), *words(*"def"), FINISH, DONE],
        Outcome.IN_BAND_ERROR,
    ),
    "an event of another kind": (
        [ROLE, *words(*"abc"), b"event: error\ndata: {}\n\n", FINISH, DONE],
        Outcome.IN_BAND_ERROR,
    ),
    "usage of another type": ([ROLE, *words(*"abc"), FINISH, chunk(usage=3), DONE], Outcome.SCHEMA_VIOLATION),
    "no token": ([ROLE, FINISH, DONE], Outcome.EMPTY),
    "no JSON at the end": ([ROLE, *words(*"abc"), data(b"{"), FINISH, DONE], Outcome.MALFORMED_JSON),
    "second choice never finished": (
        [ROLE, *words(*"abc"), data(chunk({"content": "x"})[6:-2].replace(b'"index": 0', b'"index": 1')), FINISH, DONE],
        Outcome.TRUNCATED,
    ),
}


@pytest.mark.parametrize("judged", Judged)
@pytest.mark.parametrize("size", [1 << 20, 300, 7])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_at_the_ends_or_unlike_is_seen(name: str, size: int, judged: Judged) -> None:
    """Truncation, errors in band, end marks, empty answers and whatever is unlike the other events: seen by `ends`, too."""
    events, expected = WRONG[name]
    assert outcome(read(b"".join(events), judged=judged, size=size)) is expected


def test_what_ends_does_not_see() -> None:
    """Between the ends only likeness is looked at: a text that is no JSON string there is not noticed."""
    bad = chunk({"content": "a"}).replace(b'"a"', b'"\\x"')
    body = b"".join([ROLE, *words("a", "b"), bad, *words("c"), FINISH, DONE])
    assert outcome(read(body)) is Outcome.MALFORMED_JSON
    assert outcome(read(body, judged=Judged.ENDS)) is Outcome.OK


def test_violations_are_counted() -> None:
    """Each event that breaks its schema counts; the first one is put into words."""
    facts = read(b"".join([ROLE, *words("a", "b", object=1), *words("c"), FINISH, DONE]))
    assert facts.violations == 2
    assert facts.defects[Outcome.SCHEMA_VIOLATION].startswith("event 1: /object")


@pytest.mark.parametrize("judged", Judged)
def test_the_lag_of_the_first_token_and_the_largest(judged: Judged) -> None:
    """A token may have come so much earlier than its stamp says."""
    reading = reading_for(OPERATIONS[CHAT], stream=True, status=200, media_type="text/event-stream", judged=judged)
    for lag, event in enumerate([ROLE, *words("a", "b", "c"), FINISH, DONE], 10):
        reading.feed(event, 0, 100 if lag == 12 else lag)
    assert (reading.facts.first_lag_us, reading.facts.lag_us) == (11, 100)


def test_likeness() -> None:
    """Only a run of events that share everything but their text is counted, and never one without text."""
    alike = Likeness()
    a, b, empty, other = words("a", 'b "quoted"', "", "x", id="c-2")
    first, second, nothing = words("a", 'b "quoted"', "")
    alike.learn(first[:-2])
    assert alike.run(first + second) == (2, len(first + second))
    assert alike.run(first + second + FINISH) == (2, len(first + second))
    assert alike.run(FINISH + first) == (0, 0)
    assert alike.run(first + nothing + second) == (0, 0)
    assert alike.run(first + FINISH + second) == (0, 0)
    for unlike in (a, b, empty, other):
        assert alike.run(unlike) == (0, 0)


def test_likeness_is_given_up_where_no_two_events_are_alike() -> None:
    """A server that puts the time into each event makes learning useless: after some lessons none is taken."""
    alike = Likeness()
    lessons = []
    for number in range(8):
        lessons.append(alike.learn(chunk({"content": "a"}, at=number)[:-2]))
        assert alike.run(chunk({"content": "a"}, at=number + 1)) == (0, 0)
    assert lessons == [True] * 5 + [False] * 3
    body = b"".join([ROLE, *(chunk({"content": "a"}, created=number) for number in range(20)), FINISH, DONE])
    assert len(read(body, judged=Judged.ENDS).token_times) == 20


def test_completions() -> None:
    """The text of completions is found where they have it."""
    base = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    events = [
        {**base, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]}
        for text, finish in (("a", None), ("b", None), ("c", None), ("d", "length"))
    ]
    assert OPERATIONS["completions"].response(200, SSE).accepts(events[0])
    body = b"".join([*map(data, events), DONE])
    for judged in Judged:
        facts = read(body, judged=judged, family="completions")
        assert (len(facts.token_times), outcome(facts), json.dumps(facts.finish_reason)) == (4, Outcome.OK, '"length"')
