"""
Faults at known rates are counted by kind, and nothing else is: HTTP 200 is never taken for success.

The endpoint draws for each reply whether a fault strikes it, from a seed. So the number of strikes is known twice: by the
binomial law of its probability, and to the last one by drawing again what the endpoint drew.
"""

import asyncio
import contextlib
import json
import math
import queue
import random
import re
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
import pytest
from commandline import streamgauge
from gevent.pool import Pool

from streamgauge.bundle.reader import read_lines
from streamgauge.contract.contract import load_contracts
from streamgauge.load import attempt
from streamgauge.load.client import Sent, StreamClient, Timeouts
from streamgauge.load.loopclock import now_us
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import Outcome, Record
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.launch import running
from streamgauge.reference.responder import Responder
from streamgauge.reference.server import serve
from streamgauge.reference.settings import Settings

(CHAT,) = load_contracts(["openai-chat"], "openai")[0].operations
SEED = 20261130
REQUESTS = 240
TOKENS = 6
PATIENT = Timeouts(connect=30, first_token=60, idle=60, total=120)
HASTY = {
    Outcome.TIMEOUT_FIRST_TOKEN: Timeouts(first_token=0.1),
    Outcome.TIMEOUT_IDLE: Timeouts(idle=0.1),
}
MISS = 1e-3
"""How often a right count may lie outside its bounds; with a fixed seed it does so always or never."""


@dataclass(frozen=True)
class Case:
    """
    A fault, and what a load run has to call it.

    Attributes:
        every: of so many strikes only the last one shows: some faults leave a run enough to live on.
        stalls: nothing more comes, so that the client has to give up by itself.
        alone: each request has a connection of its own. Where a kept one is closed without a byte of an answer, the client sends
            the request again: the server may have ended it just then, as it may (RFC 9112, 9.3.1).
    """

    fault: str
    outcome: Outcome
    probability: float = 0.2
    stream: bool = True
    every: int = 1
    stalls: bool = False
    alone: bool = False


CASES = [
    Case("sse.no-done", Outcome.TRUNCATED),
    Case("ending.cut-between-events", Outcome.TRUNCATED),
    Case("ending.cut-in-event", Outcome.TRUNCATED),
    Case("ending.cut-behind-head", Outcome.TRUNCATED),
    Case("ending.cut-in-order", Outcome.TRUNCATED),
    Case("ending.done-though-cut", Outcome.TRUNCATED),
    Case("finish.missing", Outcome.TRUNCATED, 0.05),
    Case("http.no-final-chunk", Outcome.TRUNCATED),
    Case("http.length-too-long", Outcome.TRUNCATED, stream=False),
    Case("error.in-stream", Outcome.IN_BAND_ERROR),
    Case("error.in-stream-no-done", Outcome.IN_BAND_ERROR),
    Case("error.in-stream-goes-on", Outcome.IN_BAND_ERROR, 0.02),
    Case("error.in-stream-string", Outcome.IN_BAND_ERROR),
    Case("sse.not-utf8", Outcome.MALFORMED_SSE),
    Case("sse.last-event-unfinished", Outcome.MALFORMED_SSE),
    Case("sse.ping-as-data", Outcome.MALFORMED_JSON),
    Case("sse.merged-events", Outcome.MALFORMED_JSON),
    Case("response.trailing-bytes", Outcome.MALFORMED_JSON, stream=False),
    Case("chunk.object-missing", Outcome.SCHEMA_VIOLATION, 0.5),
    Case("response.choice-unsaid", Outcome.SCHEMA_VIOLATION, stream=False),
    Case("chunk.text-missing", Outcome.EMPTY),
    Case("response.text-missing", Outcome.EMPTY, stream=False),
    Case("ending.hang", Outcome.TIMEOUT_IDLE, stalls=True),
    Case("http.length-never-reached", Outcome.TIMEOUT_IDLE, stream=False, stalls=True),
    Case("http.silence", Outcome.TIMEOUT_FIRST_TOKEN, stalls=True),
    Case("ending.reset", Outcome.RESET),
    Case("http.reset-at-once", Outcome.RESET, alone=True),
    Case("http.no-answer", Outcome.RESET, alone=True),
    Case("http.garbage", Outcome.TRUNCATED, alone=True),
    Case("error.502-html", Outcome.HTTP_5XX, 0.9, every=6),
    Case("error.503-empty", Outcome.HTTP_5XX, 0.9, every=6),
    Case("error.429-empty", Outcome.RATE_LIMITED, 0.9, every=6),
    Case("error.429-no-retry-after", Outcome.RATE_LIMITED, 0.9, every=6),
    Case("request.stream-refused", Outcome.HTTP_4XX),
]


