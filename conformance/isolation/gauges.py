"""What a server's own `/metrics` says about how busy it is (Prometheus' text format)."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from streamgauge.wire.exchange import Exchange

__all__ = ["Busy", "busy_in", "is_metrics", "metrics_url"]

_RUNNING = (
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
    "tgi_batch_current_size",
)
_GENERATED = ("vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total")
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})?[ \t]+([0-9.eE+-]+)(?:[ \t]+-?\d+)?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Busy:
    """
    What a server counts, over all its models and engines.

    Attributes:
        running: requests being answered.
        generated: tokens generated since the server started; None where it does not say so.
    """

    running: float
    generated: float | None


def metrics_url(url: str) -> str:
    """Where the server at this URL would have its metrics: at the root of the same host and port."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "/metrics", "", ""))


def is_metrics(exchange: Exchange) -> bool:
    """Whether an exchange asked for the server's metrics."""
    return exchange.request.method == "GET" and urlsplit(exchange.request.url).path == "/metrics"


def busy_in(exchange: Exchange) -> Busy | None:
    """What the answer says; None where it is no page of metrics, or has no count of running requests that we know."""
    if not is_metrics(exchange) or exchange.status != 200:
        return None
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(exchange.response.body.decode("utf-8", "replace")):
        if name in _RUNNING or name in _GENERATED:
            try:
                sums[name] = sums.get(name, 0.0) + float(value)
            except ValueError:
                continue
    running = next((sums[name] for name in _RUNNING if name in sums), None)
    generated = next((sums[name] for name in _GENERATED if name in sums), None)
    return None if running is None else Busy(running, generated)
