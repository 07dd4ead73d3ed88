"""
Check and load against llama.cpp's own server: the deviations that it is known for are found, and nothing else.

Each finding is classed and explained in docs/field-notes.md.
"""

from pathlib import Path

import pytest
from commandline import passed, streamgauge

from streamgauge.bundle.reader import Bundle
from streamgauge.metrics.record import Outcome
from streamgauge.metrics.run import load_records

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MUST = {
    "seekr-chat": {
        "bookkeeping.request-id": "ignored",
        "calls.named": "ignored",
        "error.no-5xx": "fail",
        "lengths.min-tokens": "ignored",
        "lengths.truncate-prompt": "ignored",
        "logprobs.given": "ignored",
        "logprobs.no-top": "fail",
        "logprobs.prompt": "ignored",
        "prompt.text": "ignored",
        "request.model-missing": "fail",
        "request.model-unknown": "fail",
        "sampling.beams": "ignored",
        "stop.flush": "fail",
        "stop.included": "ignored",
        "stop.reason-told": "fail",
        "structured.exactly-one": "ignored",
        "tokens.as-ids": "ignored",
        "tokens.ids": "ignored",
        "usage.all-choices": "fail",
        "usage.limit": "fail",
        "usage.stream-continuous": "ignored",
    },
    "seekr-completions": {
        "lengths.default-limit": "fail",
        "lengths.min-tokens": "ignored",
        "lengths.truncate-prompt": "ignored",
        "logprobs.prompt": "ignored",
        "logprobs.shape": "fail",
        "prompt.echo": "ignored",
        "prompt.suffix": "ignored",
        "request.model-missing": "fail",
        "request.model-unknown": "fail",
        "sampling.beams": "ignored",
        "sse.data-json": "fail",
        "stop.flush": "fail",
        "stop.included": "ignored",
        "stop.reason-told": "fail",
        "structured.exactly-one": "ignored",
        "tokens.as-ids": "ignored",
        "tokens.ids": "ignored",
        "usage.all-choices": "fail",
        "usage.limit": "fail",
        "usage.stream-continuous": "ignored",
    },
}
"""Every MUST that this server breaks whatever its model says, by operation."""

BY_TEXT = {
    "calls.required",
    "logprobs.top-sampled",
    "steering.bad-words",
    "structured.any-object",
    "structured.choice",
    "structured.format-tag",
    "structured.format-tags",
    "structured.grammar",
    "structured.json",
    "structured.json-object",
    "structured.json-schema",
    "structured.regex",
    "structured.structural-tag",
}
"""MUSTs that it breaks, too, which show in what its model of random weights happens to say."""

SHOULD = {
    "seekr-chat": {
        "calls.unmeetable",
        "lengths.repetition-rules",
        "messages.call-name-read",
        "messages.call-read",
        "messages.name-read",
        "request.invalid",
        "request.method",
        "sampling.repetition-penalty",
        "structured.both",
        "structured.schema-missing",
        "usage.stream-once",
    },
    "seekr-completions": {
        "lengths.repetition-rules",
        "prompt.echo-only",
        "prompt.token-ids",
        "request.invalid",
        "request.method",
        "sampling.repetition-penalty",
        "structured.both",
        "structured.schema-missing",
        "usage.stream-once",
        "usage.stream-place",
        "usage.stream-unrequested",
    },
}
"""SHOULDs and MAYs that it departs from whenever it is asked."""

BY_CHANCE = {"chunk.created-stable", "http.stream-cache"}
"""Departures that depend on the moment (`created` moves when a second passes) or are only reported."""

WITH_KEY = {
    "auth.challenge": "warn",
    "auth.further-place": "warn",
    "auth.other-scheme": "warn",
    "auth.scheme-case": "warn",
    "auth.two-headers": "warn",
    "auth.white-space": "warn",
}
"""What it does with keys, where nobody promised more than `Authorization: Bearer`; the refusals themselves are right."""

PATHS = {"seekr-chat": "/v1/chat/completions", "seekr-completions": "/v1/completions"}


@pytest.mark.parametrize("spec", MUST)
def test_known_deviations_are_found_and_no_others(spec: str, llama: str, tmp_path: Path) -> None:
    """Every known deviation that the probes can show is pinned by its check, and no other MUST is broken."""
    done = streamgauge(
        *("check", "--base-url", llama, "--spec", spec, "--path", PATHS[spec], "--model", "tiny"),
        *("--explore-tokens", "0", "--output", "out"),
        cwd=tmp_path,
        timeout=250,
    )
    quiet = ("pass", "not-run", "not-applicable", "refused")
    findings = [finding for finding in Bundle(tmp_path / "out").findings if finding["outcome"] not in quiet]
    must = {finding["check"]: finding["outcome"] for finding in findings if finding["level"] == "MUST"}
    others = {finding["check"] for finding in findings if finding["level"] != "MUST"}

    assert done.returncode == 1, done.stdout + done.stderr
    assert {check: outcome for check, outcome in must.items() if check not in BY_TEXT} == MUST[spec]
    assert others - BY_CHANCE == SHOULD[spec]


def test_what_it_does_with_a_key(llama_with_key: str, llama_key: str, tmp_path: Path) -> None:
    """No wrong key opens it; a right one opens in more forms than one, though not under a scheme in lower case."""
    (tmp_path / "key").write_text(llama_key)
    done = streamgauge(
        *("check", "auth", "--base-url", llama_with_key, "--spec", "openai-chat", "--model", "tiny", "--output", "out"),
        *("--select", "auth", "--select", "form.basic", "--api-key-file", "key"),
        cwd=tmp_path,
        timeout=250,
    )
    findings = Bundle(tmp_path / "out").findings
    departed = {finding["check"]: finding["outcome"] for finding in findings if finding["outcome"] in ("fail", "warn")}

    assert done.returncode == 0, done.stdout + done.stderr
    assert departed == WITH_KEY
    assert {"auth.missing", "auth.wrong"} <= {finding["check"] for finding in findings if finding["outcome"] == "pass"}


def test_run_fails_shows_bytes_and_passes_with_its_baseline(llama: str, tmp_path: Path) -> None:
    """Exit 1 on the real server, each finding with its bytes in the report; exit 0 with the baseline written from it."""
    arguments = [
        *("run", "--base-url", llama, "--spec", "seekr-chat", "--path", "/v1/chat/completions", "--model", "tiny"),
        *("--users", "4", "--duration", "3s", "--max-tokens", "16", "--explore-tokens", "0"),
        # What depends on the text that a model of random weights says is found in one run and not in the next.
        *("--select", "form", "--select", "refusal", "--select", "generated"),
    ]
    first = streamgauge(*arguments, "--output", "first", "--write-baseline", "known.yaml", cwd=tmp_path, timeout=250)
    second = streamgauge(*arguments, "--output", "second", "--baseline", "known.yaml", cwd=tmp_path, timeout=250)
    report = (tmp_path / "first" / "report.html").read_text(encoding="utf-8")
    records = load_records(Bundle(tmp_path / "first"))

    assert first.returncode == 1, first.stdout + first.stderr
    assert passed(second, tmp_path / "second"), second.stdout + second.stderr
    for check in ("error.no-5xx", "request.model-missing", "request.model-unknown", "usage.limit", "usage.all-choices"):
        assert check in report
    assert "500 Internal Server Error" in report
    assert "curl" in report
    assert {record.outcome for record in records} <= {Outcome.OK, Outcome.UNFINISHED_AT_STOP}
    assert sum(record.tokens for record in records) > 0
