"""One exploration of one operation: draw, send, judge; make what departs small, and send it again."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from streamgauge.conformance.exploring.exploration import Exploration
from streamgauge.conformance.exploring.ledger import Ledger
from streamgauge.conformance.exploring.minimal import minimal_set
from streamgauge.conformance.exploring.oracle import Oracle
from streamgauge.conformance.exploring.strategies.material import Material
from streamgauge.conformance.judge import Finding
from streamgauge.conformance.probes.probe import worst_case_tokens
from streamgauge.wire.exchange import Exchange

__all__ = ["PATIENCE_S", "REPLAYS", "Body", "Enough", "Explorer"]

REPLAYS = 3
"""How often the smallest example is sent again."""

PATIENCE_S = 30.0
"""After so many seconds an exploration draws no more: a server that hangs takes as long as our patience for each request."""

_SILENCES = 3
"""After so many requests in a row without any answer the target counts as gone."""

Body = dict[str, Any]


class Enough(BaseException):
    """
    Ends an exploration early; its text says why.

    No `Exception`: Hypothesis would take it for a failing example, and make it smaller.
    """


class _Departs(Exception):  # noqa: N818 - no error of ours: what Hypothesis is to make smaller
    """An example departs."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An example that was sent, in all its forms, and what departs."""

    body: Body
    cost: int
    exchanges: tuple[Exchange, ...]
    departures: dict[str, Finding]

    @property
    def size(self) -> tuple[int, int]:
        """How small it is."""
        return self.cost, len(_text(self.body))


@dataclass
class Explorer:
    """
    One exploration of one operation.

    Args:
        exploration: what is drawn.
        material: what it is drawn of.
        oracle: what judges it.
        send: sends a body and waits for the answer; raises :class:`Enough` when nothing is to be sent any more.
        share: what it may draw with.
        rest: tokens for making small what departs, shared by the explorations of the operation.
        seed: of the draws.
        clock: seconds.
    """

    exploration: Exploration
    material: Material
    oracle: Oracle
    send: Callable[[Body], Exchange]
    share: Ledger
    rest: Ledger
    seed: int
    clock: Callable[[], float] = time.monotonic
    _attempts: dict[str, _Attempt] = field(default_factory=dict)
    _best: _Attempt | None = None
    _wanted: str = ""
    _silences: int = 0
    _requests: int = 0
    _tokens: int = 0
    _promised: Ledger = field(default_factory=lambda: Ledger(0))
    _until: float = 0.0

    def run(self) -> dict[str, Any]:
        """Explore; the result as a line of `explored.json`, whatever ended it."""
        self._until = self.clock() + PATIENCE_S
        stopped = self._guarded(self._draw)
        failure = None
        if self._best is not None:
            stopped = self._guarded(self._minimise) or stopped
            replays: list[_Attempt] = []
            stopped = self._guarded(lambda: self._replay(replays)) or stopped
            failure = self._failure(self._best, replays)
        return {
            "exploration": self.exploration.id,
            "title": self.exploration.title,
            "operation": self.material.operation.name,
            "seed": self.seed,
            "examples": len(self._attempts),
            "requests": self._requests,
            "tokens": self._tokens,
            "stopped": stopped,
            "failure": failure,
        }

    def _guarded(self, step: Callable[[], None]) -> str:
        """Take a step; the reason where it ended early."""
        try:
            step()
        except Enough as reason:
            return str(reason)
        return ""

    def _draw(self) -> None:
        """Let Hypothesis draw, and make smaller what departs."""
        strategy = self.exploration.bodies(self.material)
        if strategy.is_empty:
            raise Enough("there is nothing to draw from")

        @seed(self.seed)
        @settings(
            max_examples=self.exploration.examples,
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
            verbosity=Verbosity.quiet,
        )
        @given(strategy)
        def example(body: Body) -> None:
            if self._fails(body):
                raise _Departs

        try:
            example()
        except _Departs:
            return

    def _fails(self, body: Body) -> bool:
        """
        Whether the body departs as the first one did that departed.

        Each body is sent once: then the server cannot say one thing now and another when Hypothesis asks again.
        """
        text = _text(body)
        if text not in self._attempts:
            self._attempts[text] = self._attempt(body, self.share, *([self.rest] if self._best else []))
        attempt = self._attempts[text]
        self._wanted = self._wanted or next(iter(attempt.departures), "")
        if not self._wanted or self._wanted not in attempt.departures:
            return False
        if self._best is None:
            self._promise(REPLAYS * attempt.cost)
        if self._best is None or attempt.size <= self._best.size:
            self._best = attempt
        return True

    def _minimise(self) -> None:
        """Leave out the properties that it does not take; the limit stays, since without it an answer has no bounds."""
        assert self._best is not None
        body = self._best.body
        minimal_set(body, self._droppable(body), self._fails)

    def _droppable(self, body: Body) -> list[str]:
        stays = {"model", "messages", "prompt", "max_tokens", *self.material.operation.required}
        return [name for name in body if name not in stays]

    def _replay(self, replays: list[_Attempt]) -> None:
        assert self._best is not None
        replays.extend(self._attempt(self._best.body, self._promised) for _ in range(REPLAYS))

    def _promise(self, cost: int) -> None:
        """Put the tokens of the replays aside before anything else is paid for."""
        if self.rest.pay(cost) or self.share.pay(cost):
            self._promised = Ledger(cost)

    def _attempt(self, body: Body, *payers: Ledger) -> _Attempt:
        """
        Send a body in all its forms, and judge.

        Raises:
            Enough: there is not enough left of the tokens or of the time.
        """
        forms = self._forms(body)
        cost = sum(map(worst_case_tokens, forms))
        if self.clock() > self._until:
            raise Enough(f"it had gone on for {PATIENCE_S:g} s")
        if not any(payer.pay(cost) for payer in payers):
            raise Enough("the tokens were spent")
        self._tokens += cost
        exchanges = tuple(map(self._sent, forms))
        return _Attempt(body, cost, exchanges, self.oracle.departures(exchanges))

    def _sent(self, body: Body) -> Exchange:
        exchange = self.send(body)
        self._requests += 1
        self._silences = 0 if exchange.status else self._silences + 1
        if exchange.rate_limited:
            raise Enough("the target limits the rate")
        if self._silences >= _SILENCES:
            raise Enough("the target had stopped answering")
        return exchange

    def _forms(self, body: Body) -> list[Body]:
        """The body, and its streamed form where the exploration wants both."""
        operation = self.material.operation
        if not (self.exploration.both_forms and operation.streams):
            return [body]
        options = {"stream_options": {"include_usage": True}} if "stream_options" in operation.properties else {}
        return [body, {**body, "stream": True, **options}]

    def _failure(self, best: _Attempt, replays: list[_Attempt]) -> dict[str, Any]:
        finding = best.departures[self._wanted]
        example = finding.examples[0]
        return {
            "check": self._wanted,
            "level": finding.level.value,
            "outcome": finding.outcome.value,
            "checks": list(best.departures),
            "expected": example["expected"],
            "actual": example["actual"],
            "body": best.body,
            "properties": self._droppable(best.body),
            "exchanges": [each.id for attempt in (best, *replays) for each in attempt.exchanges],
            "replays": len(replays),
            "departed": sum(self._wanted in each.departures for each in replays),
        }


def _text(body: Body) -> str:
    return json.dumps(body, sort_keys=True)
