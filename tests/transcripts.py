"""Right exchanges as raw bytes, and the tools to bend them: the ground of the checks' tests."""

import functools
import json
from typing import Any

from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.contract.contract import Contract, Operation, load_contracts
from streamgauge.contract.plain import plain_request
from streamgauge.outcomes import Honour, Outcome
from streamgauge.wire.exchange import Credential, Ending, Exchange, SentRequest
from streamgauge.wire.http import Read

CREATED = 1_795_000_000
STARTED = "2026-11-18T13:46:40.000Z"
MODEL = "tiny"


@functools.cache
def contract_of(spec: str) -> tuple[Contract, Operation]:
    """The contract and the only operation of a bundled document."""
    contract = load_contracts([spec])[0]
    return contract, contract.operations[0]


def exchange(
    operation: Operation,
    body: Any,
    wire: bytes,
    *,
    ending: Ending = Ending.COMPLETE,
    credential: Credential = Credential.VALID,
    method: str = "POST",
    probe: str = "test",
    redacted: tuple[tuple[int, int], ...] = (),
) -> Exchange:
    """An exchange whose answer came in one read."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(
        id=f"test-{probe}",
        target="t",
        operation=operation.name,
        probe=probe,
        request=SentRequest(method, "http://127.0.0.1/", (), content, credential),
        started=STARTED,
        wire=wire,
        reads=(Read(0.01, len(wire)),) if wire else (),
        ending=ending,
        redacted=redacted,
    )


def http(
    status: int,
    body: bytes,
    *,
    media_type: str | None = "application/json",
    extra: str = "",
    reason: str = "X",
) -> bytes:
    """A response with Content-Length; a 401 has its challenge."""
    content_type = f"Content-Type: {media_type}\r\n" if media_type else ""
    extra += "WWW-Authenticate: Bearer\r\n" if status == 401 else ""
    return f"HTTP/1.1 {status} {reason}\r\n{content_type}{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(body: bytes, *, media_type: str = "text/event-stream", extra: str = "Cache-Control: no-cache\r\n") -> bytes:
    """A 200 response in one chunk."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n{extra}Transfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def usage(prompt: int = 5, completion: int = 8) -> dict[str, int]:
    """A usage object that adds up."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def whole_answer(operation: Operation, n: int = 1) -> dict[str, Any]:
    """A right answer in one piece."""
    chat = operation.family == "chat"
    part: dict[str, Any] = {"message": {"role": "assistant", "content": "one two"}} if chat else {"text": "one two"}
    return {
        "id": "x-1",
        "object": "chat.completion" if chat else "text_completion",
        "created": CREATED,
        "model": MODEL,
        "choices": [{"index": index, **part, "finish_reason": "length"} for index in range(n)],
        "usage": usage(completion=8 * n),
    }


def chunks(operation: Operation, n: int = 1, *, with_usage: bool = True) -> list[dict[str, Any]]:
    """The payloads of a right stream."""
    chat = operation.family == "chat"
    base = {
        "id": "x-1",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": CREATED,
        "model": MODEL,
    }

    def choice(index: int, text: str, finish: str | None = None, role: bool = False) -> dict[str, Any]:
        delta: dict[str, Any] = {"role": "assistant", "content": text} if role else {"content": text} if text else {}
        return {"index": index, **({"delta": delta} if chat else {"text": text}), "finish_reason": finish}

    found = [{**base, "choices": [choice(i, "", role=True)]} for i in range(n)] if chat else []
    found += [{**base, "choices": [choice(i, text)]} for text in ("one", " two") for i in range(n)]
    found += [{**base, "choices": [choice(i, "", "length")]} for i in range(n)]
    if with_usage:
        found.append({**base, "choices": [], "usage": usage(completion=8 * n)})
    return found


def sse(payloads: list[Any], *, done: bool = True) -> bytes:
    """Payloads as events, [DONE] behind them."""
    texts = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def request(operation: Operation, **changes: Any) -> dict[str, Any]:
    """The plain request, changed; a change to `...` removes the member."""
    body = {**plain_request(operation, MODEL, max_tokens=8), **changes}
    return {name: value for name, value in body.items() if value is not ...}


def stream_request(operation: Operation, **changes: Any) -> dict[str, Any]:
    """The plain request for a stream with usage."""
    return request(operation, **{"stream": True, "stream_options": {"include_usage": True}, **changes})


def outcomes(contract: Contract, operation: Operation, *exchanges: Exchange) -> dict[str, Outcome]:
    """What every check finds in these exchanges; what a law abstains from is told as inconclusive."""
    cases = cases_of(exchanges, operation, contract, target="t", model=MODEL)
    findings = [judge(check, cases, operation, contract, "t") for check in CHECKS.values()]
    return {each.check: _told(each) for each in findings}


def _told(finding: Finding) -> Outcome:
    abstained = finding.outcome is Outcome.NOT_RUN and finding.honour[Honour.UNCLEAR]
    return Outcome.INCONCLUSIVE if abstained else finding.outcome


def departures(contract: Contract, operation: Operation, *exchanges: Exchange) -> set[str]:
    """Ids of the checks that find a departure from their requirement."""
    departed = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN, Outcome.REFUSED)
    return {id_ for id_, outcome in outcomes(contract, operation, *exchanges).items() if outcome in departed}
