"""Which probes are sent: within the budget, affordable, sensible, and named when left out."""

from collections import Counter

import pytest
from transcripts import MODEL, contract_of

from streamgauge.conformance.plan import BUDGET_TOKENS, NotRun, Plan, plan
from streamgauge.conformance.probes.probe import Probe, worst_case_tokens
from streamgauge.detection import tries_for
from streamgauge.errors import UsageError
from streamgauge.target import Target

SPECS = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")


def _target(spec: str, **more: str) -> Target:
    contract, _ = contract_of(spec)
    return Target("t", "http://127.0.0.1:1", contract, model=MODEL, **more)


@pytest.mark.parametrize("spec", SPECS)
def test_default_budget_holds_every_probe(spec: str) -> None:
    """The default budget is enough for all probes of an operation, and they stay below it."""
    planned = plan([_target(spec)])

    assert planned.not_run == []
    assert planned.tokens <= BUDGET_TOKENS


def test_no_budget_still_sends_what_is_free() -> None:
    """Without a single token every probe that a right server refuses is sent, and each other one is named with the reason."""
    full, free = plan([_target("seekr-chat")]), plan([_target("seekr-chat")], budget_tokens=0)

    assert all(item.probe.free for item in free.planned)
    assert {item.probe.id for item in free.planned} == {item.probe.id for item in full.planned if item.probe.free}
    assert {item.probe for item in free.not_run} == {item.probe.id for item in full.planned if not item.probe.free}
    assert all("budget" in item.reason for item in free.not_run)


def test_probe_ids_are_unique_and_auth_needs_a_key() -> None:
    """Every request has an id of its own, under which it may be sent again; those about keys only where there is one."""
    without, with_key = plan([_target("seekr-chat")]), plan([_target("seekr-chat", key="a-key-of-some-length")])
    first: dict[str, Probe] = {}
    ids = Counter(item.probe.id for item in with_key.planned)

    probes = [item.probe for item in with_key.planned if isinstance(item.probe, Probe)]
    assert all(first.setdefault(probe.id, probe) == probe for probe in probes)
    assert {count for id_, count in ids.items() if not id_.startswith(("pair.", "law."))} == {1}
    assert not [item for item in without.planned if item.probe.id.startswith("auth.")]
    assert [id_ for id_ in ids if id_.startswith("auth.")]


ONCE = ("generated.", "alone.")
"""What is never repeated: there are many alike, or they need the server for themselves."""


def _ids(found: Plan) -> list[str]:
    return [item.probe.id for item in found.planned]


def test_every_curated_probe_gets_its_tries() -> None:
    """`--detect-rate` repeats each curated probe, free or not, under its own id; generated cases are sent once."""
    target = _target("seekr-chat", key="a-key-of-some-length")
    once, repeated = plan([target]), plan([target], detect_rate=0.3, budget_tokens=10**6)
    counts = Counter(_ids(repeated))

    assert (once.tries, repeated.tries) == (1, tries_for(0.3))
    assert counts.keys() == set(_ids(once))
    assert {count for id_, count in counts.items() if id_.startswith(ONCE)} == {1}
    assert {count for id_, count in counts.items() if not id_.startswith(ONCE)} == {13}
    assert {"form", "refusal", "auth"} <= {id_.partition(".")[0] for id_, count in counts.items() if count == 13}
    assert repeated.not_run == []


def test_tries_come_in_rounds() -> None:
    """The tables as they are, then round by round: no probe is tried again before every other was tried as often."""
    once = _ids(plan([_target("seekr-chat")]))
    repeated = _ids(plan([_target("seekr-chat")], detect_rate=0.5, budget_tokens=10**6))
    sent = Counter(id_ for id_ in once if not id_.startswith(ONCE))

    assert repeated[: len(once)] == once
    for id_ in repeated[len(once) :]:
        assert sent[id_] == min(sent.values())
        sent[id_] += 1
    assert set(sent.values()) == {7}


def test_tries_that_a_table_asks_for_count() -> None:
    """A question that is sent 4 times anyway gets what it lacks of the 13, and keeps its 4 where fewer would do."""
    target = _target("seekr-chat")
    for rate, tries in ((0.3, 13), (0.9, 4)):
        sent = Counter(_ids(plan([target], select=["pair"], detect_rate=rate, budget_tokens=10**6)))
        assert set(sent.values()) == {tries}


