"""What a check costs, over sockets: by the plan's worst case and by what the endpoint counted itself."""

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import streamgauge
from transcripts import contract_of

from streamgauge.bundle.reader import Bundle
from streamgauge.conformance.plan import BUDGET_TOKENS, plan
from streamgauge.conformance.probes.probe import FollowUp
from streamgauge.conformance.recording import record
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.recorder import Limits

SPECS = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Base URL of a reference endpoint that nobody else asks: its counters are ours."""
    with running() as url:
        yield url


def _spent(url: str) -> int:
    """Prompt and completion tokens by the endpoint's own counters (`/metrics`)."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        page = answer.read().decode()
    counters = re.findall(r"^vllm:(?:prompt|generation)_tokens_total\{[^}]*\} (\d+)$", page, re.MULTILINE)
    assert len(counters) == 2
    return sum(map(int, counters))


def _target(url: str, spec: str) -> Target:
    return Target("t", url, contract_of(spec)[0], model=DEFAULT_MODEL, key=DEFAULT_KEY)


@pytest.mark.parametrize("spec", SPECS)
def test_default_check_stays_below_50000_tokens(spec: str, endpoint: str, tmp_path: Path) -> None:
    """All probes of one operation cost less than 50,000 tokens, reckoned and counted, and the reckoning is on the safe side."""
    target = _target(endpoint, spec)
    planned = plan([target])
    writer, _ = open_bundle("check", [target], output=tmp_path / "out")

    left_out = record(planned.planned, writer.path, limits=Limits())

    follow_ups = {item.probe.id for item in planned.planned if isinstance(item.probe, FollowUp)}
    assert {item.probe for item in left_out} <= follow_ups  # a text may not hold what one of them is made of
    intended = Counter(item.probe.id for item in planned.planned) - Counter(item.probe for item in left_out)
    sent = Counter(exchange.probe for exchange in Bundle(writer.path).exchanges.values())
    assert {probe: sent[probe] for probe in intended} == intended
    assert 0 < _spent(endpoint) <= planned.tokens < BUDGET_TOKENS == 50_000


def test_budget_of_2000_runs_all_that_is_free_and_names_the_rest(endpoint: str, tmp_path: Path) -> None:
    """`--budget-tokens 2000`: every probe that a right server refuses is sent, every other one is sent or named."""
    everything = plan([_target(endpoint, "seekr-chat")], budget_tokens=10**9).planned
    intended = Counter(item.probe.id for item in everything)
    free = {item.probe.id for item in everything if item.probe.free}

    done = streamgauge(
        *("check", "--base-url", endpoint, "--spec", "seekr-chat", "--model", DEFAULT_MODEL),
        *("--budget-tokens", "2000", "--output", "out"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    bundle = Bundle(tmp_path / "out")
    sent = Counter(exchange.probe for exchange in bundle.exchanges.values())
    named = {row["probe"]: row["reason"] for row in bundle.meta["not_run"]}
    report = (tmp_path / "out" / "report.html").read_text()

    assert done.returncode == 0, done.stdout + done.stderr
    assert free < sent.keys()
    assert named.keys() == {probe for probe, count in intended.items() if sent[probe] < count}
    assert len(named) == len(bundle.meta["not_run"]) > 0
    assert all(re.search(r"budget: up to \d+ tokens, \d+ of 2000 left$", reason) for reason in named.values())
    assert all(f"<code>{probe}</code></th>" in report for probe in named)
    assert f"left out by the budget, wholly or in part: {len(named)} probes" in done.stdout
    assert 0 < _spent(endpoint) <= 2000
