"""`ending.*` and [DONE]: each way to end has one verdict, and right endings have none."""

import dataclasses
import json
from typing import Any

import pytest
from transcripts import chunks, contract_of, departures, exchange, outcomes, sse, stream_request

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Ending, Evidence, Exchange
from streamgauge.wire.http import Read

CONTRACT, CHAT = contract_of("seekr-chat")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
EVENTS = [event + b"\n\n" for event in sse(chunks(CHAT)).split(b"\n\n")[:-1]]
FINISH = next(number for number, event in enumerate(EVENTS) if b'"length"' in event)
PING = b": ping\n\n"


def timed(
    *parts: tuple[float, bytes], ending: Ending = Ending.COMPLETE, head: bytes = HEAD, **changes: Any
) -> Exchange:
    """A stream whose parts came at these times, each in a chunk of its own; what is no event is sent as it is."""
    wire = [(0.0, head)]
    for time, part in parts:
        framed = b"Transfer-Encoding" in head and part != LAST_CHUNK
        wire.append((time, b"%x\r\n%b\r\n" % (len(part), part) if framed else part))
    made = exchange(CHAT, stream_request(CHAT, **changes), b"".join(part for _, part in wire), ending=ending)
    return dataclasses.replace(made, reads=tuple(Read(time, len(part)) for time, part in wire))


def said(start: float = 0.1, step: float = 0.1, *, upto: int = len(EVENTS)) -> list[tuple[float, bytes]]:
    """The events, one after the other."""
    return [(start + step * number, event) for number, event in enumerate(EVENTS[:upto])]


def end(time: float) -> tuple[float, bytes]:
    """The message's end."""
    return time, LAST_CHUNK


def test_right_endings_trip_nothing() -> None:
    """Slow first tokens, slow streams, pings, one read for everything, no chunked coding, a failure that is told."""
    error = b'data: {"error": {"message": "no", "type": "x", "code": 500}}\n\n'
    old = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Transfer-Encoding: chunked\r\n", b"")
    streams = {
        "plain": timed(*said(), end(1.0)),
        "slow first token": timed(*said(100.0), end(101.0)),
        "slow tokens": timed(
            *said(step=60.0, upto=FINISH + 1),
            *[(0.1 + 60 * FINISH, each) for each in EVENTS[FINISH + 1 :]],
            end(0.1 + 60 * FINISH),
        ),
        "all at once": timed(*said(5.0, 0.0), end(5.0)),
        "late end, as far as patience goes": timed(*said(), end(10.0)),
        "ended by the connection": timed(*said(), head=old),
        "old and slow": timed(*said(30.0), head=old),
    }
    for name, stream in streams.items():
        assert departures(CONTRACT, CHAT, stream) == set(), name
    told = {
        "ended": timed(*said(upto=2), (0.5, error), end(0.6)),
        "with [DONE]": timed(*said(upto=2), (0.5, error), (0.5, EVENTS[-1]), end(0.6)),
    }
    for name, stream in told.items():
        found = departures(CONTRACT, CHAT, stream)
        assert not {id_ for id_ in found if id_.startswith(("ending.", "sse.done", "http."))}, name


def test_choices_may_finish_at_different_times() -> None:
    """The time counts from the last finish reason of all choices, not from the first."""
    payloads = chunks(CHAT, 2)
    first = [payload for payload in payloads if not payload["choices"] or payload["choices"][0]["index"] == 0]
    second = [payload for payload in payloads if payload["choices"] and payload["choices"][0]["index"] == 1]
    order = [first[0], second[0], *first[1:-1], *second[1:], first[-1]]
    events = [b"data: %b\n\n" % json.dumps(payload).encode() for payload in order]
    parts = [(0.1 if number < 5 else 60.0, event) for number, event in enumerate(events)]
    made = timed(*parts, (60.0, EVENTS[-1]), end(60.0), n=2)

    assert departures(CONTRACT, CHAT, made) == set()


