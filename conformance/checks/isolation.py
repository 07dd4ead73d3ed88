"""`isolation.*`, `cancel.*`: what one request has to do with another, and what is left of it when its client has gone."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.isolation.gauges import Busy, busy_in
from streamgauge.conformance.isolation.nonces import nonces_in
from streamgauge.conformance.isolation.poisoned import is_poison
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import answered, object_answer, payloads, streamed
from streamgauge.conformance.probes.isolation import canary
from streamgauge.conformance.tokens import limit_of
from streamgauge.outcomes import Level, Outcome
from streamgauge.text import one_line
from streamgauge.wire.exchange import Ending, Evidence, Exchange


def _told(exchange: Exchange) -> frozenset[str]:
    """Every nonce of an answer: in its bytes, or in texts that a stream brings piece by piece."""
    choices = answer_in(exchange).choices.values() if exchange.status == 200 else ()
    texts = [text for choice in choices for text in (choice.text, choice.reasoning)]
    calls = [call.arguments for choice in choices for call in choice.calls]
    return nonces_in("\n".join([exchange.response.body.decode("utf-8", "replace"), *texts, *calls]))


@check(
    "isolation.foreign-nonce",
    Level.MUST,
    "No answer holds what another request said",
    requirement="each request message's semantics can be understood in isolation",
    source="RFC 9110, section 3.3",
    applies=lambda case: answered(case) and bool(_told(case.exchange)),
    absent="no answer repeated the nonce of a request",
    needs=(Evidence.REQUEST,),
)
def foreign_nonce(case: Case) -> Iterator[Departure]:
    """Nobody can make a nonce up, so one that this request did not hold was taken from another: perhaps another caller's."""
    own = nonces_in(case.exchange.request.body.decode("utf-8", "replace"))
    if foreign := _told(case.exchange) - own:
        yield Departure(
            "no nonce but the request's own", f"{', '.join(sorted(foreign))}, which the request did not hold"
        )


def _id_of(case: Case, exchange: Exchange) -> str:
    """The id of an answer that the server chose; empty where there is none, or where the request may have chosen it."""
    sent = exchange.sent
    if exchange.status != 200 or (isinstance(sent, dict) and sent.get("request_id") is not None):
        return ""
    first = (
        next((chunk.object for chunk in exchange.stream.payloads), {}) if exchange.wants_stream else exchange.json.value
    )
    found = first.get("id") if isinstance(first, dict) else None
    return found if isinstance(found, str) else ""


def _said_to(exchange: Exchange) -> str:
    """The prompt or the conversation: caches leave out who asks, and other bookkeeping."""
    sent = exchange.sent if isinstance(exchange.sent, dict) else {}
    return _canonical([sent.get("prompt"), sent.get("messages")])


@once
def _first_with_id(case: Case) -> dict[str, Exchange]:
    """Id → the first answer that has it."""
    found: dict[str, Exchange] = {}
    for exchange in case.others:
        if Evidence.REQUEST in exchange.holds and (id_ := _id_of(case, exchange)):
            found.setdefault(id_, exchange)
    return found


@check(
    "isolation.ids-unique",
    Level.SHOULD,
    "Answers to different prompts have different ids",
    requirement="id: A unique identifier for the completion.",
    source=CLIENTS,
    applies=lambda case: (
        (object_answer(case) or (streamed(case) and bool(payloads(case)))) and bool(_id_of(case, case.exchange))
    ),
    absent="no answer had an id that the server had chosen",
    needs=(Evidence.REQUEST,),
)
def ids_unique(case: Case) -> Iterator[Departure]:
    """Whoever keeps answers by their ids mixes them up. That a cache repeats an answer to the same prompt is no fault."""
    id_ = _id_of(case, case.exchange)
    first = _first_with_id(case)[id_]
    if _said_to(first) != _said_to(case.exchange):
        yield Departure("an id that no other answer has", f"{one_line(id_, 80)}, as in {first.id}")


def _served(exchange: Exchange) -> bool:
    return 0 < exchange.status < 500


@once
def _behind(case: Case) -> dict[str, tuple[bool, tuple[Exchange, ...]]]:
    """
    Id of each poison's exchange → whether the request before it was answered, and those between it and the next poison.

    What was turned away for its rate shows nothing, and is left out.
    """
    found: dict[str, tuple[bool, list[Exchange]]] = {}
    current: list[Exchange] = []
    alive = False
    for exchange in case.others:
        if is_poison(case, exchange):
            current = []
            found[exchange.id] = (alive, current)
        elif not exchange.rate_limited:
            current.append(exchange)
            alive = _served(exchange)
    return {id_: (was_alive, tuple(behind)) for id_, (was_alive, behind) in found.items()}


@check(
    "isolation.survives",
    Level.MUST,
    "Behind a request that has killed engines the next plain one is answered as ever",
    requirement="each request message's semantics can be understood in isolation",
    source="RFC 9110, section 3.3",
    applies=lambda case: is_poison(case, case.exchange) and any(_behind(case)[case.exchange.id]),
    absent="opt-in: --destructive sends requests that have killed engines, each with a plain one behind it",
    needs=(Evidence.REQUEST,),
)
def survives(case: Case) -> Iterator[Departure]:
    """What the poison itself was answered is judged as everywhere; here it is what becomes of everybody else."""
    alive, behind = _behind(case)[case.exchange.id]
    if not behind:
        told = "no request was sent behind it"
        yield Departure("an answer to the next plain request", told, outcome=Outcome.INCONCLUSIVE)
    elif not _served(behind[0]):
        said = ", ".join(str(each.status) if each.status else str(each.ending) for each in behind[:2])
        told = f"{said}, behind a request that got {case.exchange.status or case.exchange.ending}"
        # One failure among answers, the poison's own included, may have come from anything.
        stray = _served(case.exchange) and any(map(_served, behind[1:2]))
        outcome = None if alive and not stray else Outcome.INCONCLUSIVE
        yield Departure("an answer to the next plain request", told, outcome=outcome)


