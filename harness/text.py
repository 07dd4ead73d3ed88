"""Text from the server, made fit to be shown."""

__all__ = ["one_line"]


def one_line(text: str, most: int) -> str:
    """The text as a terminal or a comment can show it: no line breaks, no control sequences, and not too much."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:most])
    return " ".join(shown.split()) + ("..." if len(text) > most else "")
