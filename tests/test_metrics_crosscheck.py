"""Our counts beside the server's own: on records and counters made by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bundle.layout import SERVER_METRICS
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter, LineWriter
from streamgauge.metrics.crosscheck import Agreement, CrossCheck, Row, cross_check, cross_check_of
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.server import Phase, Sample

BEGIN_S = 1000.0


def record(outcome: Outcome = Outcome.OK, **fields: Any) -> Record:
    """A request, sent one second after the first look at the counters: by default a right answer of 10 + 4 tokens."""
    at = round((BEGIN_S + 1) * 1_000_000)
    usual: dict[str, Any] = {"dispatched": at, "closed": at + 500_000, "written": at, "status": 200, "max_tokens": 8}
    if outcome is Outcome.OK:
        usual |= {"finish_reason": "stop", "prompt_tokens": 10, "completion_tokens": 4}
    return Record("1", "t", "o", True, outcome=outcome, **{**usual, **fields})


def samples(**rise: float) -> list[Sample]:
    """The counters before and after a run in which they rose so; they did not begin at 0."""
    before = dict.fromkeys(rise, 1000.0)
    after = {name: 1000.0 + value for name, value in rise.items()}
    return [
        Sample(BEGIN_S, Phase.BEFORE, {**before, "running": 0.0}),
        Sample(BEGIN_S + 5, Phase.AFTER, {**after, "running": 0.0}),
    ]


def rows(found: CrossCheck) -> dict[str, Row]:
    """The rows by what they count."""
    return {row.what: row for row in found.rows}


RIGHT = {
    "finished": 3,
    "finished_stop": 2,
    "finished_length": 1,
    "aborted": 0,
    "prompt_tokens": 30,
    "completion_tokens": 12,
}
THREE = [record(), record(finish_reason="tool_calls"), record(finish_reason="length")]


def test_a_run_that_agrees() -> None:
    """Requests by reason and tokens are the same on both sides; a call of a tool is a stop to the server."""
    found = cross_check(THREE, samples(**RIGHT))
    assert found.agreement is Agreement.AGREE
    assert [(row.what, row.ours, row.server, row.explanation) for row in found.rows] == [
        ("requests finished", 3, 3, ""),
        ("of these by stop", 2, 2, ""),
        ("of these by length", 1, 1, ""),
        ("requests that we left", 0, 0, ""),
        ("prompt tokens", 30, 30, ""),
        ("completion tokens", 12, 12, ""),
    ]
    assert found.lines() == [
        "the server's own counts beside ours:",
        "  requests finished      3 ours, 3 the server's: they agree",
        "  of these by stop       2 ours, 2 the server's: they agree",
        "  of these by length     1 ours, 1 the server's: they agree",
        "  requests that we left  0 ours, 0 the server's: they agree",
        "  prompt tokens          30 ours, 30 the server's: they agree",
        "  completion tokens      12 ours, 12 the server's: they agree",
    ]


def test_the_warm_up_counts() -> None:
    """The server knows no warm-up: its requests are in both counts."""
    assert cross_check([*THREE[:2], replace(THREE[2], warm_up=True)], samples(**RIGHT)).agreement is Agreement.AGREE


@pytest.mark.parametrize("again", [record(replaced=True), record(Outcome.RATE_LIMITED, status=429, replaced=True)])
def test_what_was_sent_again_may_be_counted_twice(again: Record) -> None:
    """The server may have come to the end of the first try, too, and then said nothing; more than that stays unexplained."""
    ours = [*THREE, again]
    counted = {name: count * 4 // 3 for name, count in RIGHT.items()} if again.finish_reason else RIGHT
    whole = {**counted, "finished_stop": counted["finished"] - 1}
    first_try = {"finished": 1, "finished_stop": 1, "prompt_tokens": 10, "completion_tokens": 8}
    twice = {name: count + first_try.get(name, 0) for name, count in whole.items()}
    assert cross_check(ours, samples(**whole)).agreement is Agreement.AGREE
    found = cross_check(ours, samples(**twice))
    assert found.agreement is Agreement.EXPLAINED
    assert "of 1 request (1 sent again) we saw no end" in rows(found)["requests finished"].explanation
    for name, more in first_try.items():
        beyond = cross_check(ours, samples(**twice | {name: twice[name] + more}))
        assert beyond.agreement is Agreement.DIFFERS


@pytest.mark.parametrize("name", list(RIGHT))
@pytest.mark.parametrize("by", [1, -1])
def test_every_counter_is_compared(name: str, by: int) -> None:
    """One more or fewer in any counter is a difference that nothing explains, and said to be unexplained."""
    if name == "aborted" and by < 0:
        return
    found = cross_check(THREE, samples(**RIGHT | {name: RIGHT[name] + by}))
    assert found.agreement is Agreement.DIFFERS
    (differing,) = [row for row in found.rows if row.agreement is not Agreement.AGREE]
    assert differing.difference == by
    assert differing.explanation.startswith(f"unexplained: the server counts 1 {'more' if by > 0 else 'fewer'}")


@pytest.mark.parametrize(
    "never",
    [
        record(Outcome.DROPPED, written=None, status=0),
        record(Outcome.REFUSED, written=None, status=0),
        record(Outcome.TIMEOUT_CONNECT, written=None, status=0),
        record(Outcome.RATE_LIMITED, status=429),
        record(Outcome.RATE_LIMITED, status=503),
        record(Outcome.HTTP_4XX, status=400),
    ],
    ids=lambda each: f"{each.outcome}-{each.status}",
)
def test_what_was_not_sent_or_refused_costs_nothing(never: Record) -> None:
    """A request that never went out, or that was turned down, gives the server no right to count more."""
    assert cross_check([*THREE, never], samples(**RIGHT)).agreement is Agreement.AGREE
    assert cross_check([*THREE, never], samples(**RIGHT | {"finished": 4})).agreement is Agreement.DIFFERS


UNENDED = [
    Outcome.UNFINISHED_AT_STOP,
    Outcome.CANCELLED,
    Outcome.TIMEOUT_FIRST_TOKEN,
    Outcome.TIMEOUT_IDLE,
    Outcome.TIMEOUT_TOTAL,
    Outcome.TRUNCATED,
    Outcome.RESET,
    Outcome.IN_BAND_ERROR,
    Outcome.HTTP_5XX,
    Outcome.MALFORMED_JSON,
]


@pytest.mark.parametrize("outcome", UNENDED)
def test_requests_without_an_end_explain_a_surplus(outcome: Outcome) -> None:
    """The server may have ended what we saw no end of, with up to its limit of tokens, and nobody told us its usage."""
    torn = record(outcome, status=500 if outcome is Outcome.HTTP_5XX else 200, token_times=[1, 2, 3])
    most = {"finished": 4, "finished_stop": 3, "prompt_tokens": 40, "completion_tokens": 12 + 8}
    found = cross_check([*THREE, torn], samples(**RIGHT | most))
    table = rows(found)
    for what in ("requests finished", "of these by stop", "prompt tokens", "completion tokens"):
        assert table[what].agreement is Agreement.EXPLAINED
        assert f"1 request (1 {outcome.value})" in table[what].explanation
    assert table["completion tokens"].ours == 12 + 3
    for name, value in most.items():
        beyond = cross_check([*THREE, torn], samples(**RIGHT | most | {name: value + 1}))
        assert beyond.agreement is Agreement.DIFFERS, name


def test_events_were_tokens() -> None:
    """What has come was generated: fewer tokens than events came are unexplained."""
    torn = record(Outcome.UNFINISHED_AT_STOP, token_times=[1, 2, 3])
    found = cross_check([torn], samples(completion_tokens=2))
    assert found.agreement is Agreement.DIFFERS


def test_no_limit_explains_any_number() -> None:
    """Who set no limit cannot say what an answer without usage has cost."""
    torn = record(Outcome.UNFINISHED_AT_STOP, max_tokens=0, token_times=[1])
    (row,) = cross_check([torn], samples(completion_tokens=5000)).rows
    assert row.agreement is Agreement.EXPLAINED
    assert "any number" in row.explanation


def test_answers_without_usage() -> None:
    """Whole answers whose usage never came are counted by events, and explain as many tokens as their limit allows."""
    silent = record(prompt_tokens=None, completion_tokens=None, token_times=[1, 2])
    table = rows(cross_check([record(), silent], samples(finished=2, prompt_tokens=20, completion_tokens=9)))
    assert table["requests finished"].agreement is Agreement.AGREE
    assert table["prompt tokens"].agreement is Agreement.EXPLAINED
    assert table["completion tokens"].agreement is Agreement.EXPLAINED
    assert "1 request (1 ok)" in table["completion tokens"].explanation


@pytest.mark.parametrize(
    ("counted", "agreement"),
    [(2, Agreement.AGREE), (1, Agreement.EXPLAINED), (0, Agreement.EXPLAINED), (3, Agreement.DIFFERS)],
)
def test_requests_that_we_left(counted: int, agreement: Agreement) -> None:
    """A server counts all whose client has gone (our reference endpoint), or none (vLLM 0.32), or in between; never more."""
    left = [record(Outcome.CANCELLED), record(Outcome.TIMEOUT_IDLE)]
    (row,) = cross_check(left, samples(aborted=counted)).rows
    assert (row.what, row.agreement) == ("requests that we left", agreement)


def test_cached_prompt_tokens() -> None:
    """llama.cpp counts what came from its cache apart: both together are the prompts'; the share is told."""
    found = cross_check(THREE, samples(computed_prompt_tokens=12, cached_prompt_tokens=18, completion_tokens=12))
    assert found.agreement is Agreement.AGREE
    assert found.notes == ("18 of its 30 prompt tokens came from the server's cache (60.0%)",)
    less = cross_check(THREE, samples(computed_prompt_tokens=11, cached_prompt_tokens=18))
    assert less.agreement is Agreement.DIFFERS


