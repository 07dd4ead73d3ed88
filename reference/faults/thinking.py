"""`thinking.*`: reasoning that is not as asked for."""

__all__: list[str] = []
