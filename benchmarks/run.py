"""
Ratios measured in one run, so that the machine cancels out: `nox -s bench`.

Each line compares ours with something known on the same bytes; none of it is a test.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable

from jsonschema import Draft202012Validator

from streamgauge.contract.contract import SSE, load_contracts
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


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs: the one that was disturbed least."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def sse() -> None:
    """The strict reader against a bare split on blank lines."""
    body = f"data: {json.dumps(CHUNK)}\n\n".encode() * EVENTS
    reads = [body[start : start + READ] for start in range(0, len(body), READ)]

    def strict() -> None:
        reader = SseReader()
        for read in reads:
            reader.feed(read)

    def bare() -> None:
        rest = b""
        for read in reads:
            *events, rest = (rest + read).split(b"\n\n")
            for event in events:
                event.removeprefix(b"data: ").decode()

    ours, theirs = best(strict), best(bare)
    print(
        f"sse     strict reader {EVENTS / ours:,.0f} events/s, bare split {EVENTS / theirs:,.0f}: 1 to {ours / theirs:.1f}"
    )


def strict_json() -> None:
    """The strict JSON reader against the standard library's own."""
    text = json.dumps(CHUNK)
    ours = best(lambda: [read_json(text) for _ in range(EVENTS)])
    theirs = best(lambda: [json.loads(text) for _ in range(EVENTS)])
    print(
        f"json    strict {ours / EVENTS * 1e6:.1f} us, json.loads {theirs / EVENTS * 1e6:.1f} us: {ours / theirs:.1f} times"
    )


def gate() -> None:
    """The compiled schema gate against jsonschema on a chunk of a chat stream."""
    operation = load_contracts(["seekr-chat"])[0].operations[0]
    validator = operation.response(200, SSE)
    few = EVENTS // 100
    schema = operation.document.normal["components"]["schemas"]["ChatCompletionStreamResponse"]
    slow = Draft202012Validator({**schema, "components": operation.document.components})
    ours = best(lambda: [validator.accepts(CHUNK) for _ in range(EVENTS)]) / EVENTS
    theirs = best(lambda: [slow.is_valid(CHUNK) for _ in range(few)]) / few
    print(f"schema  gate {ours * 1e6:.1f} us, jsonschema {theirs * 1e6:.0f} us: {theirs / ours:.0f} times faster")


def start() -> None:
    """`streamgauge --help` against an empty Python."""
    ours = best(
        lambda: subprocess.run([sys.executable, "-m", "streamgauge", "--help"], capture_output=True, check=True)
    )
    theirs = best(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    print(f"start   --help {ours * 1e3:.0f} ms, empty Python {theirs * 1e3:.0f} ms: {ours / theirs:.1f} times")


if __name__ == "__main__":
    for benchmark in (sse, strict_json, gate, start):
        benchmark()
