"""Plain Locust as one writes it by hand for streams: FastHttpUser with `iter_lines` or `readline`, or HttpUser."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
from locust import FastHttpUser, HttpUser, User, events, task
from locust.env import Environment
from pinned import Seen, Work, work

TOKEN = '"content":" '
PATH = "/v1/chat/completions"
HEADERS = {"content-type": "application/json"}


def now_us() -> int:
    """Microseconds, monotonic."""
    return time.monotonic_ns() // 1000


def body(asked: Work, name: str) -> bytes:
    """A request of about the length that ours have."""
    message = {"role": "user", "content": f"{name} " + "river stone garden winter " * 16}
    members = {"stream": True, "max_tokens": asked.tokens, "stream_options": {"include_usage": True}}
    return asked.body(name, json.dumps({"model": "paced", "messages": [message], **members}).encode())


def fast_iter_lines(user: Any, data: bytes) -> Iterator[Any]:
    """The documented way: lines are texts."""
    yield from user.client.iter_lines(PATH, method="POST", data=data, headers=HEADERS)


def fast_readline(user: Any, data: bytes) -> Iterator[Any]:
    """Around Locust's response, straight to geventhttpclient's."""
    with user.client.post(PATH, data=data, headers=HEADERS, stream=True, catch_response=True) as response:
        while line := response._response.readline(b"\n"):
            yield line


def http_user(user: Any, data: bytes) -> Iterator[Any]:
    """The documented way of `requests`."""
    with user.client.post(PATH, data=data, headers=HEADERS, stream=True, catch_response=True) as response:
        yield from response.iter_lines()


KINDS: dict[str, tuple[type[User], Callable[[Any, bytes], Iterator[Any]], Any]] = {
    "FastHttpUser, iter_lines": (FastHttpUser, fast_iter_lines, TOKEN),
    "FastHttpUser, readline": (FastHttpUser, fast_readline, TOKEN.encode()),
    "HttpUser": (HttpUser, http_user, TOKEN.encode()),
}


def run(asked: Work) -> Seen:
    """Do it, in Locust's local runner."""
    base, lines, token = KINDS[asked.how]
    seen = Seen()
    begun: list[float] = []
    numbers = iter(range(asked.streams))

    class Streams(base):  # type: ignore[misc, valid-type]  # the class is chosen by name
        host = asked.url

        def on_start(self) -> None:
            self.number = next(numbers)
            self.count = 0
            begun.append(time.monotonic())

        @task
        def generate(self) -> None:
            late = asked.seconds and time.monotonic() > begun[0] + asked.seconds
            if late or (asked.rounds and self.count >= asked.rounds):
                self.stop()
                gevent.sleep(0)
                return
            name = f"{self.number}-{self.count}"
            self.count += 1
            times = [now_us()]
            times += [now_us() for line in lines(self, body(asked, name)) if token in line]
            seen.events += len(times) - 1
            seen.failed += len(times) - 1 != asked.tokens
            if asked.pace is not None:
                seen.requests[name] = times

    environment = Environment(user_classes=[Streams], events=events)
    runner = environment.create_local_runner()
    before = time.process_time()
    runner.start(asked.streams, spawn_rate=asked.streams)
    while not begun or runner.user_count:
        gevent.sleep(0.05)
    seen.cpu_s = time.process_time() - before
    runner.quit()
    return seen


if __name__ == "__main__":
    run(work()).tell()
