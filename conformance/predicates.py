"""Which exchanges a check looks at: by what they are, never by which probe sent them."""

from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.conformance.limits import beyond_limit
from streamgauge.conformance.once import of_exchange, of_request
from streamgauge.contract.contract import CHAT, COMPLETIONS, JSON, SSE, Contract, Operation
from streamgauge.contract.features import features_used
from streamgauge.wire.exchange import Chunk, Credential, Ending, Evidence, reports_error

__all__ = [
    "answered",
    "choices_of",
    "chunked",
    "complete",
    "continues_message",
    "count_of_choices",
    "documented",
    "documented_stream",
    "ended",
    "ended_answer",
    "index_of",
    "is_chat",
    "key_refused",
    "lacks_key",
    "names_stream",
    "object_answer",
    "outgrown",
    "payloads",
    "refused",
    "sends_key",
    "streamed",
    "undocumented",
    "unknown_model",
    "used_features",
    "valid_request",
    "whole",
]


def answered(case: Case) -> bool:
    """A final status line arrived, and it was not about the rate."""
    return case.exchange.status != 0 and not case.exchange.rate_limited


def refused(case: Case) -> bool:
    """A 4xx or 5xx answer."""
    return answered(case) and case.exchange.status >= 400


def _asks_whole(case: Case) -> bool:
    """A JSON request that does not ask for a stream; where the request is not held, an answer that is none."""
    if Evidence.REQUEST not in case.exchange.holds:
        return not case.exchange.is_stream
    return isinstance(case.exchange.sent, dict) and not case.exchange.sent.get("stream")


def whole(case: Case) -> bool:
    """A 200 answer to a request that wants it in one piece."""
    return case.exchange.status == 200 and _asks_whole(case)


def names_stream(case: Case) -> bool:
    """A 200 answer to a request that wants a stream."""
    return case.exchange.status == 200 and case.exchange.wants_stream


def streamed(case: Case) -> bool:
    """A 200 answer to a request that wants a stream, which is one (by its media type or by its first bytes)."""
    return names_stream(case) and case.exchange.is_stream


def payloads(case: Case) -> list[Chunk]:
    """The chunks that are JSON objects and no error reports: others have checks of their own."""
    return case.exchange.stream.payloads


@of_exchange
def chunked(case: Case) -> bool:
    """A stream with at least one payload, all of which was kept: `sse.*` says so where a limit of ours was passed."""
    return streamed(case) and bool(payloads(case)) and beyond_limit(case.exchange.stream) is None


@of_exchange
def ended(case: Case) -> bool:
    """A stream with payloads that came to its end: one that was cut off or failed is judged elsewhere."""
    return chunked(case) and case.exchange.stream.error is None and bool(case.exchange.stream.done)


@of_exchange
def object_answer(case: Case) -> bool:
    """A whole answer that is a JSON object and no error report."""
    return whole(case) and isinstance(case.exchange.json.value, dict) and not reports_error(case.exchange.json.value)


def ended_answer(case: Case) -> bool:
    """An answer, in the form that was asked for, that came to its end."""
    return ended(case) if case.exchange.wants_stream else object_answer(case)


def continues_message(case: Case) -> bool:
    """Asked with vLLM's `add_generation_prompt: false`: the model goes on with the last message, whose role the answer has."""
    exchange = case.exchange
    if Evidence.REQUEST not in exchange.holds or not isinstance(exchange.sent, dict):
        return False
    return exchange.sent.get("add_generation_prompt") in (False, 0)


def valid_request(case: Case) -> bool:
    """
    A request that the document allows and that is signed and addressed rightly.

    Computed from the contract, whatever the sender of the request thought of it.
    """
    return sends_key(case) and _allowed(case)


@of_request
def _allowed(case: Case) -> bool:
    body = case.exchange.sent
    return (
        case.exchange.request.method == case.operation.method
        and isinstance(body, dict)
        and body.get("model") == case.model
        and case.operation.request.accepts(body)
    )


def unknown_model(case: Case) -> bool:
    """A request that would be valid if it did not name a model that does not exist."""
    return sends_key(case) and _allowed_but_for_model(case)


@of_request
def _allowed_but_for_model(case: Case) -> bool:
    body = case.exchange.sent
    return (
        isinstance(body, dict)
        and isinstance(body.get("model"), str)
        and body["model"] != case.model
        and case.operation.request.accepts(body)
    )


def lacks_key(case: Case) -> bool:
    """A request to a target that has a key, sent without it or with another one."""
    return case.exchange.request.credential.keyless


def sends_key(case: Case) -> bool:
    """A request signed as the target wants it; of one whose key is unknown, that it was not turned away tells it."""
    unknown = case.exchange.request.credential is Credential.UNKNOWN
    return case.exchange.request.credential.usual and not (unknown and case.exchange.status in (401, 403))


def key_refused(case: Case) -> bool:
    """A 401 to the right key: `auth.accepted` judges it, and it says nothing about the rest of the request."""
    return case.exchange.status == 401 and case.exchange.request.credential is Credential.VALID


def used_features(case: Case) -> frozenset[str]:
    """The features that the request asks for by the properties that its document knows."""
    body = case.exchange.sent
    return features_used(body, case.operation.properties) if isinstance(body, dict) else frozenset()


def is_chat(operation: Operation, contract: Contract) -> bool:
    """A chat, not a text completion."""
    return operation.family == CHAT


def documented(operation: Operation, contract: Contract) -> bool:
    """The document describes the whole answer."""
    return operation.documents_body(200, JSON)


def undocumented(operation: Operation, contract: Contract) -> bool:
    """The document leaves the answer open: only the shape that clients rely on can be asked for."""
    return not operation.documents_body(200, JSON)


def documented_stream(operation: Operation, contract: Contract) -> bool:
    """The document describes the payload of the stream's events."""
    return operation.streams and operation.documents_body(200, SSE)


def complete(case: Case) -> bool:
    """The transfer ended as its framing announced."""
    return case.exchange.ending is Ending.COMPLETE


def outgrown(case: Case) -> bool:
    """The recorder stopped reading at its size limit: what is missing at the end is missing by our own doing."""
    return case.exchange.ending is Ending.TOO_LARGE


def count_of_choices(case: Case) -> int | None:
    """How many choices the request asks for; None when it does not say so clearly, or by what its document does not know."""
    body: dict[str, Any] = case.exchange.sent
    n = body.get("n", 1)
    n = 1 if n is None else n
    if n != 1 and "n" not in case.operation.properties:
        return None
    prompt = body.get("prompt") if case.operation.family == COMPLETIONS else None
    prompts = len(prompt) if isinstance(prompt, list) and prompt and isinstance(prompt[0], (str, list)) else 1
    return n * prompts if isinstance(n, int) and not isinstance(n, bool) and n >= 1 else None


def choices_of(case: Case) -> list[dict[str, Any]]:
    """The choices of a whole answer that are objects."""
    choices = case.exchange.json.value.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def index_of(choice: dict[str, Any]) -> Any:
    """A choice's index, to tell choices apart; of one that is a list or an object, which only a schema judges, its text."""
    index = choice.get("index")
    return repr(index) if isinstance(index, list | dict) else index