def bounds(count: int, probability: float) -> tuple[int, int]:
    """Where a binomial number lies but for a chance of MISS, half of it on either side."""
    law = [math.comb(count, k) * probability**k * (1 - probability) ** (count - k) for k in range(count + 1)]
    low = next(k for k in range(count + 1) if math.fsum(law[: k + 1]) > MISS / 2)
    high = next(k for k in range(count, -1, -1) if math.fsum(law[k:]) > MISS / 2)
    return low, high


def strikes(fault: str, probability: float, count: int) -> int:
    """How many of the first replies the endpoint lets the fault strike: its own draws, made again."""
    draws = random.Random(f"{SEED} {fault}")
    return sum(draws.random() < probability for _ in range(count))


@contextlib.contextmanager
def served(*faults: str, **settings: Any) -> Iterator[str]:
    """The endpoint on a port of its own, in a thread: a process would take longer to start than to ask."""
    responder = Responder(Settings(profiles=("openai",), faults=faults, seed=SEED, **settings))
    begun: queue.Queue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def live() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        await serve(responder, "127.0.0.1", 0, ready=lambda port: begun.put((port, loop, stop)), stop=stop)

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    port, loop, stop = begun.get(timeout=60)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)


def client_of(url: str, timeouts: Timeouts = PATIENT, **headers: str) -> StreamClient:
    """A client of the endpoint."""
    fields = {"authorization": f"Bearer {DEFAULT_KEY}", "content-type": "application/json", **headers}
    return StreamClient(url, fields, timeouts=timeouts)


def ask(url: str, number: int = 0, *, stream: bool = True) -> LoadRequest:
    """A request to the endpoint."""
    body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": TOKENS}
    text = json.dumps(body | ({"stream": True, "stream_options": {"include_usage": True}} if stream else {})).encode()
    return LoadRequest(str(number), "t", CHAT, f"{url}/v1/chat/completions", text, stream, TOKENS)


def load(url: str, count: int, *, stream: bool = True, alone: bool = False) -> list[Sent]:
    """Send requests side by side, each as the load run sends them; what came of them."""
    client = client_of(url, **({"connection": "close"} if alone else {}))
    pool, sent = Pool(16), []
    for number in range(count):
        pool.spawn(client.send, ask(url, number, stream=stream), on_record=sent.append)
    pool.join()
    client.close()
    return sent


def load_stalled(url: str, count: int, stalled: int, hasty: Timeouts, *, stream: bool) -> list[Sent]:
    """Send requests all at once; the client's limits stand still until only those are left that stall."""
    client, sent, begun = client_of(url, hasty), [], now_us()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt, "now_us", lambda: now_us() if len(sent) >= count - stalled else begun)
        pool = Pool(count)
        for number in range(count):
            pool.spawn(client.send, ask(url, number, stream=stream), on_record=sent.append)
        pool.join()
    client.close()
    return sent


def counted(sent: Sequence[Sent]) -> Counter[Outcome]:
    """How many had each outcome."""
    return Counter(each.record.outcome for each in sent)


def test_bounds() -> None:
    """The bounds are those of the binomial law: for 1 in 2 of 10, 0 and 10 are rarer than 1 in 1000 (2 · 2^-10 is not)."""
    assert bounds(10, 0.5) == (0, 10)
    assert bounds(11, 0.5) == (1, 10)
    assert bounds(240, 0.2) == (29, 69)


def test_every_kind_has_its_fault() -> None:
    """Each kind of failure that a server can cause over a plain connection is in the table."""
    of_client = {Outcome.CLIENT_OVERLOAD, Outcome.DROPPED, Outcome.CANCELLED, Outcome.UNFINISHED_AT_STOP}
    elsewhere = {Outcome.TIMEOUT_CONNECT, Outcome.REFUSED, Outcome.TLS, Outcome.TIMEOUT_TOTAL}  # test_load_client
    assert {case.outcome for case in CASES} == set(Outcome) - of_client - elsewhere - {Outcome.OK}
    assert {case.fault for case in CASES} <= FAULTS.keys()


