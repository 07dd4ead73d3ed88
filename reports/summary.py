"""
The report as JSON, for programs.

Keys, in this order (absent knowledge is null, never 0)::

    version        1: of this file's format
    streamgauge, python, platform, started, command, seed      from meta.json
    verdict        pass, fail, inconclusive, interrupted or none (the run did not reach its gate)
    exit_code      null without a verdict
    reasons        of the gate
    baseline       file, known, stale, expired; {} without one
    counts         outcome → findings
    levels         level → outcome → findings
    findings       those that are neither pass nor not-applicable, most severe first: check, level, outcome, target,
                   operation, title, counts, reason, known, examples (exchange, outcome, expected, actual)
    honour         target → operation → word (ignored, honoured, ...) → paths of request properties
    explored       for each exploration: exploration, target, operation, seed, examples, requests, tokens (at most), stopped (why
                   before its time), failure (null, or check, expected, actual, properties, body, replays, departed)
    load           null without a load run:
      run            load.json
      requests, outcomes, token_sources                           without the warm-up
      warm_up        how many requests belong to it
      scheduled      how many the schedule had, the warm-up's included; null in a closed loop
      missing        how many of these left no record: requests + warm_up + missing = scheduled
      violations     events or bodies that broke their schema
      objectives     objective, verdict (pass, fail, inconclusive), value, low, high (ms, or a share), n, reason
      goodput        good, least, most, n, share, low, high; null without a request
      rates          id → value
      latencies      metric id → unit, n, estimated, mean, min, max, p50, p90, p95, p99: value, low, high (95 % interval),
                     certified, client_low, client_high (where the value lies, given how busy the client was)
      coalescing     streams, judged, events, every_ms; null where nothing collects events
      client         sufficient, reasons, warnings, doubt_ms, lateness_p99_ms, cpu (cores), loop_lag_p99_ms, gc_ms, processes,
                     calibrations (process, phase, streams, events, ttft_error_us, gap_error_us)
      server         the server's own counts: agreement (agree, explained, differs), reason (why there are none), notes,
                     rows (what, ours, server, agreement, explanation); null where they were not read
      notes          what limits the figures
    documents      target, operation, document, sha256
    from           names of the captures that were judged; null when the target itself was asked
    not_judged     how many captures were left out, or probes not sent
    targets        name, base_url, model, profile, widened (what the profile lets pass beyond the document)
    widened        what passed only because of that: check, target, operation, what
"""

import json
from dataclasses import asdict
from typing import Any

from streamgauge.metrics.client import Bar, ClientReport
from streamgauge.metrics.crosscheck import CrossCheck
from streamgauge.metrics.definitions import RATES
from streamgauge.metrics.distribution import Distribution
from streamgauge.metrics.goodput import Goodput
from streamgauge.metrics.objectives import Objective
from streamgauge.metrics.statistics import Quantile
from streamgauge.outcomes import Level, Outcome
from streamgauge.reports.explored import Exploration, Failure
from streamgauge.reports.findings import Finding
from streamgauge.reports.load import Latency, LoadReport
from streamgauge.reports.model import Report, counted

__all__ = ["summary_json"]

VERSION = 1
_FROM_META = ("streamgauge", "python", "platform", "started", "command", "seed")
_UNTOLD = (Outcome.PASS, Outcome.NOT_APPLICABLE)


def summary_json(report: Report) -> bytes:
    """The report as JSON in ASCII: what comes from the target is escaped."""
    verdict = report.verdict
    data = {
        "version": VERSION,
        **{name: report.meta[name] for name in _FROM_META},
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "reasons": list(verdict.reasons),
        "baseline": verdict.baseline,
        "counts": report.counts,
        "levels": {level: counted(finding for finding in report.findings if finding.level is level) for level in Level},
        "findings": [_finding(finding) for finding in report.findings if finding.outcome not in _UNTOLD],
        "honour": _honour(report),
        "explored": [_explored(each) for each in report.explored],
        "load": _load(report.load) if report.load else None,
        "documents": [
            {
                "target": target["name"],
                "operation": operation["name"],
                "document": operation["document"],
                "sha256": operation["document_sha256"],
            }
            for target in report.meta["targets"]
            for operation in target["operations"]
        ],
        "from": report.meta.get("from"),
        "not_judged": len(report.meta.get("not_run", ())),
        "targets": [
            {
                **{name: target[name] for name in ("name", "base_url", "model", "profile")},
                "widened": [said["what"] for said in target.get("widened", ())],
            }
            for target in report.meta["targets"]
        ],
        "widened": [
            {"check": found.check, "target": found.target, "operation": found.operation, "what": list(found.widened)}
            for found in report.widened
        ],
    }
    return json.dumps(data, indent=1).encode("ascii") + b"\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "level": finding.level,
        "outcome": finding.outcome,
        "target": finding.target,
        "operation": finding.operation,
        "title": finding.title,
        "counts": finding.counts,
        "reason": finding.reason,
        "known": finding.known,
        "examples": [
            {
                "exchange": example.exchange,
                "outcome": example.outcome,
                "expected": example.expected,
                "actual": example.actual,
            }
            for example in finding.examples
        ],
    }


