"""Decides which probes are sent, within the token budget, before anything is sent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from streamgauge.conformance.probes.forms import claims, forms
from streamgauge.conformance.probes.probe import Probe
from streamgauge.conformance.probes.refusals import auth, refusals
from streamgauge.contract.contract import Operation
from streamgauge.target import Target

__all__ = ["BUDGET_TOKENS", "NotRun", "Plan", "Planned", "plan"]

BUDGET_TOKENS = 20_000
"""Tokens that one operation may cost at most unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe, and where it goes."""

    target: Target
    operation: Operation
    probe: Probe


@dataclass(frozen=True, slots=True)
class NotRun:
    """A probe that is left out, and why."""

    probe: str
    target: str
    operation: str
    reason: str


@dataclass(slots=True)
class Plan:
    """What a run sends and what it leaves out."""

    budget_tokens: int
    planned: list[Planned] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Worst case of what right servers spend on it."""
        return sum(planned.probe.tokens for planned in self.planned)


def plan(targets: Sequence[Target], *, select: Iterable[str] = (), budget_tokens: int | None = None) -> Plan:
    """
    Choose the probes for every operation of every target.

    Args:
        targets: whom to ask, with their models known.
        select: topics of probes (`form`, `refusal`, `auth`, `generated`) or ids; all when empty.
        budget_tokens: tokens for one operation. Probes that a right server refuses are always sent; the others in the
            order of their tables, as far as the budget goes. None for :data:`BUDGET_TOKENS`.
    """
    from streamgauge.conformance.probes.generated import generated

    wanted = tuple(select)
    budget = BUDGET_TOKENS if budget_tokens is None else budget_tokens
    result = Plan(budget)
    for target in targets:
        for operation in target.contract.operations:
            left = budget
            probes = [
                *forms(operation, target.model),
                *claims(operation, target.model, target.contract.profile),
                *refusals(operation, target.model),
                *(auth(operation, target.model) if target.key else ()),
                *(generated(operation, target.model) if _wants("generated", wanted) else ()),
            ]
            for probe in probes:
                if wanted and not any(probe.id == name or probe.id.startswith(f"{name}.") for name in wanted):
                    continue
                if probe.tokens > left:
                    reason = f"budget: up to {probe.tokens} tokens, {left} of {budget} left"
                    result.not_run.append(NotRun(probe.id, target.name, operation.name, reason))
                    continue
                left -= probe.tokens
                result.planned.append(Planned(target, operation, probe))
    return result


def _wants(topic: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or any(name == topic or name.startswith(f"{topic}.") for name in wanted)
