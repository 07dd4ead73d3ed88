"""Probes sent to the reference endpoint's responder without a socket: what the recorder would have kept, made at once."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from rehearsal import SENDING, Rehearsed

from streamgauge.conformance.isolation.alone import solitary
from streamgauge.conformance.plan import NotRun, Planned
from streamgauge.conformance.probes.probe import Probe
from streamgauge.conformance.recording import resolved, waves
from streamgauge.redaction import Redactor
from streamgauge.reference.messages import End, Reply, Request
from streamgauge.reference.responder import Responder
from streamgauge.wire.exchange import Ending, Exchange, SentRequest
from streamgauge.wire.http import Read, decode_response
from streamgauge.wire.recorder import Limits

_BASE = "http://127.0.0.1"
_ENDINGS = {End.CLOSE: Ending.CLOSED, End.RESET: Ending.RESET, End.HANG: Ending.TIMEOUT_IDLE}


def send_all(
    responder: Responder, planned: Iterable[Planned], now: float, rehearsed: Rehearsed | None = None
) -> list[Exchange]:
    """
    Every probe's exchanges, in the recorder's order: several where the rate is limited, those that go alone last.

    Args:
        responder: answers.
        planned: what to send.
        now: Unix time in seconds.
        rehearsed: what a right endpoint answered: exchanges that come out the same are its own.
    """
    exchanges: list[Exchange] = []
    redactors: dict[str, Redactor] = {}
    answered: dict[str, dict[str, Exchange]] = {}
    planned = list(planned)
    alone = [item for item in planned if solitary(item)]
    for planned_item in (each for wave in (*waves(planned), alone) for each in wave):
        item = resolved(planned_item, answered.get(planned_item.operation.name, {}))
        if isinstance(item, NotRun):
            continue
        if item.target.name not in redactors:  # it takes a while to make one
            redactors[item.target.name] = item.target.redactor
        for _ in range(Limits().rate_limit_attempts):
            id_ = f"memory-{len(exchanges):05d}"
            exchange = send(responder, item, now, id_, redactors[item.target.name], rehearsed)
            exchanges.append(exchange)
            answered.setdefault(item.operation.name, {})[exchange.probe] = exchange
            if not exchange.rate_limited:
                break
    return exchanges


def send(
    responder: Responder,
    item: Planned,
    now: float,
    id_: str,
    redactor: Redactor,
    rehearsed: Rehearsed | None = None,
) -> Exchange:
    """One probe's exchange."""
    probe, target = item.probe, item.target
    assert isinstance(probe, Probe)
    credential = target.credential if probe.credential is None else probe.credential
    path = responder.paths[item.operation.name][0]
    if probe.models:
        path = path.removesuffix("completions").removesuffix("chat/") + "models"
    url, fields = target.signed(f"{_BASE}{path}", credential, probe.headers)
    headers = tuple((name.lower(), value) for name, value in fields)
    SENDING[0] = id_
    request = Request(probe.method, url.removeprefix(_BASE), headers, probe.content)
    if rehearsed and (spared := rehearsed.spared(id_, request)):
        return spared
    reply = responder.reply(request)
    reply = replace(reply, writes=list(reply.writes))
    if rehearsed and (same := rehearsed.same(id_, request, reply)):
        return same
    wire, reads, ending = received(reply, probe.method)
    wire, redacted = redactor.wire(wire)
    return Exchange(
        id=id_,
        target=target.name,
        operation="" if probe.models else item.operation.name,
        probe=probe.id,
        request=(rehearsed and rehearsed.sent(id_, request))
        or SentRequest(probe.method, redactor.text(url), _blotted(redactor, headers), probe.content, credential),
        started=datetime.fromtimestamp(now, UTC).isoformat(),
        wire=wire,
        reads=reads,
        ending=ending,
        redacted=tuple(redacted),
    )


def _blotted(redactor: Redactor, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, redactor.text(value)) for name, value in headers)


def received(reply: Reply, method: str) -> tuple[bytes, tuple[Read, ...], Ending]:
    """What a client has of a reply: the bytes, when they came, and how it ended."""
    writes = list(reply.writes)
    wire = b"".join(write.data for write in writes)
    reads = tuple(Read(write.due_ms / 1000, len(write.data)) for write in writes if write.data)
    closed = reply.end is End.CLOSE or (reply.end is End.FRAMED and not reply.keep_alive)
    response = decode_response(wire, reads, method=method, closed=closed)
    if response.protocol_error:
        return wire, reads, Ending.MALFORMED_HTTP
    if response.complete:
        return wire, reads, Ending.COMPLETE
    # Without an end of its own, a message that is shorter than announced leaves the client waiting.
    return wire, reads, _ENDINGS.get(reply.end, Ending.TIMEOUT_IDLE)
