"""The endpoint's own counters, by the names of vLLM's `/metrics`, in Prometheus' text format."""

import mmap
from bisect import bisect_left
from collections.abc import Iterator

from streamgauge.reference.answers import Answer

__all__ = ["Metrics"]

_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_CACHE = "vllm:kv_cache_usage_perc"
_PROMPT = "vllm:prompt_tokens_total"
_GENERATED = "vllm:generation_tokens_total"
_ENDED = "vllm:request_success_total"
_FIRST = "vllm:time_to_first_token_seconds"
_BETWEEN = "vllm:inter_token_latency_seconds"
_WHOLE = "vllm:e2e_request_latency_seconds"
_QUEUED = "vllm:request_queue_time_seconds"

_HELP = {
    _RUNNING: ("gauge", "Requests being answered."),
    _WAITING: ("gauge", "Requests waiting for a place."),
    _CACHE: ("gauge", "The part of the budget of tokens that running requests have reserved. 1 means all."),
    _PROMPT: ("counter", "Prompt tokens taken in."),
    _GENERATED: ("counter", "Tokens generated and written."),
    _ENDED: ("counter", "Choices finished, and requests aborted, by the reason."),
    _FIRST: ("histogram", "From the request to the first write with tokens."),
    _BETWEEN: ("histogram", "Between writes with tokens of one request."),
    _WHOLE: ("histogram", "From the request to the last write of a complete answer."),
    _QUEUED: ("histogram", "From the request to its place."),
}
_REASONS = ("stop", "length", "abort")
_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0),
)
# Of a histogram: how many values lie between two bounds, beyond the last one, and their sum.
_SIZES = {"gauge": 1, "counter": 1, "histogram": len(_BUCKETS) + 2}
_BYTES = 8


class Metrics:
    """
    Counts what one endpoint does, in memory that the processes forked from this one share: a row of numbers for each.

    Args:
        models: names of the models, for the label `model_name`.
        processes: how many count.

    Attributes:
        process: which of them this one is, from 0. Only that one writes its row, so nothing needs a lock.
    """

    def __init__(self, models: tuple[str, ...], processes: int = 1) -> None:
        self.process = 0
        self._models = models
        self._processes = processes
        self._places: dict[tuple[str, str], int] = {}
        self._row = 0
        for model in models:
            for name, (kind, _) in _HELP.items():
                self._places[name, model] = self._row
                self._row += len(_REASONS) if name == _ENDED else _SIZES[kind]
        self._cells = memoryview(mmap.mmap(-1, _BYTES * self._row * processes)).cast("d")

    def waits(self, answer: Answer, change: int) -> None:
        """An answer begins to wait for a place (1), or does so no longer (-1)."""
        self._add(_WAITING, answer, change)

    def started(self, answer: Answer, queued: float = 0.0) -> None:
        """The writing of an answer begins, so many seconds after the request."""
        self._add(_RUNNING, answer, 1)
        self._add(_PROMPT, answer, answer.parameters.prompt_tokens)
        self._observe(_QUEUED, answer, queued)

    def wrote(self, answer: Answer, tokens: int, seconds: float, *, first: bool) -> None:
        """Tokens went out, `seconds` after the request or, if not the `first`, after the tokens before."""
        self._add(_GENERATED, answer, tokens)
        self._observe(_FIRST if first else _BETWEEN, answer, seconds)

    def ended(self, answer: Answer, *, complete: bool, seconds: float = 0.0) -> None:
        """The answer is written, `seconds` after the request, or its client has left."""
        self._add(_RUNNING, answer, -1)
        for reason in [choice.finish_reason for choice in answer.choices] if complete else ["abort"]:
            # Tools are called by a text that stops: to vLLM's engine as well.
            self._add(_ENDED, answer, 1, _REASONS.index(reason) if reason in _REASONS else 0)
        if complete:
            self._observe(_WHOLE, answer, seconds)

    def cached(self, usage: float) -> None:
        """So much of the budget of tokens is reserved now."""
        for model in self._models:
            self._cells[self.process * self._row + self._places[_CACHE, model]] = usage

    def text(self) -> str:
        """The page that a scraper reads: the sums over all processes."""
        return "\n".join([*self._lines(), ""])

    def _add(self, name: str, answer: Answer, change: float, beside: int = 0) -> None:
        self._cells[self.process * self._row + self._places[name, answer.parameters.model] + beside] += change

    def _observe(self, name: str, answer: Answer, seconds: float) -> None:
        self._add(name, answer, 1, bisect_left(_BUCKETS, seconds))
        self._add(name, answer, seconds, len(_BUCKETS) + 1)

    def _sum(self, place: int) -> float:
        return sum(self._cells[place + process * self._row] for process in range(self._processes))

    def _lines(self) -> Iterator[str]:
        for name, (kind, meaning) in _HELP.items():
            yield f"# HELP {name} {meaning}"
            yield f"# TYPE {name} {kind}"
            for model in self._models:
                place, label = self._places[name, model], f'model_name="{_escape(model)}"'
                if kind == "histogram":
                    yield from self._histogram(name, place, label)
                elif name == _ENDED:
                    for beside, reason in enumerate(_REASONS):
                        yield f'{name}{{finished_reason="{reason}",{label}}} {_number(self._sum(place + beside))}'
                else:
                    yield f"{name}{{{label}}} {_number(self._sum(place))}"

    def _histogram(self, name: str, place: int, label: str) -> Iterator[str]:
        count = 0.0
        for beside, bound in enumerate((*_BUCKETS, "+Inf")):
            count += self._sum(place + beside)
            yield f'{name}_bucket{{le="{bound}",{label}}} {_number(count)}'
        yield f"{name}_count{{{label}}} {_number(count)}"
        yield f"{name}_sum{{{label}}} {self._sum(place + len(_BUCKETS) + 1)!r}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escape(value: str) -> str:
    """A label's value in Prometheus' text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
