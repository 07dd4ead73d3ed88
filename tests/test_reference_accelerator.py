"""The simulated accelerator: its rule, the formulas of its capacity, and the endpoint that it drives."""

import http.client
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.accelerator import Accelerator, Speed, simulate
from streamgauge.reference.launch import running
from streamgauge.reference.pace import Pace
from streamgauge.reference.room import Job, Room

SPEEDS = st.builds(Speed, st.sampled_from([0.0, 500.0, 20_000.0]), st.floats(0.5, 50), st.floats(0, 5))
JOBS = st.builds(Job, st.integers(0, 3000), st.integers(1, 40), st.integers(1, 100))
ARRIVALS = st.lists(st.tuples(st.floats(0, 2), JOBS), min_size=1, max_size=25).map(
    lambda each: sorted(each, key=lambda pair: pair[0])
)
SPEED = Speed(prefill_tokens_per_s=1000, step_ms=10, step_ms_per_stream=2)


def near(value: object) -> object:
    """Equal but for the rounding of doubles."""
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def test_alone() -> None:
    """Alone, the first token comes after the prompt and a step, and each other one after a step."""
    job = Job(prompt_tokens=500, steps=3)
    simulate(SPEED, Room(), [(1.0, job)])
    assert job.admitted == 1.0
    assert job.made == near([1.512, 1.524, 1.536])


def test_newcomers_join_at_the_next_step() -> None:
    """Who comes while a step lasts takes part in the next one, and its prompt delays everybody's token."""
    first, second = Job(0, 3), Job(100, 1)
    simulate(SPEED, Room(), [(0.0, first), (0.001, second)])
    assert first.made == near([0.012, 0.012 + 0.114, 0.126 + 0.012])
    assert (second.admitted, second.made) == (0.001, near([0.126]))


def test_a_place_is_free_with_the_last_token() -> None:
    """With one slot the second begins where the first has ended, and a rest ends with the next arrival."""
    jobs = [Job(0, 2), Job(0, 1), Job(0, 1)]
    simulate(SPEED, Room(slots=1), [(0.0, jobs[0]), (0.0, jobs[1]), (5.0, jobs[2])])
    assert [job.admitted for job in jobs] == near([0.0, 0.024, 5.0])
    assert [job.made[-1] for job in jobs] == near([0.024, 0.036, 5.012])


def test_leaving_ends_at_the_step() -> None:
    """A job that leaves gets no more tokens; the step goes on for the others, and the place is free at once."""
    accelerator = Accelerator(SPEED, Room(slots=2))
    gone, stays, waits = Job(0, 9), Job(0, 2), Job(0, 1)
    for job in (gone, stays, waits):
        accelerator.arrive(job, 0.0)
    assert waits.admitted is None
    accelerator.leave(gone, 0.02)
    accelerator.leave(gone, 0.02)
    assert (waits.admitted, len(gone.made)) == (0.02, 1)
    accelerator.advance(1.0)
    assert stays.made == near([0.026, 0.040])  # the first step had begun without it
    assert waits.made == near([0.040])
    assert (len(gone.made), accelerator.next_at) == (1, None)


@given(SPEEDS, st.integers(1, 16), st.integers(1, 8), st.integers(0, 500), st.integers(1, 50))
def test_capacity_is_reached(speed: Speed, slots: int, rounds: int, prompt: int, output: int) -> None:
    """Requests that wait from the beginning, as many as fill all slots, are answered at exactly the computed capacity."""
    jobs = [Job(prompt, output) for _ in range(slots * rounds)]
    simulate(speed, Room(slots), [(0.0, job) for job in jobs])
    # A lone first job begins its step before the others are there: that is all that is lost.
    spare = speed.step_s(1, prompt)
    least = len(jobs) / speed.capacity_requests_per_s(slots, prompt, output)
    assert least <= jobs[-1].made[-1] * (1 + 1e-9) + 1e-9
    assert jobs[-1].made[-1] <= least + spare + output * speed.step_s(slots) + slots * speed.prefill_s(prompt)
    assert speed.capacity_tokens_per_s(slots, prompt, output) == near(
        output * speed.capacity_requests_per_s(slots, prompt, output)
    )


@given(
    SPEEDS,
    st.integers(1, 8),
    st.lists(st.floats(0, 3), min_size=1, max_size=40),
    st.integers(0, 400),
    st.integers(1, 9),
)
def test_nothing_exceeds_the_capacity(speed: Speed, slots: int, times: list[float], prompt: int, output: int) -> None:
    """Whenever requests come, they are not answered faster than at the computed capacity."""
    jobs = [Job(prompt, output) for _ in times]
    simulate(speed, Room(slots), list(zip(sorted(times), jobs, strict=True)))
    took = max(job.made[-1] for job in jobs) - min(times)
    assert took >= len(jobs) / speed.capacity_requests_per_s(slots, prompt, output) * (1 - 1e-9)


