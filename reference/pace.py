"""When each part of an answer is due, at a fixed pace. Pure: whoever asks brings the time."""

from streamgauge.reference.room import Job, Room

__all__ = ["Pace"]


class Pace:
    """
    Each answer goes at its own pace as soon as it has a place, and leaves it when it is written.

    Times are seconds on any clock that does not go back; they must not decrease from call to call.

    Args:
        room: for how many there is a place.

    Attributes:
        next_at: when something happens by itself, for :meth:`advance`; None when nothing will.
    """

    next_at: float | None = None

    def __init__(self, room: Room) -> None:
        self.room = room

    def arrive(self, job: Job, now: float) -> None:
        """Take a job in."""
        self.advance(now)
        self._begin(self.room.arrive(job), now)

    def leave(self, job: Job, now: float) -> None:
        """The job is written, or its client has gone. A job may leave more than once."""
        self.advance(now)
        self._begin(self.room.leave(job), now)

    def advance(self, now: float) -> None:
        """Let happen what happens up to now."""

    def due(self, job: Job, milliseconds: float) -> float | None:
        """When that is due which comes so long after the job's beginning; None while nobody can tell."""
        return None if job.admitted is None else job.admitted + milliseconds / 1000

    def _begin(self, jobs: list[Job], now: float) -> None:
        for job in jobs:
            job.admitted = now
            job.changed()
