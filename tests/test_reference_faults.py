"""Faults over real sockets: how a connection ends, how often a fault strikes, and what `--fault` takes."""

import asyncio
import json
from pathlib import Path

import pytest
from commandline import streamgauge
from impatience import lose_patience

from streamgauge.contract.contract import load_contracts
from streamgauge.errors import UsageError
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults import FAULTS
from streamgauge.reference.faults.fault import Stage
from streamgauge.reference.faults.switched import SwitchedFaults
from streamgauge.reference.launch import running
from streamgauge.reference.messages import Request
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.target import Target
from streamgauge.wire.ending import StreamEnding, stream_ending
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

CONTRACT = load_contracts(["seekr-completions"])[0]
PATIENT = Limits(connect=30, idle=40, total=60)
HASTY = Limits(connect=30, idle=0.2, total=60)


def send(*faults: str, times: int = 1, stream: bool = True, limits: Limits = PATIENT) -> list[Exchange]:
    """What the endpoint with these faults answers to one request, asked one time after another."""
    (operation,) = CONTRACT.operations
    body = {"model": DEFAULT_MODEL, "prompt": "x", "max_tokens": 4, "stream": stream}

    async def run(url: str) -> list[Exchange]:
        target = Target("t", url, CONTRACT, model=DEFAULT_MODEL, key=DEFAULT_KEY)
        outgoing = Outgoing(target.url(operation), json.dumps(body).encode(), target.credential)
        async with Recorder(target, limits=limits) as recorder:
            return [await recorder.send(outgoing) for _ in range(times)]

    with running(profiles=[CONTRACT.profile.name], faults=faults) as url:
        return asyncio.run(run(url))


