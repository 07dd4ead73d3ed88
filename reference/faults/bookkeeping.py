"""`bookkeeping.*`: what is carried along and lost."""

from streamgauge.reference.faults.bends import ignoring

__all__: list[str] = []

ignoring("bookkeeping.request-id-ignored", "The answer has an id of its own", "bookkeeping.request-id", "request_id")
ignoring(
    "bookkeeping.tier-ignored",
    "The answer does not name its scheduling class",
    "bookkeeping.service-tier",
    "service_tier",
)
