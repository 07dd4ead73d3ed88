"""
Holds what a run has counted against what the server has counted itself meanwhile.

Every request that was sent counts here, those of the warm-up included: the server knows no warm-up. What was sent before the
first look at the server's counters (the preflight) is in neither count. Where both differ, the requests that came to no end
before our eyes set the limits of what the server may rightly say; what lies beyond is unexplained, and called so.
"""

import enum
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.server import Phase, Quantity, Sample, deltas, samples_of

__all__ = ["Agreement", "CrossCheck", "Row", "cross_check", "cross_check_of"]


class Agreement(enum.StrEnum):
    """What became of one comparison, best first."""

    AGREE = "agree"
    EXPLAINED = "explained"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Row:
    """
    One comparison.

    Attributes:
        what: what was counted.
        ours: our count.
        server: by how much the server's own counter rose.
        agreement: whether both say the same.
        explanation: why they do not; where nothing explains it, it begins with `unexplained`.
    """

    what: str
    ours: int
    server: int
    agreement: Agreement
    explanation: str = ""

    @property
    def difference(self) -> int:
        """What the server counts beyond ours."""
        return self.server - self.ours


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """
    All comparisons of a run.

    Attributes:
        rows: one for each counter that the server has.
        reason: why there are none; empty where there are.
        notes: what else the server's counters say.
    """

    rows: tuple[Row, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def agreement(self) -> Agreement | None:
        """The worst of the rows; None where there are none."""
        return max((row.agreement for row in self.rows), key=list(Agreement).index, default=None)

    def lines(self) -> list[str]:
        """What a terminal shows."""
        if not self.rows:
            return [f"the server's own counts cannot be compared: {self.reason}", *(f"  {note}" for note in self.notes)]
        wide = max(len(row.what) for row in self.rows)
        lines = ["the server's own counts beside ours:"]
        for row in self.rows:
            counts = f"{row.what:{wide}}  {row.ours:,} ours, {row.server:,} the server's"
            told = f"{row.difference:+,}, {row.explanation}" if row.difference else "they agree"
            lines.append(f"  {counts}: {told}")
        return [*lines, *(f"  {note}" for note in self.notes)]


def cross_check_of(bundle: Bundle, records: Sequence[Record]) -> CrossCheck | None:
    """The comparison for the run that a bundle holds, given all its records; None where no counters were to be read."""
    lines = bundle.server_metrics
    if not lines:
        return None
    said = tuple(line["note"] for line in lines if "note" in line)
    samples = samples_of(lines)
    if not samples and said:
        return CrossCheck(reason="; ".join(said))
    found = cross_check(records, samples)
    return replace(found, notes=(*found.notes, *said))


def cross_check(records: Sequence[Record], samples: Sequence[Sample]) -> CrossCheck:
    """
    Compare.

    Args:
        records: all of the run, their stamps in microseconds since 1970.
        samples: what the server counted, oldest first.
    """
    phases = {sample.phase for sample in samples}
    if not {Phase.BEFORE, Phase.AFTER} <= phases:
        return CrossCheck(reason="its counters were not read both before and after the run")
    rose = deltas(samples)
    if rose is None:
        reason = "a counter went back: the server was started anew, or several servers answer in turn"
        return CrossCheck(reason=reason)
    ours = _Ours.of(records)
    others = _others(records, samples)
    rows = tuple(row for compare in _COMPARISONS for row in compare(ours, rose, others))
    if not rows:
        return CrossCheck(reason="it has no counters that we know")
    return CrossCheck(rows, notes=tuple(_notes(rose, others)))


_LEFT = frozenset(
    {
        Outcome.CANCELLED,
        Outcome.UNFINISHED_AT_STOP,
        Outcome.TIMEOUT_FIRST_TOKEN,
        Outcome.TIMEOUT_IDLE,
        Outcome.TIMEOUT_TOTAL,
    }
)
"""Outcomes where it is our client that went."""


_SENT_AGAIN = "sent again"


@dataclass(slots=True)
class _Ours:
    """
    What the records say.

    Attributes:
        finished: how many answers told a finish reason, by that reason.
        endless: requests that were sent and told none, by outcome: the server may have come to their end, or not. Of one that was
            sent again the first try is among them.
        left: how many of these our client left.
        prompt, completion: tokens by usage.
        unsaid: requests whose usage never came, by outcome.
        events: token-bearing events of those.
        most: how many tokens those may have cost at most.
        longest_prompt: tokens of the longest prompt that is known; infinite where none is.
    """

    finished: Counter[str] = field(default_factory=Counter)
    endless: Counter[str] = field(default_factory=Counter)
    left: int = 0
    prompt: int = 0
    completion: int = 0
    unsaid: Counter[str] = field(default_factory=Counter)
    events: int = 0
    most: float = 0
    longest_prompt: float = math.inf

    @classmethod
    def of(cls, records: Iterable[Record]) -> "_Ours":
        ours = cls()
        for record in records:
            if record.replaced:
                ours.endless[_SENT_AGAIN] += 1
                ours.unsaid[_SENT_AGAIN] += 1
                ours.most += record.max_tokens or math.inf
            if record.written is None or _was_refused(record):
                continue
            if record.finish_reason:
                ours.finished[record.finish_reason] += 1
            else:
                ours.endless[record.outcome.value] += 1
                ours.left += record.outcome in _LEFT
            if record.prompt_tokens is not None:
                longest = 0 if ours.longest_prompt == math.inf else ours.longest_prompt
                ours.longest_prompt = max(longest, record.prompt_tokens)
                ours.prompt += record.prompt_tokens
            if record.completion_tokens is not None:
                ours.completion += record.completion_tokens
            else:
                seen = len(record.token_times)
                ours.unsaid[record.outcome.value] += 1
                ours.events += seen
                ours.most += max(record.max_tokens, seen) if record.max_tokens else math.inf
        return ours


def _was_refused(record: Record) -> bool:
    """Whether the server turned the request down, so that nothing was generated."""
    return record.outcome is Outcome.RATE_LIMITED or 400 <= record.status < 500


def _finished(ours: _Ours, rose: dict[str, float], others: str) -> Iterable[Row]:
    for quantity, what, reasons in (
        (Quantity.FINISHED, "requests finished", set(ours.finished)),
        (Quantity.FINISHED_STOP, "of these by stop", set(ours.finished) - {"length"}),
        (Quantity.FINISHED_LENGTH, "of these by length", {"length"}),
    ):
        if quantity in rose:
            count = sum(ours.finished[reason] for reason in reasons)
            because = f"of {_listed(ours.endless)} we saw no end, and the server may have"
            yield _row(what, count, rose[quantity], ours.endless.total(), because, others)


def _aborted(ours: _Ours, rose: dict[str, float], others: str) -> Iterable[Row]:
    if Quantity.ABORTED not in rose:
        return
    server = round(rose[Quantity.ABORTED])
    if server < ours.left:
        said = "a server need not count requests whose client has gone, and may have ended them before"
        yield Row("requests that we left", ours.left, server, Agreement.EXPLAINED, said)
        return
    broken = ours.endless.total() - ours.left
    because = f"of {_listed(ours.endless)} we saw no end, and the server may have given them up"
    yield _row("requests that we left", ours.left, server, broken, because, others)


def _prompts(ours: _Ours, rose: dict[str, float], others: str) -> Iterable[Row]:
    computed, cached = rose.get(Quantity.COMPUTED_PROMPT_TOKENS), rose.get(Quantity.CACHED_PROMPT_TOKENS)
    server = rose.get(Quantity.PROMPT_TOKENS)
    if server is None:
        if computed is None:
            return
        server = computed + (cached or 0)
        if cached is None and server < ours.prompt:
            said = "the server leaves out what it has from its cache, and does not count that apart"
            yield Row("prompt tokens", ours.prompt, round(server), Agreement.EXPLAINED, said)
            return
    because = f"the usage of {_listed(ours.unsaid)} never came"
    room = ours.unsaid.total() * ours.longest_prompt if ours.unsaid else 0
    yield _row("prompt tokens", ours.prompt, server, room, because, others)


def _completions(ours: _Ours, rose: dict[str, float], others: str) -> Iterable[Row]:
    if Quantity.COMPLETION_TOKENS not in rose:
        return
    because = (
        f"the usage of {_listed(ours.unsaid)} never came: one token was counted for each of their {ours.events} events, "
        f"and the server may have generated {'any number' if ours.most == math.inf else f'up to {ours.most:,.0f}'}"
    )
    room = ours.most - ours.events
    count = ours.completion + ours.events
    yield _row("completion tokens", count, rose[Quantity.COMPLETION_TOKENS], room, because, others)


_COMPARISONS = (_finished, _aborted, _prompts, _completions)


def _row(what: str, ours: int, server: float, room: float, because: str, others: str) -> Row:
    """
    One comparison.

    Args:
        what: what was counted.
        ours: our count.
        server: the server's.
        room: how much more than ours the server may count.
        because: the reason for that.
        others: the sign that somebody else uses the server; empty without.
    """
    count = round(server)
    more = count - ours
    if more == 0:
        return Row(what, ours, count, Agreement.AGREE)
    if 0 < more <= room:
        return Row(what, ours, count, Agreement.EXPLAINED, because)
    if more > 0 and others:
        return Row(what, ours, count, Agreement.EXPLAINED, f"{because}; {others}" if room else others)
    allowed = f" ({because}: that explains {room:.0f} of them)" if room and more > 0 else ""
    said = (
        f"unexplained: the server counts {more} more{allowed}; does somebody else use it?"
        if more > 0
        else f"unexplained: the server counts {-more} fewer; does somebody answer in its place, a cache or another server?"
    )
    return Row(what, ours, count, Agreement.DIFFERS, said)


def _listed(outcomes: Counter[str]) -> str:
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    return f"{outcomes.total()} request{'' if outcomes.total() == 1 else 's'} ({kinds})" if kinds else "no request"


_SLACK_S = 0.2
"""So far the clocks of the records' processes may be from the one of the samples."""


def _others(records: Sequence[Record], samples: Sequence[Sample]) -> str:
    """The sign that somebody else uses the server; empty without one."""
    if busy := samples[0].values.get(Quantity.RUNNING, 0.0):
        return f"somebody else uses the server: {busy:.0f} of its requests ran before our first"
    sent = [record for record in records if record.written is not None]
    begins = min((record.dispatched for record in sent), default=math.inf) / 1_000_000
    idle = [sample for sample in samples if sample.time < begins - _SLACK_S]
    for name, count in ((deltas(idle) or {}) if idle else {}).items():
        if count:
            return f"somebody else uses the server: it counted {count:.0f} {name.replace('_', ' ')} before our first request"
    running = max(sample.values.get(Quantity.RUNNING, 0.0) for sample in samples)
    if running > (most := _most_at_once(sent)):
        return (
            f"somebody else uses the server: {running:.0f} requests ran there at once, never more than {most} of ours"
        )
    return ""


def _most_at_once(records: Iterable[Record]) -> int:
    """
    The greatest number of requests that the server can have had of ours at one moment.

    Those that told no end may run there for good, and the others a little longer than here.
    """
    steps: list[tuple[float, int]] = []
    for record in records:
        ended = record.closed + _SLACK_S * 1_000_000 if record.finish_reason or _was_refused(record) else math.inf
        steps += [(record.dispatched, 1), (ended, -1), *([(record.dispatched, 1)] if record.replaced else ())]
    most = running = 0
    for _, step in sorted(steps, key=lambda step: (step[0], -step[1])):
        running += step
        most = max(most, running)
    return most


def _notes(rose: dict[str, float], others: str) -> Iterable[str]:
    if others:
        yield others
    cached = rose.get(Quantity.CACHED_PROMPT_TOKENS, 0.0)
    prompt = rose.get(Quantity.PROMPT_TOKENS, rose.get(Quantity.COMPUTED_PROMPT_TOKENS, 0.0) + cached)
    if cached and prompt:
        yield f"{cached:,.0f} of its {prompt:,.0f} prompt tokens came from the server's cache ({cached / prompt:.1%})"
    if first := rose.get(Quantity.FIRST_TOKENS):
        mean_ms = rose.get(Quantity.FIRST_TOKEN_SECONDS, 0.0) / first * 1000
        yield f"its own time to the first token was {mean_ms:.1f} ms on average, of {first:,.0f}"
