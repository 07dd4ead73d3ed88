"""Maps a request to its reply: routes, key, media type, answer, faults, framing. Does no I/O and never waits."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate

from streamgauge import catalog
from streamgauge.contract.contract import JSON, SSE, Contract, Operation, load_contracts
from streamgauge.contract.profile import GENERIC, Dialect, load_profile
from streamgauge.errors import DocumentError
from streamgauge.reference.accelerator import Accelerator, Speed
from streamgauge.reference.answers import Answer, Payload, to_json
from streamgauge.reference.auth import challenge, require_key
from streamgauge.reference.drafts import Draft, Event, Headers
from streamgauge.reference.errors import Kind, Refusal, body_of, status_of
from streamgauge.reference.faults.fault import Stage
from streamgauge.reference.faults.switched import SwitchedFaults
from streamgauge.reference.framing import DONE_EVENT, LAST_CHUNK, chunk, event, head
from streamgauge.reference.messages import Reply, Request, Write
from streamgauge.reference.metrics import Metrics
from streamgauge.reference.pace import Pace
from streamgauge.reference.parameters import CONTEXT, Parameters, parameters_of
from streamgauge.reference.room import Room
from streamgauge.reference.settings import Settings
from streamgauge.reference.validation import read_request

__all__ = ["Responder"]

_READ = ("GET", "HEAD")
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_RETRY_S = 1
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Route:
    """What one path does, by which methods, and in whose manner it refuses."""

    methods: tuple[str, ...]
    contract: Contract
    fill: Callable[["_Route", Draft], None]
    operation: Operation | None = None
    """Whose document describes the errors, where one does."""


class Responder:
    """
    The whole endpoint but for the socket.

    Args:
        settings: key, models, pace, profiles.
        contracts: what to serve in place of the settings' profiles.
        faults: what bends the drafts in place of the settings' faults.
        now: Unix time in seconds.
        unique: makes the unique part of an answer's id.

    Attributes:
        contracts: what is served.
        paths: name of each operation → the paths at which it is served.
        metrics: what `/metrics` shows; whoever writes the replies counts in it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        contracts: Sequence[Contract] = (),
        faults: SwitchedFaults | None = None,
        now: Callable[[], float] = time.time,
        unique: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.contracts = list(contracts) or _contracts(settings.profiles)
        self.paths = _paths(self.contracts)
        self.metrics = Metrics(settings.models, settings.processes)
        self._settings = settings
        self._faults = faults or SwitchedFaults(settings.faults, settings.seed)
        self._now = now
        self._unique = unique
        self._created = int(now())
        self._routes = self._make_routes()

    def new_pace(self) -> Pace:
        """What sets the pace of the answers: a simulated accelerator if the settings describe one."""
        told = self._settings
        room = Room(told.slots, told.kv_tokens, told.queue)
        if not told.accelerated:
            return Pace(room)
        return Accelerator(Speed(told.prefill_tokens_per_s, told.step_ms, told.step_ms_per_stream), room)

    def become(self, process: int) -> None:
        """From now on this is one process of several: it counts in a row of its own, and its faults draw for themselves."""
        self.metrics.process = process
        self._faults = SwitchedFaults(self._settings.faults, self._settings.seed + process)

    def reply(self, request: Request, *, room: Room | None = None) -> Reply:
        """
        The reply to a request; whatever it is, the status is below 500 unless a fault is switched on.

        Args:
            request: what has arrived.
            room: where an answer has to find a place, if anywhere.
        """
        route = self._routes.get(request.path)
        operation = route.operation if route and route.fill == self._answer else None
        contract = route.contract if operation and route else None
        draft = Draft(request, contract, operation, self._settings.key, self._settings.models, room=room)
        self._faults.bend(Stage.REQUEST, draft)
        dialect = (route.contract if route else self.contracts[0]).profile.dialect
        try:
            if route is None:
                raise Refusal(Kind.NO_SUCH_PATH, "There is nothing at this path.")
            if draft.request.method not in route.methods:
                draft.headers.append(("Allow", ", ".join(route.methods)))
                raise Refusal(Kind.METHOD, f"This path takes {' or '.join(route.methods)} only.")
            route.fill(route, draft)
        except Refusal as refusal:
            if refusal.kind is Kind.AUTHENTICATION and route:
                draft.headers.append(("WWW-Authenticate", challenge(route.contract.profile.auth)))
            if refusal.kind is Kind.BUSY:
                draft.headers.append(("Retry-After", str(_RETRY_S)))
            _refuse(draft, refusal, dialect, route.operation if route else None)
        return self._finish(draft)

    def reply_to_broken(self, refusal: Refusal) -> Reply:
        """The reply to what could not be read as a request; the connection ends behind it."""
        draft = Draft(Request("", "", http_version="1.0"), None, None, self._settings.key)
        _refuse(draft, refusal, self.contracts[0].profile.dialect, None)
        return self._finish(draft)

    def _make_routes(self) -> dict[str, _Route]:
        first = self.contracts[0]
        routes = {
            "/health": _Route(_READ, first, _show_health),
            "/metrics": _Route(_READ, first, self._show_metrics),
        }
        for contract in self.contracts:
            for operation in contract.operations:
                operation.request  # noqa: B018 - compiles the validator now, not while the first client waits
                for path in self.paths[operation.name]:
                    routes[path] = _Route((operation.method,), contract, self._answer, operation)
                    models = path.removesuffix("completions").removesuffix("chat/") + "models"
                    routes.setdefault(models, _Route(_READ, contract, self._list_models, operation))
        return routes

    def _answer(self, route: _Route, draft: Draft) -> None:
        contract, operation, request = route.contract, route.operation, draft.request
        assert operation is not None
        require_key(contract, operation, request.headers, self._settings.key)
        _require_json(request)
        profile = contract.profile
        asked = read_request(operation, request.body, self._settings.models, profile)
        parameters = parameters_of(operation, profile.dialect, asked)
        if draft.room is not None:
            _require_room(draft.room, parameters)
        created = int(self._now())
        answer = Answer(parameters, profile.dialect, self._settings, unique=self._unique(), created=created)
        draft.answer = answer
        if parameters.stream:
            draft.chunks = answer.chunks()
        else:
            whole = answer.whole()
            draft.body, draft.due_ms = whole.body, whole.due_ms

    def _list_models(self, route: _Route, draft: Draft) -> None:
        assert route.operation is not None
        require_key(route.contract, route.operation, draft.request.headers, self._settings.key)
        models = [
            {
                "id": name,
                "object": "model",
                "created": self._created,
                "owned_by": "streamgauge",
                "max_model_len": CONTEXT,
            }
            for name in self._settings.models
        ]
        draft.body = {"object": "list", "data": models}

    def _show_metrics(self, route: _Route, draft: Draft) -> None:
        del route
        draft.text, draft.media_type = self.metrics.text().encode("utf-8"), _PROMETHEUS

    def _finish(self, draft: Draft) -> Reply:
        """From JSON to bytes, step by step: after each a fault may strike."""
        request = draft.request
        bend = self._faults.bend
        bend(Stage.ANSWER, draft)
        if draft.chunks is not None:
            draft.media_type = f"{SSE}; charset=utf-8"
            draft.events = map(_event, draft.chunks)
        elif draft.body is not None:
            draft.text = to_json(draft.body)
        bend(Stage.TEXT, draft)
        framing = _framing(draft, chunked=request.http_version != "1.0")
        draft.headers = [*self._common(draft.media_type, keep_alive=request.keeps_alive), *draft.headers, *framing]
        bend(Stage.HEAD, draft)
        draft.writes = _stream_writes(draft) if draft.streamed else _whole_writes(draft)
        bend(Stage.WIRE, draft)
        return Reply(draft.status, draft.writes, request.keeps_alive, draft.answer, draft.end, draft.goes_on)

    def _common(self, media_type: str, *, keep_alive: bool) -> Headers:
        headers = [("Date", formatdate(self._now(), usegmt=True)), ("Content-Type", media_type)]
        return headers if keep_alive else [*headers, ("Connection", "close")]


