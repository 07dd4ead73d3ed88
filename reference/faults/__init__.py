"""The faults, one module for each topic. Importing this package declares them all, in the order of the checks."""

from streamgauge.reference.faults import (  # isort: skip - the order of the matrix
    transport,
    framing,
    ending,
    chunk,
    response,
    finish,
    usage,
    reasoning,
    errors,
    request,
    auth,
    pair,
    unicode,
)
from streamgauge.reference.faults.fault import FAULTS

__all__ = [
    "FAULTS",
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
