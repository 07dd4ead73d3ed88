"""The checks, one module for each topic. Importing this package declares them all, in the order of a report."""

from streamgauge.conformance.checks import (  # isort: skip - the order of the report
    transport,
    framing,
    chunk,
    response,
    finish,
    usage,
    errors,
    request,
    auth,
)

__all__ = ["auth", "chunk", "errors", "finish", "framing", "request", "response", "transport", "usage"]
