"""The lean reader beside the strict one, and what `ends` may leave unread."""

import json
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from load_endpoint import DONE, chunk, data

from streamgauge.contract.contract import CHAT, SSE, Operation, load_contracts
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


def read(
    body: bytes, *, judged: Judged = Judged.ALL, size: int = 1 << 20, operation: Operation = OPERATIONS[CHAT]
) -> Facts:
    """What a stream shows that comes `size` bytes at a time, at times 0, 1, 2, ..., each up to 7 µs before."""
    reading = reading_for(operation, stream=True, status=200, media_type="text/event-stream", judged=judged)
    reading.feed([(body[start : start + size], time, 7) for time, start in enumerate(range(0, len(body), size))])
    reading.close(complete=True)
    return reading.facts


def outcome(facts: Facts) -> Outcome:
    """The outcome of a transfer that ended as it should."""
    return judge(End.COMPLETE, "", status=200, reason="OK", headers={}, facts=facts)[0]


def words(*texts: str, **members: Any) -> list[bytes]:
    """One event for each text."""
    return [chunk({"content": text}, **members) for text in texts]


def raw(*texts: bytes) -> list[bytes]:
    """One event for each text, which is put between the quotation marks as it is."""
    return [chunk({"content": "TEXT"}).replace(b"TEXT", text) for text in texts]


TEXTS = [
    *(b"Hi", b"", b" a", "\u00e9\u4e2d".encode(), b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80"),
    *(b"\\n", b'\\"', b"\\\\", b"\\", b"\\/\\u00e9", b"\\u12", b"\\x", b"a\\", b'"', b'", "a": "b'),
    *(
        b"\\ud83d",
        b"\\ude00",
        b"\\ud83d\\ude00",
        b"\\uDC00",
        b"\\u0000",
        b"\x00",
        b"\t",
        b"\n",
        b"\r",
        b"\n\n",
        b"\x7f",
    ),
]
"""What may stand where a text is expected, right and wrong."""

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


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES) | st.sampled_from(raw(*TEXTS)), max_size=16), st.integers(1, 2000))
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


@pytest.mark.parametrize("first", TEXTS, ids=ascii)
def test_every_text_in_a_run(first: bytes) -> None:
    """In a run of events that are alike but for their texts, each text is judged as if it stood alone, whichever follows."""
    for second in TEXTS:
        body = b"".join([ROLE, *raw(b"a", b"b", first, second, b"c"), FINISH, DONE])
        assert read(body) == read(STRICTLY + body), second


@pytest.mark.parametrize("seed", range(60))
def test_reads_at_once_show_what_each_shows(seed: int) -> None:
    """However many events a read holds, and wherever it ends, a token came with the read that completed its event."""
    drawn = Random(seed)
    alike, odd = raw(b"a", b" b", b"\\n", b"\xc3\xa9"), [*raw(b"", b"\\x"), FINISH, chunk({"content": "a"}, object=1)]
    events = [ROLE, *drawn.choices(alike, k=2)]
    for _ in range(drawn.randrange(3)):
        events += [*drawn.choices(alike, k=drawn.randrange(90)), drawn.choice(odd)]
    ends = list(accumulate(map(len, events)))
    kept = [end for end in ends if drawn.random() > 0.02]
    cuts = sorted(
        {0, *ends[:3], *kept, *(end + drawn.randint(-3, 3) for end in kept if drawn.random() < 0.02), ends[-1]}
    )
    body = b"".join(events)
    pieces = [(body[start:end], end, drawn.randrange(1000)) for start, end in pairwise(cuts) if end <= len(body)]
    at_once, each = (
        reading_for(OPERATIONS[CHAT], stream=True, status=200, media_type="text/event-stream") for _ in range(2)
    )
    for some in (pieces[:3], pieces[3:]):
        at_once.feed(some)
    for piece in pieces:
        each.feed([piece])
    assert at_once.facts == each.facts


