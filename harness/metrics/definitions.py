"""The metrics of a load run, each declared once: its name, how it is computed, where that comes from."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.metrics.record import Record

__all__ = ["BY_ID", "METRICS", "RATES", "Metric", "Rate", "credible_tokens"]

_MOST_TOKENS_ASKED = 2
"""A usage above so many times the limit asked for (and above the number of events) is not believed."""


@dataclass(frozen=True, slots=True)
class Metric:
    """
    One latency metric.

    Attributes:
        id: how tables, files and the command line name it.
        title: how people name it.
        unit: of its values.
        formula: in the names of a record's fields.
        source: whose definition it is, and where others differ.
        needs: the record's fields without which it has no value.
        of: its values for one record, whatever its outcome; none where it is undefined (never 0 instead).
        slack: how much lower, and how much higher, the true values of a record may be, since this client was busy when
            the bytes came; None where no bound is known.
        estimated: whether the values rest on an assumption that the record cannot prove.
        pooled: whether a record has many values, kept in a histogram; else it has one at most, kept exactly.
    """

    id: str
    title: str
    unit: str
    formula: str
    source: str
    needs: tuple[str, ...]
    of: Callable[[Record], Sequence[float]]
    slack: Callable[[Record], tuple[float, float]] | None = None
    estimated: bool = False
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """One figure of a whole run; see :class:`Metric` for the attributes."""

    id: str
    title: str
    unit: str
    formula: str
    source: str


def credible_tokens(record: Record) -> int | None:
    """The record's tokens; None when usage claims what cannot be: far more than was asked for and came, or none of what came."""
    most = max(_MOST_TOKENS_ASKED * record.max_tokens, len(record.token_times)) if record.max_tokens else math.inf
    return record.tokens if bool(record.token_times) <= record.tokens <= most else None


def _milliseconds(later: int, earlier: int) -> float:
    return (later - earlier) / 1000


def _headers(record: Record) -> list[float]:
    return [_milliseconds(record.headers, record.dispatched)] if record.headers is not None else []


def _ttack(record: Record) -> list[float]:
    return [_milliseconds(record.first_event, record.dispatched)] if record.first_event is not None else []


def _ttft(record: Record) -> list[float]:
    return [_milliseconds(record.token_times[0], record.dispatched)] if record.token_times else []


def _ttft_intended(record: Record) -> list[float]:
    return [_milliseconds(record.token_times[0], record.scheduled)] if record.token_times else []


def _ttfo(record: Record) -> list[float]:
    return [_milliseconds(record.first_visible, record.dispatched)] if record.first_visible is not None else []


def _tpot(record: Record) -> list[float]:
    # A single event carried all the tokens, so n1 is known to be N and nothing remains to be timed.
    rest = (credible_tokens(record) or 0) - 1 if len(record.token_times) > 1 else 0
    return [_milliseconds(record.token_times[-1], record.token_times[0]) / rest] if rest >= 1 else []


def _gap(record: Record) -> list[float]:
    return [gap / 1000 for gap in record.gaps_us]


def _itl(record: Record) -> list[float]:
    tokens, gaps = credible_tokens(record), record.gaps_us
    if tokens is None or tokens < 2:
        return []
    if tokens == len(record.token_times):
        return [gap / 1000 for gap in gaps]
    values: list[float] = []
    waited = 0
    for index, gap in enumerate(gaps):
        carried = (index + 1) * (tokens - 1) // len(gaps) - index * (tokens - 1) // len(gaps)
        waited += gap
        if carried:  # with fewer tokens than events, the time of a token-less event belongs to the next token
            values += [waited / carried / 1000] * carried
            waited = 0
    return values


def _e2e(record: Record) -> list[float]:
    return [_milliseconds(over, record.dispatched) for over in _over(record)]


def _e2e_intended(record: Record) -> list[float]:
    return [_milliseconds(over, record.scheduled) for over in _over(record)]


def _over(record: Record) -> list[int]:
    return record.token_times[-1:] if record.stream else [record.closed]


def _tail(record: Record) -> list[float]:
    return [_milliseconds(record.closed, record.token_times[-1])] if record.token_times else []


def _late(record: Record) -> list[float]:
    # One that was sent twice was dispatched in time, too; how long the server let the first try wait is no delay of ours.
    return [] if record.replaced else [_milliseconds(record.dispatched - record.connect_us, record.scheduled)]


def _connect(record: Record) -> list[float]:
    return [record.connect_us / 1000] if record.connect_us else []


def _first_lag(record: Record) -> tuple[float, float]:
    return record.first_lag_us / 1000, 0.0


def _visible_lag(record: Record) -> tuple[float, float]:
    return _first_lag(record) if record.token_times[:1] == [record.first_visible] else _any_lag(record)


def _any_lag(record: Record) -> tuple[float, float]:
    return record.lag_us / 1000, 0.0


def _lag_of_two(record: Record) -> tuple[float, float]:
    return record.lag_us / 1000, record.lag_us / 1000


def _lag_spread(record: Record) -> tuple[float, float]:
    rest = max((credible_tokens(record) or 0) - 1, 1)
    return record.lag_us / 1000 / rest, record.first_lag_us / 1000 / rest


