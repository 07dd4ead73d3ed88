"""Decides which probes are sent, within the token budget, before anything is sent."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from streamgauge.conformance.exploring.budget import TOPIC
from streamgauge.conformance.probes.auth import auth
from streamgauge.conformance.probes.forms import claims, forms
from streamgauge.conformance.probes.generated import begin_drawing, generated
from streamgauge.conformance.probes.isolation import leaving, nonces
from streamgauge.conformance.probes.laws import laws
from streamgauge.conformance.probes.laws.request_limits import bodies
from streamgauge.conformance.probes.pairs import pairs
from streamgauge.conformance.probes.poisons import with_canaries
from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.conformance.probes.refusals import refusals
from streamgauge.conformance.probes.variants import variants
from streamgauge.contract.contract import Operation
from streamgauge.detection import tries_for
from streamgauge.errors import UsageError
from streamgauge.target import Target

__all__ = ["BUDGET_TOKENS", "NotRun", "Plan", "Planned", "plan", "require_probes"]

BUDGET_TOKENS = 50_000
"""Tokens that one operation may cost at most unless the user says otherwise."""

_GENERATED = "generated"
"""The topic of the probes that are made from the document: many alike, so they are never repeated."""


Key = tuple[str, str, str]
"""Probe, target and operation."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A probe, or what is to become one, and where it goes."""

    target: Target
    operation: Operation
    probe: Probe | FollowUp


@dataclass(frozen=True, slots=True)
class NotRun:
    """A probe that is left out, and why."""

    probe: str
    target: str
    operation: str
    reason: str

    @property
    def key(self) -> Key:
        """What tells the probe from all others."""
        return self.probe, self.target, self.operation


