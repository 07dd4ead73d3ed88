"""Sends the planned probes and writes every exchange into the bundle as it ends."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from streamgauge.bundle.writer import ExchangeWriter
from streamgauge.conformance.plan import NotRun, Planned
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

__all__ = ["record"]

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
    Send every probe; those of one target side by side, the late ones last, one target after the other.

    Args:
        planned: what to send.
        directory: the bundle's directory.
        limits: patience and concurrency.
        on_exchange: called after each exchange is on disk.

    Returns:
        The probes that were not sent because their target had stopped answering.
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

        def note(exchange: Exchange, gone: _Gone = gone) -> None:
            gone.note(exchange)
            keep(exchange)

        async with Recorder(items[0].target, limits=limits, on_exchange=note) as recorder:
            for late in (False, True):
                # As many senders as slots: a probe is taken up only when one is free, so the rest can still be left out.
                waiting = iter([item for item in items if item.probe.late is late])
                async with asyncio.TaskGroup() as group:
                    for _ in range(limits.concurrency):
                        group.create_task(_send_all(waiting, recorder, gone, left_out))
    return left_out


async def _send_all(waiting: Iterator[Planned], recorder: Recorder, gone: _Gone, left_out: list[NotRun]) -> None:
    for item in waiting:
        if gone:
            reason = f"the target had stopped answering (since {gone.since})"
            left_out.append(NotRun(item.probe.id, item.target.name, item.operation.name, reason))
        else:
            await recorder.send(_outgoing(item))


def _outgoing(item: Planned) -> Outgoing:
    probe = item.probe
    return Outgoing(
        url=item.target.url(item.operation),
        body=probe.content,
        credential=item.target.credential if probe.credential is None else probe.credential,
        method=probe.method,
        operation=item.operation.name,
        probe=probe.id,
        headers=probe.headers,
    )
