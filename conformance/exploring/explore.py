"""Runs the explorations of all targets side by side, between the sending of probes and the judging."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.bundle.writer import ExchangeWriter
from streamgauge.conformance.check import Check
from streamgauge.conformance.exploring.engine import Body, Enough, Explorer
from streamgauge.conformance.exploring.exploration import PAIRS, Exploration, explorations_of, shares
from streamgauge.conformance.exploring.ledger import Ledger
from streamgauge.conformance.exploring.oracle import Oracle
from streamgauge.conformance.exploring.strategies.material import Material, answered_in
from streamgauge.conformance.probes.laws.pairwise import ROWS
from streamgauge.conformance.probes.probe import Probe
from streamgauge.conformance.recording import SILENCES
from streamgauge.contract.contract import Operation
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

__all__ = ["Exploring"]


@dataclass
class Exploring:
    """
    Everything that is explored in a run.

    Args:
        targets: whom to ask.
        checks: by which the run judges.
        earlier: what the probes got.
        tokens: what the explorations of one operation may cost together.
        left: what there is left for an operation, by the names of target and operation.
        seed: of all draws.
        select: topics or ids of what is wanted; all when empty.
        limits: patience and concurrency.
        on_exchange: called after each exchange is on disk.
        on_explored: called when an exploration is over, with its line.

    Attributes:
        lines: of `explored.json`, one for each exploration that is over.
    """

    targets: Sequence[Target]
    checks: Sequence[Check]
    earlier: Sequence[Exchange]
    tokens: int
    left: Callable[[str, str], int] | None = None
    seed: int = 0
    select: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    on_exchange: Callable[[Exchange], None] = lambda exchange: None
    on_explored: Callable[[dict[str, Any]], None] = lambda line: None
    lines: list[dict[str, Any]] = field(default_factory=list)
    _stopped: bool = False

    @property
    def planned(self) -> list[tuple[Target, Operation, Exploration]]:
        """What is going to be explored."""
        return [
            (target, operation, exploration)
            for target in self.targets
            for operation in target.contract.operations
            for exploration in self._explorations(target, operation)
        ]

    def _tokens(self, target: Target, operation: Operation) -> int:
        return min(self.tokens, self.left(target.name, operation.name)) if self.left else self.tokens

    def _explorations(self, target: Target, operation: Operation) -> list[Exploration]:
        return explorations_of(operation, self.select) if self._tokens(target, operation) else []

    def into(self, directory: Path) -> None:
        """
        Explore; exchanges are in the bundle's directory as they end.

        Raises:
            KeyboardInterrupt: the user had enough; `lines` has what was found until then.
        """
        writer = ExchangeWriter(directory, "explored")

        def keep(exchange: Exchange) -> None:
            writer.write(exchange)
            self.on_exchange(exchange)

        try:
            asyncio.run(self._explore(keep))
        finally:
            writer.close()
            order = {(t.name, o.name, e.id): at for at, (t, o, e) in enumerate(self.planned)}
            self.lines.sort(key=lambda line: order[line["target"], line["operation"], line["exploration"]])

    async def _explore(self, keep: Callable[[Exchange], None]) -> None:
        loop = asyncio.get_running_loop()
        # Hypothesis waits for each answer, so each exploration has a thread. This pool is joined when the loop is shut
        # down, after what is still being sent has been cancelled: a thread of our own would wait for that for ever.
        loop.set_default_executor(ThreadPoolExecutor(max_workers=self.limits.concurrency))
        for target in filter(self._answers, self.targets):
            async with Recorder(target, limits=self.limits, on_exchange=keep, process="explored") as recorder:
                of_each = (self._of(target, each, recorder, loop) for each in target.contract.operations)
                explorers = [explorer for found in of_each for explorer in found]
                try:
                    await asyncio.gather(*(loop.run_in_executor(None, self._run, target, each) for each in explorers))
                except BaseException:
                    self._stopped = True
                    raise

    def _answers(self, target: Target) -> bool:
        """Whether the target answered any of the last probes, or none was sent."""
        last = [each for each in self.earlier if each.target == target.name][-SILENCES:]
        return not last or any(each.status for each in last)

    def _run(self, target: Target, explorer: Explorer) -> None:
        line = {"target": target.name, **explorer.run()}
        self.lines.append(line)
        self.on_explored(line)

    def _of(
        self, target: Target, operation: Operation, recorder: Recorder, loop: asyncio.AbstractEventLoop
    ) -> list[Explorer]:
        """The explorers of one operation."""
        earlier = [each for each in self.earlier if (each.target, each.operation) == (target.name, operation.name)]
        found, tokens = self._explorations(target, operation), self._tokens(target, operation)
        allowed = shares(found, tokens)
        rest = Ledger(tokens - sum(allowed.values()))
        answered = answered_in(earlier, operation, target.model)
        beside = [exchange for each in answered for exchange in each.exchanges]

        def oracle_beyond(known: Sequence[Exchange]) -> Oracle:
            return Oracle(
                self.checks,
                operation,
                target.contract,
                target=target.name,
                model=target.model,
                earlier=known,
                beside=beside,
                redactor=target.redactor,
            )

        oracle = oracle_beyond(earlier)
        rows = [each for each in earlier if each.probe.startswith(f"{ROWS}.")]
        of_rows = oracle_beyond([each for each in earlier if each not in rows])
        departed = tuple(each.sent for each in rows if of_rows.departures([each])) if PAIRS in allowed else ()
        material = Material(operation, target.model, answered, departed)

        def sender(exploration: Exploration) -> Callable[[Body], Exchange]:
            def send(body: Body) -> Exchange:
                return self._wait_for(self._send(recorder, _outgoing(target, operation, exploration, body)), loop)

            return send

        return [
            Explorer(
                each,
                material,
                of_rows if each.id == PAIRS else oracle,
                sender(each),
                Ledger(allowed[each.id]),
                rest,
                self.seed,
            )
            for each in found
        ]

    async def _send(self, recorder: Recorder, outgoing: Outgoing) -> Exchange:
        """Send, unless the run is interrupted; asked in the loop's thread, so that nothing comes in between."""
        if self._stopped:
            raise Enough("interrupted")
        return await recorder.send(outgoing)

    def _wait_for(self, sending: Coroutine[Any, Any, Exchange], loop: asyncio.AbstractEventLoop) -> Exchange:
        """Wait in an exploration's thread for what the loop's thread does."""
        try:
            return asyncio.run_coroutine_threadsafe(sending, loop).result()
        except BaseException:
            if self._stopped:  # whatever a recorder says that is being closed
                raise Enough("interrupted") from None
            raise


def _outgoing(target: Target, operation: Operation, exploration: Exploration, body: Body) -> Outgoing:
    return Outgoing(
        url=target.url(operation),
        body=Probe(exploration.id, body).content,
        credential=target.credential,
        method=operation.method,
        operation=operation.name,
        probe=exploration.id,
    )
