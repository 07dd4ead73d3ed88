"""What a load run says to the gate: every reason, and which of them decides."""

from collections.abc import Iterable
from typing import Any

import pytest

from streamgauge.load.outcome import LoadOutcome
from streamgauge.load.verdict import load_verdict
from streamgauge.metrics.client import ClientReport, judge_client
from streamgauge.metrics.objectives import Kept, Objective
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.slo import Slo
from streamgauge.metrics.summary import summarise
from streamgauge.metrics.telemetry import Telemetry
from streamgauge.outcomes import ExitCode

PASS, FAILED, CANNOT_TELL = ExitCode.PASS, ExitCode.GATE_FAILED, ExitCode.CANNOT_TELL


def records(outcomes: dict[str, int], **fields: Any) -> list[Record]:
    """So many requests with each outcome; a success has its first token after 200 ms."""
    return [
        Record("1", "t", "o", True, 0, 900_000, Outcome(name), token_times=[200_000] if name == "ok" else [], **fields)
        for name, count in outcomes.items()
        for _ in range(count)
    ]


def objective(text: str, kept: Kept) -> Objective:
    """An objective that became this."""
    return Objective(Slo.parse(text), kept, None, None, None, 1, f"because of {text}")


def verdict(
    outcomes: dict[str, int], *objectives: Objective, client: ClientReport | None = None, state: str = "finished"
) -> tuple[ExitCode, str]:
    """The verdict on such a run."""
    said = LoadOutcome(state, "it ended early\nin two lines" if state != "finished" else "", None, 0)
    return load_verdict(said, summarise(records(outcomes), None), objectives, client)


SLOW = judge_client(records({"ok": 10}, first_lag_us=90_000), Telemetry())
QUICK = judge_client(records({"ok": 10}), Telemetry())
KEPT = objective("ttft:p95<=500ms", Kept.PASS)
BROKEN = objective("e2e:p50<=2s", Kept.FAIL)
OPEN = objective("gap:p99<=100ms", Kept.INCONCLUSIVE)
ERRORS_KEPT = objective("errors<=5%", Kept.PASS)

CASES: list[tuple[str, tuple[ExitCode, str], ExitCode, Iterable[str]]] = [
    ("all is well", verdict({"ok": 9}), PASS, ["9 requests, none failed"]),
    ("with objectives", verdict({"ok": 9}, KEPT, client=QUICK), PASS, ["1 objectives kept, 9 requests, none failed"]),
    ("still running", verdict({"ok": 9, "unfinished_at_stop": 2}), PASS, ["11 requests, none failed"]),
    (
        "more running than answered",
        verdict({"ok": 9, "unfinished_at_stop": 10}),
        CANNOT_TELL,
        ["10 of 19 requests still ran when the run ended"],
    ),
    (
        "more running, but an objective says what counts",
        verdict({"ok": 9, "unfinished_at_stop": 10}, KEPT),
        PASS,
        ["kept"],
    ),
    ("an objective broken without a success", verdict({"http_5xx": 9}, BROKEN), FAILED, ["is broken"]),
    ("nobody there", verdict({"refused": 9}, BROKEN), CANNOT_TELL, ["none of 9 requests succeeded"]),
    (
        "failures",
        verdict({"ok": 9, "reset": 2, "dropped": 1}),
        FAILED,
        ["3 of 12 requests failed (2 reset, 1 dropped)"],
    ),
    ("failures that are allowed", verdict({"ok": 99, "reset": 1}, ERRORS_KEPT), PASS, ["1 reset failed"]),
    ("another objective allows none", verdict({"ok": 99, "reset": 1}, KEPT), FAILED, ["1 of 100 requests failed"]),
    ("broken", verdict({"ok": 9}, KEPT, BROKEN), FAILED, ["e2e:p50<=2000ms is broken: because of e2e:p50<=2s"]),
    ("undecided", verdict({"ok": 9}, KEPT, OPEN), CANNOT_TELL, ["gap:p99<=100ms is undecided: because"]),
    ("broken beats undecided", verdict({"ok": 9}, OPEN, BROKEN), FAILED, ["is broken", "is undecided"]),
    ("too slow to know", verdict({"ok": 9}, KEPT, client=SLOW), CANNOT_TELL, ["read first tokens late"]),
    # The error bars are within the objective's interval: broken is broken, however slow this client was.
    ("broken for certain", verdict({"ok": 9}, BROKEN, client=SLOW), FAILED, ["is broken", "read first tokens late"]),
    ("no room left", verdict({"ok": 9, "client_overload": 1}, client=QUICK), PASS, ["1 client_overload failed"]),
    ("given up", verdict({"ok": 9}, KEPT, state="aborted"), CANNOT_TELL, ["given up: it ended early"]),
    ("given up since it fails", verdict({"ok": 9, "empty": 9}, state="aborted"), FAILED, ["9 empty", "given up"]),
    ("no success", verdict({"reset": 9}, BROKEN), CANNOT_TELL, ["none of 9 requests succeeded (9 reset)"]),
    ("nothing", verdict({}), CANNOT_TELL, ["none of 0 requests succeeded"]),
    ("failed", verdict({"ok": 9}, BROKEN, state="failed"), CANNOT_TELL, ["load: it ended early"]),
    ("interrupted", verdict({"ok": 9}, BROKEN, state="interrupted"), ExitCode.INTERRUPTED, ["load: interrupted"]),
]


@pytest.mark.parametrize(("name", "found", "code", "said"), CASES, ids=[name for name, *_ in CASES])
def test_verdict(name: str, found: tuple[ExitCode, str], code: ExitCode, said: Iterable[str]) -> None:
    """The exit code that the docstring of the verdict promises, with every reason, the decisive one first, on one line."""
    assert found[0] is code
    places = [found[1].find(part) for part in said]
    assert -1 not in places
    assert places == sorted(places)
    assert "\n" not in found[1]


def test_no_room_left_is_a_reason_by_itself() -> None:
    """Requests that ended at limits of this client are no failure of the server, and no pass either."""
    made = records({"ok": 9, "client_overload": 1})
    code, reason = load_verdict(
        LoadOutcome("finished", "", None, 10), summarise(made, None), (), judge_client(made, Telemetry())
    )
    assert code is CANNOT_TELL
    assert "1 requests ended at limits of the client itself" in reason
