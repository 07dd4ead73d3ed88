"""`structured.*`: forms that are not kept."""

__all__: list[str] = []
