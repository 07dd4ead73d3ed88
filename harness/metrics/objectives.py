"""What became of each service level objective: kept, broken, or not to be told from this run."""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.metrics.definitions import Metric
from streamgauge.metrics.distribution import Edge, ordered_values, values_within
from streamgauge.metrics.goodput import Goodput
from streamgauge.metrics.record import NO_FAILURE, Outcome, Record
from streamgauge.metrics.slo import Slo
from streamgauge.metrics.statistics import OUTSIDE, binomial_at_most, quantile, share_interval

__all__ = ["Kept", "Objective", "judge_slo"]

_MOST = 10_000_000
"""More requests than this nobody sends to settle a question."""


_SINCE = {
    "headers": "dispatched",
    "ttack": "dispatched",
    "ttft": "dispatched",
    "ttft_intended": "scheduled",
    "ttfo": "dispatched",
    "e2e": "dispatched",
    "e2e_intended": "scheduled",
}
"""What a request waits for once → since when: one that was cut off at the end of the run has waited so long, at least."""

_OF_ALL_ANSWERS = ("headers", "e2e", "e2e_intended")
_AT_THE_END = ("e2e", "e2e_intended")


class Kept(enum.StrEnum):
    """Whether an objective was kept."""

    PASS = "pass"  # noqa: S105 - a verdict, no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Objective:
    """
    What became of one objective.

    Attributes:
        slo: what was to be kept.
        kept: whether it was, with 95 % confidence.
        value: the quantile in ms, or the share between 0 and 1, as it was seen; None when there is none or it is refused.
        low, high: ends of its 95 % interval, the doubt about this client's own delays included; None where unbounded.
        n: how many values, or requests, it rests on.
        reason: one sentence: what was seen, and if that is not enough, what would settle it.
    """

    slo: Slo
    kept: Kept
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Share:
    """Between `least` and `most` of n (worth `worth` independent ones, of so many requests) are as they should be."""

    least: int
    most: int
    n: int
    worth: int
    requests: int

    def interval(self) -> tuple[float, float]:
        return self._between(self.least, self.most)

    def would_do(self, required: float) -> bool:
        """Whether it could be told from so many requests, if only it were known which of the doubtful ones count."""
        return self._between(self.least, self.least)[1] < required or self._between(self.most, self.most)[0] >= required

    def _between(self, least: int, most: int) -> tuple[float, float]:
        return share_interval(
            math.floor(least / self.n * self.worth), math.ceil(most / self.n * self.worth), self.worth
        )


def judge_slo(slo: Slo, records: Sequence[Record], goodput: Goodput | None, missing: int = 0) -> Objective:
    """
    Whether a run kept an objective: when the whole 95 % interval does, it passes, when the whole interval breaks it, it fails.

    A latency limit at quantile p is a statement about a share: at least p of all values are within it. So one interval
    for shares (Clopper and Pearson) serves all objectives; for quantiles it is the same as the interval of order
    statistics, and it holds for few values too. A request that was cut off at the end of the run counts where it had waited for
    longer than the limit, or its value is known. Each value counts with all that this client's own delay leaves open.
    Values of one request count as fewer independent ones. A limit that allows nothing at all (`errors<=0%`,
    `goodput>=100%`) no sample can prove; it is taken to speak about this run.

    Args:
        slo: the objective.
        records: those that count (no warm-up).
        goodput: of these records, under all objectives.
        missing: how many scheduled requests left no record.
    """
    if slo.latency is not None and slo.p is not None:
        return _latency(slo, slo.latency, slo.p, records)
    if slo.metric == "goodput":
        share = _Share(goodput.least, goodput.most, goodput.n, goodput.n, goodput.n) if goodput else None
        said = f"{goodput.good} of {goodput.n} requests are good" if goodput else ""
        return _share(slo, share, goodput.share if goodput else None, slo.limit, said)
    ended = [record for record in records if record.outcome is not Outcome.UNFINISHED_AT_STOP]
    failed = sum(record.outcome not in NO_FAILURE for record in ended)
    n = len(ended) + missing
    share = _Share(len(ended) - failed, n - failed, n, n, n) if n else None
    return _share(slo, share, failed / n if n else None, 1 - slo.limit, f"{failed} of {n} requests failed")


