"""`auth.*`: who may ask."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.predicates import answered, lacks_key
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Credential

_KEY = "'401': description: Missing or invalid API key."
_NO_KEY = "the target has no key configured (set STREAMGAUGE_API_KEY)"


def _required(operation: Operation, contract: Contract) -> bool:
    return contract.profile.auth.required


def _sent(credential: Credential, case: Case) -> bool:
    return (
        answered(case)
        and case.exchange.request.credential is credential
        and case.exchange.request.method == case.operation.method
        and case.exchange.request.is_json
    )


def _acceptable(case: Case) -> tuple[int, ...]:
    return (401,) if 401 in case.operation.statuses else (401, 403)


@check(
    "auth.missing",
    Level.MUST,
    "A request without a key gets 401",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(Credential.NONE, case),
    concerns=_required,
    absent=_NO_KEY,
)
def missing(case: Case) -> Iterator[Departure]:
    """Anything else lets strangers in, or hides why they are kept out."""
    if case.exchange.status not in _acceptable(case):
        yield Departure(" or ".join(map(str, _acceptable(case))), str(case.exchange.status))


@check(
    "auth.wrong",
    Level.MUST,
    "A request with a made-up key gets 401",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(Credential.WRONG, case),
    concerns=_required,
    absent=_NO_KEY,
)
def wrong(case: Case) -> Iterator[Departure]:
    """A key that is only looked for, and not looked at, protects nothing."""
    if case.exchange.status not in _acceptable(case):
        yield Departure(" or ".join(map(str, _acceptable(case))), str(case.exchange.status))


@check(
    "auth.before-body",
    Level.MAY,
    "The key is looked at before the body",
    requirement="An answer about the body tells a stranger how the endpoint reads it.",
    source="common practice; the documents do not say which of two faults is named first",
    applies=lambda case: answered(case) and lacks_key(case) and not case.exchange.request.is_json,
    concerns=_required,
    absent=_NO_KEY,
)
def before_body(case: Case) -> Iterator[Departure]:
    """A request with two faults may be refused for either; only reported."""
    if case.exchange.status not in _acceptable(case):
        yield Departure(" or ".join(map(str, _acceptable(case))), str(case.exchange.status))


@check(
    "auth.key-echoed",
    Level.SHOULD,
    "No answer repeats the key",
    requirement="A credential that is repeated in an answer ends up in the logs of everybody who stores answers.",
    source="the plain meaning of a secret",
    applies=lambda case: answered(case) and case.exchange.request.credential is Credential.VALID,
    absent=_NO_KEY,
)
def key_echoed(case: Case) -> Iterator[Departure]:
    """The recorder has blotted it out; where it did, it was there."""
    if case.exchange.redacted:
        yield Departure("no key in the answer", f"the key, {len(case.exchange.redacted)} times (blotted out here)")