@dataclass(slots=True)
class Plan:
    """
    What a run sends and what it leaves out.

    Attributes:
        budget_tokens: tokens that one operation may cost.
        tries: how often each curated probe is sent at least.
        intended: how often each probe would be sent with no end of tokens.
    """

    budget_tokens: int
    tries: int = 1
    intended: Counter[Key] = field(default_factory=Counter)
    planned: list[Planned] = field(default_factory=list)
    not_run: list[NotRun] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Worst case of what right servers spend on it."""
        return sum(planned.probe.tokens for planned in self.planned)

    def left(self, target: str, operation: str) -> int:
        """Tokens of the budget that the probes of an operation leave."""
        own = [item for item in self.planned if (item.target.name, item.operation.name) == (target, operation)]
        return max(self.budget_tokens - sum(item.probe.tokens for item in own), 0)

    def named(self, left_out: Iterable[NotRun]) -> list[NotRun]:
        """Tries that are left out as probes that are: each once, with how many of its tries where there are several."""
        counts: Counter[Key] = Counter()
        first: dict[Key, NotRun] = {}
        for item in left_out:
            counts[item.key] += 1
            first.setdefault(item.key, item)
        return [
            item
            if self.intended[key] == 1
            else replace(item, reason=f"{counts[key]} of {self.intended[key]} tries left out: {item.reason}")
            for key, item in first.items()
        ]


def plan(
    targets: Sequence[Target],
    *,
    select: Iterable[str] = (),
    budget_tokens: int | None = None,
    detect_rate: float | None = None,
    destructive: bool = False,
) -> Plan:
    """
    Choose the probes for every operation of every target.

    Args:
        targets: whom to ask, with their models known.
        select: topics of probes (`form`, `refusal`, `auth`, `generated`) or ids; all when empty.
        budget_tokens: tokens for one operation. Probes that a right server refuses are always sent; the others in the
            order of their tables, as far as the budget goes. None for :data:`BUDGET_TOKENS`.
        detect_rate: repeat each curated probe until a fault of this rate shows with 99 % power. The tables are sent in
            rounds, so that the budget covers every first try before any repetition. None for one try.
        destructive: whether to send requests that have killed engines, too.

    Raises:
        UsageError: no number of tries detects that rate.
    """
    wanted = tuple(select)
    budget = BUDGET_TOKENS if budget_tokens is None else budget_tokens
    result = Plan(budget, tries=1 if detect_rate is None else tries_for(detect_rate))
    if _wants(_GENERATED, wanted):
        begin_drawing(operation for target in targets for operation in target.contract.operations)
    for target in targets:
        for operation in target.contract.operations:
            left = budget
            left_out: list[NotRun] = []
            for probe in _in_rounds(list(_probes(target, operation, wanted, destructive=destructive)), result.tries):
                result.intended[probe.id, target.name, operation.name] += 1
                if probe.tokens > left:
                    reason = f"budget: up to {probe.tokens} tokens, {left} of {budget} left"
                    left_out.append(NotRun(probe.id, target.name, operation.name, reason))
                    continue
                left -= probe.tokens
                result.planned.append(Planned(target, operation, probe))
            result.not_run += result.named(left_out)
    return result


def _probes(
    target: Target, operation: Operation, wanted: tuple[str, ...], *, destructive: bool
) -> Iterator[Probe | FollowUp]:
    """The probes of one operation that are wanted, in the order in which the budget is spent on them."""
    tables: list[Iterable[Probe | FollowUp]] = [
        forms(operation, target.model),
        variants(operation, target.model, target.contract.profile),
        claims(operation, target.model, target.contract.profile),
        pairs(operation, target.model),
        laws(operation, target.model),
        nonces(operation, target.model),
        leaving(operation, target.model),
        bodies(operation, target.model),
        with_canaries(operation, target.model) if destructive else (),
        refusals(operation, target.model),
        auth(operation, target.model, target.contract.profile.auth) if target.key else (),
        generated(operation, target.model) if _wants(_GENERATED, wanted) else (),
    ]
    for table in tables:
        for probe in table:
            if not wanted or any(_in_topic(probe.id, name) for name in wanted):
                yield probe


def _in_rounds(probes: list[Probe | FollowUp], tries: int) -> Iterator[Probe | FollowUp]:
    """
    All probes once, then each curated one that lacks tries, round by round; some tables send theirs more than once.

    What needs the server for itself is sent once.
    """
    yield from probes
    sent = Counter(probe.id for probe in probes)
    curated = {probe.id: probe for probe in probes if not (_in_topic(probe.id, _GENERATED) or _goes_alone(probe))}
    for already in range(1, tries):
        yield from (probe for id_, probe in curated.items() if already >= sent[id_])


def _goes_alone(probe: Probe | FollowUp) -> bool:
    return isinstance(probe, Probe) and probe.alone


def _in_topic(probe: str, name: str) -> bool:
    """Whether a probe's id is this one or lies below it."""
    return f"{probe}.".startswith(f"{name}.")


def _wants(topic: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or any(_in_topic(name, topic) for name in wanted)


def _draws(targets: Sequence[Target], name: str) -> bool:
    """Whether it names an exploration of one of the targets."""
    if not _in_topic(name, TOPIC):
        return False
    from streamgauge.conformance.exploring.exploration import explorations_of

    return any(explorations_of(operation, [name]) for target in targets for operation in target.contract.operations)


def require_probes(targets: Sequence[Target], select: Iterable[str], *, destructive: bool = False) -> None:
    """
    Refuse a selection of probes that selects nothing, before anything is sent.

    Raises:
        UsageError: a name is that of no probe of these targets.
    """
    targets = [replace(target, model=target.model or "MODEL") for target in targets]
    for name in select:
        topic = name.partition(".")[0]
        if topic == _GENERATED:
            continue  # made from the document: there are always some
        planned = plan(targets, select=[name], destructive=destructive)
        if not planned.planned and not planned.not_run and not _draws(targets, name):
            hint = (
                "Topics: form, pair, law, isolation, alone, refusal, auth, generated, explore; poison with --destructive. "
                "`streamgauge list probes` shows every id."
            )
            if topic == "auth" and not all(target.key for target in targets):
                hint = "Probes of the key need one: STREAMGAUGE_API_KEY or --api-key-file."
            raise UsageError(f"--select {name}: these targets have no such probe", hint=hint)
