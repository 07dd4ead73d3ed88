"""
What servers count themselves, on their `/metrics` pages (Prometheus' text format), under one set of names.

The names on the pages are those of vLLM 0.32 (`vllm/v1/metrics/loggers.py`), SGLang (`metrics_collector.py`), llama.cpp's
server with `--metrics`, and Text Generation Inference (its reference of metrics). The built-in endpoint uses vLLM's.
"""

import enum
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

__all__ = ["GAUGES", "SERVERS", "Family", "Page", "Phase", "Quantity", "Sample", "deltas", "read_page", "samples_of"]


class Quantity(enum.StrEnum):
    """What is counted; whatever is no gauge counts up from the server's start."""

    PROMPT_TOKENS = "prompt_tokens"
    """All tokens of prompts, those from a cache included."""

    COMPUTED_PROMPT_TOKENS = "computed_prompt_tokens"
    """Tokens of prompts without those that came from a cache."""

    CACHED_PROMPT_TOKENS = "cached_prompt_tokens"
    COMPLETION_TOKENS = "completion_tokens"
    FINISHED = "finished"
    """Requests (vLLM: choices) that came to their end."""

    FINISHED_STOP = "finished_stop"
    FINISHED_LENGTH = "finished_length"
    ABORTED = "aborted"
    """Requests whose client has gone."""

    FIRST_TOKENS = "first_tokens"
    """How many times to a first token the server has measured."""

    FIRST_TOKEN_SECONDS = "first_token_seconds"  # noqa: S105 - a time, no password
    """Their sum."""

    RUNNING = "running"
    WAITING = "waiting"
    CACHE_USAGE = "cache_usage"
    """Share of the cache of keys and values that is in use, 0 to 1; of several engines the greatest."""


GAUGES = frozenset({Quantity.RUNNING, Quantity.WAITING, Quantity.CACHE_USAGE})
"""What goes down, too."""


@dataclass(frozen=True, slots=True)
class Family:
    """
    A name on a page.

    Attributes:
        name: of the samples, as it stands there.
        quantity: what they are.
        reason: the label that says how a request ended; empty without.
    """

    name: str
    quantity: Quantity
    reason: str = ""


SERVERS: dict[str, tuple[Family, ...]] = {
    "vLLM": (
        Family("vllm:prompt_tokens_total", Quantity.PROMPT_TOKENS),
        Family("vllm:prompt_tokens_cached_total", Quantity.CACHED_PROMPT_TOKENS),
        Family("vllm:prefix_cache_hits_total", Quantity.CACHED_PROMPT_TOKENS),  # older ones
        Family("vllm:generation_tokens_total", Quantity.COMPLETION_TOKENS),
        Family("vllm:request_success_total", Quantity.FINISHED, reason="finished_reason"),
        Family("vllm:time_to_first_token_seconds_count", Quantity.FIRST_TOKENS),
        Family("vllm:time_to_first_token_seconds_sum", Quantity.FIRST_TOKEN_SECONDS),
        Family("vllm:num_requests_running", Quantity.RUNNING),
        Family("vllm:num_requests_waiting", Quantity.WAITING),
        Family("vllm:kv_cache_usage_perc", Quantity.CACHE_USAGE),
        Family("vllm:gpu_cache_usage_perc", Quantity.CACHE_USAGE),  # older ones
    ),
    "SGLang": (
        Family("sglang:prompt_tokens_total", Quantity.PROMPT_TOKENS),
        Family("sglang:cached_tokens_total", Quantity.CACHED_PROMPT_TOKENS),
        Family("sglang:generation_tokens_total", Quantity.COMPLETION_TOKENS),
        Family("sglang:num_requests_total", Quantity.FINISHED),
        Family("sglang:num_aborted_requests_total", Quantity.ABORTED),
        Family("sglang:time_to_first_token_seconds_count", Quantity.FIRST_TOKENS),
        Family("sglang:time_to_first_token_seconds_sum", Quantity.FIRST_TOKEN_SECONDS),
        Family("sglang:num_running_reqs", Quantity.RUNNING),
        Family("sglang:num_queue_reqs", Quantity.WAITING),
        Family("sglang:token_usage", Quantity.CACHE_USAGE),
    ),
    "llama.cpp": (
        Family("llamacpp:prompt_tokens_total", Quantity.COMPUTED_PROMPT_TOKENS),
        Family("llamacpp:prompt_tokens_cached_total", Quantity.CACHED_PROMPT_TOKENS),
        Family("llamacpp:tokens_predicted_total", Quantity.COMPLETION_TOKENS),
        Family("llamacpp:requests_processing", Quantity.RUNNING),
        Family("llamacpp:requests_deferred", Quantity.WAITING),
        Family("llamacpp:kv_cache_usage_ratio", Quantity.CACHE_USAGE),  # older ones
    ),
    "TGI": (
        Family("tgi_request_input_length_sum", Quantity.PROMPT_TOKENS),
        Family("tgi_request_generated_tokens_sum", Quantity.COMPLETION_TOKENS),
        Family("tgi_request_success", Quantity.FINISHED),
        Family("tgi_batch_current_size", Quantity.RUNNING),
        Family("tgi_queue_size", Quantity.WAITING),
    ),
}
"""The names of each server. Where two stand for one quantity, the first that is on the page counts."""

