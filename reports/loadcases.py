"""A load run as test cases: what of it failed, and what cannot be told."""

from collections.abc import Iterator

from streamgauge.metrics.objectives import Kept
from streamgauge.reports.load import LoadReport
from streamgauge.reports.words import plural

__all__ = ["load_cases"]

_BY_STATE = {"finished": None, "failed": "error"}
"""The element of each state of a run; of all others `skipped`, since what they would have shown is not known."""

_BY_KEPT = {Kept.PASS: None, Kept.FAIL: "failure", Kept.INCONCLUSIVE: "skipped"}


def load_cases(load: LoadReport) -> Iterator[tuple[str, str | None, str]]:
    """
    Name, element (`failure`, `error`, `skipped`; None where it passes) and message of each case.

    Failed requests fail a case of their own, unless an objective says how many may.
    """
    run, summary, client = load.figures.run, load.summary, load.figures.client
    state = run.get("state", "running")
    yield (
        "the run finishes",
        _BY_STATE.get(state, "skipped"),
        f"{state}: {run['detail']}" if run.get("detail") else state,
    )
    limited = any(objective.slo.metric == "errors" for objective in load.figures.objectives)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in summary.outcomes.items()) or "no requests"
    told = f"{load.failed} of {plural(summary.requests, 'request')} failed ({counts})"
    yield "requests succeed", "failure" if load.failed and not limited else None, told
    known = "; ".join(client.reasons) or "quick enough to know"
    yield "the client is quick enough to know", None if client.sufficient else "skipped", known
    for objective in load.figures.objectives:
        yield str(objective.slo), _BY_KEPT[objective.kept], f"{objective.kept}: {objective.reason}"