METRICS: tuple[Metric, ...] = (
    Metric(
        "headers",
        "Time to headers",
        "ms",
        "headers - dispatched",
        "Service latency until the final status line and header fields were read.",
        ("dispatched", "headers"),
        _headers,
    ),
    Metric(
        "ttack",
        "Time to first event",
        "ms",
        "first_event - dispatched",
        "llm-load-test's tt_ack: a role-only chunk stops this clock, and no other.",
        ("dispatched", "first_event"),
        _ttack,
    ),
    Metric(
        "ttft",
        "Time to first token",
        "ms",
        "token_times[0] - dispatched",
        "Service latency until the first non-empty content, reasoning or tool delta, as in AIPerf; "
        "vLLM also lets a role-only chunk stop the clock.",
        ("dispatched", "token_times"),
        _ttft,
        _first_lag,
    ),
    Metric(
        "ttft_intended",
        "Time to first token, as intended",
        "ms",
        "token_times[0] - scheduled",
        "Intended latency: lateness and connecting count too, as for somebody who came when the schedule says. Without it a "
        "stalled server slows the client down and hides its own stall (coordinated omission).",
        ("scheduled", "token_times"),
        _ttft_intended,
        _first_lag,
    ),
    Metric(
        "ttfo",
        "Time to first visible token",
        "ms",
        "first_visible - dispatched",
        "As AIPerf's time to first output token: reasoning does not stop the clock. "
        "Equal to TTFT where there is no reasoning.",
        ("dispatched", "first_visible"),
        _ttfo,
        _visible_lag,
    ),
    Metric(
        "tpot",
        "Time per output token",
        "ms",
        "(token_times[-1] - token_times[0]) / (tokens - n1), with n1 = 1; undefined when tokens - n1 < 1, or usage is not "
        "credible",
        "One value per request, as AIPerf's inter-token latency. vLLM, SGLang divide whole latency - TTFT, "
        "GuideLLM includes TTFT. A single event is known to carry every token (n1 = tokens): undefined.",
        ("token_times", "completion_tokens"),
        _tpot,
        _lag_spread,
    ),
    Metric(
        "gap",
        "Gap between events",
        "ms",
        "token_times[i + 1] - token_times[i], pooled over all requests",
        "vLLM's ITL without the gaps to role, usage and finish-only events; what a reader sees as a stall. Estimated "
        "where answers were judged at their ends only.",
        ("token_times",),
        _gap,
        _lag_of_two,
        pooled=True,
    ),
    Metric(
        "itl",
        "Inter-token latency",
        "ms",
        "each gap g that carries m tokens gives m values of g / m, pooled; m by spreading tokens - 1 evenly "
        "over the gaps; undefined where usage is not credible",
        "Gaps weighted by their tokens. Estimated: servers do not say how many tokens one event carries.",
        ("token_times", "completion_tokens"),
        _itl,
        _lag_of_two,
        estimated=True,
        pooled=True,
    ),
    Metric(
        "e2e",
        "End-to-end latency",
        "ms",
        "stream: token_times[-1] - dispatched; whole answer: closed - dispatched",
        "Service latency until the last token; vLLM and SGLang stop at the end of the stream instead.",
        ("dispatched", "token_times", "closed"),
        _e2e,
        _any_lag,
    ),
    Metric(
        "e2e_intended",
        "End-to-end latency, as intended",
        "ms",
        "stream: token_times[-1] - scheduled; whole answer: closed - scheduled",
        "Intended latency until the last token; see TTFT_INTENDED.",
        ("scheduled", "token_times", "closed"),
        _e2e_intended,
        _any_lag,
    ),
    Metric(
        "tail",
        "Time from last token to close",
        "ms",
        "closed - token_times[-1]",
        "Usage, [DONE] and the end of the transfer: what vLLM and SGLang count as latency beyond E2E.",
        ("token_times", "closed"),
        _tail,
    ),
    Metric(
        "late",
        "Lateness of dispatch",
        "ms",
        "dispatched - connect_us - scheduled",
        "How late this client began what the schedule (in a closed loop: its user) wanted; connecting is a figure of its own. Of "
        "a request that was sent twice nobody knows.",
        ("scheduled", "dispatched", "connect_us", "replaced"),
        _late,
    ),
    Metric(
        "connect",
        "Time to connect",
        "ms",
        "connect_us / 1000 of requests that opened a connection",
        "Name resolution, TCP and TLS; outside of every other metric, since dispatch comes after it.",
        ("connect_us",),
        _connect,
    ),
)
"""Every latency metric, in the order in which tables show them."""

BY_ID = {metric.id: metric for metric in METRICS}

RATES: tuple[Rate, ...] = (
    Rate(
        "output_tokens_per_s",
        "Output tokens per second",
        "tok/s",
        "tokens whose event lies in the steady window / length of the window; a request's tokens are spread "
        "evenly over its token-bearing events, a whole answer's arrive when it closes; every outcome counts",
        "Window: all users running and the warm-up over, until the first planned stop, so neither ramp nor drain dilutes it. "
        "Answers to the warm-up that are still coming in it count: the server works for them.",
    ),
    Rate(
        "output_tokens_per_s_whole",
        "Output tokens per second, whole run",
        "tok/s",
        "all tokens / (last closed - first dispatched), without the requests of the warm-up",
        "As vLLM and AIPerf compute it: ramp and drain included.",
    ),
    Rate(
        "requests_per_s",
        "Requests completed per second",
        "1/s",
        "requests with outcome ok that closed in the steady window / length of the window",
        "Successes only.",
    ),
    Rate(
        "good_per_s",
        "Good requests per second",
        "1/s",
        "requests with outcome ok that kept each latency objective and closed in the steady window / length of the window",
        "Goodput of DistServe (OSDI 2024) as a rate; equal to completed requests where no latency is limited. The share is "
        "that of all scheduled requests, those included that failed, were dropped or left no record.",
    ),
)
"""Figures of the whole run, computed in :mod:`streamgauge.metrics.summary`."""
