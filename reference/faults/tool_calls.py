"""`calls.*`: calls that the request did not want, or wanted otherwise."""

__all__: list[str] = []
