"""`--dry-run`: what would be sent, and what it would cost at most."""

import dataclasses
import sys
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from streamgauge.cli.checking import CheckPart
from streamgauge.target import Target

if TYPE_CHECKING:
    from streamgauge.conformance.plan import Plan

__all__ = ["print_plan"]


def print_plan(targets: list[Target], part: CheckPart, console: Console) -> None:
    """
    Print what would be sent with its worst case of tokens: a line for each topic; for each probe with `--verbose` or where
    some were selected. Generated ones are a line for each kind, and requests that have killed engines are always named.
    """
    from streamgauge.conformance.plan import plan
    from streamgauge.conformance.runner import throwaway_hypothesis

    named = [dataclasses.replace(target, model=target.model or "<model>") for target in targets]
    with throwaway_hypothesis():
        part.require_probes(named)
        planned = plan(
            named,
            select=part.select,
            budget_tokens=part.budget_tokens,
            detect_rate=part.detect_rate,
            destructive=part.destructive,
        )
        enough = _enough(named, part) if planned.not_run else 0
    one_by_one = part.verbose or bool(part.select)
    rows: dict[tuple[str, str, str], list[int]] = {}
    for item in planned.planned:
        kind = _kind(item.probe.id, one_by_one=one_by_one)
        row = rows.setdefault((item.target.url(item.operation), item.operation.name, kind), [0, 0])
        row[0] += 1
        row[1] += item.probe.tokens
    table = Table(box=None, pad_edge=False)
    for title, justify in (
        ("operation", "left"),
        ("probe", "left"),
        ("requests", "right"),
        ("tokens at most", "right"),
    ):
        table.add_column(title, justify="right" if justify == "right" else "left")
    for (_, operation, probe), (requests, tokens) in rows.items():
        table.add_row(operation, probe, str(requests), str(tokens))
    console.print(table)
    for note in (f"{target.name}: {note}" for target in targets for note in target.contract.notes):
        console.print(note, markup=False, highlight=False)
    for url in dict.fromkeys(url for url, _, _ in rows):
        console.print(f"would go to {url}", markup=False, highlight=False)
    console.print(
        f"{len(planned.planned)} requests, {planned.tokens} tokens at most; nothing was sent", highlight=False
    )
    if not one_by_one:
        console.print("--verbose shows each probe by its name", highlight=False)
    if not part.destructive and not part.select:
        console.print(
            "not among them: requests that have killed engines; --destructive sends these, too", highlight=False
        )
    if random := _drawn(named, part, planned):
        console.print(random, highlight=False)
    if planned.tries > 1:
        console.print(f"each curated probe up to {planned.tries} times", highlight=False)
    if planned.not_run:
        told = (
            f"{len(planned.not_run)} probes beyond the budget, wholly or in part; --budget-tokens {enough} sends all:"
        )
        console.print(told, highlight=False)
    left_out: dict[tuple[str, str], list[str]] = {}
    for each in planned.not_run:
        left_out.setdefault((each.operation, _kind(each.probe, one_by_one=one_by_one)), []).append(each.reason)
    for (operation, probe), reasons in left_out.items():
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        console.print(f"  {operation} {probe}: {reasons[0]}{more}", markup=False, highlight=False)


def _drawn(targets: list[Target], part: CheckPart, planned: "Plan") -> str:
    """What is sent beside the probes: drawn only when they have been answered, so that it cannot be shown."""
    from streamgauge.conformance.exploring.budget import EXPLORE_TOKENS
    from streamgauge.conformance.exploring.exploration import explorations_of

    wanted = EXPLORE_TOKENS if part.explore_tokens is None else part.explore_tokens
    tokens = sum(
        min(wanted, planned.left(target.name, operation.name))
        for target in targets
        for operation in target.contract.operations
        if explorations_of(operation, part.select)
    )
    return (
        f"beside them, requests drawn at random: {tokens} tokens at most; --explore-tokens 0 draws none"
        if tokens
        else ""
    )


def _enough(targets: list[Target], part: CheckPart) -> int:
    """The least budget of one operation that leaves nothing out."""
    from streamgauge.conformance.plan import plan

    costs: Counter[tuple[str, str]] = Counter()
    everything = plan(
        targets,
        select=part.select,
        budget_tokens=sys.maxsize,
        detect_rate=part.detect_rate,
        destructive=part.destructive,
    )
    for item in everything.planned:
        costs[item.target.name, item.operation.name] += item.probe.tokens
    return max(costs.values())


def _kind(probe: str, *, one_by_one: bool) -> str:
    """The probe's id or, where they are not told one by one, its topic; one name for each kind of generated ones."""
    if probe.startswith("generated."):
        return probe.rsplit("-", 1)[0] + "-*"
    return probe if one_by_one or probe.startswith("poison.") else probe.rpartition(".")[0] + ".*"
