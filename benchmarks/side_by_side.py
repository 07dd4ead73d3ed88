"""
`schemathesis run` and ours on the same list of coverage cases, against the same endpoint: `nox -s bench`.

Both make the cases of three operations, send each and judge it in full; ours with every check there is. The endpoint is the
reference endpoint in a process of its own, once answering at once, once 50 ms after each request. What is timed is a whole
process on either side, from its start to its verdict. They take turns.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from streamgauge.contract.contract import load_contracts
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL

HERE = Path(__file__).parent
SPECS = ("seekr-chat-completions", "seekr-completions", "deepinfra-completions")
NAMES = ("seekr-chat", "seekr-completions", "deepinfra-completions")
"""The same documents, as `--spec` takes them."""

DELAYS_MS = (0, 50)
WORKERS = (1, 2, 4, 8)
ROUNDS = 2

WHOLE = 0.99
"""Which part of the cases a run must have sent: Schemathesis' own count differs by one or two from run to run."""

CONFIGURATION = '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "400", "422"]\n'


def merged() -> dict[str, Any]:
    """The three documents as one, so that Schemathesis' workers have something to divide; the key is set by a hook."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for number, spec in enumerate(SPECS):
        text = json.dumps(yaml.safe_load((HERE.parent / "spec" / "openapi" / f"{spec}.yaml").read_text("utf-8")))
        document = json.loads(text.replace("#/components/schemas/", f"#/components/schemas/D{number}"))
        paths |= document["paths"]
        schemas |= {f"D{number}{name}": schema for name, schema in document["components"]["schemas"].items()}
    for item in paths.values():
        item["post"].pop("security", None)
    return {
        "openapi": "3.1.0",
        "info": {"title": "merged", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def serve(delay_ms: float) -> None:
    """The endpoint; ends with standard input."""
    from streamgauge.reference.messages import Reply
    from streamgauge.reference.responder import Responder
    from streamgauge.reference.server import serve as serve_on
    from streamgauge.reference.settings import Settings

    class Late(Responder):
        def reply(self, *asked: Any, **how: Any) -> Reply:
            reply = super().reply(*asked, **how)
            return replace(reply, writes=[replace(write, due_ms=write.due_ms + delay_ms) for write in reply.writes])

    async def until_told() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)

        def ready(port: int) -> None:
            print(f"http://127.0.0.1:{port}", flush=True)

        await serve_on(Late(Settings()), "127.0.0.1", 0, ready=ready, stop=stop)

    asyncio.run(until_told())


@contextmanager
def endpoint(delay_ms: float) -> Iterator[str]:
    """Its base URL, while the block runs."""
    command = [sys.executable, __file__, "serve", str(delay_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def ours(url: str, document: str) -> None:
    """Makes, sends and judges, and prints the number of cases. What is drawn of one operation is sent while others are drawn."""
    from streamgauge.conformance.probes.drawing import Task, begin
    from streamgauge.conformance.runner import judge_all, throwaway_hypothesis

    text = Path(document).read_text("utf-8")
    with throwaway_hypothesis(), tempfile.TemporaryDirectory() as folder:
        # The longest is the first one in the document: there is something to send while it is drawn.
        paths = list(reversed(json.loads(text)["paths"]))
        drawings = dict(zip(paths, begin(Task(text, path, "POST") for path in paths), strict=True))

        from affordable import affordable

        from streamgauge.conformance.check import CHECKS
        from streamgauge.conformance.plan import Planned
        from streamgauge.conformance.probes.probe import Probe
        from streamgauge.conformance.recording import record
        from streamgauge.conformance.session import Settings
        from streamgauge.runs import open_bundle
        from streamgauge.target import Target

        targets = [
            Target(contract.profile.name, url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)
            for contract in load_contracts(NAMES)
        ]
        writer, meta = open_bundle("check", targets, output=Path(folder) / "bundle")
        writer.checks([check.declaration() for check in CHECKS.values()])
        writer.meta({**meta, "not_run": []})
        settings = Settings(targets, writer.path)
        sent: set[str] = set()
        for target in reversed(targets):
            planned = [
                Planned(
                    target,
                    operation,
                    Probe(f"generated.case-{number}", affordable(case.body), method=case.method, headers=case.headers),
                )
                for operation in target.contract.operations
                for number, case in enumerate(drawings[operation.path].covered)
            ]
            record(planned, writer.path, limits=settings.limits, on_exchange=lambda exchange: sent.add(exchange.id))
        judge_all(settings)
        assert (writer.path / "findings.jsonl").stat().st_size
    print(len(sent))


def run_ours(url: str, document: str) -> int:
    """Cases that ours sent and judged."""
    done = subprocess.run([sys.executable, __file__, "ours", url, document], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def run_theirs(url: str, document: str, workers: int) -> int:
    """Cases that Schemathesis sent and judged, in a folder of its own: it keeps Hypothesis' tables there."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "schemathesis.toml").write_text(CONFIGURATION)
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", document]
        command += [
            "--url",
            url,
            "--phases",
            "coverage",
            "--workers",
            str(workers),
            "--continue-on-failure",
            "--no-color",
        ]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks"}
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True)
    counted = re.search(r"(\d+) generated", done.stdout)
    assert counted, done.stdout + done.stderr
    return int(counted[1])


def timed(work: Callable[[], int]) -> tuple[float, int]:
    """Seconds, and how many cases."""
    start = time.perf_counter()
    cases = work()
    return time.perf_counter() - start, cases


def main() -> None:
    """One line for each pace of the endpoint."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "merged.json"
        document.write_text(json.dumps(merged()))
        for delay_ms in DELAYS_MS:
            with endpoint(delay_ms) as url:
                compare(url, str(document), delay_ms)


def compare(url: str, document: str, delay_ms: float) -> None:
    """
    Ours against Schemathesis with its best number of workers.

    Of a run that lost cases the time does not count: with several workers, threads of Python 3.11 may stumble over `ast.parse`
    (`SystemError: AST constructor recursion depth mismatch`), and an operation is left out.
    """
    mine: list[tuple[float, int]] = []
    theirs: dict[int, list[tuple[float, int]]] = {workers: [] for workers in WORKERS}
    for _ in range(ROUNDS):
        for workers, runs in theirs.items():
            runs.append(timed(partial(run_theirs, url, document, workers)))
        mine.append(timed(partial(run_ours, url, document)))
    seconds, cases = min(mine)
    whole = {workers: [taken for taken, sent in runs if sent >= WHOLE * cases] for workers, runs in theirs.items()}
    fastest = {workers: min(taken) for workers, taken in whole.items() if taken}
    best = min(fastest, key=lambda workers: fastest[workers])
    told = ", ".join(f"{n}: {fastest[n]:.1f} s" if n in fastest else f"{n}: lost cases" for n in WORKERS)
    print(
        f"cases   endpoint of {delay_ms} ms, {cases} coverage cases: ours {seconds:.1f} s, {cases / seconds:,.0f} cases/s; "
        f"schemathesis run {fastest[best]:.1f} s, {cases / fastest[best]:,.0f} cases/s with {best} workers ({told}): "
        f"{fastest[best] / seconds:.1f} times as fast",
        flush=True,
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", delay]:
            serve(float(delay))
        case ["ours", url, document]:
            ours(url, document)
        case _:
            main()
