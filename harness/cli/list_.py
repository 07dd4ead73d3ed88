"""`streamgauge list`."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from streamgauge.contract.profile import Profile

__all__ = ["KINDS", "command"]

Row = dict[str, Any]

CURATED = ("form", "pair", "law", "isolation", "alone", "poison", "refusal", "auth")
"""The topics of the probes that stand in tables; those made from a document are counted by `check --dry-run`."""

_BESIDE = {
    "probes": "poison.* is sent with --destructive only. Beside these: generated.* (made from the document: `check --dry-run` "
    "counts them) and explore.* (`list explorations`)."
}
"""What is not in a list."""


def _checks() -> list[Row]:
    import streamgauge.conformance.checks  # noqa: F401 - declares every check
    from streamgauge.conformance.check import CHECKS

    return [check.declaration() for check in CHECKS.values()]


def _probes() -> list[Row]:
    import sys
    from collections import Counter

    from streamgauge.catalog import DOCUMENTS
    from streamgauge.conformance.plan import plan
    from streamgauge.contract.contract import load_contracts
    from streamgauge.target import Target

    targets = [
        Target(contract.profile.name, "http://127.0.0.1", contract, model="MODEL", key="not-a-real-key")
        for contract in load_contracts(list(DOCUMENTS))
    ]
    found = plan(targets, select=CURATED, budget_tokens=sys.maxsize, destructive=True)
    times = Counter((item.probe.id, item.operation.name, item.probe.tokens) for item in found.planned)
    return [
        {"id": id_, "operation": operation, "requests": count, "tokens": count * tokens}
        for (id_, operation, tokens), count in times.items()
    ]


def _explorations() -> list[Row]:
    from streamgauge.conformance.exploring.exploration import EXPLORATIONS

    return [each.declaration() for each in EXPLORATIONS]


def _metrics() -> list[Row]:
    from streamgauge.metrics.definitions import METRICS, RATES

    names = ("id", "title", "unit", "formula", "source")
    return [{name: getattr(each, name) for name in names} for each in (*METRICS, *RATES)]


def _outcomes() -> list[Row]:
    from streamgauge.outcomes import OUTCOME_MEANING

    return [{"id": outcome.value, "title": meaning} for outcome, meaning in OUTCOME_MEANING.items()]


def _profiles() -> list[Row]:
    from streamgauge.catalog import profile_names
    from streamgauge.contract.profile import load_profile

    return [_profile_row(load_profile(name)) for name in profile_names()]


def _profile_row(profile: "Profile") -> Row:
    """A profile with the value of each switch."""
    auth, dialect = profile.auth, profile.dialect
    return {
        "id": profile.name,
        "documents": ", ".join(profile.documents),
        "auth": auth.header if auth.scheme == "raw" else f"{auth.header}: {auth.scheme}",
        "malformed_status": ", ".join(map(str, dialect.malformed_status)),
        "unknown_model_status": ", ".join(map(str, dialect.unknown_model_status)),
        "error_envelope": dialect.error_envelope,
        "error_code": dialect.error_code,
        "reasoning_field": dialect.reasoning_field,
        "usage_chunk": dialect.usage_chunk,
        "features": ", ".join(f"{name} {said}" for name, said in profile.features.items()) or "unknown",
        "title": profile.title,
    }


def _specs() -> list[Row]:
    from streamgauge.catalog import DOCUMENTS
    from streamgauge.contract.contract import load_contracts

    return [
        {"id": operation.name, "operation": f"{operation.method} {operation.path}", "profile": contract.profile.name}
        for contract in load_contracts(list(DOCUMENTS))
        for operation in contract.operations
    ]


def _runs() -> list[Row]:
    from streamgauge.bundle.layout import META
    from streamgauge.bundle.reader import Bundle
    from streamgauge.runs import RUNS

    found = [Bundle(path.parent) for path in sorted(RUNS.glob(f"*/{META}"))]
    return [
        {"id": str(bundle.path), "started": bundle.meta["started"], "verdict": bundle.gate.get("verdict", "none")}
        for bundle in found
    ]


_SWITCHES = (
    "malformed_status",
    "unknown_model_status",
    "error_envelope",
    "error_code",
    "reasoning_field",
    "usage_chunk",
    "features",
)
"""Columns whose values do not explain themselves."""


def _rules() -> list[Row]:
    import streamgauge.lint.rules  # noqa: F401 - declares every rule
    from streamgauge.lint.rule import RULES

    return [dict(rule.declaration()) for rule in RULES.values()]


def _faults() -> list[Row]:
    from streamgauge.reference.faults import FAULTS

    return [dict(fault.declaration()) for fault in FAULTS.values()]


KINDS: dict[str, Callable[[], list[Row]]] = {
    "checks": _checks,
    "probes": _probes,
    "explorations": _explorations,
    "faults": _faults,
    "metrics": _metrics,
    "outcomes": _outcomes,
    "profiles": _profiles,
    "specs": _specs,
    "rules": _rules,
    "runs": _runs,
}
"""What can be listed → its rows."""


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(kind: str, as_json: bool) -> None:
    """
    List checks, probes, explorations, faults, metrics, outcomes, profiles, documents (specs), rules or runs.

    \b
    Examples:
      streamgauge list checks
      streamgauge list specs --json
    """
    rows = KINDS[kind]()
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    rows = [{name: f"{name}={value}" if name in _SWITCHES else value for name, value in row.items()} for row in rows]
    columns = [
        column
        for column in (rows[0] if rows else {})
        if column not in ("requirement", "source", "formula", "why", "mend", "seen", "caught by", "properties")
    ]
    widths = {column: max(len(str(row[column])) for row in rows) for column in columns}
    for row in rows:
        click.echo("  ".join(str(row[column]).ljust(widths[column]) for column in columns).rstrip())
    if kind in _BESIDE:
        click.echo(_BESIDE[kind], err=True)