@pytest.mark.parametrize("budget", [0, 500, 2_000, 18_000, 20_000])
def test_budget_covers_first_tries_before_repetitions(budget: int) -> None:
    """With repetitions everything is sent that would be without; what is free is sent in every round, budget or not."""
    once = plan([_target("seekr-chat")], budget_tokens=budget)
    repeated = plan([_target("seekr-chat")], budget_tokens=budget, detect_rate=0.3)
    counts = Counter(_ids(repeated))
    free = {i.probe.id for i in once.planned if i.probe.free and not i.probe.id.startswith(ONCE)}

    assert _ids(repeated)[: len(once.planned)] == _ids(once)
    assert repeated.tokens <= budget
    assert {counts[id_] for id_ in free} == {13}


@pytest.mark.parametrize("budget", [0, 500, 2_000, 20_000])
def test_tries_left_out_are_named_once(budget: int) -> None:
    """A probe that lacks tries has one line, which says how many of how many; sent and left out add up to all."""
    repeated = plan([_target("seekr-chat")], budget_tokens=budget, detect_rate=0.3)
    everything = Counter(_ids(plan([_target("seekr-chat")], budget_tokens=10**6, detect_rate=0.3)))
    sent = Counter(_ids(repeated))
    told = {item.probe: item.reason for item in repeated.not_run}

    assert len(told) == len(repeated.not_run)
    assert told.keys() == {id_ for id_, count in everything.items() if sent[id_] < count}
    for id_, reason in told.items():
        lacking = everything[id_] - sent[id_]
        tries = "" if id_.startswith(ONCE) else f"{lacking} of 13 tries left out: "
        assert reason.startswith(f"{tries}budget: up to ")


def test_one_try_is_not_told_as_tries() -> None:
    """The reason speaks of tries only for a probe that has several: those of the pairs, and questions that laws compare."""
    planned = plan([_target("seekr-chat")], budget_tokens=0)
    several = [item for item in planned.not_run if planned.intended[item.key] > 1]
    pairs = [item for item in several if item.probe.startswith("pair.")]

    assert pairs
    assert all(item.reason.startswith("4 of 4 tries left out: budget: up to ") for item in pairs)
    assert all(item.probe.startswith(("pair.", "law.")) and " tries left out: " in item.reason for item in several)
    assert all(item.reason.startswith("budget: up to ") for item in planned.not_run if item not in several)


def test_tries_of_different_operations_are_told_apart() -> None:
    """The same probe of two operations or targets is two probes."""
    rows = [NotRun("form.basic", target, operation, "gone") for target in "ab" for operation in "xy"]
    found = Plan(0, tries=3, intended=Counter([row.key for row in rows] * 3)).named([*rows, rows[0]])

    assert [(item.target, item.operation) for item in found] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    assert [item.reason for item in found] == ["2 of 3 tries left out: gone", *["1 of 3 tries left out: gone"] * 3]


def test_rate_that_no_tries_detect() -> None:
    """What is no rate of faults is refused before anything is planned."""
    with pytest.raises(UsageError, match="--detect-rate"):
        plan([_target("seekr-chat")], detect_rate=1.0)


@pytest.mark.parametrize("select", ["form", "refusal.empty", "generated"])
def test_selection_by_topic_or_id(select: str) -> None:
    """`--select` sends what it names and nothing else."""
    planned = plan([_target("seekr-chat")], select=[select])

    assert planned.planned
    assert all(f"{item.probe.id}.".startswith(f"{select}.") for item in planned.planned)


@pytest.mark.parametrize(
    ("body", "least"),
    [
        ({"prompt": "x", "max_tokens": 8}, 8),
        ({"prompt": "x", "max_tokens": 8, "n": 3}, 24),
        ({"prompt": ["x", "y"], "max_tokens": 8}, 16),
        ({"prompt": [1, 2], "max_tokens": 8}, 8),
        ({"messages": [], "max_completion_tokens": 5, "max_tokens": 9}, 9),
        ({"prompt": "x"}, 256),
        ({"prompt": "word " * 300, "max_tokens": 1}, 300),
    ],
)
def test_worst_case_is_on_the_safe_side(body: dict[str, object], least: int) -> None:
    """Prompt and completion tokens are reckoned at least as many as they can be."""
    assert worst_case_tokens(body) >= least


def test_free_probes_cost_nothing() -> None:
    """What a right server refuses generates nothing."""
    assert Probe("x", {"prompt": "x", "max_tokens": 100}, free=True).tokens == 0
    assert Probe("x", b"\xff").tokens == 0