_REASONS = {"stop": Quantity.FINISHED_STOP, "length": Quantity.FINISHED_LENGTH, "abort": Quantity.ABORTED}
_NO_END = ("abort", "error")
"""Reasons of requests that came to no end of their own."""

_MODEL_LABEL = "model_name"
"""vLLM's and SGLang's label; the others serve one model, and do not name it."""

_NAMES = frozenset(family.name for families in SERVERS.values() for family in families)
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_TYPED = re.compile(r"^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) ", re.MULTILINE)
_LONGEST_LINE = 4096
"""Characters of the longest sample that is read: the parser takes the square of it in steps."""


@dataclass(frozen=True, slots=True)
class Page:
    """
    One page, read.

    Attributes:
        server: which server's names it has; empty where it has none that we know.
        values: quantity → number, over all models and engines.
        of_model: the same of the model asked for; None where its samples do not name it.
        families: every family that the page declares, known or not.
    """

    server: str
    values: dict[str, float]
    of_model: dict[str, float] | None
    families: tuple[str, ...]


def read_page(text: str, model: str) -> Page:
    """
    Read a page.

    Args:
        text: the page.
        model: the model whose samples are summed apart.

    Raises:
        ValueError: it is no page of metrics, or a sample whose name we know cannot be read.
    """
    # Only here, since it takes 30 ms and most runs read no page.
    from prometheus_client.parser import text_string_to_metric_families

    families = tuple(dict.fromkeys(_TYPED.findall(text)))
    lines = [line for line in text.split("\n") if (name := _NAME.match(line)) and name.group() in _NAMES]
    if any(len(line) > _LONGEST_LINE for line in lines):
        raise ValueError(f"a sample of more than {_LONGEST_LINE} characters")
    # Without the lines of types the parser leaves the names of counters as they are.
    try:
        parsed = list(text_string_to_metric_families("\n".join(lines)))
    except IndexError as problem:  # what the parser makes of some broken labels
        raise ValueError(f"a sample that cannot be read: {problem}") from None
    samples = [
        (sample.name, sample.labels, float(sample.value))
        for metric in parsed
        for sample in metric.samples
        if math.isfinite(sample.value)
    ]
    if not families and not samples:
        raise ValueError("no page of metrics")
    here = {name for name, _, _ in samples}
    declared = here | set(families) | {f"{name}_total" for name in families}
    server = next((each for each, known in SERVERS.items() if any(family.name in declared for family in known)), "")
    of_model = [sample for sample in samples if sample[1].get(_MODEL_LABEL) == model]
    return Page(server, _values(server, samples), _values(server, of_model) if of_model else None, families)


def _values(server: str, samples: Iterable[tuple[str, dict[str, str], float]]) -> dict[str, float]:
    by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, labels, value in samples:
        by_name.setdefault(name, []).append((labels, value))
    values: dict[str, float] = {}
    for family in SERVERS.get(server, ()):
        if family.name not in by_name or family.quantity in values:
            continue
        found = by_name[family.name]
        if family.quantity is Quantity.CACHE_USAGE:
            values[family.quantity] = max(value for _, value in found)
            continue
        if not family.reason:
            values[family.quantity] = sum(value for _, value in found)
            continue
        values[family.quantity] = sum(value for labels, value in found if labels.get(family.reason) not in _NO_END)
        for reason, quantity in _REASONS.items():
            if of_reason := [value for labels, value in found if labels.get(family.reason) == reason]:
                values[quantity] = sum(of_reason)
    return values


class Phase(enum.StrEnum):
    """When a page was read, as seen from the run."""

    BEFORE = "before"
    """Before anything of the run was sent."""

    DURING = "during"
    AFTER = "after"
    """When the last answer had come."""


@dataclass(frozen=True, slots=True)
class Sample:
    """
    What was counted at one moment.

    Attributes:
        time: seconds since 1970, when the page had come.
        phase: before, during or after the run.
        values: as in :class:`Page`.
        of_model: as in :class:`Page`.
    """

    time: float
    phase: Phase
    values: dict[str, float] = field(default_factory=dict)
    of_model: dict[str, float] | None = None

    def line(self) -> dict[str, Any]:
        """The sample as a line of `server-metrics.jsonl`."""
        line: dict[str, Any] = {"time": self.time, "phase": self.phase.value, "values": self.values}
        return line if self.of_model is None else line | {"of_model": self.of_model}


def samples_of(lines: Iterable[dict[str, Any]]) -> list[Sample]:
    """
    The samples in the lines of `server-metrics.jsonl`, oldest first.

    Where any of them has counts of the run's model alone, these stand for all: before its first request a model may be missing.
    """
    found = [
        Sample(line["time"], Phase(line["phase"]), line["values"], line.get("of_model"))
        for line in lines
        if "values" in line
    ]
    if not any(sample.of_model for sample in found):
        return found
    return [Sample(sample.time, sample.phase, sample.of_model or {}) for sample in found]


def deltas(samples: Sequence[Sample]) -> dict[str, float] | None:
    """
    How much each counter rose from the first sample to the last; one that is missing at first counts from 0.

    Returns:
        None where a counter went back: the server was started anew, or several take turns behind one address.
    """
    first, last = samples[0].values, samples[-1].values
    names = [name for name in last if name not in GAUGES]
    for before, after in pairwise(samples):
        if any(after.values.get(name, 0.0) < before.values.get(name, 0.0) for name in names):
            return None
    return {name: last[name] - first.get(name, 0.0) for name in names}
