"""
How wrong the times are that a client reports on one core: `nox -s bench_load`.

The paced server sends the first token 200 ms after a request, the others 20 ms apart, 64 in all, and stamps each. All streams
begin at once, and each asks again when it has its answer. Connections are opened beforehand where a client can do that.

*Error* is that of each request (its time to first token) and of each gap between tokens, as far as a client tells them one by
one; *figures* are the quantiles that it reports minus the true ones of the same requests. All in milliseconds.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from peers import Figures, Peer, peers_of
from pinned import FailedError, Paced, Seen, Work, load_command, paced, pinned, quantile, see

from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.run import load_records

TOKENS = 64
ROUNDS = 2
PACE = {"ttft_ms": 200.0, "itl_ms": 20.0}
OPTIONS = ("--ttft-ms", "200", "--itl-ms", "20", "--spin")
ON_THE_WAY_MS = 0.1
"""From the server's stamp to the client's socket."""

OURS = ("ends", "all")
LOCUST = ("FastHttpUser, readline", "FastHttpUser, iter_lines", "HttpUser")


def true_times(stream: dict[str, Any]) -> list[float]:
    """When the request had arrived and each token was sent, in ms."""
    return [time / 1e6 for time in (stream["t_recv"], *stream["t_w"])]


def differences(times: list[float]) -> tuple[float, list[float]]:
    """Time to first token, and the gaps."""
    start, *tokens = times
    return tokens[0] - start, [after - before for before, after in pairwise(tokens)]


def figures(ttfts: list[float], gaps: list[float]) -> Figures:
    """The quantiles that are compared."""
    named = {"ttft": ttfts, "gap": gaps}
    return {f"{name} p{p}": quantile(values, p / 100) for name, values in named.items() for p in (50, 99)}


def complete(server: Paced) -> dict[str, list[float]]:
    """The true times of every stream of the run, by its name or else its place; what probed the server is left out."""
    streams = [stream for stream in server.get("dump")["paced"] if stream["tokens"] == TOKENS]
    if any(stream["blocked"] or len(stream["t_w"]) != TOKENS for stream in streams):
        raise FailedError("the server could not send as it wanted, or a client left")
    return {stream["name"] or str(place): true_times(stream) for place, stream in enumerate(streams)}


def told_one_by_one(server: Paced, how: str, streams: int) -> str:
    """Ours and plain Locust: each request beside what the server knows of it."""
    server.reset()
    client = "client_ours" if how in OURS else "client_locust"
    seen = see(client, Work(server.url, streams, how, TOKENS, rounds=ROUNDS, pace=PACE))
    truth = complete(server)
    if seen.failed or seen.requests.keys() != truth.keys():
        raise FailedError(f"{seen.failed} of {len(seen.requests)} requests failed, {len(truth)} streams were sent")
    ttft_errors, gap_errors, ttfts, gaps, true_ttfts, true_gaps, late = [], [], [], [], [], [], []
    for name, stamps in seen.requests.items():
        ttft, between = differences([stamp / 1000 for stamp in stamps])
        true_ttft, true_between = differences(truth[name])
        ttft_errors.append(ttft - true_ttft)
        late.append(stamps[1] / 1000 - truth[name][1])
        gap_errors += [abs(a - b) for a, b in zip(between, true_between, strict=True)]
        ttfts.append(ttft)
        gaps += between
        true_ttfts.append(true_ttft)
        true_gaps += true_between
    errors = f"{quantile(ttft_errors, 0.5):+8.2f} {quantile(ttft_errors, 0.99):+8.2f} {max(ttft_errors):+8.2f}"
    errors += f" | {quantile(gap_errors, 0.5):7.2f} {quantile(gap_errors, 0.99):7.2f}"
    return f"{errors} | {_beside(figures(ttfts, gaps), figures(true_ttfts, true_gaps))}{_lag(seen, late)}"


def told_in_all(server: Paced, peer: Peer, streams: int) -> str:
    """A peer: its own figures beside the true ones."""
    server.reset()
    _, reported = peer.run(server.url, streams=streams, requests=streams * ROUNDS, tokens=TOKENS)
    return f"{'-':>26} | {'-':>15} | {_beside(reported, _all_figures(complete(server).values()))}"


def told_by_records(server: Paced, how: str, streams: int) -> str:
    """`streamgauge load` with all that belongs to it: the figures of its records beside the true ones."""
    server.reset()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--users", str(streams), "--requests", str(streams * ROUNDS), "--max-tokens", str(TOKENS)]
        done = pinned(load_command(server.url, Path(folder) / "bundle", *options, "--judge", how), codes=(0, 3))
        records = load_records(Bundle(Path(folder) / "bundle"))
    times = [[stamp / 1000 for stamp in (record.dispatched, *record.token_times)] for record in records]
    reported, true = _all_figures(times), _all_figures(complete(server).values())
    said = "says that it cannot tell (3)" if done.code else "says that it can tell (0)"
    return f"{'-':>26} | {'-':>15} | {_beside(reported, true)} | {said}"


def _all_figures(streams: Iterable[list[float]]) -> Figures:
    found = [differences(times) for times in streams]
    return figures([ttft for ttft, _ in found], [gap for _, between in found for gap in between])


def _beside(reported: Figures, true: Figures) -> str:
    shown = [f"{reported[name] - true[name]:+9.2f}" if name in reported else f"{'-':>9}" for name in true]
    return " ".join(shown)


def _lag(seen: Seen, late: list[float]) -> str:
    """What ours says of itself: by how much first tokens may have come earlier than stamped, and how many came earlier still."""
    if not seen.lag_us:
        return ""
    beyond = sum(ms > lag / 1000 + ON_THE_WAY_MS for ms, lag in zip(late, seen.lag_us, strict=True)) / len(late)
    return f" | says lag p99 {quantile(seen.lag_us, 0.99) / 1000:.2f}, beyond it {beyond:.1%}"


def main() -> None:
    """A table for each number of streams; all candidates take turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 256, 512])
    parser.add_argument("--runs", type=int, default=1, help="runs of each client; all are shown")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=FOLDER", help="a client, and where its programs lie"
    )
    asked = parser.parse_args()
    peers = peers_of(asked.peer)
    with paced(*OPTIONS) as server:
        for streams in asked.streams:
            print(f"\n{streams} streams, true TTFT 200 ms, gap 20 ms")
            print(
                f"{'':36} {'TTFT error p50 p99 max':>26} | {'gap err p50 p99':>15} | figures: TTFT p50 p99, gap p50 p99"
            )
            work = {name_of(how): partial(told_one_by_one, server, how, streams) for how in (*OURS, *LOCUST)}
            work |= {f"streamgauge load, {how}": partial(told_by_records, server, how, streams) for how in OURS}
            work |= {peer.kind.title: partial(told_in_all, server, peer, streams) for peer in peers}
            for _ in range(asked.runs):
                for name, measure in work.items():
                    show(name, measure)
            late = server.get("stats")["late_us"]
            print(
                f"{'(the server itself was late by':36} p50 {late['p50']} µs, p99 {late['p99']} µs, which no figure contains)"
            )


def name_of(how: str) -> str:
    """As the tables call it."""
    return f"ours, judged {how}" if how in OURS else f"Locust {how}"


def show(name: str, measure: Callable[[], str]) -> None:
    """One line."""
    try:
        print(f"{name:36} {measure()}", flush=True)
    except FailedError as problem:
        print(f"{name:36} skipped: {problem}", flush=True)


if __name__ == "__main__":
    main()