def _contracts(profiles: Iterable[str]) -> list[Contract]:
    """
    The documents of each profile under that profile; by default those of the bundled ones.

    The first one's dialect is also that of paths that nobody has; by default it is the one that most clients know.
    """
    names = list(profiles) or sorted(catalog.profile_names(), key=lambda name: name != GENERIC)
    return [contract for name in names for contract in load_contracts(load_profile(name).documents, name)]


def _paths(contracts: Iterable[Contract]) -> dict[str, tuple[str, ...]]:
    """
    Where each operation is served: at its profile's paths, else its document's, as far as nobody else has them.

    Operations that can only be at one path choose first.

    Raises:
        DocumentError: an operation has no path left.
    """
    wanted = {
        operation.name: contract.profile.paths(operation.name) or (operation.path,)
        for contract in contracts
        for operation in contract.operations
    }
    taken: set[str] = set()
    served = {}
    for name, paths in sorted(wanted.items(), key=lambda item: len(item[1])):
        served[name] = tuple(path for path in paths if path not in taken)
        if not served[name]:
            hint = "Serve one of the two profiles alone, or give one of them `paths`."
            raise DocumentError(f"two operations want the path {paths[0]}", where=name, hint=hint)
        taken |= set(served[name])
    return served


def _require_json(request: Request) -> None:
    if request.header("content-type").partition(";")[0].strip().lower() != JSON:
        raise Refusal(Kind.MEDIA_TYPE, f"The body must be {JSON}, and Content-Type must say so.")
    if request.header("content-encoding").lower() not in ("", "identity"):
        raise Refusal(Kind.MEDIA_TYPE, "The body must not be compressed.")


