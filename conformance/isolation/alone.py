"""
Sends the probes that need the server for themselves, one after the other, behind all others.

Streams that the client leaves go out side by side, with a look at the server's metrics before and behind. A destructive
probe is followed by a plain one, the canary: where that fails twice, the engine is lost, and nothing more is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby, zip_longest

from streamgauge.conformance.isolation.gauges import busy_in, metrics_url
from streamgauge.conformance.plan import NotRun, Planned
from streamgauge.conformance.probes.probe import Probe
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Outgoing, Recorder

__all__ = ["LOOKS_S", "send_alone", "solitary"]

LOOKS_S = (0.2, 0.8, 2.0, 2.0)
"""Seconds before each look at the metrics behind streams that were left; the first that shows them gone is the last."""

_SECOND_TRY_S = 2.0
"""How long a server may need to come back to itself before the canary is sent again."""

Send = Callable[[Planned], Awaitable[Exchange]]


def _probe(item: Planned) -> Probe:
    assert isinstance(item.probe, Probe)
    return item.probe


def solitary(item: Planned) -> bool:
    """Whether an item needs the server for itself."""
    return isinstance(item.probe, Probe) and item.probe.alone


def _steps(items: Iterable[Planned]) -> Iterator[list[Planned]]:
    """What is sent at once: streams to be left that stand side by side, and everything else alone."""
    for leaving, together in groupby(items, key=lambda item: _probe(item).leave_after > 0):
        if leaving:
            yield list(together)
        else:
            yield from ([item] for item in together)


async def send_alone(items: Iterable[Planned], recorder: Recorder, send: Send) -> list[NotRun]:
    """
    Send the items in their order.

    Args:
        items: of one target, each a probe that needs the server for itself.
        recorder: asks for the metrics.
        send: sends an item and keeps its exchange.

    Returns:
        What was not sent, since the engine was lost before.
    """
    left_out: list[NotRun] = []
    poison = lost = ""
    steps = list(_steps(items))
    nothing: list[Planned] = []
    for step, following in zip_longest(steps, steps[1:], fillvalue=nothing):
        item, probe = step[0], _probe(step[0])
        unwatched = probe.destructive and (not following or _probe(following[0]).destructive)
        if lost or unwatched:
            reason = lost or "its canary is left out"
            left_out += [NotRun(each.probe.id, each.target.name, each.operation.name, reason) for each in step]
            continue
        if probe.leave_after:
            await _leave(step, recorder, send)
            continue
        exchange = await send(item)
        if probe.destructive:
            poison = probe.id
        elif poison and _fails(exchange):
            await asyncio.sleep(_SECOND_TRY_S)
            lost = f"the engine was lost behind {poison}" if _fails(await send(item)) else ""
    return left_out


def _fails(exchange: Exchange) -> bool:
    return not exchange.rate_limited and (exchange.status == 0 or exchange.status >= 500)


async def _leave(step: list[Planned], recorder: Recorder, send: Send) -> None:
    """Leave the streams, and look until the server has as little to do as before."""
    target = step[0].target
    metrics = Outgoing(
        metrics_url(target.url(step[0].operation)), b"", target.credential, method="GET", probe="alone.metrics"
    )
    before = busy_in(await recorder.send(metrics))
    await asyncio.gather(*(send(item) for item in step))
    if before is None:
        return
    for pause in LOOKS_S:
        await asyncio.sleep(pause)
        now = busy_in(await recorder.send(metrics))
        if now is None or now.running <= before.running:
            return
