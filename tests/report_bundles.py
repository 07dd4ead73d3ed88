"""Bundles for the report's tests: one of everything, one of each lack; every line is held against the bundle's schema."""

import contextlib
import functools
import json
import random
from pathlib import Path
from typing import Any

import jsonschema

from streamgauge.bundle.layout import EXPLORED, HONOUR
from streamgauge.bundle.reader import read_lines
from streamgauge.bundle.writer import BundleWriter, LineWriter, write_whole
from streamgauge.metrics.record import Outcome as LoadOutcome
from streamgauge.metrics.record import Record
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Ending, Exchange, SentRequest
from streamgauge.wire.http import Read

__all__ = [
    "CHAT",
    "HOSTILE",
    "NASTY_BODY",
    "START",
    "TEXT",
    "full_bundle",
    "lean_bundle",
    "load",
    "meta",
    "validate_bundle",
]

HOSTILE = "<script>alert(1)</script>\"' onerror=x \u202eright-to-left\u202c שלום \u2028 & \x07\ud800 {{ 7 * 7 }}"
"""Text as a hostile server would send it."""

NASTY_BODY = (
    b'data: {"choices":[{"delta":{"content":"<script>alert(1)</script>"}}]}\r\n\r\n'
    + b'data: {"x":"\x00\xff\xfe caf\xc3\xa9 \xe2\x80\xa8 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xf0\x9f\x98\x80"}\n\n'
    + b"data: "
    + b"long " * 1500
    + b"\n\ndata: [DONE]\n\n"
)
CHAT, TEXT = "seekr-chat", "seekr-completions"
_BASE = "http://127.0.0.1:9/v1"
_STARTED = "2025-06-01T12:00:00.000000Z"
START = 1_748_779_200.0


def meta() -> dict[str, Any]:
    """What was run."""
    operations = [
        {
            "name": name,
            "method": "POST",
            "path": path,
            "url": _BASE + path,
            "family": family,
            "document": name,
            "document_sha256": digit * 64,
        }
        for name, path, family, digit in (
            (CHAT, "/chat/completions", "chat", "a"),
            (TEXT, "/completions", "completions", "b"),
        )
    ]
    return {
        "streamgauge": "0.1.0",
        "started": _STARTED,
        "command": "run",
        "python": "3.11.7",
        "platform": "Linux-x86_64",
        "seed": 7,
        "budget_tokens": 20000,
        "targets": [
            {
                "name": "house",
                "base_url": _BASE,
                "model": "meta-llama/Llama-3.1-8B-Instruct",
                "profile": "seekr",
                "key": True,
                "auth": {"header": "Authorization", "scheme": "raw"},
                "insecure": False,
                "operations": operations,
            }
        ],
        "notes": ["The model list holds 3 models; the first was taken."],
        "not_run": [{"probe": "limits.huge-prompt", "target": "house", "operation": CHAT, "reason": "destructive"}],
    }


CHECKS: tuple[tuple[str, str, str, str], ...] = (
    ("framing.done-last", "Nothing follows [DONE]", "MUST", "The stream is terminated by a data: [DONE] message."),
    ("framing.media-type", "A stream is text/event-stream", "MUST", "This resource's MIME type is text/event-stream."),
    ("framing.utf8", "The stream is UTF-8", "MUST", "Streams must be decoded using the UTF-8 decode algorithm."),
    ("framing.no-cache", "A stream forbids caching", "SHOULD", "Intermediaries must not store what is live."),
    ("finish.reason", "Each choice has a finish reason", "MUST", "The reason the model stopped generating tokens."),
    ("sampling.stop", "A stop sequence ends the text", "MUST", "The model stops generating further tokens at stop."),
    ("sampling.seed", "The same seed gives the same text", "SHOULD", "Best effort to sample deterministically."),
    ("errors.unknown-model", "An unknown model is refused", "MUST", "Deployment not found."),
    ("errors.envelope", "Errors have the documented shape", "MUST", "error: message, type, param, code."),
    ("auth.missing-key", "A missing key is refused", "MUST", "Authentication failed."),
    ("usage.sum", "total_tokens is the sum", "MUST", "Total number of tokens used in the request."),
    ("tools.arguments", "Tool arguments are JSON", "SHOULD", "The arguments, as generated in JSON format."),
    ("logprobs.shape", "logprobs have their shape", "MAY", "Log probability information for the choice."),
)

