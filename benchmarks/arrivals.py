"""
Does an open loop send what its schedule says, when it says so? See for yourself: `nox -s bench_arrivals`.

Poisson arrivals, 500 a second, replies of 16 tokens, one run for each seed, with the whole program on one core. Given their
number, the arrivals of a Poisson process are spread evenly over the run (Daley and Vere-Jones, An Introduction to the Theory
of Point Processes, 2.1): the *actual* dispatch times of each run have to pass Kolmogorov and Smirnov's test of that at
0.001. Lateness is dispatch minus schedule. Every arrival has to be accounted for.
"""

import argparse
import json
import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from pinned import Paced, load_command, paced, pinned, quantile

from streamgauge.bundle.layout import LOAD
from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.run import load_records

SIGNIFICANCE = 0.001
LATEST_MS = 5.0
PACE = ("--ttft-ms", "20", "--itl-ms", "5")


def evenly(values: Sequence[float]) -> float:
    """
    The p-value of Kolmogorov and Smirnov's test that values between 0 and 1 are spread evenly.

    By Kolmogorov's limit with the correction for n of Stephens (Use of the Kolmogorov-Smirnov, Cramer-von Mises and Related
    Statistics without Extensive Tables, 1970); from n = 100 on within 0.02 of the exact value, and much nearer below 0.01.
    """
    n = len(values)
    distance = max(max((i + 1) / n - value, value - i / n) for i, value in enumerate(sorted(values)))
    scaled = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    if scaled < 0.2:
        return 1.0  # the series does not converge there, and its sum is 1 to twelve digits
    return min(max(2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101)), 0.0), 1.0)


def run(server: Paced, seed: int, rate: float, seconds: int, tokens: int) -> bool:
    """One line; whether everything holds."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "bundle"
        options = ["--rate", f"{rate:g}", "--duration", f"{seconds}s", "--max-tokens", str(tokens), "--seed", str(seed)]
        done = pinned(load_command(server.url, bundle, *options), codes=(0, 1, 3))
        planned = json.loads((bundle / LOAD).read_text("utf-8"))["scheduled"]
        records = load_records(Bundle(bundle))
    counted = Counter(record.outcome for record in records)
    sent = sorted((record.dispatched, record.scheduled) for record in records if record.outcome is not Outcome.DROPPED)
    # The schedule begins where its first arrival says; a run is not shifted by being late as a whole.
    first = min(scheduled for _, scheduled in sent)
    span = max(max(scheduled for _, scheduled in sent) - first, 1)
    inner = [(dispatched - first) / span for dispatched, _ in sent[1:-1]]
    p = evenly([min(max(place, 0.0), 1.0) for place in inner])
    # Stricter, and no condition: two arrivals that are closer than a request takes to be sent cannot both be on time.
    gaps = [1 - math.exp(-rate * (after - before) / 1e6) for (before, _), (after, _) in pairwise(sent)]
    late_ms = [(dispatched - scheduled) / 1000 for dispatched, scheduled in sent]
    p99 = quantile(late_ms, 0.99)
    holds = p >= SIGNIFICANCE and p99 < LATEST_MS and len(records) == planned
    told = [
        f"{planned} scheduled = {' + '.join(f'{count} {outcome}' for outcome, count in counted.items())}",
        f"p of the times {p:.3f}, of the gaps {evenly(gaps):.3f}",
        f"late by p50 {quantile(late_ms, 0.5):.2f}, p99 {p99:.2f}, max {max(late_ms):.2f} ms",
        f"CPU {done.cpu_s / done.wall_s:.0%}, exit code {done.code}",
        "holds" if holds else "DOES NOT HOLD",
    ]
    print(f"seed {seed:3}: {'; '.join(told)}", flush=True)
    return holds


def main() -> None:
    """One line for each seed, and how many hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="seeds 1 to N")
    parser.add_argument("--seconds", type=int, default=30, help="of each run")
    parser.add_argument("--rate", type=float, default=500.0, help="requests per second")
    parser.add_argument("--tokens", type=int, default=16, help="of each reply")
    asked = parser.parse_args()
    held = 0
    for seed in range(1, asked.seeds + 1):
        with paced(*PACE) as server:
            held += run(server, seed, asked.rate, asked.seconds, asked.tokens)
    print(f"{held} of {asked.seeds} runs hold")


if __name__ == "__main__":
    main()