@given(SPEEDS, st.integers(1, 30), st.integers(2, 30))
def test_steady_rate(speed: Speed, batch: int, steps: int) -> None:
    """As long as nobody comes or goes, the tokens of all come at the computed rate."""
    jobs = [Job(0, steps + 1) for _ in range(batch)]
    simulate(speed, Room(), [(0.0, job) for job in jobs])
    together = jobs[1:] or jobs  # the first one is a step ahead
    [made] = {tuple(job.made) for job in together}
    rate = batch * (steps - 1) / (made[steps - 1] - made[0])
    assert rate == pytest.approx(speed.steady_tokens_per_s(batch), rel=1e-6)


def test_no_cost_has_no_capacity() -> None:
    """What takes no time has no end of capacity; without a bound of the batch only what each adds counts."""
    assert Speed(prefill_tokens_per_s=100).steady_tokens_per_s(4) == math.inf
    assert Speed(step_ms=5).capacity_requests_per_s(math.inf, 10, 10) == math.inf
    assert SPEED.capacity_requests_per_s(math.inf, 100, 10) == near(1 / (0.02 + 0.1))


@given(SPEEDS, ARRIVALS, st.integers(0, 4), st.sampled_from([0, 100, 150]), st.lists(st.floats(0, 5), max_size=20))
def test_lateness_changes_nothing(
    speed: Speed, arrivals: list[tuple[float, Job]], slots: int, kv_tokens: int, looks: list[float]
) -> None:
    """When each token is made does not depend on how often, or how late, somebody looks."""
    twins = [(at, Job(job.prompt_tokens, job.steps, job.reserved)) for at, job in arrivals]
    simulate(speed, Room(slots, kv_tokens), arrivals)
    looking = Accelerator(speed, Room(slots, kv_tokens))
    events = sorted([*((at, number) for number, (at, _) in enumerate(twins)), *((at, len(twins)) for at in looks)])
    for at, number in events:
        if number < len(twins):
            looking.arrive(twins[number][1], at)
        else:
            looking.advance(at)
    looking.advance(math.inf if looking.next_at is None else 1e9)
    assert [job.made for _, job in twins] == [job.made for _, job in arrivals]


@given(SPEEDS, ARRIVALS, st.integers(1, 4), st.integers(100, 250))
def test_first_come_first_served_within_bounds(
    speed: Speed, arrivals: list[tuple[float, Job]], slots: int, kv_tokens: int
) -> None:
    """Places are given in the order of arrival, and never more of them, or more tokens, than there are."""
    simulate(speed, Room(slots, kv_tokens), arrivals)
    jobs = [job for _, job in arrivals]
    begun = [job.admitted for job in jobs if job.admitted is not None]
    assert len(begun) == len(jobs)
    assert begun == sorted(begun)
    assert all(len(job.made) == job.steps for job in jobs)
    for moment in begun:
        there = [job for job in jobs if job.admitted is not None and job.admitted <= moment < job.made[-1]]
        assert len(there) <= slots
        assert sum(job.reserved for job in there) <= kv_tokens


def test_room() -> None:
    """Slots and tokens are bounds; whoever is behind waits although there is room for it; the queue has its own bound."""
    room = Room(slots=3, kv_tokens=100, queue=1)
    large, next_one, small = Job(0, 1, 60), Job(0, 1, 50), Job(0, 1, 10)
    assert (room.most(30), room.most(50), Room(kv_tokens=100).most(30), Room().most(1)) == (3, 2, 3, math.inf)
    assert (room.holds(100), room.holds(101), Room().holds(10**9)) == (True, False, True)
    assert room.arrive(large) == [large]
    assert (room.fits(40), room.fits(41), room.is_full(41), room.usage) == (True, False, False, 0.6)
    assert room.arrive(next_one) == []
    assert (room.fits(10), room.is_full(10)) == (False, True)
    assert room.arrive(small) == []
    assert room.leave(large) == [next_one, small]
    assert (room.usage, list(room.waiting)) == (0.6, [])
    assert room.leave(large) == []
    assert (Room().usage, Room(queue=0).is_full(5), Room(slots=1, queue=0).is_full(5)) == (0, False, False)


def test_dues() -> None:
    """The clock of an answer counts tokens, is not known before they are made, and goes on in milliseconds behind them."""
    accelerator = Accelerator(SPEED, Room())
    job = Job(0, 2)
    assert accelerator.due(job, 0) is None
    accelerator.arrive(job, 1.0)
    assert [accelerator.due(job, each) for each in (0, 1)] == [1.0, None]
    accelerator.advance(1.013)
    assert [accelerator.due(job, each) for each in (1, 2)] == [near(1.012), None]
    accelerator.advance(9.0)
    assert [accelerator.due(job, each) for each in (2, 12)] == near([1.024, 1.034])
    fixed, other = Pace(Room()), Job(0, 2)
    assert fixed.due(other, 20) is None
    fixed.arrive(other, 3.0)
    assert fixed.due(other, 20) == near(3.02)


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    """An endpoint on an accelerator with two slots, where one more may wait."""
    speed = Speed(prefill_tokens_per_s=1000, step_ms=20, step_ms_per_stream=5)
    with running(speed=speed, slots=2, queue=1, kv_tokens=8000, profiles=["openai"]) as url:
        yield urlsplit(url).netloc