WRONG: dict[str, tuple[Exchange, set[str]]] = {
    "closed between events": (timed(*said(upto=2), ending=Ending.CLOSED), {"ending.not-cut"}),
    "closed in an event": (timed((0.1, EVENTS[0] + EVENTS[1][:20]), ending=Ending.CLOSED), {"ending.not-cut"}),
    "closed in a character": (
        timed((0.1, EVENTS[0] + b'data: {"x": "\xe2\x82'), ending=Ending.CLOSED),
        {"ending.not-cut"},
    ),
    "closed behind the head": (timed(ending=Ending.CLOSED), {"ending.not-cut"}),
    "closed behind the finish": (timed(*said(upto=FINISH + 1), ending=Ending.CLOSED), {"ending.not-cut"}),
    "closed behind [DONE]": (timed(*said(), ending=Ending.CLOSED), {"http.complete"}),
    "reset": (timed(*said(upto=2), ending=Ending.RESET), {"ending.no-reset"}),
    "reset behind [DONE]": (timed(*said(), ending=Ending.RESET), {"http.complete"}),
    "silent": (timed(*said(upto=2), ending=Ending.TIMEOUT_IDLE), {"ending.no-hang"}),
    "silent from the start": (timed(ending=Ending.TIMEOUT_IDLE), {"ending.no-hang"}),
    "silent behind the finish": (timed(*said(upto=FINISH + 1), ending=Ending.TIMEOUT_IDLE), {"ending.no-hang"}),
    "silent behind [DONE]": (timed(*said(), ending=Ending.TIMEOUT_IDLE), {"ending.no-hang"}),
    "pings behind [DONE]": (
        timed(*said(), (60.0, PING), (119.0, PING), ending=Ending.TIMEOUT_TOTAL),
        {"ending.no-hang", "sse.comments"},
    ),
    "pings behind the finish": (
        timed(*said(upto=FINISH + 1), (60.0, PING), (119.0, PING), ending=Ending.TIMEOUT_TOTAL),
        {"ending.no-hang", "sse.comments"},
    ),
    "[DONE] late": (timed(*said(upto=len(EVENTS) - 1), (12.0, EVENTS[-1]), end(12.0)), {"ending.prompt"}),
    "the end late": (timed(*said(), end(12.0)), {"ending.prompt"}),
    "in good order without [DONE]": (timed(*said(upto=len(EVENTS) - 1), end(1.0)), {"sse.done"}),
    "in good order in the middle": (timed(*said(upto=2), end(1.0)), {"sse.done"}),
    "no event at all": (timed(end(1.0)), {"sse.done"}),
    "[DONE] twice": (timed(*said(), (1.0, EVENTS[-1]), end(1.0)), {"sse.done"}),
    "bytes behind [DONE]": (timed(*said(), (1.0, b"data: x"), end(1.0)), {"sse.done-last"}),
    "a field behind [DONE]": (timed(*said(), (1.0, b"data: x\n"), end(1.0)), {"sse.done-last"}),
    "a comment behind [DONE]": (timed(*said(), (1.0, PING), end(1.0)), {"sse.comments"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_ending_has_one_verdict(name: str) -> None:
    """Fault catalogue A1, A2, A19: cut, reset, hang, late and in good order without [DONE] are told apart."""
    made, expected = WRONG[name]

    assert departures(CONTRACT, CHAT, made) == expected


@pytest.mark.parametrize(
    "parts",
    [
        said(step=20.0, upto=3),
        [(0.1, PING), (60.0, PING), (119.0, PING)],
        [*said(upto=2), (60.0, PING), (119.0, PING)],
    ],
)
def test_slow_is_not_silent(parts: list[tuple[float, bytes]]) -> None:
    """Where our time ran out while the server still wrote, pings included, nobody knows how it would have ended."""
    made = timed(*parts, ending=Ending.TIMEOUT_TOTAL)

    assert departures(CONTRACT, CHAT, made) <= {"sse.comments"}
    assert outcomes(CONTRACT, CHAT, made)["ending.no-hang"] is Outcome.INCONCLUSIVE


def test_without_times_nothing_is_said_of_time() -> None:
    """A capture that keeps no read times shows neither a late nor a missing end."""
    late = WRONG["the end late"][0]
    untimed = dataclasses.replace(late, holds=late.holds - {Evidence.TIMES})
    found = outcomes(CONTRACT, CHAT, untimed)

    assert found["ending.prompt"] is Outcome.NOT_RUN
    assert found["ending.no-hang"] is Outcome.NOT_RUN
    assert found["ending.not-cut"] is Outcome.PASS


def test_whole_answers_are_judged_by_their_framing() -> None:
    """`ending.*` is about streams alone."""
    made = exchange(CHAT, stream_request(CHAT, stream=False), HEAD + b"5\r\n{", ending=Ending.TIMEOUT_IDLE)
    found = outcomes(CONTRACT, CHAT, made)

    assert found["http.complete"] is Outcome.FAIL
    assert {found[id_] for id_ in found if id_.startswith("ending.")} == {Outcome.NOT_RUN}


def test_undocumented_stream_is_judged_at_should() -> None:
    """DeepInfra's document leaves [DONE] unsaid; the connection's ends are as wrong there."""
    contract, operation = contract_of("deepinfra-completions")
    body = sse(chunks(operation), done=False)
    wire = HEAD + b"%x\r\n%b\r\n" % (len(body), body)
    cut = exchange(operation, stream_request(operation), wire, ending=Ending.CLOSED)
    short = exchange(operation, stream_request(operation), wire + LAST_CHUNK)

    assert departures(contract, operation, cut) == {"ending.not-cut"}
    assert departures(contract, operation, short) == {"sse.done-undocumented"}
