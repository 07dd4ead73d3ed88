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
        prefill_tokens_per_s, step_ms, step_ms_per_stream: of a simulated accelerator, which then sets the pace;
            see `accelerator.Speed`. All 0 for none.
        faults: what goes wrong: `NAME`, `NAME@PROBABILITY`, each with `,after=N` where wanted.
        seed: of the draws that a probability needs.
        slots: how many answers are generated at a time, while others wait; 0 for no bound.
        kv_tokens: how many tokens those may have together, prompts and greatest lengths; 0 for no bound.
        queue: how many requests may wait, while others get 429; None for no bound.
        processes: how many serve side by side; each has its own share of the connections.
    """

    key: str = DEFAULT_KEY
    models: tuple[str, ...] = (DEFAULT_MODEL,)
    profiles: tuple[str, ...] = ()
    ttft_ms: float = 0.0
    itl_ms: float = 0.0
    faults: tuple[str, ...] = ()
    seed: int = 0
    slots: int = 0
    kv_tokens: int = 0
    queue: int | None = None
    processes: int = 1
    prefill_tokens_per_s: float = 0.0
    step_ms: float = 0.0
    step_ms_per_stream: float = 0.0

    @property
    def accelerated(self) -> bool:
        """Whether a simulated accelerator sets the pace."""
        return bool(self.prefill_tokens_per_s or self.step_ms or self.step_ms_per_stream)

    @property
    def shares(self) -> bool:
        """Whether what one request gets depends on the others that are there."""
        return self.accelerated or bool(self.slots or self.kv_tokens) or self.queue is not None
