"""Checks the API key of a request."""

import functools
import hmac
from collections.abc import Iterable

from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.profile import Auth
from streamgauge.contract.widening import key_needed
from streamgauge.reference.errors import Kind, Refusal

__all__ = ["challenge", "require_key"]

_KEY_HEADER = "api-key"


def require_key(contract: Contract, operation: Operation, headers: Iterable[tuple[str, str]], key: str) -> None:
    """
    Accept the key in the profile's form, once, or alone in a header that the document lists for it (`x-api-key`).

    Where neither profile nor document demands a key, nobody looks at it.

    Args:
        contract: whose profile has the form.
        operation: whose documented header parameters count as well.
        headers: the request's, names in lower case.
        key: the right one.

    Raises:
        Refusal: there is no key, or another one.
    """
    if not key_needed(operation, contract):
        return
    auth = contract.profile.auth
    bare = _bare_headers(operation)
    fields = list(headers)
    own = [value for name, value in fields if name == auth.header.lower()]
    listed = [value for name, value in fields if name in bare]
    # Two fields may contradict each other, and a proxy may have read the other one (RFC 9110, section 5.3).
    if len(own) < 2 and any(
        _equal(given, key) for given in [*(_credential(auth, value) for value in own), *map(str.strip, listed)]
    ):
        return
    raise Refusal(Kind.AUTHENTICATION, "Missing or invalid API key.")


@functools.cache
def _bare_headers(operation: Operation) -> frozenset[str]:
    """The header parameters of a document that take the key alone."""
    return frozenset(
        parameter["name"].lower()
        for parameter in operation.definition.get("parameters", [])
        if parameter["in"] == "header" and parameter["name"].lower().endswith(_KEY_HEADER)
    )


def challenge(auth: Auth) -> str:
    """The value of WWW-Authenticate, which RFC 9110 (15.5.2) demands of every 401."""
    scheme = "ApiKey" if auth.scheme == "raw" else auth.scheme
    return f'{scheme} realm="streamgauge reference"'


def _credential(auth: Auth, value: str) -> str:
    """The key inside the header's value; empty when the value has another scheme."""
    if auth.scheme == "raw":
        return value.strip()
    scheme, _, credential = value.strip().partition(" ")
    return credential.strip() if scheme.lower() == auth.scheme.lower() else ""


def _equal(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8"), key.encode("utf-8"))
