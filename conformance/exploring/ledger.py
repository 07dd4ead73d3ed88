"""What explorations may still cost."""

import threading

__all__ = ["Ledger"]


class Ledger:
    """
    A number of tokens that may be spent, by several threads. What is paid for before it is sent never exceeds it.

    Attributes:
        tokens: what there was at the beginning.
        left: what there still is.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.left = tokens
        self._lock = threading.Lock()

    def pay(self, cost: int) -> bool:
        """Spend the cost; False, and nothing spent, where not so much is left."""
        with self._lock:
            if cost > self.left:
                return False
            self.left -= cost
            return True
