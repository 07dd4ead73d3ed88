"""The plan of a load run: whom, how hard, how long, what, and what counts as good."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.load.abort import AbortRule
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, schedule
from streamgauge.load.dataset import read_prompts
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import MixEntry, Part, mix_for
from streamgauge.load.processes import dispatchers
from streamgauge.load.workload import Workload
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.slo import Slo
from streamgauge.target import Target

__all__ = ["AUTO", "DRAIN_S", "LoadPlan", "Part", "plan_for"]

DRAIN_S = 30
"""So many seconds may requests in flight go on, where nobody says. Locust's own default, 0, cuts them off."""

AUTO = "auto"
"""In place of a URL: the server's own counters are looked for at `/metrics` of the target's host, and need not be there."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """
    One load run.

    Attributes:
        target: whom to ask.
        mix: what to ask for; at least one part, all of one target.
        loop: closed (so many users, each with one request at a time) or open (a schedule of arrivals).
        duration_s: after so many whole seconds (Locust counts no parts) no new request begins; what runs is waited for.
            In an open loop, what its segments add up to.
        requests: stop earlier, after so many requests in all; None for no limit.
        prompt_tokens: length of each made prompt, about.
        shared_prefix: so many tokens come in front of every prompt, the same for all, for prefix caches on purpose.
        dataset: JSON lines with prompts, in place of made ones.
        max_tokens: limit of each answer.
        seed: of the schedule, the prompts and the lengths.
        warm_up_s: what is scheduled before is recorded, but counts in no figure.
        judge: share of the answers judged event by event, 0 to 1; the others are judged at both ends only (`ends`).
        slos: what has to hold.
        abort_on: when the run is given up.
        budget_tokens: no new request once so many tokens (prompts and answers, by usage) are spent; None for no limit.
        metrics_url: the server's own counters, read beside the run, or :data:`AUTO`; None to leave them alone.
        drain_s: so many seconds may requests in flight go on after the end of the run.
        locust_arguments: further arguments of Locust's own.
    """

    target: Target
    mix: tuple[Part, ...]
    loop: ClosedLoop | OpenLoop = field(default_factory=ClosedLoop)
    duration_s: int = 20
    requests: int | None = None
    prompt_tokens: Lengths = field(default_factory=lambda: Lengths.constant(64))
    shared_prefix: int = 0
    dataset: Path | None = None
    max_tokens: Lengths = field(default_factory=lambda: Lengths.constant(64))
    seed: int = 0
    warm_up_s: float = 0.0
    judge: float = 1.0
    slos: tuple[Slo, ...] = ()
    abort_on: tuple[AbortRule, ...] = ()
    budget_tokens: int | None = None
    metrics_url: str | None = None
    drain_s: int = DRAIN_S
    locust_arguments: tuple[str, ...] = ()

    @property
    def operation(self) -> Operation:
        """The operation of the first part."""
        return self.mix[0].operation

    @property
    def streams(self) -> bool:
        """Whether any streams are asked for."""
        return any(part.stream for part in self.mix)

    @property
    def urls(self) -> tuple[str, ...]:
        """Where the requests go, each URL once; all on one host."""
        return tuple(dict.fromkeys(self.target.url(part.operation) for part in self.mix))

    @property
    def metrics_page(self) -> str | None:
        """Where the server's own counters are read; None where nowhere."""
        if self.metrics_url != AUTO:
            return self.metrics_url
        parts = urlsplit(self.target.base_url)
        return f"{parts.scheme}://{parts.netloc}/metrics"

    @property
    def users(self) -> int:
        """Locust's users: those of a closed loop; in an open one, one for each process that sends."""
        return self.loop.users if isinstance(self.loop, ClosedLoop) else dispatchers(self.locust_arguments)

    @property
    def arrivals(self) -> "array[float]":
        """
        When each request of an open loop is to be sent, in seconds since the start; computed anew each time.

        Empty in a closed loop, where the answers decide.
        """
        if isinstance(self.loop, ClosedLoop):
            return array("d")
        return schedule(self.loop, self.seed)[: self.requests]

    @property
    def workload(self) -> Workload:
        """The requests of the run; reads the dataset each time."""
        return Workload(
            self.target,
            self.mix,
            prompt_tokens=self.prompt_tokens,
            max_tokens=self.max_tokens,
            seed=self.seed,
            shared_prefix=self.shared_prefix,
            prompts=read_prompts(self.dataset) if self.dataset else (),
        )

    def describe(self) -> dict[str, Any]:
        """What `load.json` says about the plan."""
        loop = self.loop
        is_open = isinstance(loop, OpenLoop)
        return {
            "target": self.target.name,
            "operation": self.operation.name,
            "url": self.target.url(self.operation),
            "loop": _open(loop) if isinstance(loop, OpenLoop) else _closed(loop),
            "users": None if is_open else self.users,
            "duration_s": self.duration_s,
            "requests": self.requests,
            "scheduled": len(self.arrivals) if is_open else None,
            "mix": [
                {"operation": part.operation.name, "stream": part.stream, "weight": part.weight} for part in self.mix
            ],
            "stream": all(part.stream for part in self.mix),
            "prompt_tokens": None if self.dataset else str(self.prompt_tokens),
            "max_tokens": str(self.max_tokens),
            "shared_prefix": self.shared_prefix,
            "dataset": self.dataset.name if self.dataset else None,
            "seed": self.seed,
            "warm_up_s": self.warm_up_s,
            "judge": self.judge,
            "slos": [str(slo) for slo in self.slos],
            "abort_on": [str(rule) for rule in self.abort_on],
            "budget_tokens": self.budget_tokens,
            "metrics_url": self.metrics_page,
        }


