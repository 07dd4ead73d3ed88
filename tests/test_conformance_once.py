"""What checks reckon over all exchanges of an operation is reckoned once, so that many exchanges take no longer each."""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from transcripts import MODEL, chunked, chunks, contract_of, exchange, http, request, sse, stream_request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS, Case
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Others, asked
from streamgauge.contract.contract import Operation
from streamgauge.wire.exchange import Credential, Evidence, Exchange

CONTRACT, CHAT = contract_of("openai-chat")
REFUSAL = json.dumps(
    {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None}}
).encode()


class Counted(Others):
    """Counts how often somebody walks over all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Exchange]:
        self.walks += 1
        return super().__iter__()


def _asked(operation: Operation, number: int) -> Iterator[Exchange]:
    """One question in every way in which checks compare exchanges: both forms twice, refused, with odd keys, with nulls."""
    said: dict[str, Any] = {"messages": [{"role": "user", "content": f"say {number}"}]}
    wrong = {**said, "max_tokens": "x"}
    stream = chunked(sse([*chunks(operation)[:2], *[chunks(operation)[1]] * 16, *chunks(operation)[2:]]))
    whole = http(200, json.dumps(whole_answer(operation)).encode())
    for _ in range(2):
        yield exchange(operation, stream_request(operation, temperature=0, **said), stream)
        yield exchange(operation, request(operation, temperature=0, **said), whole)
    yield exchange(operation, request(operation, **{**said, "max_tokens": 1}), whole)
    yield exchange(operation, request(operation, **wrong), http(400, REFUSAL))
    yield exchange(operation, stream_request(operation, **wrong), http(400, REFUSAL))
    yield exchange(operation, request(operation, seed=None, **said), whole)
    yield exchange(operation, request(operation, **said), whole)
    for credential in Credential:
        yield exchange(operation, request(operation, **said), http(401, REFUSAL), credential=credential)
    yield exchange(operation, b'{"x', http(401, REFUSAL), credential=Credential.NONE)


def _walks(questions: int) -> dict[str, int]:
    """Check → how often it walks over all exchanges."""
    exchanges = [each for number in range(questions) for each in _asked(CHAT, number)]
    numbered = [dataclasses.replace(each, id=f"{at:05d}") for at, each in enumerate(exchanges)]
    found = {}
    for id_, check in CHECKS.items():
        others = Counted(numbered)
        others.walks = 0
        judge(check, [Case(each, CHAT, CONTRACT, MODEL, others) for each in numbered], CHAT, CONTRACT, "t")
        found[id_] = others.walks
    return found


def test_no_check_walks_over_all_exchanges_for_each_of_them() -> None:
    """However many exchanges there are, each check walks over them as often: their number in steps, not its square."""
    few = _walks(1)

    assert _walks(4) == few
    assert any(few.values())
    assert max(few.values()) <= 4


def test_once_for_all_cases_and_each_argument() -> None:
    """The same cases share what was reckoned; other arguments, and other cases, have their own."""
    calls: list[str] = []

    @once
    def reckon(case: Case, word: str) -> str:
        calls.append(word)
        return f"{word} {len(case.others)}"

    two = [exchange(CHAT, request(CHAT), b"", probe="a"), exchange(CHAT, request(CHAT), b"", probe="b")]
    first, second = cases_of(two, CHAT, CONTRACT, target="t", model=MODEL)
    (alone,) = cases_of(two[:1], CHAT, CONTRACT, target="t", model=MODEL)

    assert [reckon(first, "x"), reckon(second, "x"), reckon(second, "y"), reckon(alone, "x")] == [
        "x 2",
        "x 2",
        "y 2",
        "x 1",
    ]
    assert calls == ["x", "y", "x"]


def test_groups_keep_the_order_and_leave_out_what_is_not_held() -> None:
    """Both forms are one group; another key is another one; where the request is not held nobody knows what was asked."""
    whole, stream = exchange(CHAT, request(CHAT), b""), exchange(CHAT, stream_request(CHAT), b"")
    stranger = exchange(CHAT, request(CHAT), b"", credential=Credential.WRONG)
    captured = dataclasses.replace(whole, holds=frozenset(Evidence) - {Evidence.REQUEST})

    groups = Others([stranger, stream, captured, whole]).groups

    assert groups == {asked(stranger): (stranger,), asked(whole): (stream, whole)}
    assert asked(whole) == asked(stream)


@pytest.mark.parametrize("members", [{}, {"probe": "other"}])
def test_equal_exchanges_have_equal_hashes(members: dict[str, str]) -> None:
    """Law of hashing (Python data model, `__hash__`), though only the id is looked at."""
    one = exchange(CHAT, request(CHAT), b"")
    other = dataclasses.replace(one, **members)

    assert hash(one) == hash(other)
    assert (one == other) is not bool(members)
