"""A client that is patient until something has come, and hardly from then on: so no busy machine makes it give up too soon."""

import pytest
from httpcore._backends.anyio import AnyIOStream

__all__ = ["lose_patience"]

HASTE = 0.005


def lose_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first bytes of each answer on, the recorder waits for the next ones for 1/200 of its time only."""
    read, write = AnyIOStream.read, AnyIOStream.write
    answering: set[AnyIOStream] = set()

    async def hasty(self: AnyIOStream, max_bytes: int, timeout: float | None = None) -> bytes:
        assert timeout is not None
        data = await read(self, max_bytes, timeout * (HASTE if self in answering else 1))
        answering.add(self)
        return data

    async def patient(self: AnyIOStream, buffer: bytes, timeout: float | None = None) -> None:
        answering.discard(self)
        await write(self, buffer, timeout)

    monkeypatch.setattr(AnyIOStream, "read", hasty)
    monkeypatch.setattr(AnyIOStream, "write", patient)