def test_cached_prompt_tokens_left_out() -> None:
    """Older ones do not count them at all: fewer is explained, more is not."""
    assert cross_check(THREE, samples(computed_prompt_tokens=12)).agreement is Agreement.EXPLAINED
    assert cross_check(THREE, samples(computed_prompt_tokens=31)).agreement is Agreement.DIFFERS


def test_somebody_else_was_there_before() -> None:
    """What ran or was counted before our first request shows somebody else, and explains a surplus; nothing explains a lack."""
    first, last = samples(**RIGHT | {"finished": 9})
    busy = replace(first, values={**first.values, "running": 2.0})
    found = cross_check(THREE, [busy, last])
    assert found.agreement is Agreement.EXPLAINED
    assert found.notes == ("somebody else uses the server: 2 of its requests ran before our first",)
    assert rows(found)["requests finished"].explanation == found.notes[0]
    meanwhile = Sample(BEGIN_S + 0.5, Phase.DURING, {**first.values, "finished": 1003.0})
    found = cross_check(THREE, [first, meanwhile, last])
    assert found.agreement is Agreement.EXPLAINED
    assert found.notes == ("somebody else uses the server: it counted 3 finished before our first request",)
    lacking = samples(**RIGHT | {"finished": 2})
    assert cross_check(THREE, [busy, lacking[1]]).agreement is Agreement.DIFFERS


