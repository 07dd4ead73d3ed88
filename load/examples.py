"""Of each kind of failure the first few answers whole, as exchanges that are judged and looked at like any other."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from streamgauge.bundle.writer import ExchangeWriter
from streamgauge.load.client import Sent
from streamgauge.load.loopclock import wall_offset_us
from streamgauge.load.request import LoadRequest
from streamgauge.metrics.record import NOT_THE_SERVER, Outcome
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Exchange, SentRequest
from streamgauge.wire.http import Read, decode_response

__all__ = ["EXAMPLES", "Examples"]

EXAMPLES = 3
"""So many exchanges of each failure are kept by one process."""

_NONE = NOT_THE_SERVER | {Outcome.DROPPED}
"""What is no failure of the server."""

_ENDINGS: dict[Outcome, Ending] = {
    Outcome.REFUSED: Ending.REFUSED,
    Outcome.TLS: Ending.TLS,
    Outcome.RESET: Ending.RESET,
    Outcome.TIMEOUT_CONNECT: Ending.TIMEOUT_CONNECT,
    Outcome.TIMEOUT_FIRST_TOKEN: Ending.TIMEOUT_IDLE,
    Outcome.TIMEOUT_IDLE: Ending.TIMEOUT_IDLE,
    Outcome.TIMEOUT_TOTAL: Ending.TIMEOUT_TOTAL,
}
"""What ended the transfer; in all other failures the bytes tell."""


class Examples:
    """
    Keeps them in a file of this process's own, which is not there as long as nothing has failed.

    Args:
        directory: a bundle's.
        process: unique among the run's processes.
        target: whom the run asks.
    """

    def __init__(self, directory: Path, process: str, target: Target) -> None:
        self._directory = directory
        self._process = f"load-{process}"
        self._target = target
        self._redactor = target.redactor
        self._kept: Counter[Outcome] = Counter()
        self._writer: ExchangeWriter | None = None

    def take(self, request: LoadRequest, sent: Sent) -> None:
        """Keep what came of a request, if it failed in a way of which there are too few examples."""
        outcome = sent.record.outcome
        if outcome in _NONE or sent.reads is None or self._kept[outcome] >= EXAMPLES:
            return
        self._kept[outcome] += 1
        if self._writer is None:
            self._writer = ExchangeWriter(self._directory, self._process)
        self._writer.write(self._exchange(request, sent))

    def close(self) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.close()

    def _exchange(self, request: LoadRequest, sent: Sent) -> Exchange:
        record, target, hide = sent.record, self._target, self._redactor
        raw = b"".join(data for _, _, data in sent.reads or ())
        reads = tuple(Read((when - record.dispatched) / 1e6, len(data)) for when, _, data in sent.reads or ())
        ending = _ENDINGS.get(record.outcome) or _ending(raw, reads)
        wire, spans = hide.wire(raw)
        started = (record.dispatched + wall_offset_us()) / 1e6
        headers = target.request_headers(target.credential)
        return Exchange(
            id=f"{self._process}-{record.id}",
            target=record.target,
            operation=record.operation,
            probe="",
            request=SentRequest(
                method="POST",
                url=hide.text(request.url),
                headers=tuple((name.lower(), hide.text(value)) for name, value in headers.items()),
                body=hide.wire(request.body)[0],
                credential=target.credential,
            ),
            started=datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            wire=wire,
            reads=reads,
            ending=ending,
            detail=record.detail if record.outcome in _ENDINGS else "",
            redacted=tuple(spans),
        )


def _ending(wire: bytes, reads: tuple[Read, ...]) -> Ending:
    response = decode_response(wire, reads, closed=False)
    if response.protocol_error:
        return Ending.MALFORMED_HTTP
    return Ending.COMPLETE if response.complete else Ending.CLOSED
