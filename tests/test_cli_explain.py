"""`streamgauge explain`: which statements a check judges, and what of a document nothing judges."""

import pytest
from click.testing import CliRunner

from streamgauge import catalog
from streamgauge.cli.explain import command
from streamgauge.conformance import checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.contract.contract import load_contracts
from streamgauge.traceability import Traced, trace


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
