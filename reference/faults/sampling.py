"""`sampling.*`: sampling parameters that have no effect."""

__all__: list[str] = []