_FINDINGS: tuple[tuple[str, str, Outcome, dict[str, int], str, int], ...] = (
    ("framing.done-last", CHAT, Outcome.FAIL, {"fail": 3, "pass": 9}, "", 3),
    ("framing.media-type", CHAT, Outcome.PASS, {"pass": 12}, "", 0),
    ("framing.utf8", CHAT, Outcome.FAIL, {"fail": 1, "pass": 11}, "", 1),
    ("framing.no-cache", CHAT, Outcome.WARN, {"warn": 12}, "", 1),
    ("finish.reason", CHAT, Outcome.FAIL, {"fail": 1, "pass": 3}, "", 1),
    ("finish.reason", TEXT, Outcome.PASS, {"pass": 4}, "", 0),
    ("sampling.stop", CHAT, Outcome.IGNORED, {"ignored": 2}, "", 2),
    ("sampling.seed", CHAT, Outcome.IGNORED, {"ignored": 1, "pass": 1}, "", 1),
    ("errors.unknown-model", CHAT, Outcome.INCONCLUSIVE, {"inconclusive": 1}, "rate-limited: 429", 1),
    ("errors.envelope", CHAT, Outcome.ERROR, {"error": 1}, "the check raised KeyError", 1),
    ("errors.envelope", TEXT, Outcome.PASS, {"pass": 6}, "", 0),
    ("auth.missing-key", CHAT, Outcome.NOT_RUN, {}, "budget: 20000 tokens", 0),
    ("usage.sum", CHAT, Outcome.PASS, {"pass": 8}, "", 0),
    ("usage.sum", TEXT, Outcome.PASS, {"pass": 8}, "", 0),
    ("tools.arguments", CHAT, Outcome.REFUSED, {"refused": 1}, "400: tools are not supported", 1),
    ("logprobs.shape", TEXT, Outcome.NOT_APPLICABLE, {}, "the profile says: no logprobs", 0),
)


def full_bundle(directory: Path) -> Path:
    """A bundle with every outcome, hostile exchanges, and 300 load records of two workers."""
    writer = BundleWriter(directory)
    writer.meta(meta())
    writer.checks(
        [
            {"id": id_, "title": title, "level": level, "requirement": words, "source": "OpenAPI document, line 12"}
            for id_, title, level, words in CHECKS
        ]
    )
    with contextlib.closing(writer.exchanges("main")) as exchanges:
        for number in range(12):
            exchanges.write(exchange(number))
    with writer.findings() as findings:
        for number, row in enumerate(_FINDINGS):
            findings.write(_finding(number, *row))
    write_whole(directory / HONOUR, honour())
    write_whole(directory / EXPLORED, explored())
    _write_records(directory)
    writer.load(load())
    writer.gate(
        {
            "exit_code": 1,
            "verdict": "fail",
            "reasons": ["3 MUSTs are broken: framing.done-last, framing.utf8, sampling.stop"],
            "baseline": {
                "file": "baseline.yaml",
                "known": 1,
                "stale": ["usage.total"],
                "expired": ["framing.utf8"],
            },
        }
    )
    validate_bundle(directory)
    return directory


def honour() -> list[dict[str, Any]]:
    """What two operations do about three properties."""
    plain: dict[str, Any] = {"target": "house", "counts": {}, "laws": [], "reason": "", "example": ""}
    stop = {**plain, "property": "stop", "laws": ["sampling.stop"]}
    return [
        {**stop, "operation": CHAT, "honour": "ignored", "counts": {"ignored": 1, "honoured": 3}},
        {**stop, "operation": TEXT, "honour": "honoured", "counts": {"honoured": 4}},
        {**plain, "property": "user", "operation": CHAT, "honour": "accepted", "reason": "<b>nobody</b> sees it"},
        {**plain, "property": "suffix", "operation": TEXT, "honour": "not probed", "reason": "the budget"},
    ]


