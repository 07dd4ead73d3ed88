"""The pseudo-model's vocabulary and the order in which its words follow each other."""

__all__ = ["VOCABULARY", "sequence_class"]

# Three classes of equal size. Some words have characters of two, three and four bytes, to exercise UTF-8.
_CLASSES: tuple[tuple[str, ...], ...] = (
    ("river", "stone", "größe", "lamp", "мир", "paper", "野原", "cloud", "window", "naïve", "bridge"),
    ("quiet", "green", "æther", "seven", "ночь", "narrow", "東京", "early", "golden", "déjà", "silver"),
    ("turns", "finds", "øre", "holds", "свет", "carries", "静か", "opens", "🙂", "gathers", "returns"),
)

VOCABULARY: tuple[str, ...] = tuple(" " + text for group in zip(*_CLASSES, strict=True) for text in group)
"""Every token that the pseudo-model can produce: a word with a space before it."""


def sequence_class(position: int) -> int:
    """
    Which third of the vocabulary (0, 1 or 2) the word at a position of the text is taken from.

    The differences of the Thue-Morse sequence never repeat a block side by side. So neither do the words,
    whatever is drawn within each third: text that `repetition_detection` has nothing to find in.
    """
    return (position + 1).bit_count() % 2 - position.bit_count() % 2 + 1
