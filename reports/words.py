"""Words for numbers of things."""

__all__ = ["plural"]


def plural(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