def _require_room(room: Room, parameters: Parameters) -> None:
    reserved = parameters.reserved_tokens
    if not room.holds(reserved):
        raise Refusal(Kind.CONTEXT, "Prompt and answer may have more tokens than there are in all.", "max_tokens")
    if parameters.fail_fast and not room.fits(reserved):
        raise Refusal(Kind.BUSY, "Every slot is taken, and `fail_fast` says not to wait.", "fail_fast")
    if room.is_full(reserved):
        raise Refusal(Kind.BUSY, "Too many requests are waiting already.")


def _refuse(draft: Draft, refusal: Refusal, dialect: Dialect, operation: Operation | None) -> None:
    draft.refusal = refusal
    draft.status = status_of(refusal, dialect, operation)
    draft.body = body_of(refusal, draft.status, dialect, operation)


def _show_health(route: _Route, draft: Draft) -> None:
    del route
    draft.text, draft.media_type = b"ok\n", _TEXT


def _event(chunk: Payload) -> Event:
    return Event(chunk.due_ms, DONE_EVENT if chunk.body is None else event(to_json(chunk.body)), chunk.tokens)


def _framing(draft: Draft, *, chunked: bool) -> Headers:
    if not draft.streamed:
        return [("Content-Length", str(len(draft.text)))]
    return [("Cache-Control", "no-cache"), *([("Transfer-Encoding", "chunked")] if chunked else [])]


def _whole_writes(draft: Draft) -> Iterator[Write]:
    """A reply of known length in one write."""
    start = head(draft.status, draft.headers)
    tokens = draft.answer.completion_tokens if draft.answer else 0
    yield Write(draft.due_ms, start if draft.request.method == "HEAD" else start + draft.text, tokens)


def _stream_writes(draft: Draft) -> Iterator[Write]:
    """The head at once, then one write per event."""
    chunked = ("Transfer-Encoding", "chunked") in draft.headers
    yield Write(0.0, head(draft.status, draft.headers))
    due = 0.0
    for each in draft.events:
        due = each.due_ms
        yield Write(due, chunk(each.data) if chunked else each.data, each.tokens)
    if chunked:
        yield Write(due, LAST_CHUNK)
