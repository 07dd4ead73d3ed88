"""What a load run alone says to the gate: objectives, failures, and whether this client could know."""

from collections.abc import Iterator, Sequence

from streamgauge.load.outcome import LoadOutcome
from streamgauge.metrics.client import ClientReport
from streamgauge.metrics.objectives import Kept, Objective
from streamgauge.metrics.record import NO_FAILURE, NOT_THE_SERVER, Outcome
from streamgauge.metrics.summary import Summary
from streamgauge.outcomes import ExitCode

__all__ = ["load_verdict"]

_ANSWERS = frozenset(Outcome) - {
    *NOT_THE_SERVER,
    Outcome.DROPPED,
    Outcome.REFUSED,
    Outcome.TLS,
    Outcome.RESET,
    Outcome.TIMEOUT_CONNECT,
}
"""What shows that a server was there."""


def load_verdict(
    outcome: LoadOutcome,
    summary: Summary,
    objectives: Sequence[Objective] = (),
    client: ClientReport | None = None,
) -> tuple[ExitCode, str]:
    """
    The exit code and all of its reasons, the decisive ones first.

    - interrupted (130): the user stopped it; what was measured is kept.
    - cannot tell (3): the run itself failed, or not one request succeeded (unless the server answered, and that breaks an
      objective).
    - gate failed (1): an objective was broken for certain, this client's own delays allowed for; or requests failed
      (rate-limited and dropped ones included) and no objective says how many may.
    - cannot tell (3): an objective is undecided, this client was too slow to know, the run was given up, or, without
      an objective, more requests still ran at its end than had succeeded.
    - pass (0): every objective was kept; every request succeeded, was allowed to fail, or still ran when the run ended.
    """
    listed = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items() if name not in NO_FAILURE)
    if outcome.state == "interrupted":
        return ExitCode.INTERRUPTED, "load: interrupted"
    if outcome.state == "failed":
        return ExitCode.CANNOT_TELL, f"load: {outcome.detail.splitlines()[0]}"
    reasons = sorted(_reasons(outcome, summary, objectives, client), key=lambda reason: reason[0])
    broken = any(objective.kept is Kept.FAIL for objective in objectives)
    if not summary.outcomes.get(Outcome.OK) and not (broken and _answered(summary)):
        return ExitCode.CANNOT_TELL, f"load: none of {summary.requests} requests succeeded ({listed or 'unfinished'})"
    if reasons:
        return reasons[0][0], "load: " + "; ".join(reason for _, reason in reasons)
    kept = f"{len(objectives)} objectives kept, " if objectives else ""
    return ExitCode.PASS, f"load: {kept}{summary.requests} requests, {listed or 'none'} failed"


def _answered(summary: Summary) -> bool:
    return any(outcome in _ANSWERS for outcome in summary.outcomes)


def _reasons(
    outcome: LoadOutcome, summary: Summary, objectives: Sequence[Objective], client: ClientReport | None
) -> Iterator[tuple[ExitCode, str]]:
    for objective in objectives:
        if objective.kept is Kept.FAIL:
            yield ExitCode.GATE_FAILED, f"{objective.slo} is broken: {objective.reason}"
        elif objective.kept is Kept.INCONCLUSIVE:
            yield ExitCode.CANNOT_TELL, f"{objective.slo} is undecided: {objective.reason}"
    failed = {name: count for name, count in summary.outcomes.items() if name not in NOT_THE_SERVER}
    if failed and not any(objective.slo.metric == "errors" for objective in objectives):
        listed = ", ".join(f"{count} {name}" for name, count in failed.items())
        yield ExitCode.GATE_FAILED, f"{sum(failed.values())} of {summary.requests} requests failed ({listed})"
    running = summary.outcomes.get(Outcome.UNFINISHED_AT_STOP, 0)
    if not objectives and running > summary.outcomes.get(Outcome.OK, 0):
        yield (
            ExitCode.CANNOT_TELL,
            f"{running} of {summary.requests} requests still ran when the run ended: more came than the server could answer, "
            "or --drain was too short",
        )
    if client is not None:
        yield from ((ExitCode.CANNOT_TELL, reason) for reason in client.reasons)
    if outcome.state == "aborted":
        yield (
            ExitCode.CANNOT_TELL,
            f"given up: {outcome.detail.splitlines()[0] if outcome.detail else 'no reason told'}",
        )