def explored() -> list[dict[str, Any]]:
    """Three explorations: one that found something, one that found nothing, one whose find has no finding."""
    plain: dict[str, Any] = {"target": "house", "operation": CHAT, "seed": 7, "examples": 10, "requests": 14}
    found = {
        "check": "sampling.stop",
        "level": "MUST",
        "outcome": "ignored",
        "checks": ["sampling.stop", "finish.reason"],
        "expected": "a text that ends before '\u2028'",
        "actual": HOSTILE,
        "body": {"model": "m", "stop": "\u2028</pre>"},
        "properties": ["stop", "n"],
        "exchanges": ["gone-1", "main-0", "main-3"],
        "replays": 3,
        "departed": 2,
    }
    lost = {**found, "check": "pair.text", "checks": ["pair.text"], "properties": [], "exchanges": ["gone-2"]}
    return [
        {
            **plain,
            "exploration": "explore.stops",
            "title": "Stop strings",
            "tokens": 1470,
            "stopped": "",
            "failure": found,
        },
        {
            **plain,
            "exploration": "explore.prompts",
            "title": "Prompts",
            "tokens": 1332,
            "stopped": "the tokens were spent",
            "failure": None,
        },
        {
            **plain,
            "operation": TEXT,
            "exploration": "explore.prompts",
            "title": "Prompts",
            "tokens": 60,
            "stopped": "the target had stopped answering",
            "failure": {**lost, "replays": 0, "departed": 0},
        },
    ]


def lean_bundle(directory: Path, *parts: str) -> Path:
    """A bundle with meta.json and only the named parts: `gate`, `findings`, `records`, `load`."""
    writer = BundleWriter(directory)
    writer.meta({**meta(), "not_run": []} if parts else {**meta(), "targets": [], "notes": [], "not_run": []})
    if "gate" in parts:
        writer.gate({"exit_code": 0, "verdict": "pass", "reasons": []})
    if "findings" in parts:
        # No check is declared and no exchange recorded: what a crash can leave.
        with writer.findings() as findings:
            findings.write(_finding(0, *_FINDINGS[0]))
    if "records" in parts:
        _write_records(directory)
    if "load" in parts:
        writer.load({key: value for key, value in load().items() if key != "window"} | {"state": "running"})
    validate_bundle(directory)
    return directory