def test_somebody_else_was_there_meanwhile() -> None:
    """More requests running at the server than we ever had in flight show somebody else."""
    first, last = samples(**RIGHT)
    middle = Sample(BEGIN_S + 1.2, Phase.DURING, {**first.values, "running": 4.0})
    found = cross_check(THREE, [first, middle, last])
    assert found.notes == ("somebody else uses the server: 4 requests ran there at once, never more than 3 of ours",)
    three = Sample(BEGIN_S + 1.2, Phase.DURING, {**first.values, "running": 3.0})
    assert cross_check(THREE, [first, three, last]).notes == ()


@pytest.mark.parametrize(
    ("first", "running", "told"),
    [
        (record(Outcome.TIMEOUT_IDLE, closed=1_001_100_000), 2.0, False),
        (record(Outcome.TIMEOUT_IDLE, closed=1_001_100_000), 3.0, True),
        (record(closed=1_001_400_000), 2.0, False),
        (record(closed=1_001_100_000), 2.0, True),
        (record(Outcome.RATE_LIMITED, status=429, closed=1_001_100_000), 2.0, True),
    ],
    ids=["left", "left-and-more", "just-ended", "ended", "refused"],
)
def test_what_we_left_may_run_on(first: Record, running: float, told: bool) -> None:
    """A request that we left, or whose end has only just come, may still run at the server beside the next one of ours."""
    begin, end = samples(finished=2)
    second = record(dispatched=1_001_500_000, closed=1_002_000_000)
    middle = Sample(BEGIN_S + 1.6, Phase.DURING, {**begin.values, "running": running})
    assert bool(cross_check([first, second], [begin, middle, end]).notes) is told


