"""What a server says about its own times."""

from collections.abc import Iterator
from typing import Any

from streamgauge.wire.json import is_number

__all__ = ["insane"]

_DURATIONS = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms")
"""What lies inside of the exchange; the client measures that from outside, so it cannot be shorter."""

_RATES = ("mean_itl_ms", "tokens_per_second")

_SLACK_MS = 50.0
"""For two clocks that do not tick alike, and for rounding."""


def insane(metrics: dict[str, Any], *, took_ms: float) -> Iterator[tuple[str, str]]:
    """
    What should be, and what is said in its place.

    Args:
        metrics: the documents' `PerRequestTimingMetrics`; what is null or no number is left to their schema.
        took_ms: from the request to the last byte of its answer.
    """
    for name in (*_DURATIONS, *_RATES):
        value = metrics.get(name)
        if not is_number(value):
            continue
        if not value >= 0:
            yield f"{name} of 0 or more", str(value)
        elif name in _DURATIONS and value > took_ms + _SLACK_MS:
            yield f"{name} within the {took_ms:.0f} ms that the exchange took", str(value)
