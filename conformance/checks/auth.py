"""`auth.*`: who may ask."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.predicates import answered, key_refused, lacks_key
from streamgauge.contract.widening import key_needed
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Credential, Evidence

_KEY = "'401': description: Missing or invalid API key."
_NO_KEY = "the target has no key configured (set STREAMGAUGE_API_KEY)"


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
    "auth.accepted",
    Level.MUST,
    "The right key, sent as the profile says, is accepted",
    requirement=(
        "The 401 (Unauthorized) status code indicates that the request has not been applied because it lacks valid "
        "authentication credentials for the target resource."
    ),
    source="RFC 9110, section 15.5.2; the profile's `auth` says where the key goes",
    applies=lambda case: answered(case) and case.exchange.request.credential is Credential.VALID,
    absent=_NO_KEY,
    needs=(Evidence.CREDENTIAL,),
)
def accepted(case: Case) -> Iterator[Departure]:
    """Either the key goes elsewhere, or it does not open this: both would hide everything else."""
    if key_refused(case):
        auth = case.contract.profile.auth
        form = auth.header if auth.scheme == "raw" else f"{auth.header}: {auth.scheme}"
        yield Departure("any other status", f"401 to the key in the form {form}")


@check(
    "auth.missing",
    Level.MUST,
    "A request without a key gets 401",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(Credential.NONE, case),
    concerns=key_needed,
    absent=_NO_KEY,
    needs=(Evidence.CREDENTIAL, Evidence.REQUEST),
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
    concerns=key_needed,
    absent=_NO_KEY,
    needs=(Evidence.CREDENTIAL, Evidence.REQUEST),
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
    concerns=key_needed,
    absent=_NO_KEY,
    needs=(Evidence.CREDENTIAL, Evidence.REQUEST),
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
    needs=(Evidence.CREDENTIAL,),
)
def key_echoed(case: Case) -> Iterator[Departure]:
    """The recorder has blotted it out; where it did, it was there."""
    if case.exchange.redacted:
        yield Departure("no key in the answer", f"the key, {len(case.exchange.redacted)} times (blotted out here)")
