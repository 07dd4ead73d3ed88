"""The checks, one module for each topic. Importing this package declares them all, in the order of a report."""

from streamgauge.conformance.checks import (  # isort: skip - the order of the report
    transport,
    framing,
    ending,
    chunk,
    response,
    finish,
    usage,
    reasoning,
    pair,
    unicode,
    errors,
    request,
    auth,
)

__all__ = [
    "auth",
    "chunk",
    "ending",
    "errors",
    "finish",
    "framing",
    "pair",
    "reasoning",
    "request",
    "response",
    "transport",
    "unicode",
    "usage",
]
