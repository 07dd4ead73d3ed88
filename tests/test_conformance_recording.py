"""Sending the plan and judging what came: a target that goes away, a check that breaks, evidence that differs."""

import dataclasses
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from transcripts import MODEL, contract_of, exchange, http, request, stream_request, whole_answer

from streamgauge.baseline import Baseline, Entry
from streamgauge.bundle.reader import Bundle
from streamgauge.conformance.check import CHECKS, Case, Departure
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import plan
from streamgauge.conformance.recording import SILENCES, record
from streamgauge.conformance.session import require_known
from streamgauge.errors import UsageError
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential, Ending, Exchange
from streamgauge.wire.recorder import Limits


def test_target_that_goes_away_ends_the_recording(tmp_path: Path) -> None:
    """Once nobody answers any more the rest is not sent, and each probe of the rest is named with the reason."""
    contract, _ = contract_of("seekr-chat")
    target = Target("t", "http://127.0.0.1:1", contract, model=MODEL)
    writer, _ = open_bundle("check", [target], output=tmp_path / "out", seed=0)
    planned = plan([target], select=["refusal", "generated"]).planned

    left_out = record(planned, writer.path, limits=Limits(concurrency=4))
    sent = Bundle(writer.path).exchanges.values()

    assert {found.ending for found in sent} == {Ending.REFUSED}
    assert SILENCES <= len(sent) < SILENCES + 4
    assert len(sent) + len(left_out) == len(planned)
    assert all("stopped answering" in item.reason for item in left_out)


def test_every_exchange_is_on_disk_when_it_is_told(tmp_path: Path) -> None:
    """Whoever hears of an exchange finds it in the bundle already; every probe that was planned was sent once."""
    contract, _ = contract_of("seekr-completions")
    heard: list[str] = []

    def hear(found: Exchange) -> None:
        heard.append(found.id)
        assert found.id in Bundle(writer.path).exchanges

    with running() as url:
        target = Target("t", url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)
        writer, _ = open_bundle("check", [target], output=tmp_path / "out", seed=0)
        planned = plan([target], select=["form", "auth"]).planned
        left_out = record(planned, writer.path, limits=Limits(), on_exchange=hear)

    exchanges = Bundle(writer.path).exchanges
    assert left_out == []
    assert sorted(heard) == sorted(exchanges)
    assert sorted(found.probe for found in exchanges.values()) == sorted(item.probe.id for item in planned)


def _cases(*statuses: int) -> list[Case]:
    contract, operation = contract_of("seekr-chat")
    body = b"{}"
    exchanges = [
        exchange(operation, request(operation), http(status, body), probe=str(number))
        for number, status in enumerate(statuses)
    ]
    return cases_of(exchanges, operation, contract, target="t", model=MODEL)


def test_broken_check_is_an_error_of_ours() -> None:
    """A check that raises gives `error`, which says nothing about the server, and the others are judged all the same."""
    contract, operation = contract_of("seekr-chat")

    def breaks(case: Case) -> Iterator[Departure]:
        if case.exchange.status == 404:
            raise ZeroDivisionError("ours")
        yield from ()

    check = dataclasses.replace(CHECKS["http.answered"], judge=breaks)
    finding = judge(check, _cases(200, 404, 200), operation, contract, "t")

    assert finding.outcome is Outcome.ERROR
    assert finding.counts == {Outcome.ERROR: 1, Outcome.PASS: 2}
    assert "ZeroDivisionError" in finding.examples[0]["actual"]


def test_most_severe_outcome_stands_for_all_with_counts() -> None:
    """One failure among passes is a failure, never averaged away, and the examples show different kinds first."""
    contract, operation = contract_of("seekr-chat")

    finding = judge(CHECKS["error.no-5xx"], _cases(200, 500, 500, 504, 200), operation, contract, "t")

    assert finding.outcome is Outcome.FAIL
    assert finding.counts == {Outcome.FAIL: 3, Outcome.PASS: 2}
    assert [example["actual"][:3] for example in finding.examples] == ["500", "504", "500"]


def test_rate_limited_attempts_that_succeed_later_are_no_doubt() -> None:
    """A probe that was answered in the end leaves nothing inconclusive."""
    contract, operation = contract_of("seekr-chat")
    limited = exchange(operation, request(operation), http(429, b"{}"), probe="a")
    answered = exchange(operation, request(operation), http(200, b"{}"), probe="a")
    cases = cases_of([limited, answered], operation, contract, target="t", model=MODEL)

    assert judge(CHECKS["error.stream-shape"], cases, operation, contract, "t").outcome is Outcome.NOT_RUN


def test_text_of_the_server_is_made_fit_to_be_shown() -> None:
    """What a server says reaches terminals and logs through findings: on one line, without control sequences, not endless."""
    contract, operation = contract_of("seekr-chat")
    body = b"\x1b[2Jgone\r\nverdict: PASS\n" + b"x" * 5000
    refused = exchange(operation, request(operation), http(400, body, reason="No\x1b[31m"), probe="a")
    cases = cases_of([refused], operation, contract, target="t", model=MODEL)

    actual = judge(CHECKS["request.valid"], cases, operation, contract, "t").examples[0]["actual"]

    assert actual.isprintable()
    assert "verdict: PASS" in actual
    assert len(actual) < 500


def test_partners_ask_the_same() -> None:
    """The two forms of one request see each other, and nobody else: not another prompt, not another credential."""
    contract, operation = contract_of("seekr-chat")
    answer = http(200, str(whole_answer(operation)).encode())
    first = exchange(operation, request(operation), answer, probe="a")
    second = exchange(operation, stream_request(operation), answer, probe="b")
    other = exchange(operation, request(operation, n=2), answer, probe="c")
    stranger = exchange(operation, request(operation), answer, credential=Credential.NONE, probe="d")
    cases = cases_of([first, second, other, stranger], operation, contract, target="t", model=MODEL)

    assert [case.partners for case in cases] == [(second,), (first,), (), ()]
    assert all(case.others == (first, second, other, stranger) for case in cases)


def test_baseline_of_an_unknown_check_is_refused() -> None:
    """An id that does not exist would never become stale: it is a mistake."""
    baseline = Baseline("known.yaml", (Entry("sse.dome", "typo", date.max),), date.min)
    with pytest.raises(UsageError, match=r"sse\.dome"):
        require_known(baseline)
