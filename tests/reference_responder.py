"""The reference endpoint's responder, asked without a socket."""

import json

from streamgauge.contract.contract import JSON
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.messages import Request
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.wire.http import Read, decode_response

RESPONDER = Responder(Settings(ttft_ms=200, itl_ms=10), now=lambda: 1_800_000_000.5, unique=lambda: "u1")
OPERATIONS = {
    operation.name: (contract, operation) for contract in RESPONDER.contracts for operation in contract.operations
}
CHAT, TEXT, DEEP = "seekr-chat", "seekr-completions", "deepinfra-completions"
OPEN_CHAT, OPEN_TEXT = "openai-chat", "openai-completions"
USER = [{"role": "user", "content": "How wide is the river?"}]
BODIES = {
    CHAT: {"model": DEFAULT_MODEL, "messages": USER},
    TEXT: {"model": DEFAULT_MODEL, "prompt": "The river is"},
    DEEP: {"model": DEFAULT_MODEL, "prompt": "The river is"},
    OPEN_CHAT: {"model": DEFAULT_MODEL, "messages": USER},
    OPEN_TEXT: {"model": DEFAULT_MODEL, "prompt": "The river is"},
}
MISSING = object()


def request_for(name, body, *, headers=None, method="POST", version="1.1"):
    """The request of an operation, with the right key unless told otherwise."""
    contract, _ = OPERATIONS[name]
    if headers is None:
        auth = contract.profile.auth
        headers = ((auth.header.lower(), auth.value(DEFAULT_KEY)), ("content-type", JSON))
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, RESPONDER.paths[name][0], headers, data, version)


def send(request, responder=RESPONDER):
    """The response to a request, decoded from the very bytes, and the writes that made it."""
    reply = responder.reply(request)
    writes = list(reply.writes)
    wire = b"".join(write.data for write in writes)
    reads = [Read(write.due_ms, len(write.data)) for write in writes]
    response = decode_response(wire, reads, method=request.method or "POST", closed=not reply.keep_alive)
    assert response.protocol_error == ""
    assert response.complete
    assert response.status == reply.status
    assert DEFAULT_KEY.encode() not in wire
    return response, writes


def ask(name, **changes):
    """The response to an operation's plain request with some members changed."""
    body = {key: value for key, value in {**BODIES[name], **changes}.items() if value is not MISSING}
    response, _ = send(request_for(name, body))
    return response
