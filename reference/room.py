"""Who is being answered and who waits: slots, a budget of cached tokens, a queue. Pure: it knows no time."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Job", "Room"]


@dataclass(slots=True, eq=False)
class Job:
    """
    One answer on its way.

    Attributes:
        prompt_tokens: tokens of its prompts.
        steps: steps that it takes to generate; each makes a token of every choice that is not finished.
        reserved: tokens that it may have in the cache at most, prompts included.
        changed: called when it was admitted, or a token was made.
        admitted: when it got its place, on the clock of whoever asks; None as long as it waits.
        made: when each of its tokens was made, where an accelerator makes them.
    """

    prompt_tokens: int
    steps: int
    reserved: int = 0
    changed: Callable[[], None] = lambda: None
    admitted: float | None = None
    made: list[float] = field(default_factory=list)


class Room:
    """
    First come, first served: whoever finds no room waits, and so does everybody behind.

    Args:
        slots: how many jobs have a place at a time; 0 for no bound.
        kv_tokens: how many tokens those may have reserved together; 0 for no bound.
        queue: how many jobs may wait; None for no bound.

    Attributes:
        running: the jobs that have a place, in the order in which they got it.
        waiting: the others.
        reserved: tokens that the running ones have reserved.
    """

    def __init__(self, slots: int = 0, kv_tokens: int = 0, queue: int | None = None) -> None:
        self.running: dict[Job, None] = {}
        self.waiting: deque[Job] = deque()
        self.reserved = 0
        self._slots = slots or math.inf
        self._tokens = kv_tokens or math.inf
        self._queue = math.inf if queue is None else queue

    @property
    def usage(self) -> float:
        """The part of the budget of tokens that is reserved, 0 to 1; 0 without a budget."""
        return self.reserved / self._tokens

    def most(self, reserved: int) -> float:
        """How many jobs that reserve so many tokens each have a place at a time; infinite without a bound."""
        return min(self._slots, self._tokens // reserved if self._tokens < math.inf else math.inf)

    def holds(self, reserved: int) -> bool:
        """Whether a job that reserves so many tokens could ever have a place."""
        return reserved <= self._tokens

    def fits(self, reserved: int) -> bool:
        """Whether such a job would have its place at once."""
        return not self.waiting and self._has_place(reserved)

    def is_full(self, reserved: int) -> bool:
        """Whether such a job could not even wait."""
        return len(self.waiting) >= self._queue and not self.fits(reserved)

    def arrive(self, job: Job) -> list[Job]:
        """Take a job in; gives it back if it has its place at once."""
        self.waiting.append(job)
        return self._admit()

    def leave(self, job: Job) -> list[Job]:
        """Let a job go, whether it runs, waits or has gone before; gives those that have a place thereby."""
        if job in self.running:
            del self.running[job]
            self.reserved -= job.reserved
        elif job in self.waiting:
            self.waiting.remove(job)
        return self._admit()

    def _admit(self) -> list[Job]:
        admitted = []
        while self.waiting and self._has_place(self.waiting[0].reserved):
            job = self.waiting.popleft()
            self.running[job] = None
            self.reserved += job.reserved
            admitted.append(job)
        return admitted

    def _has_place(self, reserved: int) -> bool:
        return len(self.running) < self._slots and self.reserved + reserved <= self._tokens