def exchange(number: int) -> Exchange:
    """A streamed exchange whose request and answer are hostile; its key is filler already."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-trace: <b>bold</b>\r\n\r\n"
    bodies = (
        b'{"model": "it\'s $HOME `id` \\"quoted\\" \\\\", "stream": true, "messages": []}',
        b"@/etc/hostname\n\x00\xff%s\\'",
        json.dumps({"messages": [{"content": HOSTILE}]}, ensure_ascii=False).encode("utf-8", "replace"),
    )
    wire = head + NASTY_BODY
    return Exchange(
        id=f"main-{number}",
        target="house",
        operation=CHAT,
        probe=f"chat.<b>probe</b>-{number}",
        request=SentRequest(
            "POST",
            _BASE + "/chat/completions?x=[1]&y='z'",
            (
                ("host", "127.0.0.1:9"),
                ("content-type", "application/json"),
                ("content-length", str(len(bodies[number % 3]))),
                ("authorization", "*" * 24),
                ("x-empty", ""),
            ),
            bodies[number % 3],
            Credential.VALID,
        ),
        started=_STARTED,
        wire=wire,
        reads=(Read(0.1, len(head)), Read(0.3, len(NASTY_BODY))),
        ending=Ending.CLOSED if number % 2 else Ending.COMPLETE,
        detail=HOSTILE if number == 1 else "",
    )


def load() -> dict[str, Any]:
    """What the load run was."""
    return {
        "target": "house",
        "operation": CHAT,
        "url": _BASE + "/chat/completions",
        "users": 8,
        "duration_s": 60.0,
        "prompt_tokens": 256,
        "max_tokens": 64,
        "stream": True,
        "seed": 7,
        "requests": None,
        "started": _STARTED,
        "window": [START + 6, START + 55],
        "state": "finished",
        "detail": "",
        "locust": "2.47.0",
    }


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    path = Path(__file__).parents[1] / "spec" / "bundle.schema.json"
    definitions = json.loads(path.read_text("utf-8"))["$defs"]
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


def validate_bundle(directory: Path) -> None:
    """Hold every file of a bundle against the published schema."""
    for name in ("meta", "load", "gate"):
        if (directory / f"{name}.json").exists():
            _validator(name).validate(json.loads((directory / f"{name}.json").read_bytes()))
    for name in (HONOUR, EXPLORED):
        if (directory / name).exists():
            for each in json.loads((directory / name).read_bytes()):
                _validator(name.removesuffix(".json")).validate(each)
    if (directory / "checks.json").exists():
        for each in json.loads((directory / "checks.json").read_bytes()):
            _validator("check").validate(each)
    for pattern, name in (
        ("exchanges-*", "exchange"),
        ("findings", "finding"),
        ("records-*", "record"),
        ("telemetry-*", "telemetry"),
        ("server-metrics", "server_metrics"),
    ):
        for path in directory.glob(f"{pattern}.jsonl"):
            for line in read_lines(path):
                _validator("anchor" if "anchor" in line else name).validate(line)


def _finding(
    number: int, check: str, operation: str, outcome: Outcome, counts: dict[str, int], reason: str, examples: int
) -> dict[str, Any]:
    spans: tuple[dict[str, Any], ...] = (
        {"part": "body", "span": [6, 69], "event": 0},
        {"part": "head", "span": [17, 48]},
        {"part": "body", "span": [90, 96]},
        {"part": "body", "span": [160, 7000]},
        {"part": "body", "span": [80, 80]},
        {"part": "body", "span": [10**6, 10**6 + 5]},
        {},
    )
    line: dict[str, Any] = {
        "check": check,
        "level": next((level for id_, _, level, _ in CHECKS if id_ == check), "MUST"),
        "target": "house",
        "operation": operation,
        "outcome": outcome,
        "counts": counts,
        "reason": reason,
        "examples": [
            {
                "exchange": f"main-{number + index}",
                "outcome": outcome,
                "expected": "[DONE] is the last event",
                "actual": f"an event follows: {HOSTILE}",
                **spans[(number + index) % len(spans)],
            }
            for index in range(examples)
        ],
    }
    if check == "finish.reason" and outcome is Outcome.FAIL:
        line["known"] = {"reason": "ticket 42", "expires": "2025-12-31"}
    return line


def _write_records(directory: Path) -> None:
    source = random.Random(11)
    failures = [outcome for outcome in LoadOutcome if outcome is not LoadOutcome.OK]
    for worker, clock in (("1", 0), ("2", 77_000_000)):
        with LineWriter(directory / f"records-{worker}.jsonl") as writer:
            writer.write({"anchor": {"monotonic_us": clock, "wall": START}})
            for number in range(150):
                failed = number % 12 == 5
                outcome = failures[number // 12 % len(failures)] if failed else LoadOutcome.OK
                writer.write(_record(f"{worker}-{number}", clock + number * 400_000, outcome, source).line())


def _record(name: str, start: int, outcome: LoadOutcome, source: random.Random) -> Record:
    came = outcome in (LoadOutcome.OK, LoadOutcome.TRUNCATED, LoadOutcome.TIMEOUT_IDLE)
    first = start + int(source.lognormvariate(12, 0.45))
    times = [first]
    for _ in range(39 if came else 0):
        stall = 700_000 if source.random() < 0.004 else 0
        times.append(times[-1] + int(source.lognormvariate(9.9, 0.25)) + stall)
    return Record(
        name,
        "house",
        CHAT,
        True,
        start,
        times[-1] + 3_000,
        outcome,
        scheduled=start,
        connect_us=900 if name.endswith("-0") else 0,
        first_visible=first if came else None,
        token_times=times if came else [],
        status=200 if came else 0,
        completion_tokens=40 if outcome is LoadOutcome.OK else None,
        max_tokens=64,
    )
