"""Sending the plan and judging what came: a target that goes away, a check that breaks, evidence that differs."""

import dataclasses
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import MODEL, contract_of, exchange, http, request, stream_request, whole_answer

from streamgauge.baseline import Baseline, Entry
from streamgauge.bundle.reader import Bundle
from streamgauge.conformance.check import CHECKS, Case, Departure
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import plan
from streamgauge.conformance.recording import SILENCES, record
from streamgauge.conformance.session import Settings, record_into, require_known
from streamgauge.conformance.verdict import describe
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


def test_tries_not_sent_to_a_dead_target_are_named_once(tmp_path: Path) -> None:
    """Where probes have several tries, those of a target that is gone are one line for each probe, with the number."""
    contract, _ = contract_of("seekr-chat")
    target = Target("t", "http://127.0.0.1:1", contract, model=MODEL)
    writer, meta = open_bundle("check", [target], output=tmp_path / "out", seed=0)
    limits = Limits(concurrency=1)
    settings = Settings([target], writer.path, select=("refusal",), detect_rate=0.5, limits=limits)

    record_into(settings, writer, meta)
    bundle = Bundle(writer.path)
    named = {row["probe"]: row["reason"] for row in bundle.meta["not_run"]}

    assert len(named) == len(bundle.meta["not_run"])
    assert sum(int(reason.split()[0]) for reason in named.values()) + len(bundle.exchanges) == 7 * len(named)
    assert all("of 7 tries left out: the target had stopped answering" in reason for reason in named.values())


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


def test_all_that_the_profile_lets_pass_is_shown() -> None:
    """Each kind once, however many there are and in whatever order they came; departures keep their three examples."""
    contract, operation = contract_of("seekr-chat")
    allowed = (405, 404, 405, 408, 413, 415, 431, 404)

    finding = judge(CHECKS["error.status-documented"], _cases(*allowed), operation, contract, "t")

    assert finding.outcome is Outcome.PASS
    assert [example["actual"][:3] for example in finding.examples] == ["405", "404", "408", "413", "415", "431"]


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


@pytest.mark.parametrize("place", range(13))
def test_one_departure_in_thirteen_is_a_failure(place: int) -> None:
    """Mixed evidence is never averaged away: 1 of 13 fails, wherever among the tries it stands, and the words say so."""
    contract, operation = contract_of("seekr-chat")
    statuses = [500 if number == place else 200 for number in range(13)]
    check = CHECKS["error.no-5xx"]

    finding = judge(check, _cases(*statuses), operation, contract, "t")
    line = finding.line()

    assert finding.outcome is Outcome.FAIL
    assert (line["outcome"], line["counts"], line["n"]) == ("fail", {"fail": 1, "pass": 12}, 13)
    assert "excluded_rate" not in line
    assert describe(check, finding, operation).startswith("fail (1 of 13): error.no-5xx [MUST]")


def test_pass_says_what_it_excludes() -> None:
    """13 of 13 without the fault: n and the rate of faults that it excludes, in the line and in words."""
    contract, operation = contract_of("seekr-chat")
    check = CHECKS["error.no-5xx"]

    finding = judge(check, _cases(*[200] * 13), operation, contract, "t")
    line = finding.line()

    assert (line["counts"], line["n"]) == ({"pass": 13}, 13)
    assert line["excluded_rate"] == pytest.approx(1 - 0.05 ** (1 / 13), abs=1e-6)
    told = "pass (13 of 13; a fault in more than 21 % of such requests would have shown, at 95 %): error.no-5xx [MUST]"
    assert describe(check, finding, operation).startswith(told)


def test_nothing_judged_has_no_count() -> None:
    """Where no exchange could be judged there is no k of n, and nothing is excluded."""
    contract, operation = contract_of("seekr-chat")
    check = CHECKS["error.stream-shape"]

    finding = judge(check, _cases(200), operation, contract, "t")

    assert (finding.outcome, finding.line()["n"]) == (Outcome.NOT_RUN, 0)
    assert "excluded_rate" not in finding.line()
    assert describe(check, finding, operation).startswith("not-run: error.stream-shape")


@given(statuses=st.lists(st.sampled_from([200, 429, 500, 404]), max_size=20))
def test_folding_keeps_every_exchange(statuses: list[int]) -> None:
    """The counts add up to n, and one failure is enough whatever else there is."""
    contract, operation = contract_of("seekr-chat")

    finding = judge(CHECKS["error.no-5xx"], _cases(*statuses), operation, contract, "t")

    assert finding.n == sum(finding.counts.values()) <= len(statuses)
    assert (finding.outcome is Outcome.FAIL) == (500 in statuses)
    assert finding.counts[Outcome.FAIL] == statuses.count(500)


@pytest.mark.parametrize(
    ("answers", "outcome", "n"),
    [
        ([("a", 429)] * 12 + [("a", 200)], Outcome.NOT_RUN, 0),
        ([("a", 200)] + [("a", 429)] * 12, Outcome.NOT_RUN, 0),
        ([("a", 429)] * 13, Outcome.INCONCLUSIVE, 13),
        ([("a", 429), ("b", 429)] * 13, Outcome.INCONCLUSIVE, 26),
        ([("a", 429), ("b", 200)] * 13, Outcome.INCONCLUSIVE, 13),
    ],
    ids=["last-answered", "first-answered", "one-limited", "two-limited", "one-of-two-limited"],
)
def test_rate_limited_tries(answers: list[tuple[str, int]], outcome: Outcome, n: int) -> None:
    """A probe counts as answered when one of its tries was; if none was, its probes and exchanges are counted apart."""
    contract, operation = contract_of("seekr-chat")
    exchanges = [
        dataclasses.replace(exchange(operation, request(operation), http(status, b"{}"), probe=probe), id=f"e-{number}")
        for number, (probe, status) in enumerate(answers)
    ]
    cases = cases_of(exchanges, operation, contract, target="t", model=MODEL)

    finding = judge(CHECKS["error.stream-shape"], cases, operation, contract, "t")
    limited = {probe for probe, status in answers if status == 429} - {
        probe for probe, status in answers if status == 200
    }

    assert (finding.outcome, finding.n) == (outcome, n)
    if limited:
        probes = "1 probe got" if len(limited) == 1 else f"{len(limited)} probes got"
        assert finding.reason == f"rate-limited: {probes} only 429, or 503 with Retry-After"


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


def test_a_group_asks_the_same() -> None:
    """The two forms of one request see each other, and nobody else: not another prompt, not another credential."""
    contract, operation = contract_of("seekr-chat")
    answer = http(200, str(whole_answer(operation)).encode())
    first = exchange(operation, request(operation), answer, probe="a")
    second = exchange(operation, stream_request(operation), answer, probe="b")
    other = exchange(operation, request(operation, n=2), answer, probe="c")
    stranger = exchange(operation, request(operation), answer, credential=Credential.NONE, probe="d")
    cases = cases_of([first, second, other, stranger], operation, contract, target="t", model=MODEL)

    assert list(cases[0].others.groups.values()) == [(first, second), (other,), (stranger,)]
    assert all(case.others == (first, second, other, stranger) for case in cases)


def test_baseline_of_an_unknown_check_is_refused() -> None:
    """An id that does not exist would never become stale: it is a mistake."""
    baseline = Baseline("known.yaml", (Entry("sse.dome", "typo", date.max),), date.min)
    with pytest.raises(UsageError, match=r"sse\.dome"):
        require_known(baseline)
