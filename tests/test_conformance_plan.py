"""Which probes are sent: within the budget, affordable, sensible, and named when left out."""

import json
from collections import Counter

import pytest
from transcripts import MODEL, contract_of

from streamgauge.conformance.plan import BUDGET_TOKENS, plan
from streamgauge.conformance.probes.generated import DANGEROUS, LIMIT, generated
from streamgauge.conformance.probes.probe import Probe, worst_case_tokens
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
    """Every probe of an operation has an id of its own; those about keys are sent only where there is one."""
    without, with_key = plan([_target("seekr-chat")]), plan([_target("seekr-chat", key="a-key-of-some-length")])
    ids = Counter(item.probe.id for item in with_key.planned)

    assert set(ids.values()) == {1}
    assert not [item for item in without.planned if item.probe.id.startswith("auth.")]
    assert [id_ for id_ in ids if id_.startswith("auth.")]


@pytest.mark.parametrize("select", ["form", "refusal.empty", "generated"])
def test_selection_by_topic_or_id(select: str) -> None:
    """`--select` sends what it names and nothing else."""
    planned = plan([_target("seekr-chat")], select=[select])

    assert planned.planned
    assert all(f"{item.probe.id}.".startswith(f"{select}.") for item in planned.planned)


@pytest.mark.parametrize("spec", SPECS)
def test_generated_cases_are_affordable_and_harmless(spec: str) -> None:
    """No case asks for many tokens or choices, names a dangerous property, or would make the target call somebody."""
    _, operation = contract_of(spec)
    for probe in generated(operation, MODEL):
        if not isinstance(probe.body, dict):
            continue
        for name in ("max_tokens", "max_completion_tokens", "n"):
            value = probe.body.get(name)
            assert not isinstance(value, int) or value <= LIMIT, (probe.id, name)
        assert not set(DANGEROUS) & set(probe.body)
        assert '"url": "' not in json.dumps(probe.body)


@pytest.mark.parametrize("spec", SPECS)
def test_generated_cases_are_of_both_kinds_and_unique(spec: str) -> None:
    """Many valid and many broken bodies, each once; valid ones name the real model unless the case is about it."""
    _, operation = contract_of(spec)
    probes = list(generated(operation, MODEL))
    bodies = [json.dumps(probe.body, sort_keys=True) for probe in probes]
    valid = [probe for probe in probes if not probe.free]

    assert len(bodies) == len(set(bodies))
    assert len(valid) > 50
    assert len(probes) - len(valid) > 50
    assert all(operation.request.accepts(probe.body) is not probe.free for probe in probes)
    assert all(probe.body["model"] == MODEL for probe in valid)


@pytest.mark.parametrize("spec", ["seekr-chat", "seekr-completions"])
def test_one_null_does_not_void_all_cases(spec: str) -> None:
    """Hardly any of the cases that name many properties at once hold a null, which a server might not take; small ones do."""
    _, operation = contract_of(spec)
    valid = [probe.body for probe in generated(operation, MODEL) if not probe.free]
    large = [None in body.values() for body in valid if len(body) * 3 > len(operation.properties)]

    assert len(large) > 50
    assert sum(large) * 10 < len(large)
    assert any(None in body.values() for body in valid if len(body) < 6)


def test_generation_is_deterministic() -> None:
    """The same document gives the same cases under the same ids."""
    _, operation = contract_of("seekr-completions")

    assert list(generated(operation, MODEL)) == list(generated(operation, MODEL))


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
