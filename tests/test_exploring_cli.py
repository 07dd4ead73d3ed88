"""What the command line says about explorations."""

import json

import pytest
from click.testing import CliRunner

from streamgauge.cli import cli
from streamgauge.conformance.exploring.budget import EXPLORE_TOKENS
from streamgauge.conformance.exploring.exploration import EXPLORATIONS
from streamgauge.errors import UsageError

CHECK = ["check", "--base-url", "http://127.0.0.1:1", "--spec", "seekr-chat", "--spec", "seekr-completions"]


def test_explorations_are_listed() -> None:
    """With their ids, which `--select` takes."""
    done = CliRunner().invoke(cli, ["list", "explorations", "--json"])

    assert [row["id"] for row in json.loads(done.output)] == [each.id for each in EXPLORATIONS]


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        (["--budget-tokens", "1000000"], 2 * EXPLORE_TOKENS),
        (["--budget-tokens", "1000000", "--explore-tokens", "100"], 200),
        (["--select", "explore.tools"], EXPLORE_TOKENS),
        (["--select", "explore.tools", "--budget-tokens", "50"], 50),
    ],
)
def test_dry_run_tells_what_they_may_cost(options: list[str], tokens: int) -> None:
    """What is drawn depends on answers, so the worst case of all of it is all that can be said."""
    done = CliRunner().invoke(cli, [*CHECK, "--dry-run", *options])

    assert f"requests drawn at random: {tokens} tokens at most" in " ".join(done.output.split())


@pytest.mark.parametrize("options", [["--explore-tokens", "0"], ["--select", "form"], ["--budget-tokens", "0"]])
def test_dry_run_is_silent_where_nothing_is_drawn(options: list[str]) -> None:
    """Switched off, not selected, or nothing left of the budget."""
    assert "at random" not in CliRunner().invoke(cli, [*CHECK, "--dry-run", *options]).output


@pytest.mark.parametrize("option", ["--explore-tokens", "--explore-seed"])
def test_captures_have_nothing_to_draw(option: str) -> None:
    """`--from` sends nothing, so options about sending are refused by name."""
    done = CliRunner().invoke(cli, ["check", "--from", ".", option, "1"])

    assert isinstance(done.exception, UsageError)
    assert option in done.exception.what
