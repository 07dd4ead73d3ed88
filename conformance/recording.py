"""Sends the planned probes and writes every exchange into the bundle as it ends."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from streamgauge.bundle.writer import ExchangeWriter
from streamgauge.conformance.isolation.alone import send_alone, solitary
from streamgauge.conformance.plan import NotRun, Planned
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

__all__ = ["record", "resolved", "waves"]

SILENCES = 12
"""After so many exchanges in a row without any answer the target counts as gone, and the rest is not sent."""


class _Gone:
    """Notices that a target has stopped answering."""

    def __init__(self) -> None:
        self.silences = 0
        self.since = ""

    def note(self, exchange: Exchange) -> None:
        if exchange.status:
            self.silences = 0
            return
        self.silences += 1
        if self.silences == 1:
            self.since = exchange.probe

    def __bool__(self) -> bool:
        return self.silences >= SILENCES


def record(
    planned: list[Planned],
    directory: Path,
    *,
    limits: Limits,
    on_exchange: Callable[[Exchange], None] = lambda exchange: None,
) -> list[NotRun]:
    """
    Send every probe; those of one target side by side in waves (:func:`waves`), then those that go alone; target by target.

    Args:
        planned: what to send.
        directory: the bundle's directory.
        limits: patience and concurrency.
        on_exchange: called after each exchange is on disk.

    Returns:
        The probes that were not sent: their target had stopped answering, or earlier answers did not give what they need.
    """
    writer = ExchangeWriter(directory, "main")

    def keep(exchange: Exchange) -> None:
        writer.write(exchange)
        on_exchange(exchange)

    try:
        return asyncio.run(_record(planned, limits, keep))
    finally:
        writer.close()


async def _record(planned: list[Planned], limits: Limits, keep: Callable[[Exchange], None]) -> list[NotRun]:
    by_target: dict[str, list[Planned]] = {}
    for item in planned:
        by_target.setdefault(item.target.name, []).append(item)
    left_out: list[NotRun] = []
    for items in by_target.values():
        gone = _Gone()
        answered: dict[str, dict[str, Exchange]] = {}

        def note(exchange: Exchange, gone: _Gone = gone) -> None:
            gone.note(exchange)
            keep(exchange)

        async with Recorder(items[0].target, limits=limits, on_exchange=note) as recorder:
            for wave in waves(items):
                # As many senders as slots: a probe is taken up only when one is free, so the rest can still be left out.
                waiting = iter(wave)
                async with asyncio.TaskGroup() as group:
                    for _ in range(limits.concurrency):
                        group.create_task(_send_all(waiting, recorder, gone, left_out, answered))
            alone = [item for item in items if solitary(item)]
            if gone:
                left_out += [_unsent(item, gone) for item in alone]
            else:
                left_out += await send_alone(alone, recorder, lambda item: recorder.send(_outgoing(item)))
    return left_out


def _unsent(item: Planned, gone: _Gone) -> NotRun:
    reason = f"the target had stopped answering (since {gone.since})"
    return NotRun(item.probe.id, item.target.name, item.operation.name, reason)


def waves(items: Iterable[Planned]) -> list[list[Planned]]:
    """
    What is sent side by side: first the probes, then what follows up their answers, the late ones last.

    What needs the server for itself is in none of them; see :mod:`streamgauge.conformance.isolation.alone`.
    """
    items = [item for item in items if not solitary(item)]
    follow_ups = [item for item in items if isinstance(item.probe, FollowUp)]
    early, late = (
        [i for i in items if not isinstance(i.probe, FollowUp) and i.probe.late is when] for when in (False, True)
    )
    return [early, follow_ups, late]


def resolved(item: Planned, answered: Answered) -> Planned | NotRun:
    """The item with a probe; or why no probe could be made of what was answered."""
    if not isinstance(item.probe, FollowUp):
        return item
    probe = item.probe.probe(answered)
    if isinstance(probe, str):
        return NotRun(item.probe.id, item.target.name, item.operation.name, probe)
    return replace(item, probe=probe)


async def _send_all(
    waiting: Iterator[Planned],
    recorder: Recorder,
    gone: _Gone,
    left_out: list[NotRun],
    answered: dict[str, dict[str, Exchange]],
) -> None:
    for item in waiting:
        if gone:
            left_out.append(_unsent(item, gone))
            continue
        made = resolved(item, answered.get(item.operation.name, {}))
        if isinstance(made, NotRun):
            left_out.append(made)
        else:
            exchange = await recorder.send(_outgoing(made))
            answered.setdefault(item.operation.name, {})[item.probe.id] = exchange


def _outgoing(item: Planned) -> Outgoing:
    probe = item.probe
    assert isinstance(probe, Probe)
    return Outgoing(
        url=item.target.models_urls[0] if probe.models else item.target.url(item.operation),
        body=probe.content,
        credential=item.target.credential if probe.credential is None else probe.credential,
        method=probe.method,
        operation="" if probe.models else item.operation.name,
        probe=probe.id,
        headers=probe.headers,
        leave_after=probe.leave_after,
    )