def _closed(loop: ClosedLoop) -> dict[str, Any]:
    return {"kind": "closed", "users": loop.users, "think_s": loop.think_s}


def _open(loop: OpenLoop) -> dict[str, Any]:
    return {
        "kind": "open",
        "segments": [{"seconds": part.seconds, "start": part.start, "end": part.end} for part in loop.segments],
        "process": loop.process,
        "burstiness": loop.burstiness,
        "max_in_flight": loop.max_in_flight,
    }


def plan_for(
    targets: Sequence[Target],
    entries: Sequence[MixEntry] = (),
    *,
    stream: bool = True,
    metrics_url: str | None = AUTO,
    **settings: Any,
) -> LoadPlan:
    """
    The plan for operations of one of these targets.

    Args:
        targets: with their models.
        entries: what to ask for; the first target's first operation by default.
        stream: whether streams are wanted where an entry does not say.
        metrics_url: the server's own counters, or :data:`AUTO`; None to leave them alone.
        settings: the plan's other attributes.

    Raises:
        UsageError: no target has an operation of that name, its target is behind a proxy, which load does not speak to, or an
            objective is about streams where none is asked for.
    """
    target, mix = mix_for(targets, entries, stream=stream)
    if not any(part.stream for part in mix):
        _require_whole_answers_have(settings.get("slos", ()))
    if target.proxy is not None:
        raise UsageError(
            f"load goes through no proxy, but {target.proxy.url} applies to {target.name}",
            hint="A proxy's own latency would be measured. Leave --proxy-from-env out, or name the host in NO_PROXY.",
        )
    return LoadPlan(target, mix, metrics_url=metrics_url, **settings)


_WHOLE = Record("", "", "", False, 0, 1, Outcome.OK, connect_us=1, headers=1, completion_tokens=2)
"""All that can be known of a whole answer."""


def _require_whole_answers_have(slos: Sequence[Slo]) -> None:
    for slo in slos:
        if slo.latency is not None and not slo.latency.of(_WHOLE):
            raise UsageError(
                f"{slo} is about streams, and only whole answers are asked for",
                where="--slo",
                hint="Limit e2e or headers, or ask for streams.",
            )
