"""`--dry-run`: what would be sent, and what it would cost at most."""

import dataclasses
import sys
from collections import Counter

from rich.console import Console
from rich.table import Table

from streamgauge.cli.checking import CheckPart
from streamgauge.target import Target

__all__ = ["print_plan"]


def print_plan(targets: list[Target], part: CheckPart, console: Console) -> None:
    """Print every probe with its worst case of tokens; generated ones as one line for each kind."""
    from streamgauge.conformance.plan import plan
    from streamgauge.conformance.runner import throwaway_hypothesis

    named = [dataclasses.replace(target, model=target.model or "<model>") for target in targets]
    with throwaway_hypothesis():
        part.require_probes(named)
        planned = plan(named, select=part.select, budget_tokens=part.budget_tokens, detect_rate=part.detect_rate)
        enough = _enough(named, part) if planned.not_run else 0
    rows: dict[tuple[str, str, str], list[int]] = {}
    for item in planned.planned:
        row = rows.setdefault((item.target.url(item.operation), item.operation.name, _kind(item.probe.id)), [0, 0])
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
    if planned.tries > 1:
        console.print(f"each curated probe up to {planned.tries} times", highlight=False)
    if planned.not_run:
        told = (
            f"{len(planned.not_run)} probes beyond the budget, wholly or in part; --budget-tokens {enough} sends all:"
        )
        console.print(told, highlight=False)
    left_out: dict[tuple[str, str], list[str]] = {}
    for each in planned.not_run:
        left_out.setdefault((each.operation, _kind(each.probe)), []).append(each.reason)
    for (operation, probe), reasons in left_out.items():
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        console.print(f"  {operation} {probe}: {reasons[0]}{more}", markup=False, highlight=False)


def _enough(targets: list[Target], part: CheckPart) -> int:
    """The least budget of one operation that leaves nothing out."""
    from streamgauge.conformance.plan import plan

    costs: Counter[tuple[str, str]] = Counter()
    for item in plan(targets, select=part.select, budget_tokens=sys.maxsize, detect_rate=part.detect_rate).planned:
        costs[item.target.name, item.operation.name] += item.probe.tokens
    return max(costs.values())


def _kind(probe: str) -> str:
    """The probe's id; one name for each kind of generated ones."""
    return probe.rsplit("-", 1)[0] + "-*" if probe.startswith("generated.") else probe
