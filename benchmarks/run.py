"""
Ratios measured in one run, so that the machine cancels out: `nox -s bench`.

Each line compares ours with something known on the same bytes; none of it is a test.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
from httpx_sse import EventSource
from httpx_sse._decoders import SSEDecoder
from jsonschema import Draft202012Validator

from streamgauge.conformance.plan import Plan
from streamgauge.conformance.runner import judge_all, throwaway_hypothesis
from streamgauge.conformance.session import Settings, record_into
from streamgauge.contract.contract import SSE, load_contracts
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running
from streamgauge.reports.write import write_all
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.json import read_json
from streamgauge.wire.sse import SseReader

EVENTS = 20_000
READ = 4096
REPEATS = 5

CHUNK = {
    "id": "chatcmpl-0123456789abcdef",
    "object": "chat.completion.chunk",
    "created": 1_795_000_000,
    "model": "some/model-of-a-usual-length",
    "choices": [{"index": 0, "delta": {"content": " token"}, "logprobs": None, "finish_reason": None}],
}


def best(*works: Callable[[], object]) -> list[float]:
    """Seconds of each one's fastest run of several: the one that was disturbed least. They take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


class Reads(httpx.SyncByteStream):
    """A body in the given pieces."""

    def __init__(self, reads: list[bytes]) -> None:
        self._reads = reads

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reads)


def sse() -> None:
    """The strict reader against httpx-sse: from reads to payloads, and its decoder alone on lines that are ready."""
    body = f"data: {json.dumps(CHUNK)}\n\n".encode() * EVENTS
    reads = [body[start : start + READ] for start in range(0, len(body), READ)]
    lines = body.decode().split("\n")[:-1]

    def strict() -> int:
        reader = SseReader()
        return sum(len(event.data) for read in reads for event in reader.feed(read))

    def whole_way() -> int:
        response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Reads(reads))
        return sum(len(event.data) for event in EventSource(response).iter_sse())

    def decoder_alone() -> int:
        decoder = SSEDecoder()
        return sum(len(event.data) for line in lines if (event := decoder.decode(line)) is not None)

    assert strict() == whole_way() == decoder_alone()
    ours, theirs, bare = best(strict, whole_way, decoder_alone)
    print(
        f"sse     strict reader {EVENTS / ours:,.0f} events/s; httpx-sse from reads {EVENTS / theirs:,.0f}, "
        f"its decoder alone {EVENTS / bare:,.0f}: {theirs / ours:.2f} and {bare / ours:.2f} times as fast"
    )


def strict_json() -> None:
    """The strict JSON reader against the standard library's own."""
    text = json.dumps(CHUNK)
    told = text.replace("1795000000", "1795000000.0")
    ours, thorough, theirs = best(
        lambda: [read_json(text) for _ in range(EVENTS)],
        lambda: [read_json(told) for _ in range(EVENTS)],
        lambda: [json.loads(text) for _ in range(EVENTS)],
    )
    per_chunk = 1e6 / EVENTS
    print(
        f"json    strict {ours * per_chunk:.1f} us, {thorough * per_chunk:.1f} us with something to report, "
        f"json.loads {theirs * per_chunk:.1f} us: {ours / theirs:.1f} and {thorough / theirs:.1f} times as long"
    )


def gate() -> None:
    """The compiled schema gate, reading apart, against jsonschema on a chunk of a chat stream."""
    operation = load_contracts(["seekr-chat"])[0].operations[0]
    validator = operation.response(200, SSE)
    few = EVENTS // 100
    schema = operation.components["schemas"]["ChatCompletionStreamResponse"]
    slow = Draft202012Validator({**schema, "components": operation.components})
    ours, theirs = best(
        lambda: [validator.accepts(CHUNK) for _ in range(EVENTS)], lambda: [slow.is_valid(CHUNK) for _ in range(few)]
    )
    ours, theirs = ours / EVENTS, theirs / few
    print(f"schema  gate {ours * 1e6:.1f} us, jsonschema {theirs * 1e6:.0f} us: {theirs / ours:.0f} times as fast")


def start() -> None:
    """`streamgauge --help` against an empty Python."""
    ours, theirs = best(
        lambda: subprocess.run([sys.executable, "-m", "streamgauge", "--help"], capture_output=True, check=True),
        lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    )
    print(f"start   --help {ours * 1e3:.0f} ms, empty Python {theirs * 1e3:.0f} ms: {ours / theirs:.1f} times")


def check(*specs: str) -> None:
    """A full check of operations of the reference endpoint, part by part; start-up and preflight are left out."""
    marks = [time.perf_counter()]
    plans: list[Plan] = []

    def on_plan(plan: Plan) -> None:
        plans.append(plan)
        marks.append(time.perf_counter())

    with running() as url, tempfile.TemporaryDirectory() as folder, throwaway_hypothesis():
        targets = [
            Target(contract.profile.name, url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)
            for contract in load_contracts(specs)
        ]
        writer, meta = open_bundle("check", targets, output=Path(folder) / "bundle")
        settings = Settings(targets, writer.path, on_plan=on_plan)
        marks[0] = time.perf_counter()
        for part in (
            lambda: record_into(settings, writer, meta),
            lambda: judge_all(settings),
            lambda: write_all(writer.path),
        ):
            part()
            marks.append(time.perf_counter())
    planning, recording, judging, reporting = (later - earlier for earlier, later in itertools.pairwise(marks))
    probes = len(plans[0].planned)
    print(
        f"check   {', '.join(specs)}, {probes} probes, {plans[0].tokens:,} tokens at most: {marks[-1] - marks[0]:.1f} s, "
        f"{probes / (marks[-1] - marks[0]):,.0f} probes/s; planning {planning:.1f} s, recording {recording:.1f} s, "
        f"judging {judging:.1f} s, reporting {reporting:.1f} s; recording : judging {recording / judging:.1f}"
    )


if __name__ == "__main__":
    for benchmark in (sse, strict_json, gate, start):
        benchmark()
    check("seekr-chat")
    check("seekr-chat", "seekr-completions", "deepinfra-completions")
