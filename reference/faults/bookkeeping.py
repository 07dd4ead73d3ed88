"""`bookkeeping.*`: what is carried along and lost."""

__all__: list[str] = []
