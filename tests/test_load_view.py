"""What a person sees of a run, and what its end means."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.contract.contract import load_contracts
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.live import live_view
from streamgauge.load.measure import heading, print_figures
from streamgauge.load.outcome import LoadOutcome
from streamgauge.load.plan import LoadPlan, Part
from streamgauge.load.tally import Progress
from streamgauge.load.verdict import load_verdict
from streamgauge.metrics.client import Bar, judge_client
from streamgauge.metrics.figures import Figures
from streamgauge.metrics.objectives import Kept, Objective
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.slo import Slo
from streamgauge.metrics.summary import Summary, summarise
from streamgauge.metrics.telemetry import Telemetry
from streamgauge.outcomes import ExitCode
from streamgauge.target import Target


def summary(**outcomes: int) -> Summary:
    """The figures of a run in which so many requests ended so."""
    records = [
        Record(
            id=f"{name}-{number}",
            target="t",
            operation="o",
            stream=True,
            dispatched=1_000_000,
            closed=3_000_000,
            outcome=Outcome(name),
            token_times=[1_200_000, 1_300_000],
            completion_tokens=2,
        )
        for name, count in outcomes.items()
        for number in range(count)
    ]
    return summarise(records, (1_000_000, 2_000_000))


VERDICTS = [
    ("finished", {"ok": 5}, ExitCode.PASS),
    ("finished", {"ok": 5, "unfinished_at_stop": 2}, ExitCode.PASS),
    ("finished", {"ok": 5, "empty": 1}, ExitCode.GATE_FAILED),
    ("finished", {"ok": 1, "rate_limited": 9}, ExitCode.GATE_FAILED),
    ("finished", {"refused": 5}, ExitCode.CANNOT_TELL),
    ("finished", {"rate_limited": 5}, ExitCode.CANNOT_TELL),
    ("finished", {"unfinished_at_stop": 5}, ExitCode.CANNOT_TELL),
    ("failed", {"ok": 5}, ExitCode.CANNOT_TELL),
    ("failed", {}, ExitCode.CANNOT_TELL),
    ("interrupted", {"ok": 5}, ExitCode.INTERRUPTED),
    ("interrupted", {"refused": 5}, ExitCode.INTERRUPTED),
]


@pytest.mark.parametrize(("state", "outcomes", "expected"), VERDICTS)
def test_verdict(state: str, outcomes: dict[str, int], expected: ExitCode) -> None:
    """The exit code follows from how the run ended and what became of its requests."""
    code, reason = load_verdict(LoadOutcome(state, "it broke\nin two lines", None, 0), summary(**outcomes))
    assert code is expected
    assert "\n" not in reason
    if code is ExitCode.GATE_FAILED:
        assert all(f"{count} {name}" in reason for name, count in outcomes.items() if name != "ok")


def progress(**changes: Any) -> Progress:
    """A run at 6 of 20 seconds."""
    settings: dict[str, Any] = {
        "elapsed_s": 6.2,
        "planned_s": 20.0,
        "requests": 300,
        "planned_requests": None,
        "outcomes": {Outcome.OK: 299, Outcome.EMPTY: 1},
        "asked_per_s": None,
        "done_per_s": 48.25,
        "tokens_per_s": 123.4,
        "ttft_ms": tuple(float(value) for value in range(1, 201)),
        "e2e_ms": (7.25,),
        "running": None,
        "lag_ms": None,
        "stopping": False,
    }
    return Progress(**{**settings, **changes})


def seen(*states: Progress, terminal: bool, quiet: bool = False) -> str:
    """What a console of this kind shows of these states."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, quiet=quiet, width=100, highlight=False)
    with live_view(console) as show:
        for state in states:
            show(state)
    return text.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    """One line every five seconds, with everything that the table would show."""
    states = [progress(elapsed_s=elapsed) for elapsed in (0.2, 4.9, 5.1, 5.4, 9.9, 10.1)]
    lines = seen(*states, terminal=False).splitlines()
    assert [line.split(",")[0] for line in lines] == ["5 of 20 s", "10 of 20 s"]
    for part in ("300 requests", "299 ok, 1 empty", "123 tok/s", "TTFT p50 100.0 ms, p99 198.0 ms", "E2E p50"):
        assert part in lines[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "6 of 20 s, running"),
        ({"elapsed_s": 21.0}, "waiting for the requests in flight"),
        ({"stopping": True}, "waiting for the requests in flight"),
        ({"requests": 5, "planned_requests": 10}, "5 of 10 requests"),
        ({"ttft_ms": (), "e2e_ms": (), "outcomes": {}}, "none ended yet"),
        ({"ttft_ms": (1.0,) * 99}, "p99 -"),
        ({"planned_s": 0}, "6 s, running"),
        ({"elapsed_s": -1.0}, "0 of 20 s, making ready"),
        ({}, "48.2 requests/s"),
        ({"asked_per_s": 50.0}, "48.2 requests/s of 50.0 asked"),
        ({"asked_per_s": 0.0, "elapsed_s": 21.0}, "48.2 requests/s  "),
        ({"asked_per_s": 50.0, "stopping": True}, "48.2 requests/s  "),
        ({"running": 12}, "300 requests, 12 running"),
        ({"lag_ms": 3.25}, "client lag p99 3.2 ms"),
    ],
)
def test_the_live_table(changes: dict[str, Any], said: str) -> None:
    """The table says where the run stands; a quantile that the sample cannot bear is not shown."""
    assert said in seen(progress(**changes), terminal=True)


