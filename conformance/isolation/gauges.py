"""What a server's own `/metrics` says about how busy it is (Prometheus' text format)."""

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from streamgauge.metrics.server import Quantity, read_page
from streamgauge.wire.exchange import Exchange

__all__ = ["Busy", "busy_in", "is_metrics", "metrics_url"]


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
    try:
        values = read_page(exchange.response.body.decode("utf-8", "replace"), "").values
    except ValueError:
        return None
    running = values.get(Quantity.RUNNING)
    return None if running is None else Busy(running, values.get(Quantity.COMPLETION_TOKENS))