def test_no_fault() -> None:
    """Without a fault every request is ok, whole or streamed, with every token."""
    with served() as url:
        for stream in (True, False):
            sent = load(url, REQUESTS, stream=stream)
            assert counted(sent) == {Outcome.OK: REQUESTS}
            assert {each.record.tokens for each in sent} == {TOKENS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_a_fault_is_counted(case: Case) -> None:
    """What the endpoint struck has the fault's outcome, all else is ok: by the binomial law, and to the last request."""
    told = f"{case.fault}@{case.probability}"
    count = REQUESTS // 4 if case.stalls else REQUESTS
    struck = strikes(case.fault, case.probability, count) // case.every
    with served(told) as url:
        if case.stalls:
            sent = load_stalled(url, count, struck, HASTY[case.outcome], stream=case.stream)
        else:
            sent = load(url, count, stream=case.stream, alone=case.alone)
    low, high = bounds(count, case.probability)
    found = counted(sent)
    assert low // case.every <= found[case.outcome] <= high // case.every
    assert found[case.outcome] == struck
    assert found == {case.outcome: found[case.outcome], Outcome.OK: count - found[case.outcome]}
    assert all(each.record.closed - each.record.dispatched < 6_000_000 for each in sent)
    assert not any(each.record.replaced for each in sent)
    assert all(each.record.detail for each in sent if each.record.outcome is not Outcome.OK)
    assert all(each.record.tokens == TOKENS for each in sent if each.record.outcome is Outcome.OK)


@pytest.mark.parametrize("fault", ["http.reset-at-once", "http.no-answer"])
def test_what_is_sent_again_hides_nothing(fault: str) -> None:
    """On kept connections, each strike is a failure or a request that says it was sent again."""
    with served(f"{fault}@0.2") as url:
        sent = load(url, REQUESTS)
    again, found = sum(each.record.replaced for each in sent), counted(sent)
    assert again > 0
    assert found[Outcome.RESET] + again == strikes(fault, 0.2, REQUESTS + again)
    assert found == {Outcome.RESET: found[Outcome.RESET], Outcome.OK: REQUESTS - found[Outcome.RESET]}


def test_retry_after_is_handed_on() -> None:
    """What a 429 says of when to come back is there for whoever wants to obey (RFC 9110, 10.2.3)."""
    with served("error.429-empty") as url:
        sent = load(url, 12)
    assert Counter(each.retry_after for each in sent) == {0.0: 2, None: 10}


def test_a_full_queue_is_counted() -> None:
    """Where one is answered and one may wait, the others are limited, each of them and no more, with Retry-After."""
    with served(slots=1, queue=1, ttft_ms=60_000) as url:
        client, first = client_of(url), []
        busy = [gevent.spawn(client.send, ask(url), on_record=first.append) for _ in range(2)]
        with gevent.Timeout(60):
            while (gauge(url, "running"), gauge(url, "waiting")) != (1, 1):
                gevent.sleep(0.01)
        sent = load(url, 6)
        assert (gauge(url, "running"), gauge(url, "waiting")) == (1, 1)
        gevent.killall(busy)
        client.close()
    assert counted(first) == {Outcome.UNFINISHED_AT_STOP: 2}
    assert counted(sent) == {Outcome.RATE_LIMITED: 6}
    assert {each.retry_after for each in sent} == {1.0}


def gauge(url: str, name: str) -> int:
    """How many requests the endpoint says are running, or waiting."""
    with urllib.request.urlopen(f"{url}/metrics") as page:
        text = page.read().decode()
    return sum(int(float(value)) for value in re.findall(rf"^vllm:num_requests_{name}\{{.*\}} (\S+)$", text, re.M))


MIXED = {
    Outcome.TRUNCATED: "ending.cut-in-event",
    Outcome.IN_BAND_ERROR: "error.in-stream",
    Outcome.MALFORMED_JSON: "sse.ping-as-data",
    Outcome.MALFORMED_SSE: "sse.not-utf8",
    Outcome.SCHEMA_VIOLATION: "chunk.object-missing",
    Outcome.EMPTY: "chunk.text-missing",
    Outcome.RESET: "ending.reset",
}


def test_several_at_once(tmp_path: Path) -> None:
    """
    A whole run against seven faults at once: each kind within its bounds, and all of them accounted for.

    Two faults may strike one reply, and one name has to do: so a kind is rarer than its fault, by no more than all others hide.
    """
    probability, count = 0.06, 400
    told = [f"{fault}@{probability}" for fault in MIXED.values()]
    with running(profiles=["openai"], faults=told, seed=SEED) as url:
        arguments = [
            *("load", "--base-url", url, "--spec", "openai-chat", "--profile", "openai", "--model", DEFAULT_MODEL),
            *("--requests", str(count), "--users", "8", "--max-tokens", str(TOKENS), "--quiet", "--output", "bundle"),
        ]
        done = streamgauge(*arguments, cwd=tmp_path, STREAMGAUGE_API_KEY=DEFAULT_KEY)
    assert done.returncode == 1, done.stderr
    files = sorted((tmp_path / "bundle").glob("records-*.jsonl"))
    lines = [line for file in files for line in read_lines(file) if "anchor" not in line]
    found = Counter(Record.from_line(line).outcome for line in lines)
    assert found.total() == count
    assert found.keys() == {*MIXED, Outcome.OK}
    others = (1 - probability) ** (len(MIXED) - 1)
    for outcome in MIXED:
        assert bounds(count, probability * others)[0] <= found[outcome] <= bounds(count, probability)[1], outcome
    low, high = bounds(count, others * (1 - probability))
    assert low <= found[Outcome.OK] <= high