def _latency(slo: Slo, metric: Metric, p: float, records: Sequence[Record]) -> Objective:
    known, broken = _cut_off(metric, slo.limit, records)
    telling = [*(record for record in records if record.outcome is Outcome.OK), *known]
    slowest, seen, fastest = (
        values_within(metric, telling, slo.limit, edge) for edge in (Edge.HIGHEST, Edge.SEEN, Edge.LOWEST)
    )
    n = seen.n + broken
    if not n:
        return Objective(slo, Kept.INCONCLUSIVE, None, None, None, 0, "no successful request has a value")
    worth = min(slowest.worth, seen.worth, fastest.worth) if metric.pooled else n
    requests = sum(bool(metric.of(record)) for record in telling) + broken
    share = _Share(slowest.kept, fastest.kept, n, worth, requests)
    # What was cut off ranks above all that was seen.
    low, value, high = (
        quantile([*values, *[math.inf] * broken] if broken else values, p, worth)
        for values in (ordered_values(metric, telling, edge) for edge in Edge)
    )
    shown = f"p{p * 100:g} is {value.value:.1f} ms, " if _finite(value.value) is not None else ""
    said = f"{shown}{seen.kept} of {n} values are within {slo.limit:g} ms"
    said += f" ({broken} requests had waited for longer when the run ended)" if broken else ""
    kept, why = _weigh(share, p)
    return Objective(slo, kept, _finite(value.value), _finite(low.low), _finite(high.high), n, said + why)


def _cut_off(metric: Metric, limit: float, records: Sequence[Record]) -> tuple[list[Record], int]:
    """
    What requests that still ran when the run ended say of a latency.

    Without them, the more a server is overloaded the better it would look.

    Returns:
        Those whose value is known, and how many others have waited for longer than `limit` (ms) already.
    """
    since = _SINCE.get(metric.id)
    known: list[Record] = []
    broken = 0
    for record in records:
        if since is None or record.outcome is not Outcome.UNFINISHED_AT_STOP:
            continue
        if not record.stream and metric.id not in _OF_ALL_ANSWERS:
            continue
        if metric.id not in _AT_THE_END and metric.of(record):
            known.append(record)
        elif since == "scheduled" or record.written is not None:
            broken += record.closed - getattr(record, since) > limit * 1000
    return known, broken


def _finite(value: float | None) -> float | None:
    return None if value == math.inf else value


def _share(slo: Slo, share: _Share | None, value: float | None, required: float, said: str) -> Objective:
    if share is None:
        return Objective(slo, Kept.INCONCLUSIVE, None, None, None, 0, "no request was made")
    low, high = share.interval()
    if slo.metric == "errors":
        low, high = 1 - high, 1 - low
    kept, why = _weigh(share, required)
    return Objective(slo, kept, value, low, high, share.n, said + why)


def _weigh(share: _Share, required: float) -> tuple[Kept, str]:
    """Whether the share that is as it should be is at least the one required."""
    if required >= 1:
        if share.most < share.n:
            return Kept.FAIL, ""
        return (Kept.PASS, "") if share.least == share.n else (Kept.INCONCLUSIVE, _undecided(share))
    least, most = share.interval()
    if least >= required:
        return Kept.PASS, ""
    if most < required:
        return Kept.FAIL, ""
    if share.would_do(required):
        return Kept.INCONCLUSIVE, _undecided(share)
    needed = _needed(share, required)
    if needed is None:
        return Kept.INCONCLUSIVE, "; that is too close to the limit for any number of requests to tell"
    return Kept.INCONCLUSIVE, f"; about {needed} requests like these would settle it"


def _undecided(share: _Share) -> str:
    return (
        f"; {share.most - share.least} may lie on either side, since this client was late or has no record of them: "
        "less load for each process, or a machine of its own, would settle it"
    )


def _needed(share: _Share, required: float) -> int | None:
    """About how many requests with the same shares would settle it; None when more than anybody sends."""
    passes = share.least / share.n >= required
    seen = (share.least if passes else share.most) / share.n

    def settled(worth: int) -> bool:
        if passes:
            return 1 - binomial_at_most(math.floor(seen * worth) - 1, worth, required) <= OUTSIDE
        return binomial_at_most(math.ceil(seen * worth), worth, required) <= OUTSIDE

    high = max(share.worth, 1)
    while not settled(high):
        if high > _MOST:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    requests = math.ceil(high * share.requests / max(share.worth, 1))
    digits = int(10 ** max(len(str(requests)) - 2, 0))
    return -(-requests // digits) * digits
