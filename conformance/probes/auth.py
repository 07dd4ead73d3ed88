"""Requests that carry the key in every form but the usual one; most of them a right server refuses."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request, prompt_member
from streamgauge.contract.profile import Auth
from streamgauge.signing import forms_of
from streamgauge.wire.exchange import Credential

__all__ = ["auth"]

_MOST_LIKELY = (Credential.NONE, Credential.WRONG)
"""What is also sent for a stream, and with a body that nobody can read."""


def auth(operation: Operation, model: str, how: Auth) -> Iterator[Probe]:
    """
    Every form of the key; only for targets that have one.

    Each asks what nobody else asks, so that no cache of answers stands between it and the key; the last ones, without a
    key, ask what has just been answered.
    """
    for credential in forms_of(how):
        asked = f"Say the word {credential}."
        body = {**plain_request(operation, model, max_tokens=1), **prompt_member(operation, asked)}
        yield Probe(f"auth.{credential}", body, free=credential.keyless, credential=credential)
        if credential in _MOST_LIKELY:
            if operation.streams:
                yield _stranger(f"{credential}-stream", {**body, "stream": True}, credential)
            yield _stranger(f"{credential}-malformed", b'{"model": ', credential)
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    yield _stranger("answered-before", plain, Credential.NONE, late=True)
    if operation.streams:
        yield _stranger("answered-before-stream", {**plain, "stream": True}, Credential.NONE, late=True)


def _stranger(name: str, body: Any, credential: Credential, *, late: bool = False) -> Probe:
    return Probe(f"auth.{name}", body, free=True, credential=credential, late=late)
