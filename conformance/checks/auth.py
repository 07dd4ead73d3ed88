"""`auth.*`: who may ask."""

from collections.abc import Iterator

from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.once import once
from streamgauge.conformance.predicates import answered, key_refused, lacks_key
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.security import documented_auth, named_places
from streamgauge.contract.widening import key_needed
from streamgauge.outcomes import Level
from streamgauge.signing import IN_WORDS, WRONG_KEY
from streamgauge.wire.exchange import Credential, Evidence, Exchange

_KEY = "'401': description: Missing or invalid API key."
_NO_KEY = "the target has no key configured (set STREAMGAUGE_API_KEY)"
_UNTRIED = (
    "no request carried the key in such a form, or the usual form lets nobody in, or everybody gets in: "
    "see auth.accepted, auth.missing and auth.wrong"
)

_MISSING = (Credential.NONE, Credential.EMPTY)
_WRONG = (Credential.WRONG, Credential.ALTERED, Credential.LONGER)
_HEADERS = (Credential.X_API_KEY, Credential.API_KEY, Credential.XI_API_KEY)
"""The header field that carries the key is called like these."""

_WITHOUT = (*_MISSING, Credential.UNCONFIGURED, Credential.UNKNOWN)
_NEEDS = (Evidence.CREDENTIAL, Evidence.REQUEST)


def _sent(case: Case, *credentials: Credential) -> bool:
    return (
        answered(case)
        and case.exchange.request.credential in credentials
        and case.exchange.request.method == case.operation.method
        and case.exchange.request.is_json
    )


def _acceptable(case: Case) -> tuple[int, ...]:
    return (401,) if 401 in case.operation.statuses else (401, 403)


def _refusal(case: Case) -> Iterator[Departure]:
    if case.exchange.status not in _acceptable(case):
        actual = f"{case.exchange.status} to {IN_WORDS[case.exchange.request.credential]}"
        yield Departure(" or ".join(map(str, _acceptable(case))), actual)


def _accepted(exchange: Exchange) -> bool:
    return 200 <= exchange.status < 300


@once
def _known(case: Case) -> frozenset[str]:
    """What was asked with the right key and answered."""
    right = (other for other in case.others if other.request.credential is Credential.VALID)
    return frozenset(other.question for other in right if _accepted(other) and other.question)


@once
def _tells_keys_apart(case: Case) -> bool:
    """The right key opens, and nothing else does; otherwise other forms of the key tell nothing."""
    others = [other for other in case.others if _accepted(other)]
    known = _known(case)
    let_in = any(other.request.credential.keyless and other.question not in known for other in others)
    return bool(known) and not let_in


def _tried(case: Case, *credentials: Credential) -> bool:
    return _sent(case, *credentials) and _tells_keys_apart(case)


@once
def _answered_wrongly(case: Case) -> frozenset[Credential]:
    """The forms of the key that get the wrong answer with a right body."""
    return frozenset(
        other.request.credential
        for other in case.others
        if other.request.is_json and other.status not in (0, *_acceptable(case)) and not other.rate_limited
    )


@once
def _opening(case: Case) -> list[str]:
    """The forms that let somebody in beside the usual one, in words; not those that have no right key."""
    forms = dict.fromkeys(other.request.credential for other in case.others if _accepted(other))
    return [IN_WORDS[each] for each in forms if not each.usual and not each.keyless]


def _names_header(operation: Operation, contract: Contract) -> bool:
    """The document names one header field that has the key alone."""
    auth = documented_auth(operation)
    return key_needed(operation, contract) and auth is not None and auth.scheme == "raw"


def _undocumented_header(case: Case) -> bool:
    named = ("header", str(case.exchange.request.credential)) in named_places(case.operation)
    return _tried(case, *_HEADERS) and not named


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
        hint = f"; accepted: {', '.join(opens)}" if (opens := _opening(case)) else ""
        yield Departure("any other status", f"401 to the key in the form {form}{hint}")


@check(
    "auth.missing",
    Level.MUST,
    "A request without a key gets 401",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(case, *_MISSING) and case.exchange.question not in _known(case),
    concerns=key_needed,
    absent=_NO_KEY,
    needs=_NEEDS,
)
def missing(case: Case) -> Iterator[Departure]:
    """Anything else lets strangers in, or hides why they are kept out; an empty header is no key, either."""
    yield from _refusal(case)


