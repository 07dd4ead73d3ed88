"""Holds the client against streams whose times are known, just before and after it measures (DESIGN 4)."""

import json
import re
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import gevent

from streamgauge.contract.contract import CHAT, Operation
from streamgauge.load.client import Sent, StreamClient
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Judged
from streamgauge.metrics.statistics import at_rank

__all__ = ["MOST_STREAMS", "calibrate"]

MOST_STREAMS = 512
_FEWEST_STREAMS = 32
"""With fewer, a p90 of first tokens would be one hiccup of the machine."""

_SHORTEST_TTFT_MS = 20.0
_START_MS = 0.2
"""For each stream: all requests are out before the first token comes."""

_SPREAD_MS = 50.0
"""
First tokens come evenly over so long a time, and with them all others: what holds this process up for some milliseconds meets
a few streams only. That events which come at once are read one after the other is certified in each record, and no error.
"""

_EVENTS_PER_S = 6_000
"""Well within what a client can take: the calibration shows its error, not its limit."""

_SECONDS = 0.06
"""Of gaps, beside the time over which first tokens are spread: a run waits for it twice."""

_FEWEST_TOKENS = 4

_SENT_AT = re.compile(rb'"(?:content|text)":"[^"]+"[^\n]*"t_ns":(\d+)')


def calibrate(url: str, operation: Operation, *, streams: int, phase: str) -> dict[str, Any]:
    """
    Read so many paced streams at once and compare our stamps with the server's own.

    The paced server (:mod:`streamgauge.load.pacer`) says in each event when it was sent, by the clock that this process
    reads, too. What lies between its sending and our stamp is our error, or the kernel's. The time of dispatch has no such
    error: it is stamped just before the send.

    Args:
        url: of the paced server, without a path.
        operation: how answers are read; only its family counts.
        streams: how many at once; between 32 and `MOST_STREAMS`.
        phase: `before` or `after`.

    Returns:
        A telemetry line. Without a single stream that came whole, the errors have n = 0.
    """
    streams = max(_FEWEST_STREAMS, min(streams, MOST_STREAMS))
    gap_ms = 1000 * streams / _EVENTS_PER_S
    tokens = max(_FEWEST_TOKENS, round(1000 * _SECONDS / gap_ms))
    chat = operation.family == CHAT
    address = f"{url}/v1/{'chat/completions' if chat else 'completions'}"
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Go."}]} if chat else {"prompt": "Go."}
    asked |= {"model": "calibration", "stream": True, "max_tokens": tokens}

    def request(number: int) -> LoadRequest:
        ttft_ms = _SHORTEST_TTFT_MS + _START_MS * streams + _SPREAD_MS * number / streams
        body = json.dumps({**asked, "pace": {"ttft_ms": ttft_ms, "itl_ms": gap_ms}}).encode()
        return LoadRequest("calibration", "calibration", operation, address, body, True, tokens)

    client = StreamClient(address, {"content-type": "application/json"})
    try:
        client.open(streams)
        greenlets = [gevent.spawn(client.send, request(number), judged=Judged.ALL) for number in range(streams)]
        sent = [greenlet.get() for greenlet in greenlets]
    finally:
        client.close()
    errors = [found for each in sent if (found := _errors(each)) is not None]
    return {
        "calibration": {
            "time": time.time(),
            "phase": phase,
            "streams": streams,
            "events": sum(len(each.record.token_times) for each in sent),
            "ttft_error_us": _spread([first for first, _ in errors]),
            "gap_error_us": _spread([abs(gap) for _, gaps in errors for gap in gaps]),
        }
    }


def _errors(sent: Sent) -> tuple[int, list[int]] | None:
    """By how much our first stamp is late, and each of our gaps wrong, in microseconds; None when the stream is not whole."""
    wire = b"".join(data for _, _, data in sent.reads or ())
    ours, theirs = sent.record.token_times, [int(stamp) // 1000 for stamp in _SENT_AT.findall(wire)]
    if sent.record.done is None or len(ours) != len(theirs):
        return None
    late = [our - their for our, their in zip(ours, theirs, strict=True)]
    return late[0], [after - before for before, after in pairwise(late)]


def _spread(errors: Sequence[int]) -> dict[str, int | None]:
    ordered = sorted(errors)
    n = len(ordered)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {"n": n} | {name: at_rank(ordered, p) if n else None for name, p in ranks.items()}
