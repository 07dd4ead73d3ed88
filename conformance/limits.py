"""What a limit of our own readers kept out of sight is neither right nor wrong."""

import functools
from collections.abc import Iterable

from streamgauge.conformance.check import Case, Departure, Judge
from streamgauge.contract.validator import DISPUTED, Problem
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Stream
from streamgauge.wire.json import JsonText
from streamgauge.wire.sse import Event

__all__ = ["beyond_limit", "judged_whole", "misshapen", "text_beyond_limit"]


def beyond_limit(stream: Stream) -> Departure | None:
    """The `inconclusive` departure of a stream that was not kept, or not read, as a whole; None where all of it was."""
    excess = stream.reader.excess
    if excess is not None:
        return _departure(str(excess), span=(excess.offset, excess.offset + 1))
    unread = stream.unread
    return _departure(unread.json.beyond_limit, span=(unread.event.start, unread.event.end)) if unread else None


def text_beyond_limit(text: JsonText, size: int) -> Departure | None:
    """The same for a body of `size` bytes that was to be read as one JSON text."""
    return _departure(text.beyond_limit, span=(0, size)) if text.beyond_limit else None


def misshapen(problem: Problem, expected: str, event: Event | None = None) -> Departure:
    """The departure for a broken schema; `inconclusive` where our two validators differ about the value."""
    outcome = Outcome.INCONCLUSIVE if problem.keyword == DISPUTED else None
    return Departure(expected, str(problem), event=event, outcome=outcome)


def judged_whole(judge: Judge) -> Judge:
    """Let a check of streams abstain, naming the limit, where the stream went beyond one."""

    @functools.wraps(judge)
    def abstaining(case: Case) -> Iterable[Departure]:
        departure = beyond_limit(case.exchange.stream)
        return judge(case) if departure is None else [departure]

    return abstaining


def _departure(limit: str, span: tuple[int, int]) -> Departure:
    return Departure("no more than this harness keeps", limit, span=span, outcome=Outcome.INCONCLUSIVE)
