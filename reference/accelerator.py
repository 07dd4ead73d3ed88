"""
A simulated accelerator: continuous batching whose true times and capacity can be computed. Pure: whoever asks brings the time.

The rule. It works in steps. A step begins when the one before has ended, or with the first job after a rest. All jobs that have
a place then take part in it; those that come meanwhile wait for the next. A step takes in the prompts of its newcomers and makes
one token of every job, all at its end. It lasts

    step_ms + step_ms_per_stream * jobs + prompt tokens of the newcomers / prefill_tokens_per_s

so a long prompt delays the tokens of everybody, as it does where prefill is not chunked. A job with several choices counts as
one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.reference.pace import Pace
from streamgauge.reference.room import Job, Room

__all__ = ["Accelerator", "Speed", "simulate"]


@dataclass(frozen=True, slots=True)
class Speed:
    """
    How fast an accelerator is, and what follows from that.

    Attributes:
        prefill_tokens_per_s: prompt tokens that it takes in per second; 0 if prompts take no time.
        step_ms: milliseconds of a step, however few jobs take part.
        step_ms_per_stream: milliseconds that each of them adds.
    """

    prefill_tokens_per_s: float = 0.0
    step_ms: float = 0.0
    step_ms_per_stream: float = 0.0

    def prefill_s(self, prompt: int) -> float:
        """Seconds that prompts of so many tokens in all add to a step."""
        return prompt / self.prefill_tokens_per_s if self.prefill_tokens_per_s else 0.0

    def step_s(self, batch: int, prompt: int = 0) -> float:
        """Seconds of a step of so many jobs, whose newcomers have so many prompt tokens."""
        return (self.step_ms + self.step_ms_per_stream * batch) / 1000 + self.prefill_s(prompt)

    def steady_tokens_per_s(self, batch: int) -> float:
        """Tokens per second of so many jobs of one choice as long as none comes or goes."""
        return _per_second(batch, self.step_s(batch))

    def capacity_requests_per_s(self, batch: float, prompt: int, output: int) -> float:
        """
        Requests per second when so many are answered at a time and others always wait.

        A request takes part in `output` steps, and `batch` requests share the fixed part of each: so it costs
        output * (step_ms / batch + step_ms_per_stream) + prefill, whoever comes when. More requests per second than that
        make a queue that grows for ever.

        Args:
            batch: see `Room.most`; may be infinite.
            prompt: tokens of each prompt.
            output: tokens of each answer, of one choice.
        """
        decode = output * (self.step_ms / batch + self.step_ms_per_stream) / 1000
        return _per_second(1, decode + self.prefill_s(prompt))

    def capacity_tokens_per_s(self, batch: float, prompt: int, output: int) -> float:
        """Generated tokens per second at that capacity."""
        return output * self.capacity_requests_per_s(batch, prompt, output)


class Accelerator(Pace):
    """
    Makes the tokens of jobs by the rule above. A job leaves its place with its last token.

    Args:
        speed: how fast it is.
        room: for how many there is a place.
    """

    def __init__(self, speed: Speed, room: Room) -> None:
        super().__init__(room)
        self._speed = speed
        self._batch: list[Job] = []

    def arrive(self, job: Job, now: float) -> None:
        """Take a job in; if nothing is running, a step begins."""
        super().arrive(job, now)
        if self.next_at is None:
            self._start(now)

    def advance(self, now: float) -> None:
        """End all steps that end until now. The next one begins when one ends, not when that was noticed."""
        while self.next_at is not None and self.next_at <= now:
            end = self.next_at
            running = [job for job in self._batch if job in self.room.running]
            for job in running:
                job.made.append(end)
                if len(job.made) == job.steps:
                    self._begin(self.room.leave(job), end)
            self._start(end)
            for job in running:
                job.changed()

    def due(self, job: Job, milliseconds: float) -> float | None:
        """
        When that is due which comes so long after the job's beginning; None while nobody can tell.

        The job's clock shows k milliseconds when its k-th token is made; behind the last one it goes on as clocks do.
        """
        step = min(int(milliseconds), job.steps)
        if job.admitted is None or step > len(job.made):
            return None
        late = max(0.0, milliseconds - job.steps)
        return (job.made[step - 1] if step else job.admitted) + late / 1000

    def _start(self, now: float) -> None:
        self._batch = list(self.room.running)
        prompt = sum(job.prompt_tokens for job in self._batch if not job.made)
        self.next_at = now + self._speed.step_s(len(self._batch), prompt) if self._batch else None


def _per_second(count: float, seconds: float) -> float:
    return count / seconds if seconds else math.inf


def simulate(speed: Speed, room: Room, arrivals: Iterable[tuple[float, Job]]) -> None:
    """
    The truth about a load: when each job is admitted and each of its tokens made, written into the jobs.

    Args:
        speed: of the accelerator.
        room: an empty one. A queue's bound counts for nothing here.
        arrivals: jobs by their times, which must not decrease.
    """
    accelerator = Accelerator(speed, room)
    for at, job in arrivals:
        accelerator.arrive(job, at)
    while accelerator.next_at is not None:
        accelerator.advance(accelerator.next_at)
