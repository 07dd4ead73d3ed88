"""
How many events a second a client takes on one core, and what each costs: `nox -s bench_load`.

The paced server answers at once on a core of its own. One write holds a whole reply of 128 tokens, which is the most a
client can be asked; then each event comes alone, 10,000 of them a second. Ours and plain Locust take turns, the best of
several runs counts; `streamgauge load` is the whole program: Locust, live view, records and all.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from peers import Peer, peers_of
from pinned import FailedError, Paced, Work, load_command, paced, pinned, see

TOKENS = 128
OURS = ("ends", "10%", "all")
LOCUST = ("FastHttpUser, readline", "FastHttpUser, iter_lines", "HttpUser")
ALONE = 200
GAP_MS = 20.0

Measured = tuple[float, float]
"""Events per second, and microseconds of processor time for each; 0 where start and end of a program are not known apart."""


def client_of(how: str) -> str:
    """The file that measures it."""
    return "client_ours" if how in OURS else "client_locust"


def name_of(how: str) -> str:
    """As the tables call it."""
    return f"ours, judged {how}" if how in OURS else f"Locust {how}"


def rate(server: Paced) -> float:
    """Events per second by the server's own clock, from the fifth to the last fifth of the requests."""
    times = sorted(server.get("dump")["whole"])
    low, high = len(times) // 5, len(times) * 4 // 5
    return (high - low) * TOKENS / (times[high] - times[low]) * 1e9


def one_write(server: Paced, how: str, streams: int, seconds: float) -> Measured:
    """Closed loop."""
    server.reset()
    seen = see(client_of(how), Work(server.url, streams, how, TOKENS, seconds=seconds))
    if seen.failed or seen.events != server.get("stats")["events"]:
        raise FailedError(
            f"{seen.events} events seen of {server.get('stats')['events']}, {seen.failed} requests failed"
        )
    return rate(server), seen.cpu_s / seen.events * 1e6


def whole_program(server: Paced, judge: str, streams: int, seconds: float) -> Measured:
    """`streamgauge load` with all that belongs to it."""
    server.reset()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--users", str(streams), "--duration", f"{round(seconds)}s", "--max-tokens", str(TOKENS)]
        command = load_command(server.url, Path(folder) / "bundle", *options, "--judge", judge)
        pinned(command, codes=(0, 3))  # a client at its limit says that it is: inconclusive
    return rate(server), 0.0


def by_peer(server: Paced, peer: Peer, streams: int, seconds: float) -> Measured:
    """A peer's own client."""
    server.reset()
    requests = max(int(seconds * peer.kind.about / TOKENS), 4 * streams)
    peer.run(server.url, streams=streams, requests=requests, tokens=TOKENS)
    return rate(server), 0.0


def alone(server: Paced, how: str, seconds: float) -> Measured:
    """Every event in a read of its own: the streams begin spread over one gap."""
    server.reset()
    rounds = max(round(seconds / (TOKENS * GAP_MS / 1000)), 1)
    pace = {"ttft_ms": GAP_MS, "itl_ms": GAP_MS, "stamped": False}
    seen = see(client_of(how), Work(server.url, ALONE, how, TOKENS, rounds=rounds, pace=pace, spread_ms=GAP_MS))
    if seen.failed:
        raise FailedError(f"{seen.failed} requests failed")
    times = sorted(time for stream in server.get("dump")["paced"] for time in stream["t_w"])
    return len(times) / (times[-1] - times[0]) * 1e9, seen.cpu_s / seen.events * 1e6


def main() -> None:
    """A table for each number of streams, and one for events that come alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each client; the best counts")
    parser.add_argument("--streams", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FOLDER", help="a client and its programs")
    asked = parser.parse_args()
    peers = peers_of(asked.peer)
    with paced() as server:
        for streams in asked.streams:
            how_much = (streams, asked.seconds)
            work = {name_of(how): partial(one_write, server, how, *how_much) for how in (*OURS, *LOCUST)}
            work |= {f"streamgauge load, {how}": partial(whole_program, server, how, *how_much) for how in OURS}
            work |= {peer.kind.title: partial(by_peer, server, peer, *how_much) for peer in peers}
            show(f"{streams} streams, replies of {TOKENS} tokens in one write", work, asked.rounds)
        work = {name_of(how): partial(alone, server, how, asked.seconds) for how in (*OURS, *LOCUST)}
        show(f"{ALONE} streams, {GAP_MS:g} ms between tokens, each event alone", work, asked.rounds)


def show(title: str, work: dict[str, Callable[[], Measured]], rounds: int) -> None:
    """Run everything in turns and print the best of each, with the ratio of its rate to the first one's."""
    found: dict[str, list[Measured]] = {name: [] for name in work}
    troubles: dict[str, str] = {}
    for _ in range(rounds):
        for name, measure in work.items():
            if name not in troubles:
                try:
                    found[name].append(measure())
                except FailedError as problem:
                    troubles[name] = str(problem)
    print(f"\n{title}")
    reference = max((measured[0] for measured in found[next(iter(work))]), default=0.0)
    for name, measured in found.items():
        if name in troubles:
            print(f"  {name:32} skipped: {troubles[name]}")
            continue
        best, cost = max(rate for rate, _ in measured), min(cost for _, cost in measured)
        ratio = f"{best / reference:6.2f}" if reference else ""
        spent = f"{cost:9.2f} µs of CPU per event" if cost else ""
        print(f"  {name:32} {best:10,.0f} events/s {ratio}{spent}", flush=True)


if __name__ == "__main__":
    main()