_WATCHED_S = 7.0
"""How long behind the last stream's end a look at the metrics still tells about it: the recorder looks for 5 s."""

_LEAST_S = 2.0
"""A stream that would have been over sooner tells nothing."""


def _began(exchange: Exchange) -> datetime:
    return datetime.fromisoformat(exchange.started)


def _over(exchange: Exchange) -> datetime:
    return _began(exchange) + timedelta(seconds=exchange.reads[-1].time if exchange.reads else 0)


@once
def _left(case: Case) -> tuple[Exchange, ...]:
    """The streams that the client left while they were coming."""
    return tuple(each for each in case.others if each.ending is Ending.LEFT and each.status == 200 and each.is_stream)


@once
def _would_last_s(case: Case) -> float:
    """How long a whole stream would have taken at the pace of the events that came: the slowest of those that were left."""
    return max((_length_s(case, each) for each in _left(case)), default=0.0)


def _length_s(case: Case, exchange: Exchange) -> float:
    times = [chunk.event.time for chunk in exchange.stream.payloads]
    limit = limit_of(exchange.sent, case.operation.properties) if isinstance(exchange.sent, dict) else None
    if len(times) < 2 or limit is None:
        return 0.0
    return limit * (times[-1] - times[0]) / (len(times) - 1)


def _first_left(case: Case) -> bool:
    left = _left(case)
    return bool(left) and left[0].id == case.exchange.id and _would_last_s(case) >= _LEAST_S


@check(
    "cancel.frees-capacity",
    Level.SHOULD,
    "When its client has left, a request no longer takes the server's time",
    requirement="An answer that nobody reads takes nothing from those who wait.",
    source=CLIENTS,
    applies=_first_left,
    concerns=lambda operation, contract: operation.streams,
    absent=f"no stream was left that would have gone on for {_LEAST_S:g} s",
    needs=(Evidence.TIMES, Evidence.CLOCK, Evidence.REQUEST),
)
def frees_capacity(case: Case) -> Iterator[Departure]:
    """By the server's own metrics, where it shows them; else by whether the next request has to wait."""
    left = _left(case)
    begin, end = min(map(_began, left)), max(map(_over, left))
    looks = [(_began(each), busy) for each in case.others.beside if (busy := busy_in(each))]
    before = [busy for at, busy in looks if at <= begin]
    behind = [(at, busy) for at, busy in looks if end <= at <= end + timedelta(seconds=_WATCHED_S)]
    if before and behind:
        yield from _by_metrics(case, before[-1], [((at - end).total_seconds(), busy) for at, busy in behind])
    else:
        yield from _by_canary(case, begin, end)


def _by_metrics(case: Case, before: Busy, behind: list[tuple[float, Busy]]) -> Iterator[Departure]:
    count, lasts = len(_left(case)), _would_last_s(case)
    freed = next(((after, busy) for after, busy in behind if busy.running <= before.running), None)
    if freed is None:
        after, busy = behind[-1]
        told = (
            f"{busy.running:g} requests running {after:.1f} s after {count} clients had left, {before.running:g} before"
        )
        # With others about, only as many as were left, and all the time, are surely those.
        sure = before.running == 0 and all(busy.running >= count for _, busy in behind)
        yield Departure("as many as before", told, outcome=None if sure else Outcome.INCONCLUSIVE)
        return
    after, busy = freed
    went_on = any(at < after and earlier.running >= count for at, earlier in behind)
    if before.running or before.generated is None or busy.generated is None or not went_on:
        return  # what else was generated may have been for others
    limit = limit_of(case.exchange.sent, case.operation.properties) or 0
    grown = busy.generated - before.generated
    # A server that is done so soon was faster than its events told: it may have been through before the clients left.
    if grown >= count * limit / 2 and after >= lasts / 4:
        told = f"{grown:g} of at most {count * limit} tokens were generated for {count} clients that had left"
        yield Departure("generation ends with its client", told)


def _canonical(body: object) -> str:
    return json.dumps(body, sort_keys=True)


def _by_canary(case: Case, begin: datetime, end: datetime) -> Iterator[Departure]:
    body = _canonical(canary(case.operation, case.model))
    plain = [each for each in case.others if each.status == 200 and each.sent and _canonical(each.sent) == body]
    before = [each.reads[-1].time for each in plain if each.reads and _began(each) < begin]
    behind = [each.reads[-1].time for each in plain if each.reads and _began(each) >= end]
    if not before or not behind:
        yield Departure("a plain request before and behind", "not both were answered", outcome=Outcome.INCONCLUSIVE)
        return
    waited, lasts = behind[0] - before[-1], _would_last_s(case)
    told = f"{behind[0]:.2f} s behind {len(_left(case))} streams that were left, {before[-1]:.2f} s before them"
    if waited >= lasts / 2 and behind[0] >= 3 * before[-1]:
        yield Departure(
            "a plain request is answered as soon as before", f"{told}; the streams would have taken {lasts:.1f} s"
        )
    else:
        told += "; the server shows no metrics, so it may only have had room"
        yield Departure("metrics, or a request that had to wait", told, outcome=Outcome.INCONCLUSIVE)
