"""What a load run alone says to the gate: no service level is judged, only whether requests succeeded."""

from streamgauge.load.runner import LoadOutcome
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.summary import Summary
from streamgauge.outcomes import ExitCode

__all__ = ["load_verdict"]

_NO_FAILURE = (Outcome.OK, Outcome.UNFINISHED_AT_STOP)


def load_verdict(outcome: LoadOutcome, summary: Summary) -> tuple[ExitCode, str]:
    """
    The exit code and its reason.

    - interrupted (130): the user stopped it; what was measured is kept.
    - cannot tell (3): the run itself failed, or not one request succeeded.
    - gate failed (1): some requests failed, rate-limited ones included.
    - pass (0): every request succeeded, or was still running when the run ended.
    """
    failed = {name: count for name, count in summary.outcomes.items() if name not in _NO_FAILURE}
    listed = ", ".join(f"{count} {name}" for name, count in failed.items())
    if outcome.state == "interrupted":
        return ExitCode.INTERRUPTED, "load: interrupted"
    if outcome.state == "failed":
        return ExitCode.CANNOT_TELL, f"load: {outcome.detail.splitlines()[0]}"
    if not summary.outcomes.get(Outcome.OK):
        return ExitCode.CANNOT_TELL, f"load: none of {summary.requests} requests succeeded ({listed or 'unfinished'})"
    if failed:
        return ExitCode.GATE_FAILED, f"load: {sum(failed.values())} of {summary.requests} requests failed ({listed})"
    return ExitCode.PASS, f"load: {summary.requests} requests, none failed"