@check(
    "auth.cached-prompt",
    Level.MUST,
    "What was just answered to the right key gets 401 without one",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(case, *_MISSING) and case.exchange.question in _known(case) and _tells_keys_apart(case),
    concerns=key_needed,
    absent="no prompt was answered first with the right key and then asked without one",
    needs=_NEEDS,
)
def cached_prompt(case: Case) -> Iterator[Departure]:
    """A cache of answers in front of the key hands out what others paid for; other statuses are judged by auth.missing."""
    if _accepted(case.exchange):
        yield Departure("401", f"{case.exchange.status} to {IN_WORDS[case.exchange.request.credential]}")


@check(
    "auth.wrong",
    Level.MUST,
    "A request with a key that is not the right one gets 401",
    requirement=_KEY,
    source="/responses/401",
    applies=lambda case: _sent(case, *_WRONG),
    concerns=key_needed,
    absent=_NO_KEY,
    needs=_NEEDS,
)
def wrong(case: Case) -> Iterator[Departure]:
    """A key that is only looked for, or of which only a part is looked at, protects nothing."""
    yield from _refusal(case)


@check(
    "auth.before-body",
    Level.MAY,
    "The key is looked at before the body",
    requirement="An answer about the body tells a stranger how the endpoint reads it.",
    source="common practice; the documents do not say which of two faults is named first",
    applies=lambda case: (
        answered(case)
        and lacks_key(case)
        and not case.exchange.request.is_json
        and case.exchange.request.credential not in _answered_wrongly(case)
    ),
    concerns=key_needed,
    absent=_NO_KEY,
    needs=_NEEDS,
)
def before_body(case: Case) -> Iterator[Departure]:
    """A request with two faults may be refused for either; only reported."""
    yield from _refusal(case)


@check(
    "auth.other-place",
    Level.MUST,
    "The key opens nothing from a header field that the document does not name",
    requirement="Your Seekr API key, sent in the Authorization header with no 'Bearer' prefix.",
    source="/security; OpenAPI 3.1.1, 4.8.27: an apiKey scheme names the one header field",
    applies=_undocumented_header,
    concerns=_names_header,
    absent=_UNTRIED,
    needs=_NEEDS,
)
def other_place(case: Case) -> Iterator[Departure]:
    """Whoever filters or logs credentials by the document misses this one."""
    yield from _stays_out(case)


@check(
    "auth.further-place",
    Level.MAY,
    "The key opens nothing from a header field that neither profile nor document names",
    requirement="Lists the required security schemes to execute this operation.",
    source="OpenAPI 3.1.1, 4.8.30; only reported: several vendors take the key in a further field on purpose",
    applies=_undocumented_header,
    concerns=lambda operation, contract: key_needed(operation, contract) and not _names_header(operation, contract),
    absent=_UNTRIED,
    needs=_NEEDS,
)
def further_place(case: Case) -> Iterator[Departure]:
    """A place that nobody wrote down is one that nobody keeps out of logs."""
    yield from _stays_out(case)


@check(
    "auth.query",
    Level.SHOULD,
    "The key opens nothing from the URL",
    requirement=(
        "Because of the security weaknesses associated with the URI method, including the high likelihood that the URL "
        "containing the access token will be logged, it SHOULD NOT be used unless it is impossible to transport the access "
        "token in the Authorization request header field or the HTTP request entity-body."
    ),
    source="RFC 6750, section 2.3",
    applies=lambda case: _tried(case, Credential.QUERY),
    concerns=lambda operation, contract: (
        key_needed(operation, contract) and ("query", "api_key") not in named_places(operation)
    ),
    absent=_UNTRIED,
    needs=_NEEDS,
)
def query(case: Case) -> Iterator[Departure]:
    """Every proxy on the way writes it down."""
    yield from _stays_out(case)


@check(
    "auth.other-scheme",
    Level.MAY,
    "The key opens nothing in the other usual form of Authorization",
    requirement="Your Seekr API key, sent in the Authorization header with no 'Bearer' prefix.",
    source="/security; only reported: it lets clients in that follow the other habit, as every OpenAI SDK follows `Bearer`",
    applies=lambda case: _tried(case, Credential.RAW, Credential.BEARER),
    concerns=key_needed,
    absent=_UNTRIED,
    needs=_NEEDS,
)
def other_scheme(case: Case) -> Iterator[Departure]:
    """Friendly, and beyond the document."""
    yield from _stays_out(case)


