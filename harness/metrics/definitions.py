"""The metrics of a load run, each declared once: its name, how it is computed, where that comes from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.metrics.record import Record

__all__ = ["METRICS", "RATES", "Metric", "Rate", "credible_tokens"]

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
        estimated: whether the values rest on an assumption that the record cannot prove.
    """

    id: str
    title: str
    unit: str
    formula: str
    source: str
    needs: tuple[str, ...]
    of: Callable[[Record], Sequence[float]]
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """One figure of a whole run; see :class:`Metric` for the attributes."""

    id: str
    title: str
    unit: str
    formula: str
    source: str


def credible_tokens(record: Record) -> int | None:
    """The record's tokens; None when usage claims what cannot be: far more than was asked for, or came."""
    most = max(_MOST_TOKENS_ASKED * record.max_tokens, len(record.token_times))
    return None if record.max_tokens and record.tokens > most else record.tokens


def _milliseconds(later: int, earlier: int) -> float:
    return (later - earlier) / 1000


def _ttft(record: Record) -> list[float]:
    return [_milliseconds(record.token_times[0], record.dispatched)] if record.token_times else []


def _ttfo(record: Record) -> list[float]:
    return [_milliseconds(record.first_visible, record.dispatched)] if record.first_visible is not None else []


def _tpot(record: Record) -> list[float]:
    # A single event carried all the tokens, so n1 is known to be N and nothing remains to be timed.
    rest = record.tokens - 1 if len(record.token_times) > 1 else 0
    return [_milliseconds(record.token_times[-1], record.token_times[0]) / rest] if rest >= 1 else []


def _gap(record: Record) -> list[float]:
    return [gap / 1000 for gap in record.gaps_us]


def _itl(record: Record) -> list[float]:
    tokens, gaps = credible_tokens(record), record.gaps_us
    if tokens is None or tokens < 2:
        return []
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
    if not record.stream:
        return [_milliseconds(record.closed, record.dispatched)]
    return [_milliseconds(record.token_times[-1], record.dispatched)] if record.token_times else []


def _connect(record: Record) -> list[float]:
    return [record.connect_us / 1000] if record.connect_us else []


METRICS: tuple[Metric, ...] = (
    Metric(
        "ttft",
        "Time to first token",
        "ms",
        "token_times[0] - dispatched",
        "Service latency until the first non-empty content, reasoning or tool delta, as in AIPerf; "
        "vLLM also lets a role-only chunk stop the clock.",
        ("dispatched", "token_times"),
        _ttft,
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
    ),
    Metric(
        "tpot",
        "Time per output token",
        "ms",
        "(token_times[-1] - token_times[0]) / (tokens - n1), with n1 = 1; undefined when tokens - n1 < 1",
        "One value per request, as AIPerf's inter-token latency. vLLM, SGLang divide whole latency - TTFT, "
        "GuideLLM includes TTFT. A single event is known to carry every token (n1 = tokens): undefined.",
        ("token_times", "completion_tokens"),
        _tpot,
    ),
    Metric(
        "gap",
        "Gap between events",
        "ms",
        "token_times[i + 1] - token_times[i], pooled over all requests",
        "vLLM's ITL without the gaps to role, usage and finish-only events; what a reader sees as a stall.",
        ("token_times",),
        _gap,
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
        estimated=True,
    ),
    Metric(
        "e2e",
        "End-to-end latency",
        "ms",
        "stream: token_times[-1] - dispatched; whole answer: closed - dispatched",
        "Service latency until the last token; vLLM and SGLang stop at the end of the stream instead.",
        ("dispatched", "token_times", "closed"),
        _e2e,
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

RATES: tuple[Rate, ...] = (
    Rate(
        "output_tokens_per_s",
        "Output tokens per second",
        "tok/s",
        "tokens whose event lies in the steady window / length of the window; a request's tokens are spread "
        "evenly over its token-bearing events, a whole answer's arrive when it closes; every outcome counts",
        "Window: all users running until the first planned stop, so neither ramp nor drain dilutes it.",
    ),
    Rate(
        "output_tokens_per_s_whole",
        "Output tokens per second, whole run",
        "tok/s",
        "all tokens / (last closed - first dispatched)",
        "As vLLM and AIPerf compute it: ramp and drain included.",
    ),
    Rate(
        "requests_per_s",
        "Requests completed per second",
        "1/s",
        "requests with outcome ok that closed in the steady window / length of the window",
        "Successes only.",
    ),
)
"""Figures of the whole run, computed in :mod:`streamgauge.metrics.summary`."""
