"""The recorder leaves a stream when it was told to, and not before."""

import asyncio

import pytest
from scripted import CLOSE, HOLD, Answer, scripted
from transcripts import contract_of

from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Evidence, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTRACT, OPERATION = contract_of("seekr-chat")


def _event(number: int, line_end: bytes = b"\n") -> bytes:
    text = b'data: {"n": %d}%b' % (number, line_end * 2)
    return b"%x\r\n%b\r\n" % (len(text), text)


def _sent(script: Answer, leave_after: int, times: int = 1) -> list[Exchange]:
    async def run(url: str) -> list[Exchange]:
        target = Target("t", url, CONTRACT, model="m")
        outgoing = Outgoing(target.url(OPERATION), b"{}", target.credential, leave_after=leave_after)
        async with Recorder(target, limits=Limits(connect=10, idle=10, total=20)) as recorder:
            return [await recorder.send(outgoing) for _ in range(times)]

    with scripted(script) as server:
        kept = asyncio.run(run(server.url))
        assert server.connections == times or leave_after == 0
        return kept


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("leave_after", [1, 3])
def test_the_client_leaves_after_so_many_events(leave_after: int, line_end: bytes) -> None:
    """The server still holds the stream open; what came is kept, and how it would have ended is not claimed to be known."""
    (kept,) = _sent([HEAD, *(_event(number, line_end) for number in range(leave_after)), HOLD], leave_after)

    assert kept.ending is Ending.LEFT
    assert kept.status == 200
    assert len(kept.stream.payloads) == leave_after
    assert kept.holds == frozenset(Evidence) - {Evidence.ENDING}


def test_a_connection_that_was_left_is_not_used_again() -> None:
    """RFC 9112, 9.3: what is left of the answer would be taken for the next one."""
    first, second = _sent([HEAD, _event(1), HOLD], 1, times=2)

    assert (first.ending, second.ending) == (Ending.LEFT, Ending.LEFT)


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        ([HEAD + _event(1) + b"0\r\n\r\n", HOLD], Ending.COMPLETE),
        ([HEAD + _event(1), CLOSE], Ending.CLOSED),
        ([b"HTTP/1.1 400 X\r\nContent-Length: 2\r\n\r\n{}", HOLD], Ending.COMPLETE),
    ],
)
def test_who_has_ended_before_was_not_left(script: Answer, ending: Ending) -> None:
    """Fewer events than the client would have waited for: the exchange ends as any other."""
    (kept,) = _sent(script, 3)

    assert kept.ending is ending
    assert kept.holds == frozenset(Evidence)
