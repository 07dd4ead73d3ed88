"""Maps a request to its reply: routes, key, media type, answer, framing. Does no I/O and never waits."""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial

from streamgauge import catalog
from streamgauge.contract.contract import JSON, SSE, Contract, Operation, load_contracts
from streamgauge.contract.profile import GENERIC, Dialect, load_profile
from streamgauge.errors import DocumentError
from streamgauge.reference.answers import Answer, Payload, to_json
from streamgauge.reference.auth import challenge, require_key
from streamgauge.reference.errors import Kind, Refusal, body_of, status_of
from streamgauge.reference.framing import LAST_CHUNK, chunk, head
from streamgauge.reference.messages import Reply, Request, Write
from streamgauge.reference.metrics import Metrics
from streamgauge.reference.parameters import CONTEXT, parameters_of
from streamgauge.reference.settings import Settings
from streamgauge.reference.validation import read_request

__all__ = ["Responder"]

_READ = ("GET", "HEAD")
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Route:
    """What one path does, by which methods, and in whose manner it refuses."""

    methods: tuple[str, ...]
    contract: Contract
    reply: Callable[[Request], Reply]
    operation: Operation | None = None
    """Whose document describes the errors, where one does."""


class Responder:
    """
    The whole endpoint but for the socket.

    Args:
        settings: key, models, pace, profiles.
        contracts: what to serve in place of the settings' profiles.
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
        now: Callable[[], float] = time.time,
        unique: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.contracts = list(contracts) or _contracts(settings.profiles)
        self.paths = _paths(self.contracts)
        self.metrics = Metrics(settings.models)
        self._settings = settings
        self._now = now
        self._unique = unique
        self._created = int(now())
        self._routes = self._make_routes()

    def reply(self, request: Request) -> Reply:
        """The reply to a request; whatever it is, the status is below 500."""
        route = self._routes.get(request.path)
        headers: Headers = []
        dialect = (route.contract if route else self.contracts[0]).profile.dialect
        try:
            if route is None:
                raise Refusal(Kind.NO_SUCH_PATH, "There is nothing at this path.")
            if request.method not in route.methods:
                headers.append(("Allow", ", ".join(route.methods)))
                raise Refusal(Kind.METHOD, f"This path takes {' or '.join(route.methods)} only.")
            return route.reply(request)
        except Refusal as refusal:
            if refusal.kind is Kind.AUTHENTICATION and route:
                headers.append(("WWW-Authenticate", challenge(route.contract.profile.auth)))
            return self._refused(request, refusal, dialect, route.operation if route else None, headers)

    def reply_to_broken(self, refusal: Refusal) -> Reply:
        """The reply to what could not be read as a request; the connection ends behind it."""
        dialect = self.contracts[0].profile.dialect
        return self._refused(Request("", "", http_version="1.0"), refusal, dialect, None, [])

    def _make_routes(self) -> dict[str, _Route]:
        first = self.contracts[0]
        routes = {
            "/health": _Route(_READ, first, lambda request: self._whole(request, 200, _TEXT, b"ok\n")),
            "/metrics": _Route(_READ, first, self._show_metrics),
        }
        for contract in self.contracts:
            for operation in contract.operations:
                operation.request  # noqa: B018 - compiles the validator now, not while the first client waits
                answer = partial(self._answer, contract, operation)
                for path in self.paths[operation.name]:
                    routes[path] = _Route((operation.method,), contract, answer, operation)
                    models = path.removesuffix("completions").removesuffix("chat/") + "models"
                    list_models = partial(self._list_models, contract, operation)
                    routes.setdefault(models, _Route(_READ, contract, list_models, operation))
        return routes

    def _answer(self, contract: Contract, operation: Operation, request: Request) -> Reply:
        require_key(contract, operation, request.headers, self._settings.key)
        _require_json(request)
        profile = contract.profile
        asked = read_request(operation, request.body, self._settings.models, profile)
        parameters = parameters_of(operation, profile.dialect, asked)
        created = int(self._now())
        answer = Answer(parameters, profile.dialect, self._settings, unique=self._unique(), created=created)
        if parameters.stream:
            return self._stream(request, answer)
        whole = answer.whole()
        return self._whole(request, 200, JSON, whole.data, due_ms=whole.due_ms, answer=answer)

    def _list_models(self, contract: Contract, operation: Operation, request: Request) -> Reply:
        require_key(contract, operation, request.headers, self._settings.key)
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
        return self._whole(request, 200, JSON, to_json({"object": "list", "data": models}))

    def _show_metrics(self, request: Request) -> Reply:
        return self._whole(request, 200, _PROMETHEUS, self.metrics.text().encode("utf-8"))

    def _refused(
        self, request: Request, refusal: Refusal, dialect: Dialect, operation: Operation | None, headers: Headers
    ) -> Reply:
        status = status_of(refusal, dialect, operation)
        return self._whole(request, status, JSON, to_json(body_of(refusal, status, dialect, operation)), headers)

    def _whole(
        self,
        request: Request,
        status: int,
        media_type: str,
        body: bytes,
        headers: Headers | None = None,
        *,
        due_ms: float = 0.0,
        answer: Answer | None = None,
    ) -> Reply:
        """A reply of known length in one write."""
        keep_alive = request.keeps_alive
        start = head(
            status,
            [
                *self._common(media_type, keep_alive=keep_alive),
                *(headers or []),
                ("Content-Length", str(len(body))),
            ],
        )
        data = start if request.method == "HEAD" else start + body
        tokens = answer.completion_tokens if answer else 0
        return Reply(status, [Write(due_ms, data, tokens)], keep_alive, answer)

    def _stream(self, request: Request, answer: Answer) -> Reply:
        """A reply of server-sent events: the head at once, then one write per event."""
        chunked = request.http_version != "1.0"
        headers = self._common(f"{SSE}; charset=utf-8", keep_alive=request.keeps_alive)
        headers.append(("Cache-Control", "no-cache"))
        if chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        writes = _stream_writes(head(200, headers), answer.events(), chunked=chunked)
        return Reply(200, writes, request.keeps_alive, answer)

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


def _stream_writes(start: bytes, events: Iterable[Payload], *, chunked: bool) -> Iterator[Write]:
    yield Write(0.0, start)
    for event in events:
        yield Write(event.due_ms, chunk(event.data) if chunked else event.data, event.tokens)
    if chunked:
        yield Write(event.due_ms, LAST_CHUNK)
