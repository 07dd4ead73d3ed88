"""`steering.*`: tokens that come in spite of the request."""

__all__: list[str] = []
