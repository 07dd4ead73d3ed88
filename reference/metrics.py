"""The endpoint's own counters, by the names of vLLM's `/metrics`, in Prometheus' text format."""

from collections import defaultdict
from collections.abc import Iterator

from streamgauge.reference.answers import Answer

__all__ = ["Metrics"]

_HELP = {
    "vllm:num_requests_running": ("gauge", "Requests being answered."),
    "vllm:num_requests_waiting": ("gauge", "Requests waiting for a slot."),
    "vllm:prompt_tokens_total": ("counter", "Prompt tokens taken in."),
    "vllm:generation_tokens_total": ("counter", "Tokens generated and written."),
    "vllm:request_success_total": ("counter", "Choices finished, and requests aborted, by the reason."),
    "vllm:time_to_first_token_seconds": ("histogram", "From the request to the first write with tokens."),
    "vllm:inter_token_latency_seconds": ("histogram", "Between writes with tokens of one request."),
}
_BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


class _Histogram:
    def __init__(self) -> None:
        self._counts = [0] * len(_BUCKETS)
        self._count = 0
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._count += 1
        self._sum += seconds
        for position, bound in enumerate(_BUCKETS):
            self._counts[position] += seconds <= bound

    def lines(self, name: str, model: str) -> Iterator[str]:
        for bound, count in zip(_BUCKETS, self._counts, strict=True):
            yield f'{name}_bucket{{le="{bound}",{model}}} {count}'
        yield f'{name}_bucket{{le="+Inf",{model}}} {self._count}'
        yield f"{name}_count{{{model}}} {self._count}"
        yield f"{name}_sum{{{model}}} {self._sum!r}"


class Metrics:
    """
    Counts what one endpoint does.

    Args:
        models: names of the models, for the label `model_name`.
    """

    def __init__(self, models: tuple[str, ...]) -> None:
        self._models = models
        self._values: dict[tuple[str, str], int] = defaultdict(int)
        self._reasons: dict[tuple[str, str], int] = defaultdict(int)
        self._histograms: dict[tuple[str, str], _Histogram] = defaultdict(_Histogram)

    def waits(self, answer: Answer, change: int) -> None:
        """An answer begins to wait for a slot (1), or does so no longer (-1)."""
        self._values["vllm:num_requests_waiting", answer.parameters.model] += change

    def started(self, answer: Answer) -> None:
        """The writing of an answer begins."""
        model = answer.parameters.model
        self._values["vllm:num_requests_running", model] += 1
        self._values["vllm:prompt_tokens_total", model] += answer.parameters.prompt_tokens

    def wrote(self, answer: Answer, tokens: int, seconds: float, *, first: bool) -> None:
        """Tokens went out, `seconds` after the request or, if not the `first`, after the tokens before."""
        model = answer.parameters.model
        self._values["vllm:generation_tokens_total", model] += tokens
        name = "vllm:time_to_first_token_seconds" if first else "vllm:inter_token_latency_seconds"
        self._histograms[name, model].observe(seconds)

    def ended(self, answer: Answer, *, complete: bool) -> None:
        """The answer is written, or its client has left."""
        model = answer.parameters.model
        self._values["vllm:num_requests_running", model] -= 1
        for reason in [choice.finish_reason for choice in answer.choices] if complete else ["abort"]:
            self._reasons[reason, model] += 1

    def text(self) -> str:
        """The page that a scraper reads."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        for name, (kind, meaning) in _HELP.items():
            yield f"# HELP {name} {meaning}"
            yield f"# TYPE {name} {kind}"
            for model in self._models:
                label = f'model_name="{_escape(model)}"'
                if kind == "histogram":
                    yield from self._histograms[name, model].lines(name, label)
                elif name == "vllm:request_success_total":
                    for reason in ("stop", "length", "abort"):
                        yield f'{name}{{finished_reason="{reason}",{label}}} {self._reasons[reason, model]}'
                else:
                    yield f"{name}{{{label}}} {self._values[name, model]}"


def _escape(value: str) -> str:
    """A label's value in Prometheus' text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