def ask(address: str, **members: object) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
    """Send one chat request; the answer's head."""
    link = http.client.HTTPConnection(address, timeout=60)
    body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "Hello"}], **members}
    fields = {"Authorization": f"Bearer {DEFAULT_KEY}", "Content-Type": "application/json"}
    link.request("POST", "/v1/chat/completions", json.dumps(body), fields)
    return link.getresponse(), link


def metric(address: str, name: str) -> float:
    """A number of `/metrics`, the first of its name."""
    with closing(http.client.HTTPConnection(address, timeout=60)) as link:
        link.request("GET", "/metrics")
        lines = link.getresponse().read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}{{"))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds; asking takes a request, so this does not spin."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline


def test_served_tokens_keep_the_steps(small: str) -> None:
    """Alone, no token comes before its step has ended, and the cache's use is what the request reserved."""
    started = time.monotonic()
    response, link = ask(small, stream=True, max_tokens=5)
    with closing(link):
        stamps = [time.monotonic() - started for line in response if b'"content":" ' in line]
    assert len(stamps) == 5
    prompt = metric(small, "prompt_tokens_total")
    assert prompt >= 1
    for step, stamp in enumerate(stamps):
        assert stamp >= prompt / 1000 + 0.025 * (step + 1)
    response, link = ask(small, stream=True, max_tokens=900)
    with closing(link):
        assert metric(small, "kv_cache_usage_perc") == pytest.approx((900 + prompt) / 8000)
    eventually(lambda: metric(small, "kv_cache_usage_perc") == 0)


def test_served_queue_has_a_bound(small: str) -> None:
    """Two run, one waits, and the next gets 429 with Retry-After (RFC 6585, 4); who leaves makes room at once."""
    links = [ask(small, stream=True, max_tokens=3900)[1] for _ in range(2)]
    texts: list[bytes] = []

    def wait() -> None:
        response, link = ask(small, max_tokens=1)
        with closing(link):
            texts.append(response.read())

    waiting = threading.Thread(target=wait)
    waiting.start()
    eventually(lambda: metric(small, "num_requests_waiting") == 1)
    assert metric(small, "num_requests_running") == 2
    refused, link = ask(small, max_tokens=1)
    with closing(link):
        assert (refused.status, refused.getheader("Retry-After")) == (429, "1")
        assert set(json.loads(refused.read())["error"]) == {"message", "type", "param", "code"}
    queued = metric(small, "request_queue_time_seconds_count")
    for each in links:
        each.close()
    waiting.join(60)
    assert b"choices" in texts[0]
    eventually(lambda: metric(small, "num_requests_running") == 0)
    assert metric(small, "request_queue_time_seconds_count") == queued + 1


def test_served_request_beyond_the_cache(small: str) -> None:
    """What would never find room is refused, not left waiting for ever."""
    response, link = ask(small, max_tokens=8100)
    with closing(link):
        assert (response.status, json.loads(response.read())["error"]["code"]) == (422, "context_length_exceeded")


def test_served_load_keeps_the_capacity() -> None:
    """As many clients as slots, one request behind the other: not faster than the capacity, and all of them side by side."""
    speed, slots, each, output = Speed(step_ms=8, step_ms_per_stream=1), 4, 3, 16
    with running(speed=speed, slots=slots, profiles=["openai"]) as url:
        address = urlsplit(url).netloc

        def client() -> None:
            for _ in range(each):
                response, link = ask(address, stream=True, max_tokens=output)
                with closing(link):
                    response.read()

        clients = [threading.Thread(target=client) for _ in range(slots)]
        started = time.monotonic()
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(60)
        took = time.monotonic() - started
        eventually(lambda: metric(address, "num_requests_running") == 0)
        assert metric(address, "generation_tokens_total") == slots * each * output
        assert metric(address, "e2e_request_latency_seconds_count") == slots * each
        assert metric(address, "time_to_first_token_seconds_count") == slots * each
        assert metric(address, "inter_token_latency_seconds_count") == slots * each * (output - 1)
        links = [ask(address, stream=True, max_tokens=8000)[1] for _ in range(slots)]
        eventually(lambda: metric(address, "num_requests_running") == slots)
        for link in links:
            link.close()
    assert took >= slots * each / speed.capacity_requests_per_s(slots, 0, output)
