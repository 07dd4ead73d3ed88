"""
How a stream ended, in one word. Pure: the same exchange gives the same word.

What the stream says comes before what the connection does, since a client that has read `[DONE]` or an error no longer waits.
Only a hang comes before both: whoever reads to the end of the message waits for ever, whatever has been said.
"""

import enum

from streamgauge.wire.exchange import Ending, Exchange

__all__ = ["StreamEnding", "describe_ending", "stream_ending"]


class StreamEnding(enum.StrEnum):
    """How a stream ended."""

    DONE = "done"
    """`[DONE]` came, and the client was not left waiting."""

    ERROR_EVENT = "error-event"
    """An event reported an error."""

    EOF = "eof"
    """The message ended as its framing announced, with neither of the two."""

    CLOSED = "closed"
    """The server closed the connection before the message's end."""

    RESET = "reset"
    HANG = "hang"
    """Nothing more came, and the client gave up."""

    BROKEN = "broken"
    """What came stopped being HTTP, or TLS."""

    OUTGROWN = "outgrown"
    """The recorder stopped reading at its limit: how the stream would have ended is not known."""


_CUT: dict[Ending, StreamEnding] = {
    Ending.CLOSED: StreamEnding.CLOSED,
    Ending.RESET: StreamEnding.RESET,
    Ending.TOO_LARGE: StreamEnding.OUTGROWN,
}

_TIMEOUTS = (Ending.TIMEOUT_IDLE, Ending.TIMEOUT_TOTAL)


def stream_ending(exchange: Exchange) -> StreamEnding:
    """How the stream that the exchange's body is read as ended; it must hold `Evidence.ENDING`."""
    if exchange.ending in _TIMEOUTS:
        return StreamEnding.HANG
    if exchange.stream.error is not None:
        return StreamEnding.ERROR_EVENT
    if exchange.stream.done:
        return StreamEnding.DONE
    if exchange.response.complete:
        return StreamEnding.EOF
    return _CUT.get(exchange.ending, StreamEnding.BROKEN)


def describe_ending(exchange: Exchange) -> str:
    """The ending for a reader: its word, behind how much it came, and what had been said by then."""
    stream = exchange.stream
    choices: dict[str, bool] = {}
    for chunk in stream.chunks:
        for choice in chunk.choices:
            index = repr(choice.get("index"))
            choices[index] = choices.get(index, False) or choice.get("finish_reason") is not None
    told = [f"{len(stream.dispatched)} events"]
    told += [f"a finish reason for {sum(choices.values())} of {len(choices)} choices"] if choices else []
    told += ["[DONE]"] if stream.done else []
    within = ", within an event" if any(line.field for line in stream.reader.unfinished) else ""
    word, transfer = stream_ending(exchange), exchange.ending
    how = word if transfer in (Ending.COMPLETE, word.value) else f"{word} ({transfer})"
    return f"{how} after {', '.join(told)}{within}"
