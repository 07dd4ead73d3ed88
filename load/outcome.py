"""How a load run went, from its marks and its records."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.load.plan import LoadPlan
from streamgauge.load.window import Span, steady_window

__all__ = ["LoadOutcome", "conclude"]


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """
    How a load run went, as `load.json` says it.

    Attributes:
        state: `finished`, `aborted` (given up by a rule), `interrupted` or `failed`.
        detail: why it failed or ended early.
        window: start and end of the steady window, seconds since 1970.
        requests: how many records there are.
        scheduled: how many arrivals of an open loop had been due by the end; None in a closed loop.
        start: when the schedule began, seconds since 1970; None when it never did.
    """

    state: str
    detail: str
    window: tuple[float, float] | None
    requests: int
    scheduled: int | None = None
    start: float | None = None

    def line(self) -> dict[str, Any]:
        """Its members of `load.json`."""
        return {
            "state": self.state,
            "detail": self.detail,
            "scheduled": self.scheduled,
            **({"start": self.start} if self.start is not None else {}),
            **({"window": list(self.window)} if self.window else {}),
        }


def conclude(
    plan: LoadPlan, span: Span, marks: Mapping[str, Any], *, interrupted: bool = False, failed: str = ""
) -> LoadOutcome:
    """
    Weigh what is known of a run that is over.

    Args:
        plan: what was to be run.
        span: from all of its records.
        marks: from the process that steered it.
        interrupted: whether it was told to end.
        failed: why the run itself failed, as far as the caller knows.
    """
    start = marks.get("start")
    scheduled = marks.get("scheduled")
    if scheduled is None and len(arrivals := plan.arrivals):
        # Whoever steered the run could not say any more.
        until = marks.get("stopping", time.time()) - start if start is not None else -1.0
        scheduled = sum(moment <= until for moment in arrivals)
    missing = scheduled - span.count if scheduled is not None else 0
    lost = _lost(marks.get("lost", 0), missing)
    if interrupted:
        state, detail = "interrupted", lost
    elif failed or lost:
        state, detail = "failed", failed or lost
    elif "aborted" in marks:
        state, detail = "aborted", marks["aborted"]
    else:
        state = "finished"
        detail = f"the budget of {plan.budget_tokens} tokens is spent" if marks.get("spent") else ""
    return LoadOutcome(state, detail, steady_window(span, marks, plan), span.count, scheduled, start)


def _lost(workers: int, missing: int) -> str:
    said = f"{workers} worker{'s' * (workers > 1)} ended before the run did" if workers else ""
    if missing > 0:
        there = f"{missing} of the scheduled requests {'are' if missing > 1 else 'is'} in no record"
        return f"{said}; {there}" if said else there
    return said