@pytest.mark.parametrize(
    ("fault", "transfer", "stream"),
    [
        ("ending.cut-between-events", Ending.CLOSED, StreamEnding.CLOSED),
        ("ending.cut-in-event", Ending.CLOSED, StreamEnding.CLOSED),
        ("ending.reset", Ending.RESET, StreamEnding.RESET),
        ("ending.hang", Ending.TIMEOUT_IDLE, StreamEnding.HANG),
        ("ending.hang-behind-done", Ending.TIMEOUT_IDLE, StreamEnding.HANG),
        ("ending.cut-in-order", Ending.COMPLETE, StreamEnding.EOF),
        ("http.no-final-chunk", Ending.CLOSED, StreamEnding.DONE),
        ("http.wrong-chunk-size", Ending.MALFORMED_HTTP, StreamEnding.BROKEN),
    ],
)
def test_a_stream_ends_on_the_socket_as_its_fault_says(
    fault: str, transfer: Ending, stream: StreamEnding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLOSE is a close, RESET a reset, HANG a silence that only the client's patience ends; the status was 200."""
    if transfer is Ending.TIMEOUT_IDLE:
        lose_patience(monkeypatch)
    (exchange,) = send(fault)

    assert (exchange.status, exchange.ending, stream_ending(exchange)) == (200, transfer, stream)
    if transfer is not Ending.RESET:  # a reset may take from the client what it had not read
        assert exchange.stream.events


@pytest.mark.parametrize(
    ("fault", "limits", "expected"),
    [
        ("http.no-answer", PATIENT, Ending.CLOSED),
        ("http.reset-at-once", PATIENT, Ending.RESET),
        ("http.silence", HASTY, Ending.TIMEOUT_IDLE),
        ("http.garbage", PATIENT, Ending.MALFORMED_HTTP),
    ],
)
def test_an_answer_stays_out_as_its_fault_says(fault: str, limits: Limits, expected: Ending) -> None:
    """No status arrives, and the ways to stay silent are told apart."""
    (exchange,) = send(fault, limits=limits, stream=False)

    assert (exchange.status, exchange.ending) == (0, expected)


def test_the_endpoint_outlives_its_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a reset, a close or a silence the next request is answered as ever."""
    for fault, ending in (
        ("ending.reset@0.5", StreamEnding.RESET),
        ("ending.cut-in-event@0.5", StreamEnding.CLOSED),
        ("ending.hang@0.5", StreamEnding.HANG),
    ):
        if ending is StreamEnding.HANG:
            lose_patience(monkeypatch)
        found = [stream_ending(each) for each in send(fault, times=6)]
        assert set(found) == {StreamEnding.DONE, ending}
        assert StreamEnding.DONE in found[found.index(ending) :]


def test_a_probability_draws_by_the_seed() -> None:
    """The same requests in the same order meet the same faults, over sockets as in memory; another seed, others."""
    told = "sse.no-done@0.5"
    over_sockets = [bool(each.stream.done) for each in send(told, times=24)]

    assert over_sockets == _has_done(told, 24, seed=0) == _has_done(told, 24, seed=0)
    assert over_sockets != _has_done(told, 24, seed=1)
    assert 0 < sum(over_sockets) < 24


def test_a_probability_is_kept_in_the_long_run() -> None:
    """0.2 of 2000 is 400; 5 standard deviations are 90."""
    struck = 2000 - sum(_has_done("sse.no-done@0.2", 2000, seed=3))

    assert 310 < struck < 490


def test_after_spares_the_first_replies_that_it_could_strike() -> None:
    """`after=N` counts replies that the fault concerns, not all."""
    over_sockets = [bool(each.stream.done) for each in send("sse.no-done,after=3", times=6)]

    assert over_sockets == [True] * 3 + [False] * 3
    assert _has_done("sse.no-done,after=2", 5, seed=0, wholes_between=True) == [True, True, False, False, False]


def test_after_and_a_probability_go_together() -> None:
    """The first N are spared; behind them the draws begin."""
    drawn = _has_done("sse.no-done@0.5", 20, seed=0)

    assert _has_done("sse.no-done@0.5,after=4", 24, seed=0) == [True] * 4 + drawn


def test_faults_compose() -> None:
    """Several strike the same reply, in the order of the responder's steps."""
    (exchange,) = send("ending.cut-in-event", "sse.cr-only", "http.text-plain")

    assert exchange.response.media_type == "text/plain"
    assert b"\n" not in exchange.response.body
    assert stream_ending(exchange) is StreamEnding.CLOSED


@pytest.mark.parametrize("fault", ["sse.bom", "http.text-plain", "http.second-answer", "ending.end-late"])
def test_a_fault_of_a_late_stage_loses_nothing_of_a_stream(fault: str) -> None:
    """The responder makes streams on the fly; a fault that looks at them leaves all events where they were."""
    bent, right = (
        b"".join(write.data for write in Responder(settings, contracts=[CONTRACT]).reply(_request(stream=True)).writes)
        for settings in (Settings(faults=(fault,)), Settings())
    )

    assert bent != right
    assert bent.count(b"data: ") == right.count(b"data: ")


@pytest.mark.parametrize(
    "told",
    [
        "sse.no-such-fault",
        "",
        "sse.no-done@",
        "sse.no-done@often",
        "sse.no-done@0",
        "sse.no-done@1.5",
        "sse.no-done@-0.5",
        "sse.no-done@nan",
        "sse.no-done,after=",
        "sse.no-done,after=soon",
        "sse.no-done,after=-1",
        "sse.no-done,after=1.5",
        "sse.no-done,before=1",
        "sse.no-done,after=1@0.5",
        "sse.no-done@0.5@0.5",
        "sse.no-done sse.done-twice",
    ],
)
def test_bad_faults_are_refused(told: str) -> None:
    """A name, a probability in (0, 1], a count from 0 on; the message names what was told."""
    with pytest.raises(UsageError) as caught:
        SwitchedFaults([told])

    assert told in str(caught.value)


@pytest.mark.parametrize("told", ["sse.no-such-fault", "sse.no-done@2", "sse.no-done,after=x"])
def test_a_bad_fault_ends_the_command_on_one_screen(told: str, tmp_path: Path) -> None:
    """Exit code 2, what and where and how to mend it, and no traceback."""
    found = streamgauge("serve", "--port", "0", "--fault", told, cwd=tmp_path)

    assert found.returncode == 2
    assert told in found.stderr
    assert "streamgauge list faults" in found.stderr
    assert "Traceback" not in found.stderr + found.stdout
    assert len(found.stderr.splitlines()) < 24


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_can_be_told_in_every_form(name: str) -> None:
    """Names have no character that the form needs."""
    SwitchedFaults([name, f"{name}@0.5", f"{name},after=2", f"{name}@1,after=0"])


def test_no_fault_bends_nothing() -> None:
    """A draft passes every stage unchanged."""
    draft = Draft(_request(stream=True), CONTRACT, CONTRACT.operations[0], DEFAULT_KEY)
    before = dict(vars(draft))
    for stage in Stage:
        SwitchedFaults([]).bend(stage, draft)

    assert dict(vars(draft)) == before


def _request(*, stream: bool) -> Request:
    body = {"model": DEFAULT_MODEL, "prompt": "x", "max_tokens": 4, "stream": stream}
    fields = (("authorization", DEFAULT_KEY), ("content-type", "application/json"))
    return Request("POST", CONTRACT.operations[0].path, fields, json.dumps(body).encode())


def _has_done(told: str, count: int, *, seed: int, wholes_between: bool = False) -> list[bool]:
    """Which of so many streams have their [DONE], without a socket."""
    responder = Responder(Settings(faults=(told,), seed=seed), contracts=[CONTRACT])
    found = []
    for _ in range(count):
        if wholes_between:
            responder.reply(_request(stream=False))
        writes = responder.reply(_request(stream=True)).writes
        found.append(b"[DONE]" in b"".join(write.data for write in writes))
    return found
