"""Names and line formats of a bundle's files (`spec/bundle.schema.json`), and both directions of an exchange's line."""

import base64
from typing import Any

from streamgauge.wire.exchange import Credential, Ending, Evidence, Exchange, SentRequest
from streamgauge.wire.http import Read

__all__ = [
    "BLOBS",
    "CHECKS",
    "EXCHANGES",
    "EXPLORED",
    "FINDINGS",
    "GATE",
    "HONOUR",
    "INFERRED",
    "LOAD",
    "META",
    "RECORDS",
    "SERVER_METRICS",
    "TELEMETRY",
    "TRACEABILITY",
    "VERSION",
    "exchange_from_line",
    "exchange_line",
]

VERSION = 1
"""Version of the bundle format that this code writes and reads."""

META = "meta.json"
CHECKS = "checks.json"
EXCHANGES = "exchanges-{}.jsonl"
BLOBS = "blobs-{}.bin"
FINDINGS = "findings.jsonl"
RECORDS = "records-{}.jsonl"
LOAD = "load.json"
TELEMETRY = "telemetry-{}.jsonl"
SERVER_METRICS = "server-metrics.jsonl"
GATE = "gate.json"
INFERRED = "inferred.json"
TRACEABILITY = "traceability.json"
HONOUR = "honour.json"
EXPLORED = "explored.json"


def exchange_line(exchange: Exchange, blob: str, offset: int) -> dict[str, Any]:
    """The line that stands for an exchange whose bytes begin at `offset` of the blob file."""
    request = exchange.request
    known = {} if exchange.holds == frozenset(Evidence) else {"holds": sorted(each.value for each in exchange.holds)}
    return {
        "id": exchange.id,
        "target": exchange.target,
        "operation": exchange.operation,
        "probe": exchange.probe,
        "started": exchange.started,
        "request": {
            "method": request.method,
            "url": request.url,
            "headers": [list(header) for header in request.headers],
            "body": _text_or_base64(request.body),
            "credential": request.credential.value,
        },
        "ending": exchange.ending.value,
        "detail": exchange.detail,
        "wire": {"file": blob, "offset": offset, "size": len(exchange.wire)},
        "reads": [[round(read.time, 6), read.size] for read in exchange.reads],
        "redacted": [list(span) for span in exchange.redacted],
        **known,
    }


def exchange_from_line(line: dict[str, Any], wire: bytes) -> Exchange:
    """The exchange that a line and its bytes stand for; the inverse of :func:`exchange_line`."""
    request = line["request"]
    return Exchange(
        id=line["id"],
        target=line["target"],
        operation=line["operation"],
        probe=line["probe"],
        started=line["started"],
        request=SentRequest(
            method=request["method"],
            url=request["url"],
            headers=tuple((name, value) for name, value in request["headers"]),
            body=_bytes(request["body"]),
            credential=Credential(request["credential"]),
        ),
        ending=Ending(line["ending"]),
        detail=line["detail"],
        wire=wire,
        reads=tuple(Read(time, size) for time, size in line["reads"]),
        redacted=tuple((start, end) for start, end in line["redacted"]),
        holds=frozenset(map(Evidence, line.get("holds", Evidence))),
    )


def _text_or_base64(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _bytes(stored: dict[str, str]) -> bytes:
    return stored["text"].encode("utf-8") if "text" in stored else base64.b64decode(stored["base64"])
