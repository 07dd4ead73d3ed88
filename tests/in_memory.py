"""Probes sent to the reference endpoint's responder without a socket: what the recorder would have kept, made at once."""

from collections.abc import Iterable
from datetime import UTC, datetime

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


def send_all(responder: Responder, planned: Iterable[Planned], now: float) -> list[Exchange]:
    """Every probe's exchanges: several where the rate is limited, as the recorder does it, and the late probes last."""
    exchanges: list[Exchange] = []
    redactors: dict[str, Redactor] = {}
    answered: dict[str, dict[str, Exchange]] = {}
    for planned_item in (each for wave in waves(planned) for each in wave):
        item = resolved(planned_item, answered.get(planned_item.operation.name, {}))
        if isinstance(item, NotRun):
            continue
        if item.target.name not in redactors:  # it takes a while to make one
            redactors[item.target.name] = item.target.redactor
        for _ in range(Limits().rate_limit_attempts):
            exchange = send(responder, item, now, f"memory-{len(exchanges):05d}", redactors[item.target.name])
            exchanges.append(exchange)
            answered.setdefault(exchange.operation, {})[exchange.probe] = exchange
            if not exchange.rate_limited:
                break
    return exchanges


def send(responder: Responder, item: Planned, now: float, id_: str, redactor: Redactor) -> Exchange:
    """One probe's exchange."""
    probe, target = item.probe, item.target
    assert isinstance(probe, Probe)
    credential = target.credential if probe.credential is None else probe.credential
    url, fields = target.signed(f"{_BASE}{responder.paths[item.operation.name][0]}", credential, probe.headers)
    headers = tuple((name.lower(), value) for name, value in fields)
    reply = responder.reply(Request(probe.method, url.removeprefix(_BASE), headers, probe.content))
    wire, reads, ending = received(reply, probe.method)
    wire, redacted = redactor.wire(wire)
    return Exchange(
        id=id_,
        target=target.name,
        operation=item.operation.name,
        probe=probe.id,
        request=SentRequest(probe.method, redactor.text(url), _blotted(redactor, headers), probe.content, credential),
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


def same_where_equal(fresh: list[Exchange], known: list[Exchange]) -> list[Exchange]:
    """Each fresh exchange, or its known twin where nothing differs: that one has been decoded already."""
    twins = {(twin.id, twin.probe, twin.wire, twin.reads, twin.ending): twin for twin in known}
    return [twins.get((each.id, each.probe, each.wire, each.reads, each.ending), each) for each in fresh]
