"""`bookkeeping.*`: what a request carries for accounting, tracing and scheduling."""

__all__: list[str] = []
