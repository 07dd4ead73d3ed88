"""`streamgauge explain`: which statements a check judges, and what of a document nothing judges."""

import json

import pytest
from click.testing import CliRunner

from streamgauge import catalog
from streamgauge.cli.explain import command
from streamgauge.cli.list_ import CURATED
from streamgauge.cli.list_ import command as list_command
from streamgauge.conformance import checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.plan import plan
from streamgauge.conformance.unseen import UNSEEN
from streamgauge.contract.contract import load_contracts
from streamgauge.contract.paths import request_paths
from streamgauge.metrics.definitions import METRICS, RATES, Metric, Rate
from streamgauge.target import Target
from streamgauge.traceability import Traced, trace

OPERATIONS = [operation for each in load_contracts(list(catalog.DOCUMENTS)) for operation in each.operations]


def explained(id_: str) -> str:
    """What the command says; lines that were folded are joined."""
    done = CliRunner().invoke(command, [id_])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def traced(name: str) -> tuple[Traced, ...]:
    """The entries of a bundled document."""
    (contract,) = load_contracts([name])
    return trace(contract.operations[0])


def test_a_check_names_the_statements_that_it_judges() -> None:
    """Document by document, each with the sentence of its own."""
    said = explained("auth.missing")

    assert 'seekr-chat: judges 2 statements "Missing or invalid API key." (/responses/401/description#1)' in said
    assert "openai-completions: judges 2 statements" in said
    assert "deepinfra-completions" not in said  # it documents neither key nor 401


def test_a_check_that_stands_on_no_document_names_none() -> None:
    """What an RFC says needs no document."""
    assert "judges" not in explained("http.valid")


@pytest.mark.parametrize("id_", CHECKS)
def test_a_check_is_explained_on_one_screen(id_: str) -> None:
    """Of many statements the first ones are shown, and how many there are."""
    assert CliRunner().invoke(command, [id_]).output.count("\n") <= 50


def test_of_many_statements_the_first_ones_are_shown() -> None:
    """Sentences first; the others are counted."""
    judged = [each for each in traced("seekr-chat") if "request.valid" in each.checks]
    count = sum(len(each.statements) for each in judged)

    assert f"seekr-chat: judges {count} statements " in explained("request.valid")
    assert f"and {count - 3} more" in explained("request.valid")


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_a_document_shows_what_nothing_judges(name: str) -> None:
    """The counts add up, and each statement that is open or not observable is there with its reason."""
    said = explained(name)
    entries = traced(name)
    counts = {kind: sum(len(each.statements) for each in entries if each.kind == kind) for kind in ("checks", "open")}

    total = sum(len(each.statements) for each in entries)
    assert f"statements: {total}, of which {counts['checks']} judged by checks, {counts['open']} open" in said
    for entry in entries:
        if entry.kind != "checks":
            text = entry.line().get("sentence") or entry.line().get("text") or f"{len(entry.statements)} statements"
            assert " ".join(text.split()) in said
            assert getattr(entry, entry.kind) in said


def test_a_property_names_its_laws() -> None:
    """`explain stop`: which laws judge whether it is honoured, and in which documents."""
    said = explained("stop")

    assert "stop (request property)" in said
    assert "deepinfra-completions, openai-chat, openai-completions: whether it is honoured is judged by" in said
    assert "stop.honoured [MUST]: No text goes on past a stop string" in said


def test_a_property_without_law_tells_why() -> None:
    """`explain messages[].role`: why no black box can see whether it is honoured."""
    said = explained("messages[].role")

    assert f"no law judges it: {UNSEEN['messages[].role']}" in said


@pytest.mark.parametrize("path", sorted({path for each in OPERATIONS for path in request_paths(each)}))
def test_every_property_can_be_explained(path: str) -> None:
    """Whatever the documents give a request has a law or a reason, and the command says which."""
    said = explained(path)

    assert "judged by" in said or "no law judges it: " in said
    assert "None" not in said


def test_a_law_names_its_properties() -> None:
    """The rows of the honour table that its verdict counts for."""
    assert "properties: stop " in explained("stop.honoured")


def test_a_probe_is_told_for_each_operation() -> None:
    """Findings name probes, so a reader may ask what one of them is."""
    said = explained("law.stop.text")

    assert "law.stop.text (probe)" in said
    assert "operation: openai-chat" in said


def test_an_exploration_is_explained() -> None:
    """Its id stands in the report."""
    assert "Stop strings out of earlier answers" in explained("explore.stops")


def test_every_curated_topic_is_listed() -> None:
    """`list probes` leaves out what is made from a document only; a new table of probes has to be named there."""
    (contract,) = load_contracts(["deepinfra-completions"])
    target = Target("t", "http://127.0.0.1", contract, model="m", key="k")
    sent = {item.probe.id.partition(".")[0] for item in plan([target], destructive=True, budget_tokens=10**9).planned}

    assert sent == {*CURATED, "generated"}
    done = CliRunner().invoke(list_command, ["probes", "--json"])
    assert {row["id"].partition(".")[0] for row in json.loads(done.stdout)} == set(CURATED)


@pytest.mark.parametrize("definition", [*METRICS, *RATES], ids=lambda each: each.id)
def test_every_figure_of_a_load_run_is_listed_and_explained(definition: Metric | Rate) -> None:
    """Latencies and rates alike: the tables that compute them are those that explain them."""
    listed = {row["id"] for row in json.loads(CliRunner().invoke(list_command, ["metrics", "--json"]).output)}
    assert definition.id in listed
    assert definition.formula in explained(definition.id)