@check(
    "auth.two-headers",
    Level.MAY,
    "A right key beside a made-up one opens nothing",
    requirement=(
        "A sender MUST NOT generate multiple field lines with the same name in a message [...] unless that field's definition "
        "allows multiple field line values to be recombined as a comma-separated list."
    ),
    source="RFC 9110, section 5.3; only reported: what a recipient does with them is left open",
    applies=lambda case: _tried(case, Credential.TWO_HEADERS),
    concerns=key_needed,
    absent=_UNTRIED,
    needs=_NEEDS,
)
def two_headers(case: Case) -> Iterator[Departure]:
    """A proxy that reads the one and a server that reads the other take the caller for two people."""
    yield from _stays_out(case)


def _stays_out(case: Case) -> Iterator[Departure]:
    if _accepted(case.exchange):
        yield Departure("a refusal", f"{case.exchange.status} to {IN_WORDS[case.exchange.request.credential]}")


@check(
    "auth.scheme-case",
    Level.SHOULD,
    "The word before the key counts in any case",
    requirement="It uses a case-insensitive token to identify the authentication scheme.",
    source="RFC 9110, section 11.1",
    applies=lambda case: _tried(case, Credential.SCHEME_LOWER, Credential.SCHEME_UPPER),
    concerns=lambda operation, contract: key_needed(operation, contract) and contract.profile.auth.scheme != "raw",
    absent=_UNTRIED,
    needs=_NEEDS,
)
def scheme_case(case: Case) -> Iterator[Departure]:
    """Some clients write `bearer`."""
    yield from _comes_in(case)


@check(
    "auth.white-space",
    Level.MAY,
    "More than one space before the key makes no difference",
    requirement="credentials = auth-scheme [ 1*SP ( token68 / #auth-param ) ]",
    source="RFC 9110, section 11.4; only reported: no client is known to send more",
    applies=lambda case: _tried(case, Credential.SPACED),
    concerns=lambda operation, contract: key_needed(operation, contract) and contract.profile.auth.scheme != "raw",
    absent=_UNTRIED,
    needs=_NEEDS,
)
def white_space(case: Case) -> Iterator[Departure]:
    """The grammar leaves the number of spaces open."""
    yield from _comes_in(case)


def _comes_in(case: Case) -> Iterator[Departure]:
    if case.exchange.status in (401, 403):
        actual = f"{case.exchange.status} to {IN_WORDS[case.exchange.request.credential]}"
        yield Departure("the answer to the usual form", actual)


@check(
    "auth.challenge",
    Level.SHOULD,
    "A 401 says by WWW-Authenticate how to authenticate",
    requirement=(
        "The server generating a 401 response MUST send a WWW-Authenticate header field containing at least one challenge "
        "applicable to the target resource."
    ),
    source="RFC 9110, section 15.5.2; a SHOULD here, since clients of such APIs do without it",
    applies=lambda case: answered(case) and case.exchange.status == 401,
    absent="no request was answered with 401",
)
def challenge(case: Case) -> Iterator[Departure]:
    """Generic HTTP clients, API gateways among them, find out by it which scheme is wanted."""
    if not (case.exchange.response.header("www-authenticate") or "").strip():
        yield Departure("WWW-Authenticate with a challenge", "no such header field")


@check(
    "auth.key-echoed",
    Level.SHOULD,
    "No answer repeats the key, right or wrong",
    requirement="A credential that is repeated in an answer ends up in the logs of everybody who stores answers.",
    source="the plain meaning of a secret",
    applies=lambda case: answered(case) and case.exchange.request.credential not in _WITHOUT,
    absent=_NO_KEY,
    needs=(Evidence.CREDENTIAL,),
)
def key_echoed(case: Case) -> Iterator[Departure]:
    """The recorder has blotted out the right one and what is nearly it; a wrong one may be a right one mistyped."""
    if case.exchange.redacted:
        yield Departure("no key in the answer", f"the key, {len(case.exchange.redacted)} times (blotted out here)")
    elif WRONG_KEY.encode() in case.exchange.wire or WRONG_KEY.encode() in case.exchange.response.body:
        yield Departure("no key in the answer", f"the made-up key {WRONG_KEY}")