def _honour(report: Report) -> dict[str, dict[str, dict[str, list[str]]]]:
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for row in report.honour.rows:
        for (target, operation), cell in zip(report.honour.columns, row.cells, strict=True):
            if cell.word:
                words = found.setdefault(target, {}).setdefault(operation, {})
                words.setdefault(cell.word, []).append(row.path)
    return found


def _explored(explored: Exploration) -> dict[str, Any]:
    names = ("target", "operation", "seed", "examples", "requests", "tokens", "stopped")
    return {
        "exploration": explored.id,
        **{name: getattr(explored, name) for name in names},
        "failure": _failure(explored.failure) if explored.failure else None,
    }


def _failure(failure: Failure) -> dict[str, Any]:
    names = ("check", "expected", "actual", "properties", "replays", "departed")
    return {**{name: getattr(failure, name) for name in names}, "body": json.loads(failure.body)}


def _load(load: LoadReport) -> dict[str, Any]:
    summary = load.summary
    return {
        "run": load.figures.run,
        "requests": summary.requests,
        "outcomes": summary.outcomes,
        "token_sources": summary.token_sources,
        "warm_up": summary.warm_up,
        "scheduled": summary.scheduled,
        "missing": summary.missing,
        "violations": summary.violations,
        "objectives": [_objective(each) for each in load.figures.objectives],
        "goodput": _goodput(summary.goodput) if summary.goodput else None,
        "rates": {rate.id: _rounded(getattr(summary, rate.id)) for rate in RATES},
        "latencies": {row.metric.id: _latency(row, row.found) for row in load.latencies if row.found},
        "coalescing": asdict(load.coalescing) if load.coalescing else None,
        "client": _client(load.figures.client),
        "server": _server(load.check) if load.check else None,
        "notes": summary.notes,
    }


def _objective(found: Objective) -> dict[str, Any]:
    return {
        "objective": str(found.slo),
        "verdict": found.kept,
        **{name: _rounded(getattr(found, name)) for name in ("value", "low", "high")},
        "n": found.n,
        "reason": found.reason,
    }


def _goodput(found: Goodput) -> dict[str, Any]:
    counts = {name: getattr(found, name) for name in ("good", "least", "most", "n")}
    return counts | {name: _rounded(getattr(found, name)) for name in ("share", "low", "high")}


def _client(client: ClientReport) -> dict[str, Any]:
    return {
        "sufficient": client.sufficient,
        "reasons": list(client.reasons),
        "warnings": list(client.warnings),
        **{name: _rounded(getattr(client, name)) for name in ("doubt_ms", "lateness_p99_ms", "cpu", "loop_lag_p99_ms")},
        "gc_ms": _rounded(client.gc_ms),
        "processes": client.processes,
        "calibrations": [asdict(each) for each in client.calibrations],
    }


def _server(check: CrossCheck) -> dict[str, Any]:
    return {
        "agreement": check.agreement,
        "reason": check.reason,
        "notes": list(check.notes),
        "rows": [asdict(row) for row in check.rows],
    }


def _latency(row: Latency, found: Distribution) -> dict[str, Any]:
    return {
        "unit": row.metric.unit,
        "n": found.n,
        "estimated": found.estimated or row.metric.estimated,
        "mean": _rounded(found.mean),
        "min": _rounded(found.low),
        "max": _rounded(found.high),
        **{name: _quantile(getattr(found, name), row.bars) for name in ("p50", "p90", "p95", "p99")},
    }


def _quantile(found: Quantile, bars: dict[float, Bar]) -> dict[str, float | None]:
    bar = bars.get(found.p)
    return {
        **{name: _rounded(getattr(found, name)) for name in ("value", "low", "high")},
        "certified": found.certified,
        "client_low": _rounded(bar.low) if bar else None,
        "client_high": _rounded(bar.high) if bar else None,
    }


def _rounded(value: float | None) -> float | None:
    """The value to a millionth: more digits would only differ from machine to machine."""
    return None if value is None else round(value, 6)
