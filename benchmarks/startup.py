"""
What a run costs beyond its requests: `nox -s bench_load`.

The wall time of a whole run of ten requests, and the most memory that a program takes, all of its processes together, with ten
requests and with 512 streams at once.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from peers import Peer, peers_of
from pinned import Done, FailedError, Paced, load_command, paced, pinned

TOKENS = 64
RUNS = {"10 requests": (1, 10), "512 streams": (512, 1024)}
"""Streams at once, and requests."""

PACE = ("--ttft-ms", "20", "--itl-ms", "20")


def ours(server: Paced, streams: int, requests: int) -> Done:
    """`streamgauge load`."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--users", str(streams), "--requests", str(requests), "--max-tokens", str(TOKENS)]
        return pinned(load_command(server.url, Path(folder) / "bundle", *options), codes=(0, 3), watch=True)


def theirs(server: Paced, peer: Peer, streams: int, requests: int) -> Done:
    """A peer's own client."""
    return peer.run(server.url, streams=streams, requests=requests, tokens=TOKENS, watch=True)[0]


def main() -> None:
    """Two lines for each program; the fastest of three runs counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FOLDER", help="a client and its programs")
    asked = parser.parse_args()
    peers = peers_of(asked.peer)
    for title, (streams, requests) in RUNS.items():
        print(f"\n{title}")
        with paced(*(() if requests == 10 else PACE)) as server:
            work: dict[str, Callable[[], Done]] = {"streamgauge load": partial(ours, server, streams, requests)}
            work |= {peer.kind.title: partial(theirs, server, peer, streams, requests) for peer in peers}
            for name, measure in work.items():
                try:
                    done = min((measure() for _ in range(asked.rounds)), key=lambda done: done.wall_s)
                except FailedError as problem:
                    print(f"  {name:24} skipped: {problem}")
                    continue
                print(
                    f"  {name:24} {done.wall_s:6.2f} s, {done.cpu_s:6.2f} s of CPU, {done.peak_mb:6.0f} MiB", flush=True
                )


if __name__ == "__main__":
    main()
