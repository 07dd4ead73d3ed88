"""What a person sees of a run, and what its end means."""

import io
from typing import Any

import pytest
from rich.console import Console

from streamgauge.load.live import live_view
from streamgauge.load.measure import print_summary
from streamgauge.load.runner import LoadOutcome
from streamgauge.load.tally import Progress
from streamgauge.load.verdict import load_verdict
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.summary import Summary, summarise
from streamgauge.outcomes import ExitCode


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
        "planned_s": 20,
        "requests": 300,
        "planned_requests": None,
        "outcomes": {Outcome.OK: 299, Outcome.EMPTY: 1},
        "tokens_per_s": 123.4,
        "ttft_ms": tuple(float(value) for value in range(1, 201)),
        "e2e_ms": (7.25,),
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
        ({"planned_s": 0}, "running"),
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


def test_the_table_at_the_end() -> None:
    """Counts, distributions with their n, rates and notes; nothing for a run without a request."""
    text = io.StringIO()
    console = Console(file=text, width=100, highlight=False)
    print_summary(summary(), console)
    assert text.getvalue() == ""
    print_summary(summary(ok=3, empty=1), console)
    shown = text.getvalue()
    for part in ("4 requests: 3 ok, 1 empty", "Time to first token", "200.0", "requests per second", "note:"):
        assert part in shown
    assert [line.split()[-5] for line in shown.splitlines() if line.startswith("Time to first token")] == ["3"]
