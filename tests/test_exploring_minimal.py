"""The smallest set of properties with which a request still fails, and the tokens that finding it may cost."""

import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.conformance.exploring.ledger import Ledger
from streamgauge.conformance.exploring.minimal import minimal_set

NAMES = "abcdefgh"
BODY = {"model": "m", **dict.fromkeys(NAMES, 1)}


@given(st.sets(st.sampled_from(NAMES)))
def test_finds_exactly_what_it_takes(needed: set[str]) -> None:
    """Where a request fails whenever all of certain properties are there, these are found, in n + 1 calls at most."""

    def fails(body: dict[str, Any]) -> bool:
        assert body["model"] == "m"
        return needed <= body.keys()

    assert minimal_set(BODY, NAMES, fails, len(NAMES) + 1) == needed


@given(st.sets(st.sampled_from(NAMES), min_size=1), st.integers(0, 40))
def test_never_asks_more_often_than_allowed(needed: set[str], most: int) -> None:
    """Each call is a request; with too few of them the set is larger than it need be, and still fails."""
    asked = 0

    def fails(body: dict[str, Any]) -> bool:
        nonlocal asked
        asked += 1
        return needed <= body.keys()

    found = minimal_set(BODY, NAMES, fails, most)

    assert asked <= most
    assert needed <= found


def test_what_takes_no_property_takes_one_call() -> None:
    """The commonest case first: the prompt alone makes it fail."""
    assert minimal_set(BODY, NAMES, lambda body: True, 1) == frozenset()


def test_what_is_not_there_is_not_dropped() -> None:
    """Names that the body lacks are no part of the answer, and what may not be dropped is always sent."""
    assert minimal_set({"model": "m", "n": 2}, ["n", "stop"], lambda body: "n" in body) == {"n"}
    assert minimal_set({"model": "m"}, ["n"], lambda body: True) == frozenset()


@given(st.integers(0, 500), st.lists(st.integers(0, 100)))
def test_ledger_is_never_exceeded(tokens: int, costs: list[int]) -> None:
    """What is granted adds up to what there was at most; what is refused costs nothing."""
    ledger = Ledger(tokens)

    granted = sum(cost for cost in costs if ledger.pay(cost))

    assert granted <= tokens
    assert ledger.left == tokens - granted


def test_ledger_is_never_exceeded_by_threads() -> None:
    """The explorations of an operation spend the rest side by side."""
    ledger = Ledger(1000)
    granted: list[int] = []

    def spend() -> None:
        while ledger.pay(7):
            granted.append(7)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(granted) == 994
    assert ledger.left == 6