def test_counts_in_the_midst_are_nobody_elses() -> None:
    """A look just after our first request counts that one: no sign of somebody else."""
    first, last = samples(**RIGHT)
    middle = Sample(BEGIN_S + 1.1, Phase.DURING, {**first.values, "prompt_tokens": 1030.0})
    assert cross_check(THREE, [first, middle, last]).notes == ()


def test_the_servers_own_first_token() -> None:
    """The mean of the server's own times to the first token is told beside."""
    found = cross_check(THREE, samples(**RIGHT, first_tokens=3, first_token_seconds=0.06))
    assert found.notes == ("its own time to the first token was 20.0 ms on average, of 3",)


@pytest.mark.parametrize(
    ("given_samples", "reason"),
    [
        ([], "not read both before and after"),
        (samples(**RIGHT)[:1], "not read both before and after"),
        (samples(**RIGHT)[1:], "not read both before and after"),
        ([samples(**RIGHT)[0], Sample(BEGIN_S + 5, Phase.AFTER, {"finished": 3.0})], "a counter went back"),
        ([Sample(1, Phase.BEFORE, {}), Sample(2, Phase.AFTER, {"running": 0.0})], "no counters that we know"),
    ],
)
def test_nothing_to_compare(given_samples: list[Sample], reason: str) -> None:
    """Where counters are missing, or were set back, there is no verdict, and the reason is told."""
    found = cross_check(THREE, given_samples)
    assert (found.rows, found.agreement) == ((), None)
    assert reason in found.reason
    assert found.reason in found.lines()[0]


ANY = st.lists(
    st.builds(
        lambda outcome, events, tokens, extra: (outcome, events, tokens, min(extra, 20 - events)),
        st.sampled_from([Outcome.OK, Outcome.OK, *UNENDED, Outcome.DROPPED, Outcome.HTTP_4XX]),
        st.integers(0, 10),
        st.integers(1, 20),
        st.integers(0, 20),
    ),
    max_size=30,
)


@given(ANY)
def test_an_honest_server_never_differs(course: list[tuple[Outcome, int, int, int]]) -> None:
    """
    A server that counts what it did is never blamed, whichever requests came to no end.

    Of those it has generated at least what had come, and at most the limit; each prompt is as long as the others.
    """
    records = []
    truth = {"finished": 0, "prompt_tokens": 0, "completion_tokens": 0}
    for outcome, events, tokens, extra in course:
        if outcome is Outcome.DROPPED:
            records.append(record(outcome, written=None, status=0))
        elif outcome is Outcome.HTTP_4XX:
            records.append(record(outcome, status=400))
        elif outcome is Outcome.OK:
            records.append(record(outcome, completion_tokens=tokens, max_tokens=20))
            truth["finished"] += 1
            truth["prompt_tokens"] += 10
            truth["completion_tokens"] += tokens
        else:
            records.append(record(outcome, max_tokens=20, token_times=list(range(events))))
            truth["finished"] += extra % 2
            truth["prompt_tokens"] += 10 * bool(events + extra)
            truth["completion_tokens"] += events + extra
    assert cross_check(records, samples(**truth)).agreement in (Agreement.AGREE, Agreement.EXPLAINED)


def test_of_a_bundle(tmp_path: Path) -> None:
    """A bundle without the file has no comparison; what was wrong with the page is the reason, or a note."""
    BundleWriter(tmp_path).meta({})
    assert cross_check_of(Bundle(tmp_path), THREE) is None
    with LineWriter(tmp_path / SERVER_METRICS) as file:
        file.write({"time": 1.0, "note": "its page does not come: 404"})
        assert cross_check_of(Bundle(tmp_path), THREE) == CrossCheck(reason="its page does not come: 404")
        for sample in samples(**RIGHT):
            file.write(sample.line())
    found = cross_check_of(Bundle(tmp_path), THREE)
    assert found is not None
    assert (found.agreement, found.notes) == (Agreement.AGREE, ("its page does not come: 404",))
