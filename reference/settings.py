"""What one reference endpoint is told when it starts."""

from dataclasses import dataclass

__all__ = ["DEFAULT_KEY", "DEFAULT_MODEL", "Settings"]

DEFAULT_KEY = "streamgauge-reference-key"
"""The key when nobody gives another. It is published on purpose: it guards nothing."""

DEFAULT_MODEL = "streamgauge-reference"
"""The model's name when nobody gives another."""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    One endpoint's settings.

    Attributes:
        key: the only API key that is accepted.
        models: names of the models that exist; all behave alike.
        profiles: bundled names or paths of the profiles whose documents are served; empty for all bundled ones.
        ttft_ms: milliseconds from the request's last byte to the first token.
        itl_ms: milliseconds from each token to the next.
        faults: what goes wrong: `NAME`, `NAME@PROBABILITY`, each with `,after=N` where wanted.
        seed: of the draws that a probability needs.
        slots: how many answers are generated at a time, while others wait; 0 for no bound.
    """

    key: str = DEFAULT_KEY
    models: tuple[str, ...] = (DEFAULT_MODEL,)
    profiles: tuple[str, ...] = ()
    ttft_ms: float = 0.0
    itl_ms: float = 0.0
    faults: tuple[str, ...] = ()
    seed: int = 0
    slots: int = 0