def test_reads_at_once_begin_where_the_one_before_ended() -> None:
    """What is left of a read belongs to the event that the next one begins with: an unknown field, here, and no token."""
    reading = reading_for(OPERATIONS[CHAT], stream=True, status=200, media_type="text/event-stream")
    for events in ([ROLE, *words("a", "b"), b"x"], words("c", "d")):
        reading.feed([(event, time, 0) for time, event in enumerate(events)])
    assert len(reading.facts.token_times) == 3


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


def test_what_ends_does_not_see(tmp_path: Path) -> None:
    """Between the ends nothing asks whether the schema allows the text; `all` does, where a schema says which it allows."""
    document = yaml.safe_load((files("streamgauge.spec") / "openapi" / "openai-chat-completions.yaml").read_bytes())
    document["components"]["schemas"]["Delta"]["properties"]["content"]["maxLength"] = 3
    path = tmp_path / "short.yaml"
    path.write_text(yaml.safe_dump(document))
    (operation,) = load_contracts([str(path)])[0].operations
    body = b"".join([ROLE, *words("a", "b", "long", "c", "longer"), FINISH, DONE])
    assert read(body, operation=operation).violations == 2
    assert outcome(read(body, operation=operation, judged=Judged.ENDS)) is Outcome.OK


@pytest.mark.parametrize("judged", Judged)
def test_a_blank_line_too_many(judged: Judged) -> None:
    """An event of nothing is none (WHATWG, 9.2.6)."""
    assert (
        outcome(read(b"".join([ROLE, *words("a", "b"), b"\n", *words("c"), FINISH, DONE, b"\n"]), judged=judged))
        is Outcome.OK
    )


@pytest.mark.parametrize("judged", Judged)
def test_an_event_behind_the_finish_reason(judged: Judged) -> None:
    """A choice that goes on after it was finished is open again, although the event is like those before."""
    assert (
        outcome(read(b"".join([ROLE, *words("a", "b"), FINISH, *words("c", "d"), DONE]), judged=judged))
        is Outcome.TRUNCATED
    )


@pytest.mark.parametrize("judged", Judged)
def test_violations_are_counted(judged: Judged) -> None:
    """Each event that breaks its schema counts, however like the others it is; the first one is put into words."""
    facts = read(b"".join([ROLE, *words("a", "b", "c", object=1), FINISH, DONE]), judged=judged)
    assert facts.violations == 3
    assert facts.defects[Outcome.SCHEMA_VIOLATION].startswith("event 1: /object")


@pytest.mark.parametrize("judged", Judged)
def test_the_lag_of_the_first_token_and_the_largest(judged: Judged) -> None:
    """A token may have come so much earlier than its stamp says."""
    reading = reading_for(OPERATIONS[CHAT], stream=True, status=200, media_type="text/event-stream", judged=judged)
    for lag, event in enumerate([ROLE, *words("a", "b", "c"), FINISH, DONE], 10):
        reading.feed([(event, 0, 100 if lag == 12 else lag)])
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


def test_what_only_looks_alike() -> None:
    """A text that runs into the next event's end, and a member whose name only ends in a text's name."""
    alike = Likeness()
    first, second = words("a", "b")
    alike.learn(first[:-2])
    before, behind = first.split(b'a"}')
    torn = before + b"a" + before[-12:] + b'b"}' + behind
    assert alike.run(torn) == (0, 0)
    assert alike.run(first + torn) == alike.run(first + torn + second) == (1, len(first))
    alike = Likeness()
    named = data(b'{"a\\"content": "x"}')
    alike.learn(named[:-2])
    assert alike.run(named) == (0, 0)


def test_learning_is_worth_it_while_something_is_alike() -> None:
    """One event that is like the last lesson makes all lessons before it worth it."""
    alike = Likeness()
    for number in range(12):
        event = chunk({"content": "a"}, at=number)
        assert alike.learn(event[:-2])
        if number % 3 == 2:
            assert alike.run(event) == (1, len(event))


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
        facts = read(body, judged=judged, operation=OPERATIONS["completions"])
        assert (len(facts.token_times), outcome(facts), json.dumps(facts.finish_reason)) == (4, Outcome.OK, '"length"')
