"""`absent.*`: nulls and defaults that change the answer."""

__all__: list[str] = []
