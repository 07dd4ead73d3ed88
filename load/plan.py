"""The plan of a load run: whom, how many, how long, what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.load.workload import Workload
from streamgauge.target import Target

__all__ = ["LoadPlan", "plan_for"]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """
    A closed loop: so many users, each with one request at a time.

    Attributes:
        target: whom to ask.
        operation: what to ask for.
        users: how many at once.
        duration_s: after so many whole seconds (Locust counts no parts) no new request begins; what runs is waited for.
        requests: stop earlier, after so many requests in all; None for no limit.
        prompt_tokens: length of each prompt, about.
        max_tokens: limit of each answer.
        stream: whether streams are wanted; an operation that does not stream is asked for whole answers anyway.
        seed: of the prompts.
        locust_arguments: further arguments of Locust's own.
    """

    target: Target
    operation: Operation
    users: int = 8
    duration_s: int = 20
    requests: int | None = None
    prompt_tokens: int = 64
    max_tokens: int = 64
    stream: bool = True
    seed: int = 0
    locust_arguments: tuple[str, ...] = ()

    @property
    def streams(self) -> bool:
        """Whether streams are asked for."""
        return self.stream and self.operation.streams

    @property
    def workload(self) -> Workload:
        """The requests of the run."""
        return Workload(
            target=self.target.name,
            operation=self.operation,
            model=self.target.model,
            prompt_tokens=self.prompt_tokens,
            max_tokens=self.max_tokens,
            stream=self.streams,
            seed=self.seed,
        )

    def describe(self) -> dict[str, Any]:
        """What `load.json` says about the plan."""
        return {
            "target": self.target.name,
            "operation": self.operation.name,
            "url": self.target.url(self.operation),
            "users": self.users,
            "duration_s": self.duration_s,
            "prompt_tokens": self.prompt_tokens,
            "max_tokens": self.max_tokens,
            "stream": self.streams,
            "seed": self.seed,
            "planned_requests": self.requests,
        }


def plan_for(targets: Sequence[Target], operation: str | None = None, **settings: Any) -> LoadPlan:
    """
    The plan for one operation of one of these targets.

    Args:
        targets: with their models.
        operation: its name; the first target's first by default.
        settings: the plan's other attributes.

    Raises:
        UsageError: no target has an operation of that name, or its target is behind a proxy, which load does not speak to.
    """
    known = {found.name: (target, found) for target in reversed(targets) for found in target.contract.operations}
    name = operation or targets[0].contract.operations[0].name
    if name not in known:
        raise UsageError(f"no operation is called {name}", hint=f"There are: {', '.join(sorted(known))}.")
    target, found = known[name]
    if target.proxy is not None:
        raise UsageError(
            f"load goes through no proxy, but {target.proxy.url} applies to {target.name}",
            hint="A proxy's own latency would be measured. Leave --proxy-from-env out, or name the host in NO_PROXY.",
        )
    return LoadPlan(target, found, **settings)
