"""What a connection waits for: a moment, or that something happens to it."""

import asyncio

__all__ = ["Bell"]


class Bell:
    """One waiter, who is woken by :meth:`ring`, or at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heard: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake whoever waits; nobody hears it later."""
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(None)

    async def wait(self, until: float | None = None) -> None:
        """Wait for a ring, at most until that time of the loop's clock."""
        self._heard = self._loop.create_future()
        timer = None if until is None else self._loop.call_at(until, self.ring)
        try:
            await self._heard
        finally:
            self._heard = None
            if timer is not None:
                timer.cancel()