def test_lines_on_a_terminal_that_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the terminal only appends (TERM=dumb), there are lines, not nothing."""
    monkeypatch.setenv("TERM", "dumb")
    assert seen(progress(), terminal=True).startswith("6 of 20 s, 300 requests")


def test_quiet_shows_nothing() -> None:
    """Quiet is quiet, on a terminal or off."""
    assert seen(progress(), terminal=False, quiet=True) == ""
    assert seen(progress(), terminal=True, quiet=True) == ""


def shown(console_width: int = 110, records: Sequence[Record] = (), **outcomes: int) -> str:
    """The tables at the end of a run in which so many requests ended so, and had these records."""
    run = summary(**outcomes)
    client = replace(
        judge_client([], Telemetry()),
        reasons=("its loop was late",),
        warnings=("it was busy",),
        bars={"ttft": {0.5: Bar(199.0, 200.0), 0.9: Bar(199.99, 200.0)}},
        lateness_p99_ms=1.25,
        cpu=0.5,
        loop_lag_p99_ms=2.0,
        processes=2,
    )
    objective = Objective(Slo("ttft", 0.95, 500), Kept.PASS, 200.0, 199.0, 201.0, 3, "it was 200 ms")
    text = io.StringIO()
    found = Figures({}, [*records], None, run, (objective,), client, Telemetry())
    print_figures(found, Console(file=text, width=console_width, highlight=False))
    return text.getvalue()


def test_the_table_at_the_end() -> None:
    """Counts, distributions with their n, rates and notes; nothing for a run without a request."""
    assert shown() == ""
    table = shown(ok=3, empty=1)
    for part in ("4 requests: 3 ok, 1 empty", "Time to first token", "200.0", "requests per second", "note:"):
        assert part in table
    assert "PASS ttft:p95<=500ms: it was 200 ms" in table
    assert "client: 2 processes, 50% of a core, loop lag p99 2.0 ms, dispatch late p99 1.2 ms" in table
    assert "client: too slow to know: its loop was late" in table
    assert "client: it was busy" in table


def test_error_bars() -> None:
    """A quantile says by how much this client's own delays may have raised it, where one decimal shows that."""
    row = next(line for line in shown(ok=30).splitlines() if line.startswith("Time to first token "))
    assert row.split()[4:8] == ["30", "200.0", "-1.0", "200.0"]
    assert "behind the minus" in shown(ok=30)
    assert "behind the minus" not in shown(ok=1, empty=1)


def test_failures_say_what_was_wrong() -> None:
    """Of each kind what the first request said, on one line; nothing of the warm-up, nor of what merely still ran."""
    ends = [
        (Outcome.HTTP_5XX, 3, "the later one", False),
        (Outcome.HTTP_5XX, 2, "503: no\nroom", False),
        (Outcome.EMPTY, 1, "of the warm-up", True),
        (Outcome.UNFINISHED_AT_STOP, 1, "still running", False),
        (Outcome.RATE_LIMITED, 9, "", False),
    ]
    records = [
        Record("1", "t", "o", True, at, 10, outcome, detail=detail, warm_up=warm_up)
        for outcome, at, detail, warm_up in ends
    ]
    lines = shown(ok=1, http_5xx=2, records=records).splitlines()
    assert "  http_5xx: 503: no room" in lines
    assert not any(said in line for line in lines for said in ("later", "of the warm-up", "still", "rate_limited"))


def test_no_empty_table() -> None:
    """Where no request succeeded there is no table of latencies."""
    assert "p50" not in shown(unfinished_at_stop=2)


SEEKR = load_contracts(["seekr-chat"])[0]
PART = Part(SEEKR.operations[0], True)
HEADINGS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["8 users for 20 s at http://h/v1/inference/chat/completions", "streams", "about 64 tokens in", "seed 0"]),
    ({"loop": ClosedLoop(3, 0.5)}, ["3 users, each thinking for 0.5 s on average"]),
    (
        {"loop": OpenLoop((Segment(5, 10, 50), Segment(15, 50, 50)), "gamma", 0.25), "warm_up_s": 5.0},
        ["10 to 50, then 50 requests/s, gamma (burstiness 0.25) arrivals for 20 s, 5 s of it warm-up"],
    ),
    (
        {"mix": (PART, replace(PART, stream=False, weight=3.0))},
        ["25% seekr-chat streams, 75% seekr-chat whole answers"],
    ),
    (
        {"mix": (replace(PART, stream=False),), "dataset": Path("of/mine.jsonl")},
        ["whole answers, prompts of mine.jsonl"],
    ),
]


@pytest.mark.parametrize(("changes", "parts"), HEADINGS)
def test_heading(changes: dict[str, Any], parts: list[str]) -> None:
    """The line before a run names the load, the mix, the lengths and the seed."""
    target = Target("t", "http://h", SEEKR, model="m")
    line = heading(LoadPlan(target, **{"mix": (PART,), **changes}))
    for part in parts:
        assert part in line
